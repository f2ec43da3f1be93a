"""Private temporary data directories, for branches that nobody keeps.

Here: making one, and removing those of processes that died. Not here: what is kept in one (`registry.py`).
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "bowerbird-"


def temporary_directory() -> tuple[Path, int]:
    """Make a private data directory and hold the lock that says its owner lives."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    fd = os.open(directory / "owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return directory, fd


def remove_orphans(place: Path) -> list[Path]:
    """Remove temporary data directories whose owner died, and return them."""
    removed: list[Path] = []
    for directory in place.glob(PREFIX + "*"):
        try:
            seen = directory.lstat()
            if seen.st_uid != os.getuid() or not directory.is_dir() or directory.is_symlink():
                continue
            fd = os.open(directory / "owner", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # being made, or not one of ours
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(directory, ignore_errors=True)
            removed.append(directory)
        finally:
            os.close(fd)
    return removed
