"""What the sandbox needs of a branch: its layers as an overlay mount takes them, and capture.

Here: the one object through which processes and a branch meet. Not here: mounting, processes, when a
mark is due.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from bowerbird.core.errors import Stale
from bowerbird.core.ids import new_id
from bowerbird.workspace.marks.git_elsewhere import git_elsewhere, not_shown, submodules_elsewhere
from bowerbird.workspace.processes.copy_use import CopyUse, taken_back
from bowerbird.workspace.processes.mask import Mask
from bowerbird.workspace.processes.mirror import Mirror
from bowerbird.workspace.processes.mounts import submounts
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree import owned, presence
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.stack import Stack

if TYPE_CHECKING:
    from bowerbird.workspace.processes.capture import Capture, Captured, Told

_AT_WORK = "runs commands on it"
_MOUNTED = "mounted"
_FILES_CLOCK = 5  # CLOCK_REALTIME_COARSE, which stamps files: it lags behind the other one by up to a tick
_TICK_S = 0.0005
_WRITTEN = ("copy", "home", "tmp", "caches")
"""Directories of a branch, beside its open layer, that processes may fill."""
_MOST_LOOSE = 32


class OverlayDirs(msgspec.Struct, frozen=True):
    """Directories of one overlay mount, `lower` newest first; equal values are the same view.

    Attributes:
        ground: the workspace when the layers lie inside of it; then it is not in `lower`.
        scratch: an empty directory that is needed with it.
        upper_inode: another one is another open layer, though it may lie at the same path.
        writes: how often file tools wrote the open layer directly, behind the back of any mount.
    """

    lower: tuple[Path, ...]
    upper: Path
    upper_inode: int
    work: Path
    ground: Path | None
    scratch: Path
    writes: int


class BeforeCall(msgspec.Struct, frozen=True):
    """The state before a command: its mark, how long the branch's journal was, and when it was."""

    mark: str
    journal: int
    at_ns: int


class Marks(Protocol):
    """What of a branch's time line a view of it needs; `Branch` has it."""

    def process_mark(self) -> str | None:
        """Take a mark; None while other processes write."""
        ...

    def rollback(self, mark: str) -> None:
        """Drop everything after a mark."""
        ...

    def show_git(self) -> None:
        """Give the branch a git directory where the workspace's repository lies outside of it."""
        ...


class ViewChanged(Exception):
    """The open layer was written directly since `dirs` was asked: a mount may show what was before."""


