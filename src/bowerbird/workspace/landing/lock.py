"""The one lock that all landings into a directory share.

Here: taking and giving it back. Not here: what is done under it, the writer lock of a branch
(`registry/lock.py`).

It is a file of the data directory, named by the workspace's device and inode: what runs inside a
sandbox can open the workspace itself, and a lock on that would let any command hold up every landing.
Landings from different data directories meet at the directory itself, too, for as long as that is polite.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Generator
from pathlib import Path

from bowerbird.core.errors import BranchBusy
from bowerbird.workspace.tree.real_directory import Beneath

LOCK_WAIT_S = 30.0
# Whoever locks the directory itself is another data directory's landing, or a stranger who may not stop us.
POLITE_S = 2.0
_POLL_S = 0.01

# A flock belongs to an open file, not to a thread: within the process the threads take turns here first.
_threads: dict[Path, threading.Lock] = {}
_guard = threading.Lock()


@contextlib.contextmanager
def workspace_lock(root: Beneath, data_dir: Path, wait_s: float = LOCK_WAIT_S) -> Generator[None]:
    """Hold the right to land in a directory.

    Args:
        data_dir: where branches are kept; the lock lies in its `locks/`.

    Raises:
        BranchBusy: another landing held it for `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    seen = os.fstat(root.fd)
    path = data_dir / "locks" / f"{seen.st_dev:x}-{seen.st_ino:x}.lock"
    with _guard:
        turn = _threads.setdefault(path, threading.Lock())
    if not turn.acquire(timeout=max(wait_s, 0)):
        raise _busy(root)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not _locked(fd, deadline):
                raise _busy(root)
            polite = _is_polite(root.fd)
            try:
                yield
            finally:
                if polite:
                    with contextlib.suppress(OSError):
                        fcntl.flock(root.fd, fcntl.LOCK_UN)
        finally:
            with contextlib.suppress(OSError):  # closed it is, and the landing is what it is
                os.close(fd)
    finally:
        turn.release()


def data_dir_of(branch: Path) -> Path:
    """Return the data directory of a branch directory `…/branches/<id>`."""
    return branch.parent.parent


def _locked(fd: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        else:
            return True


def _is_polite(fd: int) -> bool:
    try:
        return _locked(fd, time.monotonic() + POLITE_S)
    except OSError:  # a file system without locks
        return False


def _busy(root: Beneath) -> BranchBusy:
    return BranchBusy(f"another landing into {root.root} is running; try again")
