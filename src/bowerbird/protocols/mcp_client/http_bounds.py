"""What a server sends over HTTP, held to the bounds that its lines have over stdio (PT-17).

Here: a body that is too large, has too many parts or is compressed ends; how often the SDK may complain.
Not here: requests and their headers (`transport.py`).
"""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import httpx2

from bowerbird.protocols.mcp_client.child import LARGEST_LINE
from bowerbird.protocols.mcp_client.messages import MOST_PARTS, count_parts, made_readable

IDENTITY = {"Accept-Encoding": "identity"}  # what is sent small must not become large here
_LOGGERS = ("mcp.client.streamable_http", "mcp.client.sse")
_MOST_RECORDS = 10
_PER_S = 60.0


class OutOfBounds(httpx2.StreamError, httpx2.SSEError):
    """A server sent more than is read. The SDK ends the request that hears of it, of either kind."""

    def __init__(self, what: str) -> None:
        Exception.__init__(self, what)


async def hold_to_bounds(response: httpx2.Response) -> None:
    """Bound the body of `response`; for a client's event hooks, which come before it is read."""
    body = cast("httpx2.AsyncByteStream", response.stream)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        pieces = _refused(body)
    elif response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        pieces = _lines(body)
    else:
        pieces = _whole(body)
    response.stream = _Bounded(body, pieces)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream, pieces: AsyncGenerator[bytes]) -> None:
        self._body, self._pieces = body, pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._pieces):
            async for piece in self._pieces:
                yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


async def _refused(_: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    raise OutOfBounds("the server compressed its answer, which was not asked for")
    yield b""


async def _whole(body: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    """Yield a body that is one message, once it is there."""
    kept = bytearray()
    async for piece in body:
        kept += piece
        _hold(len(kept))
    _hold(0, count_parts(kept))
    yield made_readable(bytes(kept))


async def _lines(body: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    """Yield a stream of events by lines. The lines of an event are one message; an empty line ends it."""
    line = bytearray()
    size = parts = 0
    after_return = False  # the line before ended with one, so a newline now is the rest of its end
    async for piece in body:
        ready = bytearray()
        for part in piece.splitlines(keepends=True):  # of bytes: at \n, \r and \r\n, as events have it
            line += part
            _hold(size + len(line))
            if not part.endswith((b"\n", b"\r")):
                break  # the last one, not complete
            if line.strip(b"\r\n"):
                size, parts = size + len(line), parts + count_parts(line)
                _hold(size, parts)
            elif not (after_return and line.startswith(b"\n")):
                size = parts = 0
            after_return = line.endswith(b"\r")
            ready += made_readable(bytes(line))
            line.clear()
        if ready:
            yield bytes(ready)
    if line:
        yield bytes(line)


def _hold(size: int, parts: int = 0) -> None:
    if size > LARGEST_LINE:
        raise OutOfBounds("a message of the server is over 16 MiB")
    if parts > MOST_PARTS:
        raise OutOfBounds(f"a message of the server has over {MOST_PARTS:,} parts")


class _Rarely(logging.Filter):
    """Lets a few records a minute through: the SDK writes a traceback for each event that is no message."""

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._since > _PER_S:
            self._since, self._count = now, 0
        self._count += 1
        return self._count <= _MOST_RECORDS


def log_rarely() -> None:
    """Bound what the SDK's HTTP transports log; a second call does nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, _Rarely) for known in logger.filters):
            logger.addFilter(_Rarely())
