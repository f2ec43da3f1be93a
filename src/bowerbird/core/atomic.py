"""Files that are replaced whole: whoever reads finds the old content or the new, never a part.

Here: replacing one file, by its path or below a directory handle. Not here: what must outlast a power cut: it
is synced where it is written (`workspace/tree/manifest.py`, `workspace/landing/record.py`).

What is written first has a name that nobody else has: two threads, or two containers in which both processes
have the number 1, replace the same file at once. What a killed process left of it goes with a later
process's first replacement in that directory.
"""

import contextlib
import os
import re
import time
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


def replace_at(directory: int, name: str, content: bytes, *, mode: int = 0o644) -> None:
    """Do the same for a name below a directory handle; a link under that name is replaced, not followed.

    Args:
        mode: of the new file, less what the process's umask takes.

    Raises:
        OSError: the old file is as it was, and nothing is left beside it.
    """
    _sweep(directory)
    temporary = f".{name}.{os.urandom(10).hex()}.tmp"
    handle = os.open(temporary, _NEW, mode, dir_fd=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


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