class ProcessView:
    """A branch as processes see and change it.

    While `live`, file tools write through the mounted view too; the caller owns the descriptor.
    """

    def __init__(
        self, state: BranchState, hold: Callable[[], AbstractContextManager[None]], history: Marks
    ) -> None:
        self._state = state
        self._hold = hold
        self._history = history
        self._writes = 0
        self._in_use: dict[Path, int] = {}  # directory of temporary files → its lock
        self._told: tuple[tuple[int, ...], Told] = ((), {})
        self._found: tuple[Capture, Captured] | None = None
        self._sandbox: str | None = None  # the name of its directory of temporary files
        self._mounted_ns = 0
        self._mask = Mask(state.ground)

    @property
    def directory(self) -> Path:
        """The branch's directory in the data directory."""
        return self._state.directory

    @property
    def data_dir(self) -> Path:
        """The data directory that the branch is kept in."""
        return self.directory.parents[1]

    @property
    def workspace(self) -> Path | None:
        """The workspace's own absolute path, None for a branch of nothing."""
        return self._state.workspace

    @property
    def unavailable(self) -> str | None:
        """Why this branch cannot be mounted, None when it can."""
        if not self._state.storage.kernel_form:
            return self._state.storage.reason
        below = submounts(self._state.workspace) if self._state.workspace is not None else ()
        if below:
            return f"{below[0]} is a mount below the workspace, which no user namespace may look behind"
        return None

    def show_git(self) -> None:
        """Give the branch a git directory where the workspace's repository lies outside; no command runs."""
        self._history.show_git()

    def git_not_shown(self, *, asked: bool = True) -> str:
        """Return what of the repository is not shown and why; unless `asked`, of its own. Blocks."""
        return not_shown(self.workspace, self.data_dir, asked=asked)

    def git_objects(self) -> tuple[str, ...]:
        """Return the directories outside the workspace that commands read objects of its repository from."""
        found = git_elsewhere(self.workspace, self.data_dir)
        if found is None or self.workspace is None:
            return ()
        submodules = submodules_elsewhere(found, self.workspace, self.data_dir)
        return tuple(str(each.common / "objects") for each in (found, *submodules))

    def dirs(self) -> OverlayDirs:
        """Return the directories to mount now; another value than before asks for a new mount."""
        stack = self._state.reading()
        open_layer = stack.open_layer
        lower = stack.lower_dirs
        ground = None
        empty = self.directory / "empty"
        empty.mkdir(mode=0o755, exist_ok=True)
        if self._state.ground.root is not None and self.hides:
            lower.insert(len(lower) - 1, self._mask.layer(self.own_place("mask")))
            if self._state.ground.masked is not None:
                ground = lower.pop()
        if not lower:
            lower = [empty]
        inode = os.fstat(open_layer.fd).st_ino
        work = self.directory / "work"
        self._writes = stack.direct_writes
        return OverlayDirs(tuple(lower), open_layer.path, inode, work, ground, empty, self._writes)

    def mounting(self) -> None:
        """Note that a mount is made now: what its processes read of the workspace may be as old as it is.

        Blocks for an instant, so that what was saved so far and what is saved from now on differ in time, by
        the file systems' clock.
        """
        was = time.clock_gettime_ns(_FILES_CLOCK)
        while (now := time.clock_gettime_ns(_FILES_CLOCK)) == was:
            time.sleep(_TICK_S)
        self._mounted_ns = now

    def _left_ns(self) -> int:
        """When the mount was made through which a killed process's commands wrote, 0 = unknown."""
        with suppress(FileNotFoundError, ValueError):
            return int((self.directory / _MOUNTED).read_text())
        return 0

    @contextmanager
    def live(self, view_fd: int) -> Generator[None]:
        """Write through the mounted view `view_fd` until left; the open layer stays in place meanwhile.

        Raises:
            ViewChanged: mount anew and try again.
        """
        state = self._state
        with state.lock.pin(_AT_WORK), self._hold():
            with state.writing() as stack:
                from bowerbird.workspace.processes.live_layer import LiveLayer

                if stack.direct_writes != self._writes:
                    raise ViewChanged
                self._look_before(stack)
                (self.directory / _MOUNTED).write_text(str(self._mounted_ns))
                state.git_refs.look_before()
                layer = LiveLayer(stack.open_layer, view_fd)
                stack.use_open(layer)
                stack.look_at_processes = self._look
            try:
                yield
            finally:
                state.stack.look_at_processes = None
                with state.writing() as stack:
                    stack.use_open(None)
                    (self.directory / _MOUNTED).unlink(missing_ok=True)

    @property
    def hides(self) -> bool:
        """Whether some workspace paths are kept from this branch."""
        return bool(self._state.manifest.value.hide) or self._state.ground.masked is not None

    def hides_path(self, path: str) -> bool:
        """Whether `workspace.hide` keeps this path from the branch."""
        return self._state.ground.hidden(path)

    def is_free(self) -> bool:
        """Whether no other process has the branch: one that runs commands on it has it all the time."""
        holder = self._state.lock.holder()
        return holder is None or holder.pid == os.getpid()

    # ------------------------------------------------------------ the copy tier

    def mirror(self) -> Mirror:
        """Return the branch's copy; it is made by `bring_in`."""
        where = git_elsewhere(self.workspace, self.data_dir)
        mirror = Mirror(self.directory / "copy", where.prefix if where is not None else "")
        self._state.ground.copy = mirror.tree
        return mirror

    def bring_in(self, mirror: Mirror, most_files: int, most_bytes: int) -> None:
        """Make the copy, or make it equal to the branch again.

        Raises:
            LimitExceeded: the branch is too large to copy.
        """
        with self._state.writing() as stack:
            if mirror.exists:
                mirror.take_back(stack)  # what was changed in it while nobody looked
            else:
                mirror.check(stack, most_files, most_bytes)
            mirror.bring_in(stack)

    @contextmanager
    def live_copy(self, mirror: Mirror) -> Generator[None]:
        """Keep copy and branch equal at every call of the file tools until left."""
        with self._state.lock.pin(_AT_WORK), self._hold():
            use = CopyUse(self.directory / "copy")
            use.begin()
            self._state.git_refs.look_before()
            self._state.mirror = mirror
            self._state.stack.look_at_processes = lambda _: (
                None
            )  # every change of the branch takes back first
            try:
                yield
            finally:
                self._state.stack.look_at_processes = None
                self._state.mirror = None
                use.end()

    def take_back(self, mirror: Mirror, *, turn: str | None = None, call: str | None = None) -> "Captured":
        """Take what processes changed in the copy into the branch, and say what it was."""
        state = self._state
        with state.writing() as stack:
            captured, steps = taken_back(stack, mirror)
            if steps:
                state.account.forget()
                state.record(steps, turn=turn, call=call, via="process")
            return captured

    def disk_used(self) -> tuple[int, int]:
        """Return bytes and entries of what processes write to: open layer, copy, homes; as on disk."""
        places = [self._state.stack.open_layer.path, *(self.directory / name for name in _WRITTEN)]
        found = [owned.disk_use(place) for place in places]
        return sum(size for size, _ in found), sum(entries for _, entries in found)

    def empty_tmp(self) -> Path:
        """Return a new directory for temporary files; what sandboxes left that are gone is removed."""
        place = self.directory / "tmp"
        place.mkdir(mode=0o700, exist_ok=True)
        for left in place.iterdir():
            self.remove_tmp(left / "tmp")
        self._remove_left()
        while True:
            made = place / new_id("t") / "tmp"
            made.parent.mkdir()
            # Before it is locked, who cleans up for another sandbox takes it for one that was left.
            with suppress(BlockingIOError, FileNotFoundError):
                lock = _locked(made.parent)
                if presence.is_directory(made.parent):
                    break
                os.close(lock)
        self._in_use[made] = lock
        self._sandbox = made.parent.name
        made.mkdir()
        made.chmod(0o1777)  # as everywhere, which programs check; the branch's own directory is closed
        return made

    def remove_tmp(self, tmp: Path) -> None:
        """Delete what `empty_tmp` made, and all that commands left in it, unless another process uses it."""
        lock = self._in_use.pop(tmp, None)
        if tmp.parent.name == self._sandbox:
            self._sandbox = None
        # It may be gone with its branch, or the last process writes it yet: the next sandbox does the rest.
        with suppress(OSError):
            lock = _locked(tmp.parent) if lock is None else lock
            fd = os.open(tmp.parents[1], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                owned.remove_tree(fd, tmp.parent.name)
            finally:
                os.close(fd)
            self._remove_left()
        if lock is not None:
            os.close(lock)

    def own_place(self, kind: Literal["mask", "masks", "net"]) -> Path:
        """Return a directory of this sandbox alone, not made yet; it ends with its temporary files.

        Another server's sandbox may stand on the same branch: what is mounted there, or answers there, stays.
        """
        return self.directory / kind / (self._sandbox or self.empty_tmp().parent.name)

    def _remove_left(self) -> None:
        """Delete what is of sandboxes that are gone; one that lives has its directory of temporary files."""
        for kind in ("mask", "masks", "net"):
            place = self.directory / kind
            for left in list(place.iterdir()) if presence.is_directory(place) else ():
                if not presence.exists(self.directory / "tmp" / left.name):
                    discard(left)

    # ------------------------------------------------------------ taking a call back

    def mark(self) -> str | None:
        """Take a mark where one is due; None when there can be none now."""
        layers = self._state.manifest.value.layers
        if len(layers) >= _MOST_LOOSE and all(layer.snapshot is None for layer in layers[-_MOST_LOOSE:]):
            return None  # nobody ends turns here: each mark would make the stack longer
        return self._history.process_mark()

    def before_call(self, mark: str) -> BeforeCall:
        """Return what `go_back` needs; `mark` was taken just before."""
        return BeforeCall(mark, self._state.journal.size(), time.time_ns())

    def go_back(self, before: BeforeCall) -> bool:
        """Drop all that was changed since `before`, in the homes too; nothing runs any more.

        Returns:
            False, and nothing done, when others changed the branch meanwhile: theirs would be lost.
        """
        if self._state.journal.size() != before.journal:
            return False
        try:
            self._history.rollback(before.mark)
        except Stale:
            return False
        for name in ("home", "tmp", "caches"):
            owned.remove_newer(self.directory / name, before.at_ns)
        return True

    def capture(self, *, turn: str | None = None, call: str | None = None) -> "Captured":
        """Take bases of what processes changed in the open layer, and say what is new since last time."""
        state = self._state
        self._found = None
        with state.writing() as stack:
            from bowerbird.workspace.processes.capture import Capture

            done, captured = self._found or self._pass(stack)
            self._told = (_identity(stack), done.told)
            if done.steps:
                state.account.forget()
                if state.record(done.steps, turn=turn, call=call, via="process"):
                    again = Capture(stack, self._mounted_ns, done.told)
                    again.run()  # refs that were kept are no process's change
                    self._told = (_identity(stack), again.told)
            return captured

    def _look(self, stack: Stack) -> None:
        self._found = self._pass(stack)

    def _pass(self, stack: Stack) -> "tuple[Capture, Captured]":
        from bowerbird.workspace.processes.capture import Capture
        from bowerbird.workspace.processes.live_layer import LiveLayer

        layer = stack.open_layer
        if isinstance(layer, LiveLayer):
            layer.drop_staged()
        done = Capture(stack, self._mounted_ns, self._told_of(stack))
        return done, done.run()

    def catch_up(self) -> None:
        """Take bases of what a killed process's commands left, and record it; none runs now. Blocks."""
        with self._state.writing() as stack:  # which takes in what they left in a copy
            self._look_before(stack)

    def _told_of(self, stack: Stack) -> "Told":
        """Return what was told of this layer; what file tools wrote before is not a process's change."""
        known, told = self._told
        return told if known == _identity(stack) else {}

    def _look_before(self, stack: Stack) -> None:
        """Know what the open layer holds before the first command runs on it."""
        from bowerbird.workspace.processes.capture import Capture

        layer = stack.open_layer
        if self._told[0] == _identity(stack) or layer.is_empty():
            return
        done = Capture(stack, self._left_ns(), {})
        done.run()
        self._told = (_identity(stack), done.told)
        found = frozenset(done.based)  # without a base: a command that a killed server did not see end
        self._state.record([step for step in done.steps if step.path in found], via="process")


def _locked(directory: Path) -> int:
    """Return a directory opened and locked while this process lives; BlockingIOError = another one has it."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _identity(stack: Stack) -> tuple[int, ...]:
    layer = stack.open_layer
    return layer.number, os.fstat(layer.fd).st_ino, stack.direct_writes
