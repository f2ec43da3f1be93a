"""Files that are replaced whole: whoever reads finds the old content or the new, never a part.

Here: replacing one file, by its path or below a directory handle. Not here: what must outlast a power cut: it
is synced where it is written (`workspace/tree/manifest.py`, `workspace/landing/record.py`).
"""

import contextlib
import os
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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
    temporary = f".{name}.{os.getpid()}.tmp"
    with contextlib.suppress(FileNotFoundError):  # of a killed process with our number, or planted
        os.unlink(temporary, dir_fd=directory)
    handle = os.open(temporary, _NEW, mode, dir_fd=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
