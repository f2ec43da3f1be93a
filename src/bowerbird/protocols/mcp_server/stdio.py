"""The MCP server on standard input and output (PT-8).

Here: its life from the first line to the end of input. Not here: lines (`lines.py`), tools.
"""

import asyncio
import contextlib
from collections import Counter
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from bowerbird.protocols.mcp_server.lines import LineReader, LineWriter

ANSWERING_S = 1.0  # after the end of input, for what is answered soon; the rest is stopped
MOST_OPEN = 1_000  # each is a task
_TOO_MANY = ErrorData(code=INVALID_REQUEST, message=f"{MOST_OPEN:,} requests are open; wait for answers")
LAST_WORDS_S = 0.5
STOPPING_S = 1.0


async def serve_lines(server: Server[Any], reading: int, writing: int) -> None:
    """Serve one client until its input ends or nobody reads the output; calls that run are stopped then.

    Args:
        reading, writing: descriptors, of standard input and output, say.
    """
    writer = LineWriter(writing)
    reader = LineReader(reading, writer.put)
    heard, inbound = create_context_streams[SessionMessage | Exception](0)
    outbound, told = create_context_streams[SessionMessage](0)

    open_calls = _OpenCalls()

    async def read() -> None:
        async with heard:
            while (message := await reader.next()) is not None:
                refusal = open_calls.asked(message.message)
                if refusal is None:
                    await heard.send(message)
                else:
                    await writer.write(refusal)
            await open_calls.answered(ANSWERING_S)

    async def write() -> None:
        async with told:
            async for message in told:
                await writer.write(message.message)
                open_calls.told(message.message)

    serving = asyncio.create_task(
        server.run(inbound, outbound, server.create_initialization_options()), name="mcp server"
    )
    reads = asyncio.create_task(read(), name="mcp reading")
    writes = asyncio.create_task(write(), name="mcp writing")
    broken = asyncio.create_task(writer.broken.wait(), name="mcp output broken")
    left = asyncio.create_task(reader.left.wait(), name="mcp client left")
    try:
        await asyncio.wait((serving, reads, broken, left), return_when=asyncio.FIRST_COMPLETED)
        if (
            not broken.done() and not left.done()
        ):  # what was answered before the end of input is still written
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOPPING_S):
                    await asyncio.wait((serving,))
    finally:
        for task in (serving, reads, writes, broken, left):
            task.cancel()
        await asyncio.wait((serving, reads, writes, broken, left), timeout=STOPPING_S)
        with contextlib.suppress(anyio.ClosedResourceError):
            await outbound.aclose()
        await writer.finish(LAST_WORDS_S)
    if serving.done() and not serving.cancelled():
        error = serving.exception()
        if error is not None:
            raise error


class _OpenCalls:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: Counter[str | int] = Counter()
        self._open = 0
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def asked(self, message: object) -> JSONRPCError | None:
        """Note a request of the client, or that it gave one up; returns why it is not served."""
        if isinstance(message, JSONRPCRequest):
            if self._open >= MOST_OPEN:
                return JSONRPCError(jsonrpc="2.0", id=message.id, error=_TOO_MANY)
            self._open += 1
            self._ids[message.id] += 1
            self._all_answered.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close((message.params or {}).get("requestId"))  # it gets no answer
        return None

    def told(self, message: object) -> None:
        """Note an answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, number: object) -> None:
        if isinstance(number, str | int) and number in self._ids:
            self._open -= 1
            self._ids[number] -= 1
            if self._ids[number] == 0:
                del self._ids[number]
        if not self._ids:
            self._all_answered.set()

    async def answered(self, within_s: float) -> None:
        """Wait until every request has an answer, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._all_answered.wait()
