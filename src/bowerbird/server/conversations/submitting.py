"""Handing an input to the session service (SV-19, SV-28).

Here: sender, door and dedupe key of what comes over HTTP. Not here: how a request says it
(`incoming.py`).
"""

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.requests import Request

    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.server.conversations.incoming import Kind
    from bowerbird.sessions.values import Receipt

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
