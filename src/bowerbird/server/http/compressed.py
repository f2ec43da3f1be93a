"""Answers compressed on their way out: a diff of 200 files is a tenth of itself on a phone's network (UI-93).

Here: whole JSON answers of some size, for whoever takes gzip. Not here: the page's own files, which the build
compresses (`pages.py`); streams, downloads and sockets, which go out as they are. Starlette's own middleware
compresses those, too, ranges of files among them, and large ones on the event loop.
"""

import zlib
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.server.http.pages import takes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST = 2 << 10  # below it, what is saved is no packet
ASIDE = 32 << 10  # from here on in a thread: compressing holds nobody up
MOST = 64 << 20
OTHERS = (b"content-encoding", b"content-range", b"etag", b"content-disposition")
LEVEL = 4  # nearly as small as 9, in a fifth of the time


class Compressed:
    """ASGI: JSON answers that come in one piece go out as gzip."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or not takes(_header(scope["headers"], b"accept-encoding"), "gzip"):
            await self.app(scope, receive, send)
            return
        begun: Message | None = None

        async def compressing(message: "Message") -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _may_be(message["headers"]):
                begun = message
                return
            if begun is not None:
                head, begun = begun, None
                head, message = await _smaller(head, message)
                await send(head)
            await send(message)

        await self.app(scope, receive, compressing)


def _header(headers: "list[tuple[bytes, bytes]]", name: bytes) -> str:
    return b",".join(value for key, value in headers if key == name).decode("latin-1")


def _may_be(headers: "list[tuple[bytes, bytes]]") -> bool:
    """Whether an answer of our own begins: a file has a version, a range or a name, and goes out as it is."""
    names = {name.lower() for name, _ in headers}
    return _header(headers, b"content-type").startswith("application/json") and names.isdisjoint(OTHERS)


async def _smaller(head: "Message", body: "Message") -> "tuple[Message, Message]":
    """An answer's two messages, compressed where it is whole and that is worth it; as they were otherwise."""
    data = body.get("body", b"")
    if body.get("more_body") or not LEAST <= len(data) <= MOST:
        return head, body
    small = _gzip(data) if len(data) < ASIDE else await to_thread(_gzip, data)
    headers = [pair for pair in head["headers"] if pair[0] not in (b"content-length", b"vary")]
    vary = _header(head["headers"], b"vary")
    headers += [
        (b"content-encoding", b"gzip"),
        (b"content-length", str(len(small)).encode()),
        (b"vary", f"{vary}, Accept-Encoding".removeprefix(", ").encode("latin-1")),
    ]
    return {**head, "headers": headers}, {**body, "body": small}


def _gzip(data: bytes) -> bytes:
    squeeze = zlib.compressobj(LEVEL, wbits=zlib.MAX_WBITS | 16)
    return squeeze.compress(data) + squeeze.flush()
