"""What a snippet prints, bounded while it is produced (SB-16, SB-45).

Here: the first 40 % and last 60 % of the bytes, and a bounded raw copy on disk. Not
here: who prints, who reads.
"""

import tempfile
from typing import BinaryIO

from bowerbird.sandbox.run.output import HEAD_SHARE, readable, shorten

SPILL_BYTES = 8 * 1024 * 1024


class BoundedOutput:
    """Collects text in at most about twice `limit` bytes of memory.

    Args:
        limit: Most bytes that `render` returns.

    Written by one thread, read after it stopped. `close` removes the raw copy.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._head_room = int(limit * HEAD_SHARE)
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self._raw: BinaryIO | None = None
        self._raw_size = 0

    def add(self, text: str) -> None:
        """Take what was printed."""
        data = text.encode("utf-8", "replace")
        self._keep_raw(data)
        self.total += len(data)
        free = self._head_room - len(self._head)
        if free > 0:
            self._head += data[:free]
            data = data[free:]
        self._tail += data[-self._tail_room :] if len(data) > self._tail_room else data
        if len(self._tail) > self._tail_room:
            del self._tail[: len(self._tail) - self._tail_room]

    @property
    def cut(self) -> bool:
        """Whether something is not in memory any more."""
        return self.total > self.limit

    def render(self, limit: int | None = None) -> str:
        """Return the text in at most `limit` bytes, with a marker line where some is missing."""
        most = self.limit if limit is None else min(limit, self.limit)
        whole = bytes(self._head + self._tail)
        if self.total <= most:
            return readable(whole)
        if self.cut:
            return shorten(bytes(self._head), bytes(self._tail), self.total, most, None)
        return shorten(whole, whole, self.total, most, None)

    def raw_text(self) -> str | None:
        """Return the first 8 MiB of what was printed when some was cut, else None."""
        if self._raw is None:
            return None
        self._raw.seek(0)
        return self._raw.read().decode("utf-8", "replace")

    def close(self) -> None:
        """Remove the raw copy; may be called twice."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _keep_raw(self, data: bytes) -> None:
        if self._raw is None:
            if self.total + len(data) <= self.limit:
                return
            self._raw = tempfile.TemporaryFile()  # noqa: SIM115 - lives until close()
            self._raw_size = self._raw.write(self._head + self._tail)
        if self._raw_size < SPILL_BYTES:
            self._raw_size += self._raw.write(data[: SPILL_BYTES - self._raw_size])
