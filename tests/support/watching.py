"""What a program hears that watches a directory: inotify, by calls of the C library. Linux only."""

import ctypes
import os
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_EVENTS = {
    0x2: "modify", 0x4: "attrib", 0x8: "close_write", 0x40: "moved_from", 0x80: "moved_to", 0x100: "create",
    0x200: "delete",
}  # fmt: skip
_HEAD = struct.Struct("iIII")
_OVERFLOW = 0x4000


class Watch:
    """Every directory of a tree as it was at the start, but those named."""

    def __init__(self, root: Path, apart: tuple[str, ...]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._names: dict[int, str] = {}
        for here, directories, _ in os.walk(root):
            directories[:] = [name for name in directories if name not in apart]
            number = self._libc.inotify_add_watch(self.fd, os.fsencode(here), sum(_EVENTS))
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", here)
            self._names[number] = os.path.relpath(here, root)

    def heard(self) -> list[tuple[str, str]]:
        """Return what was heard since the last call: event and path. The kernel queues it at once."""
        found: list[tuple[str, str]] = []
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                assert not mask & _OVERFLOW
                at += _HEAD.size + length
                name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                path = os.path.normpath(f"{self._names.get(number, '?')}/{name}")
                found += [(event, path) for bit, event in _EVENTS.items() if mask & bit]


@contextmanager
def watching(root: Path, apart: tuple[str, ...] = (".git",)) -> Generator[Watch]:
    """Watch a tree; `apart`: names of directories that are not looked into."""
    watch = Watch(root, apart)
    try:
        yield watch
    finally:
        os.close(watch.fd)
