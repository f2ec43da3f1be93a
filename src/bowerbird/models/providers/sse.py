"""Server-sent events read raw from an HTTP answer, with the provider timeouts (MO-31).

Here: bytes in, `data` payloads out; silence is an error. Not here: what a payload means (the wire
modules), opening the answer (`connection`).

Lines end in LF or CRLF. A lone CR, which the standard also allows, is not a line end here: no
provider sends it, and JSON never contains it raw.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

MOST_AHEAD = 1 << 20  # bytes of an answer that may wait to be decoded


class SseParser:
    """Divides a byte stream into the `data` payloads of its events, however the bytes are cut.

    Example:
        >>> parser = SseParser()
        >>> parser.feed(b"event: x\\ndata: {}"), parser.feed(b"\\n\\n")
        ([], [b'{}'])
    """

    __slots__ = ("_data", "_rest")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the payloads of the events that `chunk` completes."""
        self._rest.append(chunk)
        if b"\n" not in chunk:
            return []  # a long line in many pieces is put together once, at its end
        lines = b"".join(self._rest).split(b"\n")
        self._rest = [lines.pop()]
        payloads: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif data and (not line or line == b"\r"):
                payloads.append(_joined(data))
                data.clear()
            # `event`, `id`, `retry` and comments say nothing that the payload does not say.
        return payloads

    def finish(self) -> list[bytes]:
        """Return the payload of a last event that no blank line ended."""
        payloads = self.feed(b"\n\n")
        self._rest = []
        return payloads


def _joined(data: list[bytes]) -> bytes:
    if len(data) == 1:
        return data[0].rstrip(b"\r")
    return b"\n".join(line.rstrip(b"\r") for line in data)


class LineParser:
    """Divides a byte stream into its lines, each of them a payload, however the bytes are cut."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without blank ones."""
        self._rest.append(chunk)
        if b"\n" not in chunk:
            return []
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest = [rest]
        return [line for line in lines if line.strip()]

    def finish(self) -> list[bytes]:
        """Return a last line that nothing ended."""
        return self.feed(b"\n")


class Clock:
    """How long the next bytes may take: the first event, then silence, never past the deadline.

    Args:
        first_s: seconds until the first bytes of the answer, from now.
        silence_s: seconds between bytes after that.
        deadline_s: seconds for the whole answer from now, or None.
    """

    __slots__ = ("_deadline", "_first", "_first_s", "_loop", "_silence", "started")

    def __init__(self, first_s: float, silence_s: float, deadline_s: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._first_s = first_s
        self._first = now + first_s
        self._silence = silence_s
        self._deadline = None if deadline_s is None else now + deadline_s
        self.started = False  # whether bytes of the answer came

    def next_limit(self) -> float:
        """Return the loop time by which the next bytes must have come."""
        limit = self._loop.time() + self._silence if self.started else self._first
        return limit if self._deadline is None else min(limit, self._deadline)

    @property
    def expired(self) -> bool:
        """Whether the time for the whole answer is over."""
        return self._deadline is not None and self._loop.time() >= self._deadline

    def describe(self) -> str:
        """Return what did not come in time."""
        if self.expired:
            return "did not finish within the time left for this call"
        if self.started:
            return f"sent nothing for {self._silence:g} s in the middle of its answer"
        return f"sent no first event within {self._first_s:g} s"


async def chunks_in_time(chunks: AsyncIterator[bytes], clock: Clock) -> AsyncGenerator[bytes, None]:
    """Yield `chunks`, what came together as one; raises TimeoutError when the clock runs out.

    A task of its own reads: what the network delivered at once, the HTTP client gives out in pieces
    without ever waiting, so one turn of the event loop gathers all of them.
    """
    reading = _Reading(chunks)
    try:
        while (chunk := await reading.take(clock)) is not None:
            if chunk:
                clock.started = True
                yield chunk
    finally:
        await reading.aclose()


class _Reading:
    """Chunks read by a task until `MOST_AHEAD` bytes are there."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._there: list[bytes] = []
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._task = asyncio.create_task(self._read(chunks), name="model answer")
        self._task.add_done_callback(lambda _: self._arrived.set())

    async def take(self, clock: Clock) -> bytes | None:
        """Return all that is there, None at the end; raises what reading raised, or TimeoutError."""
        if not self._there and not self._task.done():
            async with asyncio.timeout_at(clock.next_limit()):
                await self._arrived.wait()
        self._arrived.clear()
        if self._there:
            there = b"".join(self._there)
            self._there.clear()
            self._taken.set()
            return there
        if not self._task.done():
            return b""
        await self._task
        return None

    async def aclose(self) -> None:
        """Stop reading; the answer is its owner's to close."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.exception()  # who no longer reads has no use for it

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        size = 0
        async for chunk in chunks:
            if not self._there:
                size = 0
            self._there.append(chunk)
            size += len(chunk)
            self._arrived.set()
            if size >= MOST_AHEAD:
                self._taken.clear()
                await self._taken.wait()
