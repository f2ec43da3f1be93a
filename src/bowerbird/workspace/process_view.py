"""What the sandbox needs of a branch: its layers as an overlay mount takes them, and capture.

Here: the one object through which processes and a branch meet. Not here: mounting, processes, when a
mark is due.
"""

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace import handles
from bowerbird.workspace.capture import capture
from bowerbird.workspace.journal import Step
from bowerbird.workspace.layers import make_whiteout
from bowerbird.workspace.live_layer import STAGED_PREFIX, LiveLayer
from bowerbird.workspace.mirror import Mirror
from bowerbird.workspace.nodes import Entry, Node, walk
from bowerbird.workspace.open_layer import discard
from bowerbird.workspace.stack import Stack, open_regular
from bowerbird.workspace.state import BranchState
from bowerbird.workspace.view import MergedView


@dataclass(frozen=True, slots=True)
class OverlayDirs:
    """Directories of one overlay mount, `lower` newest first; equal values are the same view."""

    lower: tuple[Path, ...]
    upper: Path
    upper_inode: int
    work: Path


@dataclass(frozen=True, slots=True)
class Captured:
    """What a command changed: virtual paths, sorted; `special` are files no branch keeps."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    special: tuple[str, ...]


class ProcessView:
    """A branch as processes see and change it.

    While `live`, file tools write through the mounted view too (SB-10); the caller owns the descriptor.
    """

    def __init__(self, state: BranchState, hold: Callable[[], AbstractContextManager[None]]) -> None:
        self._state = state
        self._hold = hold

    @property
    def directory(self) -> Path:
        """The branch's directory in the data directory."""
        return self._state.directory

    @property
    def workspace(self) -> Path | None:
        """The workspace's own absolute path, None for a branch of nothing."""
        return self._state.workspace

    @property
    def unavailable(self) -> str | None:
        """Why this branch cannot be mounted, None when it can."""
        return None if self._state.storage.kernel_form else self._state.storage.reason

    def dirs(self) -> OverlayDirs:
        """Return the directories to mount now; another value than before asks for a new mount."""
        stack = self._state.reading()
        open_layer = stack.open_layer
        lower = stack.lower_dirs
        mask = self._mask()
        if mask is not None:
            lower.insert(len(lower) - 1, mask)
        if not lower:
            lower = [self._empty()]
        inode = os.fstat(open_layer.fd).st_ino
        return OverlayDirs(tuple(lower), open_layer.path, inode, self.directory / "work")

    def _empty(self) -> Path:
        empty = self.directory / "empty"
        empty.mkdir(mode=0o755, exist_ok=True)
        return empty

    def _mask(self) -> Path | None:
        """Return a layer of whiteouts for what the workspace hides, None when it hides nothing."""
        ground = self._state.ground
        if ground.root is None or (ground.masked is None and not self._state.manifest.value.hide):
            return None
        mask = self.directory / "mask"
        discard(mask)
        mask.mkdir(mode=0o755)
        for path in _hidden_paths(ground.root, ground.shows):
            inside = mask / path[1:]
            inside.parent.mkdir(parents=True, exist_ok=True)
            make_whiteout(inside)
        return mask

    @contextmanager
    def live(self, view_fd: int) -> Generator[None]:
        """Write through the mounted view `view_fd` until left; the open layer stays in place meanwhile."""
        state = self._state
        with self._hold():
            with state.writing() as stack:
                layer = LiveLayer(stack.open_layer, view_fd)
                stack.use_open(layer)
            try:
                yield
            finally:
                with state.writing() as stack:
                    stack.use_open(None)

    @property
    def hides(self) -> bool:
        """Whether some workspace paths are kept from this branch."""
        return bool(self._state.manifest.value.hide) or self._state.ground.masked is not None

    # ------------------------------------------------------------ the copy tier

    def mirror(self) -> Mirror:
        """Return the branch's copy; it is made by `bring_in`."""
        return Mirror(self.directory / "copy")

    def bring_in(self, mirror: Mirror, most_files: int, most_bytes: int) -> None:
        """Make the copy, or make it equal to the branch again.

        Raises:
            LimitExceeded: the branch is too large to copy.
        """
        with self._state.writing() as stack:
            if mirror.exists:
                mirror.take_back(stack)  # what a killed server left in it
            else:
                mirror.check(stack, most_files, most_bytes)
            mirror.bring_in(stack)

    @contextmanager
    def live_copy(self, mirror: Mirror) -> Generator[None]:
        """Keep copy and branch equal at every call of the file tools until left."""
        with self._hold():
            self._state.mirror = mirror
            try:
                yield
            finally:
                self._state.mirror = None

    def take_back(self, mirror: Mirror, *, turn: str | None = None, call: str | None = None) -> Captured:
        """Take what processes changed in the copy into the branch, and say what it was."""
        state = self._state
        with state.writing() as stack:
            mirror.take_back(stack)
            written, deleted, special = mirror.collect()
            captured = Captured(_sorted(written), _sorted(deleted), _sorted(special))
            state.account.forget()
            steps = [*(_written_step(stack, p) for p in captured.written)]
            steps += [Step("delete", p) for p in captured.deleted]
            state.record(steps, turn=turn, call=call, via="process")
            return captured

    def bytes_used(self) -> int:
        """Return the bytes of what processes write to: open layer, copy, home; as files on disk."""
        places = (self._state.stack.open_layer.path, self.directory / "copy", self.directory / "home")
        return sum(_disk_bytes(place) for place in places)

    def capture(self, started_ns: int, *, turn: str | None = None, call: str | None = None) -> Captured:
        """Take bases of what processes changed in the open layer, and say what they changed.

        Args:
            started_ns: `time.time_ns()` when the command started (WS-6).
        """
        state = self._state
        with state.writing() as stack:
            _drop_staged(stack)
            capture(stack, started_ns)
            captured = _net(stack)
            state.account.forget()
            steps = [*(_written_step(stack, p) for p in captured.written)]
            steps += [Step("delete", p) for p in captured.deleted]
            state.record(steps, turn=turn, call=call, via="process")
            return captured

    @staticmethod
    def now() -> int:
        """The clock that `capture` compares with."""
        return time.time_ns()


