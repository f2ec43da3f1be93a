"""All layers of one branch: atomic changes of the open one, freezing, dropping.

Here: what `stack_reading.py` reads, written. Not here: file tools, limits, journals, steps, merging.

Every method expects that the caller holds the branch's writer lock (`BranchState.writing`).
"""

import errno
import os
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path

import msgspec

from bowerbird.core.errors import BranchBusy, NotDirectory, NotFound, SpecialFile
from bowerbird.core.processes.creation_mask import new_mode
from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.tree import handles, owned, presence
from bowerbird.workspace.tree.fork_point import Base
from bowerbird.workspace.tree.layers import FrozenLayer
from bowerbird.workspace.tree.manifest import LayerRecord
from bowerbird.workspace.tree.merged_view import open_regular
from bowerbird.workspace.tree.nodes import Entry, entry_of, find, walk
from bowerbird.workspace.tree.open_layer import OpenLayer, discard
from bowerbird.workspace.tree.stack_reading import Layering, LayerState

_TRIES = 5
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
Witness = Callable[[str, Entry], bool | None]
"""Whether who made a change had seen an entry of the workspace: False = perhaps another, None = nothing."""

__all__ = ["Base", "Entry", "Stack", "open_regular"]


def _sees(path: str, entry: Entry) -> bool:
    """For who reads what stands there now."""
    del path, entry
    return True


