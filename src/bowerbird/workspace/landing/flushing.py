"""Getting the many files that a landing writes onto the disk before it goes on.

Here: the first files each by itself, the rest by one call for their whole file system. Not here: when that
must have happened (`apply.py`, `landing.py`), records and directories (`record.py`).

A call of `fsync` for each of 30,000 files takes minutes on a busy disk, where the system could write them
all in seconds; but a landing of a few files must not wait for all that the machine still has to write.
"""

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Callable
from functools import cache

_BY_THEMSELVES = 32
_STATFS_BYTES = 256
# Those whose `syncfs` puts everything on the disk. FUSE is not among them: its servers are not told.
_WHOLE = frozenset({
    0xEF53,  # ext2, ext3, ext4
    0x58465342,  # xfs
    0x9123683E,  # btrfs
    0xF2F52010,  # f2fs
    0x2FC12FC1,  # zfs
    0xCA451A4E,  # bcachefs
    0x794C7630,  # overlay
    0x01021994,  # tmpfs
})  # fmt: skip


class Flushing:
    """Files that were written and must be on the disk when `finish` returns; use it in a `with`."""

    def __init__(self) -> None:
        self._seen = 0
        self._owed: dict[int, int | None] = {}

    def __enter__(self) -> "Flushing":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def written(self, fd: int) -> None:
        """Take note of a file whose bytes, owner and mode are complete; it may be closed afterwards.

        Raises:
            OSError: it could not be written.
        """
        self._seen += 1
        if self._seen <= _BY_THEMSELVES or not self._is_owed(fd):
            os.fsync(fd)

    def _is_owed(self, fd: int) -> bool:
        """Whether the file's whole file system will be written."""
        device = os.fstat(fd).st_dev
        if device not in self._owed:
            # Held from before the first such file is closed: an error of writing any of them is told to it.
            self._owed[device] = os.dup(fd) if _is_whole(fd) else None
        return self._owed[device] is not None

    def finish(self) -> None:
        """Wait until all of them are on the disk.

        Raises:
            OSError: one of them could not be written.
        """
        try:
            for held in self._owed.values():
                if held is not None:
                    sync_file_system(held)
        finally:
            self._close()

    def _close(self) -> None:
        while self._owed:
            held = self._owed.popitem()[1]
            if held is not None:
                with contextlib.suppress(OSError):
                    os.close(held)


def sync_file_system(fd: int) -> None:
    """Write everything of the file system of an open file; raises OSError as `os.fsync`."""
    call = _native("syncfs")
    assert call is not None  # whoever owes this has asked
    if call(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _is_whole(fd: int) -> bool:
    """Whether one call gets all of the file system of an open file onto the disk, and tells of errors."""
    statfs = _native("fstatfs")
    if statfs is None or _native("syncfs") is None or not _tells_errors():
        return False
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if statfs(fd, buffer) != 0:
        return False
    kind: int = struct.unpack_from("@l", buffer, 0)[0]
    return kind & 0xFFFFFFFF in _WHOLE


@cache
def _tells_errors() -> bool:
    """Before Linux 5.8 `syncfs` kept silent about files that could not be written."""
    numbers = platform.release().split(".")
    with contextlib.suppress(ValueError, IndexError):
        return (int(numbers[0]), int(numbers[1])) >= (5, 8)
    return False


@cache
def _native(name: str) -> Callable[..., int] | None:
    if platform.system() != "Linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int,) if name == "syncfs" else (ctypes.c_int, ctypes.c_char_p)
    function.restype = ctypes.c_int
    return function
