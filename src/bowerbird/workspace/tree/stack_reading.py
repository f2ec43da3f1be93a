"""Reading through all layers of one branch: the merged view, what changed, from which base.

Here: opening a branch directory's layers, noticing what other processes sealed, looking.
Not here: any change (`stack.py`), links and `..` in given paths (`paths.py`).

Reading needs no lock: it works on one immutable state (see `merged_view.py`).
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bowerbird.core.errors import BranchBusy, NotFound
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.fork_point import Base, OrigStore
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.layers import FrozenLayer, LayerMissing, Pile, Storage
from bowerbird.workspace.tree.manifest import ManifestFile
from bowerbird.workspace.tree.merged_view import MergedView, open_regular
from bowerbird.workspace.tree.nodes import Entry, Node, find, find_in, overlay, walk
from bowerbird.workspace.tree.open_layer import OpenLayer

_T = TypeVar("_T")
_P = ParamSpec("_P")
_LOOKS = 8
_PAUSE_S = 0.005
DIRECTORIES = ("open", "work", "layers", "orig", "steps", "landings")
"""What a branch directory holds beside its manifest and lock."""


class Steady(Protocol):
    """What looks at a branch."""

    def steadily(self, look: Callable[[], _T]) -> _T:
        """See `Layering.steadily`."""
        ...


_S = TypeVar("_S", bound=Steady)


def steady(look: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """Have a method that only looks asked again when layers went away meanwhile."""

    @wraps(look)
    def asked(looker: _S, /, *args: _P.args, **options: _P.kwargs) -> _T:
        return looker.steadily(lambda: look(looker, *args, **options))

    return asked


class LayerState:
    """One consistent state of a branch's layers; replaced as a whole."""

    def __init__(self, ground: Ground, open_layer: OpenLayer, own: Pile, lower: Pile) -> None:
        self.ground, self.open, self.own, self.lower = ground, open_layer, own, lower

    @cached_property
    def merged(self) -> MergedView:
        return MergedView(self.ground, self.below_open.frozen, self.open)

    @cached_property
    def below_open(self) -> MergedView:
        return MergedView(self.ground, overlay(self.lower.node, self.own.node))

    @cached_property
    def own_view(self) -> MergedView:
        return MergedView(self.ground, self.own.node, self.open)

    @cached_property
    def below_own(self) -> MergedView:
        return MergedView(self.ground, self.lower.node)


