"""Handing an input to the session service, and the end of its turn as REST shows it (SV-19, SV-28).

Here: sender, door and dedupe key of what comes over HTTP. Not here: how a request says it
(`incoming.py`).
"""

import hashlib
from typing import TYPE_CHECKING, Any

from bowerbird.server.common.errors import said
from bowerbird.sessions.thread_ids import root_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.server.conversations.incoming import Kind
    from bowerbird.sessions.values import PendingRequest, Receipt, TurnInfo

DOOR = "web"


async def submit(
    context: "ServerContext",
    caller: "Caller",
    thread_id: str,
    content: str | list[dict[str, Any]],
    request: "Request",
    *,
    kind: "Kind" = "message",
) -> "Receipt":
    """Accept an input durably; an `Idempotency-Key` is its dedupe key, so that a crash repeats nothing.

    Raises:
        QueueFull, StorageFull, InvalidArgument: nothing is stored.
    """
    key = request.headers.get("idempotency-key")
    dedupe = None
    if key:
        text = "\0".join((caller.user_id, thread_id, key))
        dedupe = "key_" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]
    sender = {"id": caller.user_id or None, "name": caller.name or None, "door": DOOR}
    receipt = await context.sessions.submit(
        thread_id, {"content": content}, door=DOOR, sender=sender, dedupe_key=dedupe, kind=kind
    )
    context.metrics.turns.labels(DOOR).inc()
    context.presence.touched(thread_id)
    return receipt


async def answered(context: "ServerContext", turn: "TurnInfo") -> dict[str, Any]:
    """Return how a turn ended or what it waits for, with its final answer; a plan that waits is one."""
    messages = await context.sessions.messages(turn.thread_id)
    texts = [m.content for m in messages if m.turn_id == turn.turn_id and m.role == "assistant"]
    asked = None
    if turn.state == "waiting":
        waiting = await context.sessions.pending(turn.thread_id)
        asked = next((found for found in waiting if found.turn_id == turn.turn_id), None)
        if asked is not None and asked.kind == "plan":
            texts.append(asked.text)
    error = turn.error
    if error is not None and "message" in error:
        error = {**error, "message": said(str(error["message"]))}
    return {
        "state": turn.state,
        "waiting_for": turn.waiting_for,
        "stop_reason": turn.stop_reason,
        "text": texts[-1] if texts else "",
        "usage": turn.usage,
        "cost": turn.cost,
        "snapshot_id": turn.snapshot_id,
        "error": error,
        "request": None if asked is None else question(asked),
    }


def question(request: "PendingRequest") -> dict[str, Any]:
    """Return a pending request as REST shows it."""
    root = root_of(request.thread_id)
    return {
        "request_id": request.request_id,
        "conversation_id": root,
        "subagent_id": request.thread_id if root != request.thread_id else None,
        "turn_id": request.turn_id,
        "kind": request.kind,
        "tools": list(request.tools),
        "text": request.text,
        "asked_at": request.asked_at,
        "expires_at": request.expires_at,
        "cursor": request.cursor,
    }
