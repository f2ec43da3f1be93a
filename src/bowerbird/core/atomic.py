"""Files that are replaced whole: whoever reads finds the old content or the new, never a part.

Here: replacing one file, by its path or below a directory handle, and making one. Not here: what must outlast
a power cut: it is synced where it is written (`workspace/tree/manifest.py`, `workspace/landing/record.py`).

What is written first has a name that nobody else has: two threads, or two containers in which both processes
have the number 1, replace the same file at once. What a killed process left of it goes with a later
process's first replacement in that directory.
"""

import contextlib
import errno
import os
import re
import time
from collections.abc import Generator
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STAGED = re.compile(r"\..+\.[0-9a-f]{20}\.tmp", re.DOTALL)
_LEFT_S = 3600.0  # nobody takes so long to write one
_MOST_SWEPT = 10_000

_swept: set[tuple[int, int]] = set()  # directories, by device and inode


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at `path`, or make it.

    Raises:
        OSError: the old file is as it was, and nothing is left beside it.

    Example:
        >>> replace_file(Path("notes.json"), b"{}")  # doctest: +SKIP
    """
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_at(handle, path.name, content, mode=0o666)
    finally:
        os.close(handle)


def make_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Make a file whole or not at all, and never in another's place.

    Raises:
        FileExistsError: something stands there. OSError: nothing was made.
    """
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _staged(directory, path.name, content, mode) as temporary:
            try:
                os.link(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
            except PermissionError:  # a file system without hard links: between these two others may come
                if os.path.lexists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
                os.rename(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(directory)


def replace_at(directory: int, name: str, content: bytes, *, mode: int = 0o644) -> None:
    """Do the same for a name below a directory handle; a link under that name is replaced, not followed.

    Args:
        mode: of the new file, less what the process's umask takes.

    Raises:
        OSError: the old file is as it was, and nothing is left beside it.
    """
    with _staged(directory, name, content, mode) as temporary:
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


@contextlib.contextmanager
def _staged(directory: int, name: str, content: bytes, mode: int) -> Generator[str]:
    """Give the name of a file with this content; what still has it at the end goes."""
    _sweep(directory)
    temporary = f".{name}.{os.urandom(10).hex()}.tmp"
    handle = os.open(temporary, _NEW, mode, dir_fd=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)


def _sweep(directory: int) -> None:
    """Remove what killed processes left in a directory, once in the life of this process."""
    seen = os.fstat(directory)
    place = (seen.st_dev, seen.st_ino)
    if place in _swept:
        return
    if len(_swept) >= _MOST_SWEPT:
        _swept.clear()
    _swept.add(place)
    oldest = time.time() - _LEFT_S
    for name in os.listdir(directory):
        if _STAGED.fullmatch(name) is None:
            continue
        with contextlib.suppress(OSError):  # its writer was only slow, or another process was first
            if os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime < oldest:
                os.unlink(name, dir_fd=directory)
