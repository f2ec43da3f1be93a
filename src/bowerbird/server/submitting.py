"""Handing an input to the session service, and the end of its turn as REST shows it (SV-19, SV-28).

Here: sender, door and dedupe key of what comes over HTTP. Not here: how a request says it
(`incoming.py`).
"""

import hashlib
from typing import TYPE_CHECKING, Any

from bowerbird.server.errors import said

if TYPE_CHECKING:
    from starlette.requests import Request

    from bowerbird.server.context import Caller, ServerContext
    from bowerbird.server.incoming import Kind
    from bowerbird.sessions.values import Receipt, TurnInfo

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
    """Return how a turn ended, with its final answer."""
    messages = await context.sessions.messages(turn.thread_id)
    texts = [m.content for m in messages if m.turn_id == turn.turn_id and m.role == "assistant"]
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
    }
