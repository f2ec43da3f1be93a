"""The lines of the stdio transport: messages in, messages out, nothing else on standard output (PT-8, PT-16).

Here: reading and writing lines in threads of their own. Not here: what messages mean (the SDK), the server's
life (`stdio.py`).

Threads and not the event loop's pipes: standard input may be a file or a terminal, and others hold the same
open file, whose mode must stay as it is. They are daemons: a read that never returns keeps no process alive.
"""

import asyncio
import os
import select
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
_AHEAD = 64  # messages read and not yet taken; errors not yet written
LEFT_S = 5.0  # whoever has closed our input and reads no answer for so long is gone


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
        fd: what is read. answer: takes an error for a line that is no message, and says whether there was
            room for it; called in the thread.

    Attributes:
        left: set when the client has closed its output and takes nothing of ours.
    """

    def __init__(self, fd: int, answer: Callable[[JSONRPCError], bool]) -> None:
        self._fd = fd
        self._put = answer
        self.left = asyncio.Event()
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
        try:
            self._read_all()
        except _Left:
            self._in_loop(self.left.set)
        self._tell(None)

    def _read_all(self) -> None:
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

    def _answer(self, error: JSONRPCError) -> None:
        while not self._put(error):
            self._still_there()

    def _hand_over(self, message: SessionMessage) -> None:
        while not self._room.acquire(timeout=LEFT_S):
            self._still_there()
        self._tell(message)

    def _still_there(self) -> None:
        """Look whether somebody holds the other end: nothing was taken from us for a while."""
        looking = select.poll()
        looking.register(self._fd, 0)
        if any(event & select.POLLHUP for _, event in looking.poll(0)):
            raise _Left

    def _tell(self, message: SessionMessage | None) -> None:
        self._in_loop(lambda: self._ready.put_nowait(message))

    def _in_loop(self, what: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop has ended, and so does the process
            return


class _Left(Exception):
    """The client has closed its output and does not read ours."""


class LineWriter:
    """Writes messages in a thread of its own, in the order in which they are given.

    Attributes:
        broken: set when nobody reads any more.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._given: SimpleQueue[tuple[Any, asyncio.Future[None] | None] | None] = SimpleQueue()
        self._room = threading.Semaphore(_AHEAD)  # else one who never reads fills memory with what is wrong
        self.broken = asyncio.Event()
        self._thread = threading.Thread(target=self._write, name="mcp output", daemon=True)
        self._thread.start()

    def put(self, message: Any) -> bool:
        """Write a message; from a thread, which waits where many are not written yet.

        Returns:
            Whether there was room for it within `LEFT_S`.
        """
        if not self._room.acquire(timeout=LEFT_S):
            return False
        self._given.put((message, None))
        return True

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
            if done is None:
                self._room.release()
            else:
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
