"""One writer process per branch (WS-7).

Here: the flock on a branch's `lock` file, shared by all handles of this process.
Not here: the order of calls within the process (`order.py`).

The registry below is the only process-wide state of the package: ownership of a flock *is*
a fact about the process, and two handles on one branch must not exclude each other.
"""

import fcntl
import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bowerbird.core.errors import BranchBusy


class _Held:
    """A flock that this process has, and the threads' turn-taking under it."""

    def __init__(self, fd: int, key: tuple[int, int]) -> None:
        self.fd = fd
        self.key = key
        self.pid = os.getpid()
        self.users = 0
        self.threads = threading.RLock()


def note_of(pid: int) -> str:
    """Return what names a process of this machine for ever: its id and start time, "" when it is gone.

    Example:
        >>> note_of(os.getpid()).split()[0] == str(os.getpid())
        True
    """
    try:
        started = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[19]
        host = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return ""
    return f"{pid} {started} {host}"


_held: dict[tuple[int, int], _Held] = {}
_registry = threading.Lock()


class WriterLock:
    """The right to change one branch; taken at the first change and kept until `release`.

    Args:
        path: `…/branches/<id>/lock`, made if missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mine: _Held | None = None
        self._finalizer: weakref.finalize[[_Held], WriterLock] | None = None

    @contextmanager
    def hold(self) -> Generator[None]:
        """Be the only thread of the only process that changes the branch.

        Raises:
            BranchBusy: another process writes it.
        """
        held = self.acquire()
        if self._was_replaced(held.key):
            self.release()
            held = self.acquire()
        with held.threads:
            yield

    def holder(self) -> str | None:
        """Return the note (`note_of`) of the process that has the lock, None when nobody has it."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(fd, 200, 0).decode("ascii", "replace")
        else:
            return None
        finally:
            os.close(fd)

    def replace(self) -> None:
        """Put another lock in the place of one whose holder has lost the right to write, and take it.

        The holder finds out at its next change, which is refused. Whoever calls has made sure that it is in
        the middle of none.
        """
        staged = self.path.with_name(f"lock.{os.getpid()}")
        staged.unlink(missing_ok=True)
        other = WriterLock(staged)
        other.acquire()
        staged.rename(self.path)
        self.release()
        self.acquire()
        other.release()

    def _was_replaced(self, key: tuple[int, int]) -> bool:
        try:
            seen = self.path.stat()
        except FileNotFoundError:
            return False  # the branch is gone: its next step says so
        return (seen.st_dev, seen.st_ino) != key

    def is_quiet(self) -> bool:
        """Tell whether no other thread of this process is changing the branch just now."""
        held = self._mine
        if held is None or held.pid != os.getpid():
            try:
                seen = self.path.stat()
            except FileNotFoundError:
                return True
            held = _held.get((seen.st_dev, seen.st_ino))
        if held is None or held.pid != os.getpid():
            return True
        if not held.threads.acquire(blocking=False):
            return False
        held.threads.release()
        return True

    def acquire(self) -> _Held:
        """Take the flock for this process; raises BranchBusy."""
        mine = self._mine
        if mine is not None and mine.pid == os.getpid():
            return mine
        with _registry:
            mine = self._mine  # another thread may have taken it meanwhile: counted once, released once
            if mine is not None and mine.pid == os.getpid():
                return mine
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            seen = os.fstat(fd)
            key = (seen.st_dev, seen.st_ino)
            held = _held.get(key)
            # After a fork of the process the entry is the parent's, not ours.
            if held is not None and held.pid == os.getpid():
                os.close(fd)
            else:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    os.close(fd)
                    raise BranchBusy(
                        f"branch {self.path.parent.name} is being written by another process; "
                        "wait for it, or fork the branch and work beside it"
                    ) from error
                if self._was_replaced(key):
                    os.close(fd)
                    raise BranchBusy(f"branch {self.path.parent.name} was taken over a moment ago")
                os.ftruncate(fd, 0)
                os.pwrite(fd, note_of(os.getpid()).encode(), 0)
                held = _held[key] = _Held(fd, key)
            held.users += 1
            self._mine = held
            self._finalizer = weakref.finalize(self, _release, held)
            return held

    def release(self) -> None:
        """Let other processes write; the next change takes the lock again."""
        if self._finalizer is not None:
            self._finalizer()
        self._mine = self._finalizer = None


def _release(held: _Held) -> None:
    with _registry:
        if held.pid != os.getpid():
            return
        held.users -= 1
        if held.users == 0:
            _held.pop(held.key, None)
            # Unlock, not only close: a forked child may still have the same file open.
            fcntl.flock(held.fd, fcntl.LOCK_UN)
            os.close(held.fd)
