"""Private temporary directories: for branches that nobody keeps, and for trying something out.

Here: making one, and removing those of processes that died. Not here: what is kept in one
(`registry/registry.py`).
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bowerbird.workspace.tree import owned

PREFIX = "bowerbird-"
PROBE = ".probe-"
_JUST_MADE_S = 60.0


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


@contextmanager
def probe_place(directory: Path) -> Generator[Path]:
    """Give an empty directory below `directory` for trying something out; it is removed at the end.

    What a killed process left of its own is removed first: a living one holds the lock on its directory.
    """
    for left in directory.glob(f"{PROBE}*"):
        _remove_left(left)
    place = Path(tempfile.mkdtemp(prefix=f"{PROBE}{os.getpid()}-", dir=directory))
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield place
    finally:
        _discard(place)
        os.close(fd)


def _remove_left(place: Path) -> None:
    try:
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # gone meanwhile, or none of ours
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        maker = place.name.removeprefix(PROBE).partition("-")[0]
        just_made = time.time() - os.fstat(fd).st_mtime < _JUST_MADE_S  # perhaps it is not locked yet
        if not (just_made and maker.isdigit() and Path(f"/proc/{maker}").exists()):
            _discard(place)
    except OSError:
        pass  # its maker lives, or another process removes it too
    finally:
        os.close(fd)


def _discard(place: Path) -> None:
    with suppress(FileNotFoundError):
        parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            owned.remove_tree(parent, place.name)
        finally:
            os.close(parent)