def _written_step(stack: Stack, path: str) -> Step:
    entry = stack.lookup(path)
    if entry is not None and entry.kind == "dir":
        return Step("mkdir", path)
    size = entry.size if entry is not None else 0
    return Step("write", path, "modify" if stack.beneath(path) is not None else "create", size)


def _drop_staged(stack: Stack) -> None:
    # Left in the root by a file tool that was killed between staging and switching.
    for name in list(stack.open_layer.scan().children):
        if name.startswith(STAGED_PREFIX):
            discard(stack.open_layer.path / name)


def _net(stack: Stack) -> Captured:
    """Compare the open layer with what lies below it; equal content is no change."""
    below = stack.below_open_view
    written: list[str] = []
    deleted: list[str] = []
    special: list[str] = []
    for path, node in walk(stack.open_layer.scan()):
        old = below.lookup(path)
        if node.entry is None:
            if old is not None:
                deleted += [path, *below.subtree(path)]
        elif node.entry.kind == "special":
            special.append(path)
        elif node.entry.kind == "dir":
            if old is None or old.kind != "dir" or old.mode != node.entry.mode:
                written.append(path)
            if node.cut and old is not None and old.kind == "dir":
                deleted += [p for p in below.subtree(path) if stack.lookup(p) is None]
        elif not _same(stack, below, path, node, old):
            written.append(path)
    return Captured(_sorted(written), _sorted(deleted), _sorted(special))


def _sorted(paths: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=os.fsencode))


def _same(stack: Stack, below: MergedView, path: str, node: Node, old: Entry | None) -> bool:
    new = node.entry
    if new is None or old is None or (new.kind, new.target) != (old.kind, old.target):
        return False
    if new.kind != "file":
        return True
    if (new.size, new.mode) != (old.size, old.mode):
        return False
    try:
        mine = open_regular(stack.view, path, new)
    except WorkspaceError:
        return False
    try:
        theirs = open_regular(below, path, old)
        try:
            return handles.equal_bytes(mine, theirs)
        finally:
            os.close(theirs)
    except WorkspaceError:
        return False
    finally:
        os.close(mine)


def _hidden_paths(root: Path, shows: Callable[[str], bool]) -> Iterator[str]:
    """Yield the topmost workspace paths that no view shows."""
    todo = [""]
    while todo:
        above = todo.pop()
        with os.scandir(f"{root}{above}") as items:
            for item in items:
                path = f"{above}/{item.name}"
                if not shows(path):
                    yield path
                elif item.is_dir(follow_symlinks=False):
                    todo.append(path)


def _disk_bytes(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue  # removed between two looks
    return total
