"""One writer process per branch, and only while it writes (WS-7, D-4).

Here: the flock on a branch's `lock` file, shared by all handles of this process; who has it and why; whether
somebody else wrote since a handle last did. Not here: the order of calls within the process
(`path_order.py`).

Nobody keeps the lock between two pieces of work, so several processes work on one branch in turns. Each
change leaves the sign of its handle in the file: a handle that finds another's sign is `behind`, and what it
remembers of the branch is looked at once more.

The registry below is the only process-wide state of the package: ownership of a flock *is*
a fact about the process, and two handles on one branch must not exclude each other.
"""

import contextlib
import fcntl
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from bowerbird.core.errors import BranchBusy, NotFound

WAIT_S = 5.0
"""How long a change waits for another process's change, which is over in milliseconds."""
LASTING_WAIT_S = 1.0
"""The same where the other works for longer (a turn, a command): only its last moments are worth it."""
_SIZE = 1024  # of the file: always written whole, so that nobody reads half of it

_serial = count()


class Holder(msgspec.Struct, frozen=True):
    """Which process writes a branch.

    Attributes:
        note: names the process (`note_of`). what: what it does for longer, "" for a single change.
        who: what it calls itself, say `bowerbird serve`. server: its address, "" when it is none.
    """

    note: str
    what: str = ""
    who: str = ""
    server: str = ""

    @property
    def pid(self) -> int:
        """Its process id, 0 when that is not known."""
        first = self.note.partition(" ")[0]
        return int(first) if first.isdecimal() else 0

    @property
    def lasts(self) -> bool:
        """Whether a living process says that it needs the branch for longer."""
        return bool(self.what) and note_of(self.pid) == self.note

    def __str__(self) -> str:
        named = f"{self.who or 'another process'} (process {self.pid})" if self.pid else "another process"
        return f"{named}, which {self.what or 'changes it at this moment'}"


class _Held:
    """A flock that this process has, and the threads' turn-taking under it."""

    def __init__(self, fd: int, key: tuple[int, int]) -> None:
        self.fd = fd
        self.key = key
        self.pid = os.getpid()
        self.users = 1
        self.threads = threading.RLock()
        self.whats: list[str] = []
        self.sign = _fields(fd)[1]  # of the handle that changed the branch last
        self.write()

    def write(self) -> None:
        """Say in the file who has it."""
        _write(self.fd, _my_note(), self.sign, self.whats[-1] if self.whats else "")


_held: dict[tuple[int, int], _Held] = {}
_registry = threading.Lock()
_notes: dict[int, str] = {}
_introduced: list[tuple[str, str]] = []


@contextmanager
def introduced(who: str, server: str = "") -> Generator[None]:
    """Say how others shall call this process, while the block runs, when it has a branch that they want.

    Args:
        who: say `bowerbird serve`. server: its address, for `--server`.
    """
    name = (who, server)
    _introduced.append(name)
    try:
        yield
    finally:
        _introduced.remove(name)  # a process that goes on without its server must not name its address


def note_of(pid: int) -> str:
    """Return what names a process of this machine for ever: its id and start time, "" when it is gone.

    Example:
        >>> note_of(os.getpid()).split()[0] == str(os.getpid())
        True
    """
    try:
        started = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[19]
        host = Path("/proc/self/ns/pid").readlink().name
    except (FileNotFoundError, ProcessLookupError):
        return ""  # any other error says nothing about whether it lives
    return f"{pid} {started} {host}"


def _names() -> tuple[str, str]:
    """What this process is called: as it said, else by its program's name."""
    if _introduced:
        return _introduced[-1]
    program = Path(sys.argv[0] if sys.argv else "")
    return (program.parent.name if program.name == "__main__.py" else program.name), ""


def _my_note() -> str:
    pid = os.getpid()
    if pid not in _notes:
        _notes.clear()
        _notes[pid] = note_of(pid) or str(pid)
    return _notes[pid]


def _fields(fd: int) -> tuple[str, str, str, str, str]:
    """Note, sign, what, who, server; empty where the file does not say."""
    lines = os.pread(fd, _SIZE, 0).decode("utf-8", "replace").split("\n")
    note, sign, what, who, server, *_ = [*lines, "", "", "", "", ""]
    return note.strip(), sign, what, who, server


def _write(fd: int, note: str, sign: str, what: str) -> None:
    lines = (note, sign, what, *_names(), "")
    data = "\n".join(line.replace("\n", " ")[:200] for line in lines).encode("utf-8", "replace")
    os.pwrite(fd, data[:_SIZE].ljust(_SIZE, b" "), 0)


