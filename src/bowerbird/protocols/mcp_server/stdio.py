"""The MCP server on standard input and output (PT-8).

Here: its life from the first line to the end of input. Not here: lines (`lines.py`), tools.
"""

import asyncio
import contextlib
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from bowerbird.protocols.mcp_server.lines import LineReader, LineWriter

ANSWERING_S = 1.0  # after the end of input, for what is answered soon; the rest is stopped
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
                open_calls.asked(message.message)
                await heard.send(message)
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
    try:
        await asyncio.wait((serving, reads, broken), return_when=asyncio.FIRST_COMPLETED)
        if not broken.done():  # what was answered before the end of input is still written
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOPPING_S):
                    await asyncio.wait((serving,))
    finally:
        for task in (serving, reads, writes, broken):
            task.cancel()
        await asyncio.wait((serving, reads, writes, broken), timeout=STOPPING_S)
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
        self._ids: set[str | int | None] = set()
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def asked(self, message: object) -> None:
        """Note a request of the client."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
            self._all_answered.clear()

    def told(self, message: object) -> None:
        """Note an answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._ids.discard(message.id)
            if not self._ids:
                self._all_answered.set()

    async def answered(self, within_s: float) -> None:
        """Wait until every request has an answer, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._all_answered.wait()
