"""Bodies: how large a request's may be (SV-2), and HEAD as GET without the answer's.

Here: the limit by path, counted while the body streams, and the 413; the 415 of encoded bodies, which nobody
decodes. Not here: uploads, which judge each of their files (`conversations/uploads.py`).
"""

import asyncio
from typing import TYPE_CHECKING

from bowerbird.server.common.errors import Problem, methods_at, problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bowerbird.server.common.context import InForce, ServerSettings

UPLOAD = "/api/workspace/upload"
UNLIMITED = (UPLOAD, "/mcp")  # both have limits of their own


class Heads:
    """ASGI: asks the route as for GET, sends the headers, and stops it before it reads what nobody gets."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        wanted = scope["type"] == "http" and scope["method"] == "HEAD"
        if not wanted or "GET" not in methods_at(scope["app"], scope["path"]):
            await self.app(scope, receive, send)
            return
        ended = False

        async def headers_only(message: "Message") -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                whole.cancel()  # a file, or a stream without an end

        whole = asyncio.ensure_future(self.app({**scope, "method": "GET"}, receive, headers_only))
        try:
            await asyncio.wait([whole])
        finally:
            whole.cancel()
        if not whole.cancelled():
            whole.result()


def limit_of(path: str, settings: "ServerSettings") -> int | None:
    """Return how many bytes a body at `path` may have, None where the route counts for itself."""
    if path in UNLIMITED or path.startswith("/mcp/"):
        return None
    if path.startswith("/api/conversations/") and path.endswith("/messages"):
        return settings.message_body_bytes
    return settings.body_bytes


class BodyLimit:
    """ASGI: answers 413 as soon as a body is known to be too large."""

    def __init__(self, app: "ASGIApp", in_force: "InForce") -> None:
        self.app = app
        self._in_force = in_force

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and _encoding(scope) != "identity":
            said = "send the body as it is: no Content-Encoding is understood"
            await problem("unsupported_media_type", said).response()(scope, receive, send)
            return
        limit = limit_of(scope["path"], self._in_force.settings) if scope["type"] == "http" else None
        if limit is None:
            await self.app(scope, receive, send)
            return
        if _declared(scope) > limit:
            await _too_large(limit).response()(scope, receive, send)
            return
        seen = 0

        async def counted() -> "Message":
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > limit:
                    raise _too_large(limit)
            return message

        await self.app(scope, counted, send)


def _encoding(scope: "Scope") -> str:
    """Return how the body is said to be encoded."""
    found = next((value for name, value in scope["headers"] if name == b"content-encoding"), b"")
    return found.decode("latin-1").strip().lower() or "identity"


def _declared(scope: "Scope") -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _too_large(limit: int) -> Problem:
    return problem("too_large", f"the body is larger than {limit / (1 << 20):.4g} MiB")
