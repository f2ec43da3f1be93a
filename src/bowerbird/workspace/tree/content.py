"""The bytes of a file as a value: read when needed, compared and hashed without holding them.

Here: `Content` over memory or over one real file, equality, digests, the binary test.
Not here: paths, branches, what a difference means.

A file with holes costs its data, not its size: comparing and hashing skip holes, so a
1 TB sparse file is as cheap as an empty one (WS-16).
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

from bowerbird.workspace.tree.handles import FILE, copy_bytes, next_data, open_host

BINARY_PROBE = 8192
PIECE = 1024 * 1024
Opener = Callable[[], int]
PLAIN_HASH_LIMIT = 64 * 1024 * 1024


class Content:
    """Bytes of one regular file version.

    Args:
        source: the bytes themselves, the real file that holds them, or a function that
            opens them and returns a descriptor (for files known by a directory handle).
        frozen: path of a file that holds the bytes and is never written again: a hard link
            of it is as good as a copy.
        size: bytes in the file; asked of the file system when None.

    Example:
        >>> Content(b"a\\n").same(Content(b"a\\n"))
        True
    """

    __slots__ = ("_digest", "_source", "frozen", "size")

    def __init__(
        self, source: "bytes | str | Opener", size: int | None = None, frozen: str | None = None
    ) -> None:
        self._source = source
        self.frozen = frozen
        self._digest: str | None = None
        if size is None:
            size = len(source) if isinstance(source, bytes) else self._measure()
        self.size = size

    def read(self) -> bytes:
        """Return all bytes; callers bound `size` first."""
        if isinstance(self._source, bytes):
            return self._source
        fd = self.open()
        try:
            data = os.read(fd, self.size + 1)
            if len(data) == self.size:
                return data
            pieces = [data]  # the file is large or grew; read on until its end
            while piece := os.read(fd, PIECE):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def head(self, length: int = BINARY_PROBE) -> bytes:
        """Return the first `length` bytes."""
        if isinstance(self._source, bytes):
            return self._source[:length]
        fd = self.open()
        try:
            return os.read(fd, length)
        finally:
            os.close(fd)

    def is_binary(self) -> bool:
        """Whether a NUL stands in the first 8 KiB: such a file has no lines."""
        return b"\0" in self.head()

    def same(self, other: "Content") -> bool:
        """Whether both have equal bytes; reads only as far as they agree, never holes."""
        if self is other:
            return True
        if self.size != other.size:
            return False
        if self.size <= PIECE:
            return self.read() == other.read()
        mine, theirs = self._blocks(), other._blocks()
        return all(a == b for a, b in zip_blocks(mine, theirs))

    def digest(self) -> str:
        """Return `sha256:…`, or `sha256z:…` above 64 MiB, where zero blocks are left out.

        The second form covers (offset, bytes) of every block of 1 MiB that is not all
        zero, and the size: equal bytes give equal digests whatever the holes.
        """
        if self._digest is None:
            if self.size <= PLAIN_HASH_LIMIT:
                self._digest = "sha256:" + hashlib.sha256(self.read()).hexdigest()
            else:
                summed = hashlib.sha256(b"%d\n" % self.size)
                for offset, block in self._blocks():
                    summed.update(b"%d\n" % offset)
                    summed.update(block)
                self._digest = "sha256z:" + summed.hexdigest()
        return self._digest

    def open(self) -> int:
        """Return a descriptor on the file; only for contents that are not in memory."""
        if isinstance(self._source, str):
            return open_plain(self._source)
        if isinstance(self._source, bytes):
            raise TypeError("bytes in memory have no descriptor")
        return self._source()

    def stream(self) -> BinaryIO:
        """Return an open file over the bytes; the caller closes it."""
        return io.BytesIO(self._source) if isinstance(self._source, bytes) else os.fdopen(self.open(), "rb")

    def write_to(self, target: int) -> None:
        """Write all bytes to the empty file `target` (a descriptor), holes staying holes."""
        if isinstance(self._source, bytes):
            view = memoryview(self._source)
            while view:
                view = view[os.write(target, view) :]
            return
        fd = self.open()
        try:
            copy_bytes(fd, target)
        finally:
            os.close(fd)

    def _measure(self) -> int:
        fd = self.open()
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of each aligned block that is not all zero."""
        if isinstance(self._source, bytes):
            for offset in range(0, self.size, PIECE):
                block = self._source[offset : offset + PIECE]
                if block.strip(b"\0"):
                    yield offset, block
            return
        fd = self.open()
        try:
            offset = 0
            while (data_at := next_data(fd, offset, self.size)) < self.size:
                offset = data_at - data_at % PIECE
                block = os.pread(fd, PIECE, offset)
                if not block:
                    return
                if block.strip(b"\0"):
                    yield offset, block
                offset += PIECE
        finally:
            os.close(fd)


def zip_blocks(
    mine: Iterator[tuple[int, bytes]], theirs: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[tuple[int, bytes] | None, tuple[int, bytes] | None]]:
    """Yield pairs until both ends are reached; a missing partner is None."""
    while True:
        pair = (next(mine, None), next(theirs, None))
        if pair == (None, None):
            return
        yield pair


def open_plain(path: str) -> int:
    """Open a regular file for reading without following a link or waiting on a FIFO."""
    return open_host(path, FILE)


def blob_id(content: Content) -> str:
    """Return git's name (SHA-1) of the content, for the `index` line of patches."""
    summed = hashlib.sha1(b"blob %d\0" % content.size, usedforsecurity=False)
    summed.update(content.read())
    return summed.hexdigest()
