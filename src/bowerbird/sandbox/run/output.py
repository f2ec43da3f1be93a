"""What a command prints: bounded in memory, whole on disk, readable for people (SB-16 … SB-18).

Here: collecting bytes and cutting them, pure but for the spill file. Not here: pipes and processes.
"""

import codecs
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

HEAD_SHARE = 0.4
SPILL_LIMIT = 64 << 20
LIVE_INTERVAL_S = 0.05
_LIVE_BUFFER = 64 << 10


class Collected(msgspec.Struct, frozen=True):
    """Output as a record shows it; `spill` is the name of the whole output, None when nothing was cut."""

    text: str
    truncated: bool
    total_bytes: int
    spill: str | None
    spill_truncated: bool


class OutputCollector:
    """Keeps the first 40 % and last 60 % of `max_bytes`; the whole goes to a spill file once it is cut.

    Args:
        max_bytes: limit of the text in UTF-8 bytes, marker included.
        spill_path: file to create when output exceeds the limit; at most 64 MiB are written.
        spill_name: how the marker calls that file.
        keep: write the file from the first byte on, so that it outlives this process.
    """

    def __init__(self, max_bytes: int, spill_path: Path, spill_name: str, *, keep: bool = False) -> None:
        self._max = max_bytes
        self._head_size = int(max_bytes * HEAD_SHARE)
        self._tail_size = max_bytes - self._head_size
        self._path = spill_path
        self.name = spill_name
        self._head = bytearray()
        self._tail = bytearray()
        self._spill: int | None = None
        self._spilled = 0
        self._keep = keep
        self.total_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; memory stays below twice the limit."""
        if self._spill is None and (self._keep or self.total_bytes + len(chunk) > self._max):
            self._open_spill()
        self.total_bytes += len(chunk)
        if self._spill is not None:
            self._write_spill(chunk)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk[-self._tail_size :]
        if len(self._tail) > self._tail_size:
            del self._tail[: len(self._tail) - self._tail_size]

    def _open_spill(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._spill = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._write_spill(bytes(self._head + self._tail))

    def _write_spill(self, chunk: bytes) -> None:
        room = SPILL_LIMIT - self._spilled
        if room > 0 and self._spill is not None:
            self._spilled += os.write(self._spill, chunk[:room])

    def _close_spill(self) -> None:
        if self._spill is not None:
            os.close(self._spill)
            self._spill = None

    @property
    def spilled(self) -> bool:
        """Whether anything was written to the spill."""
        return self._spilled > 0

    def so_far(self) -> str:
        """Return what a record would show if the command ended now."""
        if self.total_bytes <= self._max:
            return readable(bytes(self._head + self._tail))
        return shorten(bytes(self._head), bytes(self._tail), self.total_bytes, self._max, self.name)

    def close(self) -> Collected:
        """Close the spill and return what a record shows."""
        if self.total_bytes <= self._max:
            text = readable(bytes(self._head + self._tail))
            if len(text.encode()) <= self._max:
                self._close_spill()
                return Collected(text, False, self.total_bytes, self.name if self._spilled else None, False)
            if self._spill is None:
                self._open_spill()  # replacement characters are longer than the bytes they stand for
        self._close_spill()
        name = self.name if self._spilled else None
        text = shorten(bytes(self._head), bytes(self._tail), self.total_bytes, self._max, name)
        return Collected(text, True, self.total_bytes, name, self.total_bytes > self._spilled)


def readable(raw: bytes) -> str:
    """Decode UTF-8; invalid bytes and NUL become U+FFFD."""
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")


def shorten(head: bytes, tail: bytes, total: int, limit: int, spill: str | None) -> str:
    """Return head, marker and tail, cut on character boundaries, at most `limit` bytes of UTF-8.

    `head` and `tail` are the first and last bytes of an output of `total` bytes.
    """
    where = f"; the whole output is in {spill}" if spill else ""
    room = limit - len(_marker(total, where).encode())
    if room <= 0:
        return readable(head)[: max(0, limit // 4)]
    first = _fit(_whole_characters(head), int(room * HEAD_SHARE), from_end=False)
    last = _fit(_without_cut_start(tail), room - len(first.encode()), from_end=True)
    kept = len(first.encode()) + len(last.encode())
    return first + _marker(max(1, total - kept), where) + last


def _marker(omitted: int, where: str) -> str:
    return f"\n[… {omitted} bytes omitted{where} …]\n"


def _whole_characters(raw: bytes) -> str:
    # An incremental decoder leaves out a character that the cut at the end broke.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(raw, final=False).replace("\0", "\ufffd")


def _without_cut_start(raw: bytes) -> str:
    start = 0
    while start < min(3, len(raw)) and raw[start] & 0xC0 == 0x80:
        start += 1
    return readable(raw[start:])


def _fit(text: str, size: int, *, from_end: bool) -> str:
    raw = text.encode()
    if len(raw) <= size:
        return text
    if size <= 0:
        return ""
    part = raw[-size:] if from_end else raw[:size]
    return part.decode("utf-8", "ignore")


class LiveOutput:
    """Passes live chunks to `sink` at most every 50 ms; a slow sink loses the oldest, never blocks."""

    def __init__(self, sink: Callable[[bytes], None], clock: Callable[[], float]) -> None:
        self._sink = sink
        self._clock = clock
        self._waiting = bytearray()
        self._last = float("-inf")

    def feed(self, chunk: bytes) -> None:
        """Take bytes; hand on what waits when the interval is over."""
        self._waiting += chunk
        if len(self._waiting) > _LIVE_BUFFER:
            del self._waiting[: len(self._waiting) - _LIVE_BUFFER]
        if self._clock() - self._last >= LIVE_INTERVAL_S:
            self.flush()

    def flush(self) -> None:
        """Hand on what waits."""
        if self._waiting:
            chunk = bytes(self._waiting)
            self._waiting.clear()
            self._last = self._clock()
            self._sink(chunk)
