"""The lines of the stdio transport: messages in, messages out, nothing else on standard output (PT-8, PT-16).

Here: reading and writing lines in threads of their own. Not here: what messages mean (the SDK), the server's
life (`stdio.py`).

Threads and not the event loop's pipes: standard input may be a file or a terminal, and others hold the same
open file, whose mode must stay as it is. They are daemons: a read that never returns keeps no process alive.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter

from bowerbird.core.json_text import whole_escapes
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server.framing import fault_of

MOST_BYTES = 4 << 20  # of one message, as over HTTP
_CHUNK = 1 << 16
_AHEAD = 64  # messages read and not yet taken


TOO_LONG = JSONRPCError(
    jsonrpc="2.0",
    id=None,
    error=ErrorData(code=INVALID_REQUEST, message=f"a message has at most {MOST_BYTES >> 20} MiB"),
)

NO_MESSAGE = JSONRPCError(
    jsonrpc="2.0",
    id=None,
    error=ErrorData(code=INVALID_REQUEST, message="this is not a JSON-RPC message"),
)


class LineReader:
    """Reads messages in a thread of its own.

    Args:
        fd: what is read. answer: takes an error for a line that is no message; called in the thread.
    """

    def __init__(self, fd: int, answer: Callable[[JSONRPCError], None]) -> None:
        self._fd = fd
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(_AHEAD)
        self._ready: asyncio.Queue[SessionMessage | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="mcp input", daemon=True).start()

    async def next(self) -> SessionMessage | None:
        """Return the next message, None at the end of input."""
        found = await self._ready.get()
        self._room.release()
        return found

    def _read(self) -> None:
        kept, skipping = bytearray(), False
        while True:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError:
                chunk = b""
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                if not skipping:
                    kept += line
                    self._take(bytes(kept))
                kept, skipping = bytearray(), False
            if not skipping:
                kept += rest
            if len(kept) > MOST_BYTES:
                self._answer(TOO_LONG)
                kept, skipping = bytearray(), True
            if not chunk:
                if kept:
                    self._take(bytes(kept))
                self._hand_over(None)
                return

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        if len(line) > MOST_BYTES:
            self._answer(TOO_LONG)
            return
        # What is no UTF-8 inside a text is shown as such, and its message answered like any other.
        text = whole_escapes(line.decode("utf-8", "replace"))
        if fault := fault_of(text.encode()):
            self._answer(fault)
            return
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except (ValueError, RecursionError):  # an error without a message, a nesting without an end
            self._answer(NO_MESSAGE)
            return
        self._hand_over(SessionMessage(message))

    def _hand_over(self, message: SessionMessage | None) -> None:
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._ready.put_nowait, message)
        except RuntimeError:  # the loop has ended, and so does the process
            return


class LineWriter:
    """Writes messages in a thread of its own, in the order in which they are given.

    Attributes:
        broken: set when nobody reads any more.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._given: SimpleQueue[tuple[Any, asyncio.Future[None] | None] | None] = SimpleQueue()
        self.broken = asyncio.Event()
        self._thread = threading.Thread(target=self._write, name="mcp output", daemon=True)
        self._thread.start()

    def put(self, message: Any) -> None:
        """Write a message; from any thread."""
        self._given.put((message, None))

    async def write(self, message: Any) -> None:
        """Write a message and wait until it is written: whoever does not read is waited for."""
        done = self._loop.create_future()
        self._given.put((message, done))
        await done

    async def finish(self, within_s: float) -> None:
        """Wait until all is written, but no longer than that."""
        self._given.put(None)
        await to_thread(self._thread.join, within_s)

    def _write(self) -> None:
        while (given := self._given.get()) is not None:
            message, done = given
            line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            try:
                _write_all(self._fd, line)
            except OSError:
                self._tell(self.broken.set)
            if done is not None:
                self._tell(lambda done=done: done.done() or done.set_result(None))

    def _tell(self, what: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop has ended
            return


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