class Stack(Layering):
    """The layers of one branch, to read and to change; see `Layering` for the arguments."""

    _witness: Witness = staticmethod(_sees)

    # ------------------------------------------------------------ writing

    def put_file(
        self,
        path: str,
        content: bytes | str | int,
        mode: int,
        *,
        mtime_ns: int | None = None,
        sync: bool = False,
    ) -> None:
        """Put a regular file at `path` in one step; missing parents become directories.

        Args:
            content: bytes, a host file of ours (a base, a frozen layer's), or a readable handle.
            mode: permission bits.
            mtime_ns: modification time, the clock's when None.
            sync: wait until the bytes are on disk.
        """
        if isinstance(content, str):
            fd = handles.open_host(content, handles.FILE)
            try:
                self.put_file(path, fd, mode, mtime_ns=mtime_ns, sync=sync)
            finally:
                os.close(fd)
            return
        missing = self._clear_way(path)
        staged = self._state.open.stage_file(content, mode, mtime_ns=mtime_ns, sync=sync)
        self._switch(path, staged, missing)

    def put_symlink(self, path: str, target: str) -> None:
        """Put a symbolic link at `path` in one step."""
        missing = self._clear_way(path)
        staged = self._state.open.stage_name()
        staged.symlink_to(target)
        self._switch(path, staged, missing)

    def put_dir(self, path: str, mode: int = 0o755) -> None:
        """Make `path` a directory; one that exists keeps its content and takes `mode`."""
        existing = self.lookup(path)
        if existing is not None and existing.kind == "dir":
            if existing.mode != mode:
                self.chmod(path, mode)
            return
        missing = self._clear_way(path)
        staged = self._state.open.stage_name()
        staged.mkdir(mode=0o700)
        staged.chmod(mode)
        self._switch(path, staged, missing)

    def put_tree(self, path: str, staged: Path, paths: Collection[str]) -> None:
        """Switch a staged file, link or whole directory in at `path` in one step.

        Args:
            staged: made in `work/`; discarded when the change fails.
            paths: every path that it brings, `path` included.
        """
        try:
            missing = self._clear_way(path)
            for inner in paths:
                self.save_base(inner)
        except BaseException:
            discard(staged)
            raise
        self._switch(path, staged, missing)

    def adopt_tree(self, path: str, staged: Path, paths: Collection[str]) -> None:
        """Switch a staged directory in where nothing stands; cost grows with `paths`, however deep.

        Args:
            paths: every path that it brings below `path`. What the branch deleted there before has its base.
        """
        try:
            missing = self._clear_way(path)
            self.orig.save_many({inner: Base(None) for inner in paths if inner not in self.orig})
        except BaseException:
            discard(staged)
            raise
        self._switch(path, staged, missing)

    def _switch(self, path: str, staged: Path, missing: Sequence[str]) -> None:
        """Make a staged entry appear at `path`, in one step with the directories it needs.

        A new directory hides what lies below only where it takes the place of something. Where nothing was,
        what the user puts into a directory of that name shows in it, as in every directory of the workspace.
        """
        layer = self._state.open
        top, whole = path, staged
        try:
            if missing:
                # The parents come in the same rename: a kill leaves all of it or nothing.
                top, whole = missing[0], layer.stage_name()
                inner = whole / missing[-1][len(top) + 1 :]
                inner.mkdir(mode=0o700, parents=True)
                for count in range(len(missing)):
                    (whole / missing[count][len(top) + 1 :]).chmod(new_mode(0o777))
                owned.carry(staged, inner / path.rpartition("/")[2])
            state = self._state
            replaces = state.merged.find(top) is not None or state.below_own.lookup(top) is not None
            layer.put(top, whole, self._mode_of, opaque=replaces)
        except BaseException:
            discard(staged)
            discard(whole)
            raise

    def chmod(self, path: str, mode: int) -> None:
        """Set the permission bits of a file or directory; a file becomes the branch's own."""
        entry = self.take(path)
        if entry is None:
            raise NotFound(f"{path[1:]} does not exist", path)
        if entry.kind == "dir":
            self._state.open.chmod_dir(path, mode, self._mode_of)
        elif entry.kind == "file":
            fd = self.open(path, entry)
            try:
                self.put_file(path, fd, mode, mtime_ns=entry.mtime_ns)
            finally:
                os.close(fd)

    def remove(self, path: str, *, keep: Path | None = None) -> None:
        """Delete what stands at `path`, a directory with everything below, in one step.

        Args:
            keep: where the open layer's own entry is moved to; it is deleted when None.
        """
        state = self._state
        for inner in (path, *state.merged.subtree(path)):
            self.save_base(inner)
        saved = self.orig.get(path)
        # What stood there at the fork point stays deleted, even if the user brings it back.
        stood = saved is not None and saved.entry is not None
        hide = stood or state.below_open.lookup(path) is not None
        state.open.remove(path, self._mode_of, hide=hide, keep=keep)

    def _clear_way(self, path: str) -> list[str]:
        """Save the base of `path` and take a directory at it away.

        Returns:
            The directories above it that do not exist, outermost first; their bases are saved.
        """
        missing: list[str] = []
        above = path.rpartition("/")[0]
        while above:
            entry = self.lookup(above)
            if entry is not None:
                if entry.kind != "dir":
                    raise NotDirectory(f"{above[1:]} is not a directory", above)
                break
            missing.append(above)
            above = above.rpartition("/")[0]
        existing = self.lookup(path) if not missing else None
        if existing is not None and existing.kind == "dir":
            self.remove(path)
        for changed in (*missing, path):
            self.save_base(changed)
        return missing[::-1]

    def _mode_of(self, path: str) -> int:
        entry = self.lookup(path)
        return entry.mode if entry is not None and entry.kind == "dir" else 0o755

    # ------------------------------------------------------------ bases

    @contextmanager
    def changing(self) -> Generator[None]:
        """Take each base once until left: what a change was computed from, nobody reads again.

        Bases of a change that did not come about are forgotten.
        """
        if self._taken is not None:  # a change inside of another one
            yield
            return
        if self.look_at_processes is not None:
            self.look_at_processes(self)
        self._taken = taken = dict[str, bool]()
        try:
            yield
        finally:
            self._taken = None
            idle = [path for path, asked in taken.items() if asked and self.touched(path) is None]
            with suppress(OSError):  # a full disk; the next sweep forgets them
                self.orig.forget(idle)

    @contextmanager
    def seen_by(self, witness: Witness) -> Generator[None]:
        """Ask `witness` of each base that is taken of the workspace until left."""
        before, self._witness = self._witness, witness
        try:
            yield
        finally:
            self._witness = before

    def take(self, path: str) -> Entry | None:
        """Take the base of `path` and return what the branch has there.

        A file of the workspace is read from its base from then on: the bytes that a change is computed from
        are those that it will be compared with.
        """
        self.save_base(path)
        if self._taken is not None and path in self._taken:
            self._taken[path] = True
        if self.touched(path) is not None:
            return self.lookup(path)
        base = self.orig.get(path)
        return base.entry if base is not None else None

    def took_already(self, paths: Iterable[str]) -> None:
        """Take no other base of these in the present change than the one that was just saved."""
        if self._taken is not None:
            self._taken.update(dict.fromkeys(paths, False))

    def took(self, path: str) -> bool:
        """Whether the present change is the branch's first one of `path`."""
        return path not in self.orig or (self._taken is not None and path in self._taken)

    def doubt(self, path: str) -> None:
        """Make the base of `path` uncertain: the change was computed from other bytes than it holds."""
        base = self.orig.get(path)
        if base is not None and not base.uncertain:
            self.orig.amend(path, msgspec.structs.replace(base, uncertain=True))

    def doubt_hidden(self, path: str) -> None:
        """Make a base uncertain that whoever changed its path did not see, unless it is a directory."""
        base = self.orig.get(path)
        if base is not None and base.entry is not None and base.entry.kind != "dir":
            self.doubt(path)

    def save_base(self, path: str) -> None:
        """Save what stands at `path` below this branch, unless the branch changed it already."""
        known = path in self.orig
        if known and self._taken is not None and path in self._taken:
            return
        node = self.touched(path)
        if node is not None and node.cut:
            if not known:
                self.orig.save(path, None, None)  # made inside a directory that the branch replaced
            return
        if node is not None and known:
            return
        self._save(path)
        is_dir = node is not None and node.entry is not None and node.entry.kind == "dir"
        if is_dir or (node is not None and self.look_at_processes is not None):  # written a moment ago
            self.doubt_hidden(path)
        if self._taken is not None:
            self._taken.setdefault(path, False)

    def _save(self, path: str) -> None:
        for tries in range(_TRIES):
            try:
                self._save_as_it_is(path)
            except (NotFound, SpecialFile):  # saved by its user between the look and the opening
                if tries == _TRIES - 1:
                    raise
            else:
                return

    def _save_as_it_is(self, path: str) -> None:
        below = self._state.below_own
        entry = below.lookup(path)
        if entry is None or entry.kind != "file" or entry.layer is not None:
            seen = entry is None or self._witness(path, entry)
            source = entry.source if entry is not None and entry.kind == "file" else None
            self.orig.save(path, entry if seen is not None else None, source, uncertain=seen is False)
            return
        try:
            fd = open_regular(below, path, entry)
        except PermissionError:  # nobody but its owner reads it: what it held cannot be known
            self.orig.save(path, entry, None, uncertain=True)
            return
        try:
            entry = entry_of(os.fstat(fd), entry.source, None)
            seen = self._witness(path, entry)
            self.orig.save(path, entry if seen is not None else None, fd, uncertain=seen is False)
        finally:
            os.close(fd)

    def set_base(self, path: str, base: Base) -> None:
        """Replace the base of a changed path (a landing or merge made another one true).

        Args:
            base: of a file, `base.entry.source` is a host file that is copied.
        """
        if base.entry is None or base.entry.source is None or base.entry.kind != "file":
            self.orig.save(path, base.entry, None, uncertain=base.uncertain)
            return
        fd = handles.open_host(base.entry.source, handles.FILE)
        try:
            self.orig.save(path, base.entry, fd, uncertain=base.uncertain)
        finally:
            os.close(fd)

    def prune_bases(self) -> None:
        """Forget bases of paths that no own layer changes any more (after a rollback)."""
        own = self.own()
        self.orig.forget([path for path in self.orig.paths() if find(own, path) is None])

    # ------------------------------------------------------------ freezing

    def seal(self, *, snapshot: str | None = None, turn: str | None = None) -> int | None:
        """Freeze the open layer and open a new one.

        Args:
            snapshot, turn: ids for the layer's record.

        Returns:
            The frozen layer's number; None (and nothing done) when nothing was changed.

        Raises:
            BranchBusy: processes have it mounted: what they write later would go to the frozen one, unseen.
        """
        state = self._state
        self.check_unmounted()
        if state.open.is_empty():
            return None
        number = state.open.number
        # A kill after this rename and before the manifest is written is completed by load().
        frozen = self.directory / "layers" / str(number)
        state.open.path.rename(frozen)
        try:
            layer = FrozenLayer(frozen)
            nodes = [node for _, node in walk(layer.node)]
            sizes = [node.entry.size for node in nodes if node.entry and node.entry.kind == "file"]
            opened = self._opened_layer(number + 1)
            record = LayerRecord(number, snapshot, turn, len(nodes), sum(sizes), now_iso())
            self._manifest.update(layers=(*self._manifest.value.layers, record), open=number + 1)
        except BaseException:
            if self._manifest.changed():  # the record names the layer already
                self.reload()
            else:  # as if nothing had been tried: what is remembered here expects the open layer in its place
                discard(state.open.path)
                frozen.rename(state.open.path)
            raise
        self._layers[number] = layer
        self._state = LayerState(self.ground, opened, state.own.plus(layer), state.lower)
        return number

    def at_rest(self) -> "Stack":
        """Return this stack, or while processes write the open layer, one that reads only what is frozen.

        Whoever reads a file several times, or needs all of it from one moment, has the layer copied first.
        """
        state = self._state
        if not state.open.live:
            return self
        rests = copy(self)
        empty = OpenLayer(self.directory / "empty", self.directory / "work", state.open.number, None)
        rests._state = LayerState(self.ground, empty, state.own, state.lower)
        return rests

    def check_unmounted(self) -> None:
        """Refuse what takes the open layer away while processes have it mounted, with BranchBusy."""
        if self._state.open.live:
            raise BranchBusy(
                f"a command runs on branch {self.directory.name} and writes to it: wait for its end, or "
                "stop it, and try again"
            )

    def drop_above(self, number: int) -> None:
        """Take back everything newer than the own layer `number` (0 = all), the open one included.

        Directories of dropped layers are deleted after the manifest no longer names them.
        """
        try:
            self.seal()
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._drop_open()  # it goes anyway, and so makes the room that the record needs
        manifest = self._manifest.value
        kept = tuple(layer for layer in manifest.layers if layer.n <= number)
        dropped = [layer.n for layer in manifest.layers if layer.n > number]
        if dropped:
            self._manifest.update(layers=kept)
            self.reload()
            for n in dropped:
                self._layers.pop(n, None)
                self.discard_layer(n)
        self.prune_bases()

    def _drop_open(self) -> None:
        """Delete what the open layer holds; a kill in the middle leaves an empty one, too."""
        state = self._state
        gone = self.directory / "work" / f"dropped-{state.open.number}"
        state.open.path.rename(gone)
        discard(gone)
        if state.open.marks_file is not None:
            discard(state.open.marks_file)
        opened = self._opened_layer(state.open.number)
        self._state = LayerState(self.ground, opened, state.own, state.lower)
        self._wrote()

    def discard_layer(self, number: int) -> None:
        """Delete the directory of a layer that the manifest no longer names.

        One with a `<n>.kept` mark stays: a snapshot or a fork needs it (`history.py`).
        """
        root = self.directory / "layers"
        if presence.exists(root / f"{number}.kept"):
            return
        discard(root / str(number))
        discard(root / f"{number}.json")

    def sweep(self) -> None:
        """Delete what a kill left: staged files, dropped layers, bases without a change."""
        named = {layer.n for layer in self._manifest.value.layers} | {self._state.open.number}
        for found in (self.directory / "layers").iterdir():
            number = found.name.removesuffix(".json")
            if found.name.endswith(".tmp"):
                discard(found)
            elif number.isdecimal() and int(number) not in named:
                self.discard_layer(int(number))
        for staged in (self.directory / "work").iterdir():
            if staged.name != "work":  # the kernel overlay's own
                discard(staged)
        self.prune_bases()