class Pin:
    """The lock kept for longer than one change, say for a turn; give it back with `release`."""

    def __init__(self, held: _Held, what: str) -> None:
        self.held = held
        self._what = what
        self._released = False
        held.whats.append(what)
        held.write()

    def __enter__(self) -> "Pin":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give it back; a second time does nothing."""
        if self.alive:
            self._released = True
            self.held.whats.remove(self._what)
            try:
                self.held.write()
            finally:
                _leave(self.held)

    @property
    def alive(self) -> bool:
        """Whether it was not given back yet, in this process."""
        return not self._released and self.held.pid == os.getpid()


class WriterLock:
    """The right to change one branch.

    Args:
        path: `…/branches/<id>/lock`, made if missing.

    Attributes:
        behind: another handle or process changed the branch since this one last did; whoever has looked at
            everything once more sets it back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.behind = False
        self._serial = next(_serial)
        self._pins: list[Pin] = []

    @contextmanager
    def hold(self) -> Generator[None]:
        """Be the only thread of the only process that changes the branch.

        Raises:
            BranchBusy: another process writes it; it says who, and what helps. NotFound: it was removed.
        """
        held = self._enter(WAIT_S, LASTING_WAIT_S)
        try:
            with held.threads:
                sign = f"{_my_note()} {self._serial}"
                if held.sign != sign:
                    self.behind = self.behind or bool(held.sign)
                    held.sign = sign  # before the change: a kill in its middle must be noticed, too
                    held.write()
                yield
        finally:
            _leave(held)

    def pin(self, what: str, *, wait_s: float = LASTING_WAIT_S) -> Pin:
        """Keep other processes from changing the branch until the pin is released.

        Args:
            what: told to whoever is refused meanwhile, as in "which …".
            wait_s: for a process that has pinned it; one that only makes a change is waited for longer.

        Raises:
            BranchBusy: another process writes it.
        """
        pin = Pin(self._enter(max(wait_s, WAIT_S), wait_s), what)
        self._pins = [each for each in self._pins if each.alive] + [pin]
        return pin

    def holder(self) -> Holder | None:
        """Return the process that has the lock, None when nobody has it."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note, _, *rest = _fields(fd)
            return Holder(note, *rest)
        else:
            return None
        finally:
            os.close(fd)

    def replace(self) -> None:
        """Put another lock in the place of one whose holder has lost the right to write.

        The holder finds out at its next change, which is refused. Whoever calls has made sure that it is in
        the middle of none.
        """
        staged = self.path.with_name(f"lock.{os.getpid()}")
        fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _write(fd, "", "taken over", "")
        finally:
            os.close(fd)
        staged.rename(self.path)

    def is_quiet(self) -> bool:
        """Tell whether no other thread of this process is changing the branch just now."""
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

    def release(self) -> None:
        """Give back every pin of this handle."""
        pins, self._pins = self._pins, []
        for pin in pins:
            pin.release()

    def _enter(self, wait_s: float, lasting_s: float) -> _Held:
        """Count as a user of this process's flock, taking it first if need be."""
        pinned = next((pin.held for pin in self._pins if pin.alive), None)
        if pinned is not None:
            if self._was_replaced(pinned.key):
                name = self.path.parent.name
                raise BranchBusy(
                    f"branch {name} was taken over by another process while this one stood still"
                )
            with _registry:
                pinned.users += 1
            return pinned
        began, pause_s = time.monotonic(), 0.001
        while True:
            held = self._taken()
            if held is not None:
                return held
            holder = self.holder()
            waited = time.monotonic() - began
            if holder is not None and waited > (lasting_s if holder.lasts else wait_s):
                raise self._busy(holder)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.05)

    def _taken(self) -> _Held | None:
        """Take the flock for this process, or join in when it has it; None when another process has it."""
        with _registry:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError as error:
                raise NotFound(f"branch {self.path.parent.name} is gone: it was removed meanwhile") from error
            seen = os.fstat(fd)
            key = (seen.st_dev, seen.st_ino)
            held = _held.get(key)
            # After a fork of the process the entry is the parent's, not ours.
            if held is not None and held.pid == os.getpid():
                os.close(fd)
                held.users += 1
                return held
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            try:
                if self._was_replaced(key):
                    os.close(fd)
                    return None
                held = _held[key] = _Held(fd, key)
            except OSError:
                os.close(fd)  # else nobody would hold it until this process ends
                raise
            return held

    def _was_replaced(self, key: tuple[int, int]) -> bool:
        try:
            seen = self.path.stat()
        except FileNotFoundError:
            return False  # the branch is gone: its next step says so
        return (seen.st_dev, seen.st_ino) != key

    def _busy(self, holder: Holder) -> BranchBusy:
        helps = "fork the branch and work beside it"
        if holder.server:
            helps = f"go through that server: --server {holder.server}"
        return BranchBusy(
            f"branch {self.path.parent.name} is being written by {holder}; wait until it is done, or {helps}"
        )


def _leave(held: _Held) -> None:
    with _registry:
        if held.pid != os.getpid():
            return
        held.users -= 1
        if held.users == 0:
            _held.pop(held.key, None)
            # Unlock, not only close: a forked child may still have the same file open.
            with contextlib.suppress(OSError):
                fcntl.flock(held.fd, fcntl.LOCK_UN)
            with contextlib.suppress(OSError):
                os.close(held.fd)