class Layering:
    """All layers of one branch.

    Args:
        directory: `…/branches/<id>`; its sub-directories are made if missing.
        manifest: its manifest file.
        ground: the workspace below.
        lower: the frozen layers of parents, as far as this branch stands on them.
        storage: what the filesystem can hold.
    """

    def __init__(
        self, directory: Path, manifest: ManifestFile, ground: Ground, lower: Pile, storage: Storage
    ) -> None:
        self.directory, self.ground, self.lower = directory, ground, lower
        self._manifest, self._storage = manifest, storage
        for name in DIRECTORIES:
            (directory / name).mkdir(mode=0o700, exist_ok=True)
        self.orig = OrigStore(directory / "orig")
        self._taken: dict[str, bool] | None = (
            None  # while it is changed: bases saved, and whether for reading
        )
        self.look_at_processes: Callable[[Any], None] | None = None
        # While they run: takes the bases of what they wrote. Of that, what is there later is no base.
        self.same_as_base: dict[str, tuple[str | None, str | None, int]] = {}
        # Frozen files that hold what their bases hold: a `touch` is no change, and reading tells it once.
        self.direct_writes = 0  # changes of the open layer that a mount of it knows nothing of
        self._layers: dict[int, FrozenLayer] = {}
        self._refreshing = threading.Lock()
        self._state = self._load()

    def _load(self) -> LayerState:
        manifest = self._manifest.load()
        root = self.directory / "layers"
        self._layers = {r.n: self._layer(root / str(r.n), r.n) for r in manifest.layers}
        own = Pile(tuple(self._layers.values()))
        return LayerState(self.ground, self._opened_layer(manifest.open), own, self.lower)

    def _layer(self, path: Path, number: int) -> FrozenLayer:
        # Joining puts another directory in a layer's place: what another process joined is not what was read.
        known = self._layers.get(number)
        return known if known is not None and known.is_as_read() else FrozenLayer(path)

    def _opened_layer(self, number: int) -> OpenLayer:
        layer = self._open_layer(number)
        layer.path.mkdir(mode=0o700, exist_ok=True)
        layer.hold()
        return layer

    def _open_layer(self, number: int) -> OpenLayer:
        marks = None if self._storage.kernel_form else self.directory / "layers" / f"{number}.json"
        return OpenLayer(self.directory / "open", self.directory / "work", number, marks, self._wrote)

    def _wrote(self) -> None:
        self.direct_writes += 1

    def wrote_elsewhere(self) -> None:
        """Note that another process may have written the open layer: a mount of it shows what was before."""
        self.direct_writes += 1

    def close(self) -> None:
        """Give handles up; who is reading just now keeps what it reads through."""
        self.orig.close()
        state = self._state
        self._state = LayerState(self.ground, self._open_layer(state.open.number), state.own, state.lower)

    def refresh(self) -> None:
        """Take over what another process sealed, dropped or saved since the last look.

        Readers call it only while no thread of this process writes; a writer calls it first of
        all, and so waits here for readers that are still at it.
        """
        with self._refreshing:
            if self._manifest.changed():
                self.reload()
            self.orig.refresh()

    def reload(self, replaced: Collection[int] = ()) -> None:
        """Read the manifest again; `replaced` names layers whose directory is another now."""
        for number in replaced:
            self._layers.pop(number, None)
        open_layer, self._state = self._state.open, self._load()
        if open_layer.live and os.path.samestat(os.fstat(open_layer.fd), os.fstat(self._state.open.fd)):
            open_layer.number = self._state.open.number  # mounted still: behind the mount nobody would see it
            self.use_open(open_layer)

    def use_open(self, layer: OpenLayer | None) -> None:
        """Write through `layer` (the open one, seen another way); None = directly again.

        The sandbox uses it while the layer is mounted.
        """
        state = self._state
        opened = layer if layer is not None else self._opened_layer(state.open.number)
        self._state = LayerState(self.ground, opened, state.own, state.lower)

    # ------------------------------------------------------------ reading

    def steadily(self, look: Callable[[], _T]) -> _T:
        """Return what `look` does of one state; it is asked again when layers went away meanwhile.

        Readers hold no lock: a turn's end joins layers, going back drops them, a landing replaces bases, and
        processes take away what they made.

        Raises:
            BranchBusy: it never rests.
        """
        gone: Exception | None = None
        for looks in range(_LOOKS):
            held = self._state
            try:
                found = look()
            except (FileNotFoundError, NotFound) as error:
                # Beside processes the same thing twice is not there, two different ones went away.
                is_so = not held.open.live or (gone is not None and str(error) == str(gone))
                if isinstance(error, NotFound) and is_so and _is_there(held):
                    raise
                gone = error
            else:
                if _is_there(held):
                    return found
            if not _is_there(held):
                time.sleep(_PAUSE_S * 2**looks)  # a writer is at it
        if isinstance(gone, LayerMissing) or (gone is not None and not self.directory.exists()):
            raise gone
        busy = f"branch {self.directory.name} changes faster than it can be read; try again in a moment"
        raise BranchBusy(busy) from gone

    @property
    def view(self) -> MergedView:
        """The merged view as of now; a call takes it once and works on it."""
        state = self._state
        return MergedView(self.ground, state.below_open.frozen, state.open)

    @property
    def open_layer(self) -> OpenLayer:
        """The layer that takes changes."""
        return self._state.open

    def lookup(self, path: str) -> Entry | None:
        """Return what stands at `path` in the merged view; no link is followed, neither on the way."""
        return self._state.merged.lookup(path)

    def children(self, path: str) -> dict[str, Entry]:
        """Return the merged entries of a directory; raises NotFound or NotDirectory."""
        return self._state.merged.children(path)

    def unsaved_base(self, path: str) -> Base:
        """Return what stands below a path that has no base; what a process wrote may be from other bytes."""
        below = self.beneath(path)
        is_user = below is not None and below.layer is None and below.kind != "dir"
        return Base(below, is_user and self.look_at_processes is not None)

    def beneath(self, path: str) -> Entry | None:
        """Return what stands at `path` below this branch's own layers, live."""
        return self._state.below_own.lookup(path)

    @property
    def beneath_view(self) -> MergedView:
        """What lies below this branch's own layers."""
        return self._state.below_own

    @property
    def below_open_view(self) -> MergedView:
        """What lies below the open layer."""
        return self._state.below_open

    @property
    def frozen_own(self) -> Node:
        """What this branch's own frozen layers override."""
        return self._state.own.node

    def own(self) -> Node:
        """Return what this branch's own layers override, without its parents'."""
        state = self._state
        return overlay(state.own.node, state.open.scan())

    def touched(self, path: str) -> Node | None:
        """Return what the branch's own layers say about `path`; None = it reads through."""
        return self._state.own_view.find(path)

    def changed(self, *, private: bool = False) -> dict[str, Entry | None]:
        """Return the topmost entry of every path that this branch changed; None = deleted.

        Content equal to its base is listed too. Directories that only lead to changed paths
        are not. Cost grows with the changes.

        Args:
            private: include private paths.
        """
        found: dict[str, Entry | None] = {}
        for inner in self.changed_in(private=private).values():
            found.update(inner)
        return found

    def changed_in(self, *, private: bool = False) -> dict[str, dict[str, Entry | None]]:
        """Return what `changed` does, by the directory in which it lies ("" is the root).

        There are many paths and few directories: what holds for a directory is asked once.
        """
        own = self.own()
        places: dict[str, tuple[Node | None, dict[str, Entry | None]]] = {}
        for path in self.orig.paths():
            above, _, name = path.rpartition("/")
            place = places.get(above)
            if place is None:
                place = places[above] = (find(own, above or "/"), {})
            directory, found = place
            node = directory.children.get(name) if directory is not None else None
            if node is None:
                node = find_in(directory, name)
            if node is not None:
                found[path] = node.entry
        for path, node in walk(own):
            above = path.rpartition("/")[0]
            place = places.get(above)
            if place is None:
                place = places[above] = (None, {})
            if path not in place[1] and not self._leads_only(path, node):
                place[1][path] = node.entry
        if not private:
            for path in self.private_paths():
                if (place := places.get(path.rpartition("/")[0])) is not None:
                    place[1].pop(path, None)
        return {above: found for above, (_, found) in places.items() if found}

    def _leads_only(self, path: str, node: Node) -> bool:
        """Tell copied-up directories, and whiteouts of nothing, from changes without a base yet.

        One that took a file's place hides it: one that is not hidden is newer and its user's.
        """
        if node.entry is None:
            return self.beneath(path) is None
        if node.entry.kind != "dir" or node.cut:
            return False
        below = self.beneath(path)
        return below is not None and (below.kind != "dir" or below.mode == node.entry.mode)

    def private_paths(self) -> frozenset[str]:
        """Return the paths that appear in no changes; directories made for them included."""
        return frozenset(path.rstrip("/") for path in self._manifest.value.private)

    def base(self, path: str) -> Base:
        """Return the fork-point state: saved if the branch changed `path`, else what is below."""
        if self.touched(path) is not None:
            saved = self.orig.get(path)
            if saved is not None:
                return saved
        return Base(self.beneath(path))

    def open(self, path: str, entry: Entry | None = None) -> int:
        """Open a regular file for reading, by handles and through no link; return its handle.

        Args:
            entry: what this stack returned for `path` (a base's entry too); None looks it up.

        Raises:
            NotFound: it is gone. SpecialFile: it is no regular file.
        """
        if entry is not None and entry.source is not None and self.orig.holds(entry.source):
            return os.open(entry.source, handles.FILE)
        try:
            return open_regular(self._state.merged, path, entry or self.lookup(path))
        except NotFound:
            # What it lay in may have been sealed, or joined with other layers, since it was looked up.
            now = self.lookup(path)
            if entry is None or now is None or _same_file(now) != _same_file(entry):
                raise
            return open_regular(self._state.merged, path, now)

    def was_open(self, entry: Entry) -> bool:
        """Whether an entry was found in the open layer; that may be sealed by now."""
        return entry.layer is not None and (entry.source or "").startswith(f"{self.directory}/open/")

    @property
    def lower_dirs(self) -> list[Path]:
        """Directories below the open layer, newest first, as an overlay mount takes them."""
        state = self._state
        roots = [layer.path for layer in reversed((*state.lower.layers, *state.own.layers))]
        return [*roots, self.ground.root] if self.ground.root is not None else roots

    def pile(self, upto: int | None = None) -> Pile:
        """Return the frozen layers a fork stands on: the parents' and own ones up to a number."""
        own = self._state.own.layers
        return self.lower.plus(*(layer for layer in own if upto is None or layer.number <= upto))

    def subtree(self, path: str) -> dict[str, Entry]:
        """Return every merged entry below the directory `path`, parents first."""
        return self._state.merged.subtree(path)

    def own_children(self, path: str) -> Mapping[str, Node]:
        """Return what this branch's own layers say about the children of a directory, by name."""
        return self._state.own_view.overrides(path).children


def _is_there(state: LayerState) -> bool:
    return all(layer.is_as_read() for layer in state.own.layers)


def _same_file(entry: Entry) -> tuple[object, ...]:
    return entry.kind, entry.mode, entry.size, entry.mtime_ns
