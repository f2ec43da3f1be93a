"""The time line of one branch: freezing, marks, snapshots, going back, short stacks (WS-40…43).

Here: which layers make which state, joining layers with hard links of frozen files, what a
snapshot is. Not here: merging and landing, locks, the layers' own form.

Layer numbers only grow. A snapshot names its newest layer; its state is that layer and all
before it. Joining layers puts the joined one in the place of the newest, which changes
neither the view nor any snapshot from there on; layers that only older snapshots or forks
need stay on disk beside a `<n>.kept` mark.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from bowerbird.core.errors import NotFound, Stale
from bowerbird.core.ids import new_id
from bowerbird.workspace.history.layer_shelf import LayerShelf
from bowerbird.workspace.tree.changes import frozen_side, side_of
from bowerbird.workspace.tree.layers import FrozenLayer, Pile, Storage
from bowerbird.workspace.tree.manifest import LayerRecord, ManifestFile
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import EMPTY, Entry, Node, find, overlay, walk
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A frozen state of a branch.

    Attributes:
        n: number of its newest layer, 0 for the state before any change.
        turn: the turn that ended in it, None when a fork, merge or landing needed it.
        paths, bytes: what the layer that it ended overrides.
        live: taken while background processes could still write.
    """

    id: str
    n: int
    turn: str | None
    paths: int
    bytes: int
    created_at: str
    live: bool = False

    def record(self) -> dict[str, Any]:
        """Return the form of WS-42."""
        return asdict(self)


class History:
    """Freezing and going back on one branch; every method expects the writer's lock.

    Args:
        stack: the branch's layers.
        manifest: its record.
        storage: what the filesystem can hold.
        referenced: numbers of this branch's layers that forks stand on.
    """

    def __init__(
        self, stack: Stack, manifest: ManifestFile, storage: Storage, referenced: Callable[[], set[int]]
    ) -> None:
        self._stack = stack
        self._manifest = manifest
        self._referenced = referenced
        self.shelf = LayerShelf(stack, manifest, storage, referenced)

    # ------------------------------------------------------------ freezing

    def freeze(self, turn: str | None = None, *, live: bool = False) -> Snapshot:
        """Seal the open layer and return the snapshot of the state as it is now.

        One that processes have mounted is copied.
        """
        if self._stack.open_layer.live:
            return self.freeze_live(turn)
        self._stack.seal(snapshot=new_id("s"), turn=turn)
        return self.freeze_top(turn, live=live)

    def freeze_top(self, turn: str | None = None, *, live: bool = False) -> Snapshot:
        """Return the snapshot of the newest frozen layer, named if it has no name yet."""
        layers = self._manifest.value.layers
        if not layers:
            return self.snapshot_before_changes()
        top = layers[-1]
        if top.snapshot is None:
            top = msgspec.structs.replace(top, snapshot=new_id("s"), turn=turn or top.turn)
            self._manifest.update(layers=(*layers[:-1], top))
        if live and top.snapshot not in self._live():
            extra = {**self._manifest.value.extra, "live": sorted({*self._live(), str(top.snapshot)})}
            self._manifest.update(extra=extra)
        return self._snapshot(top)

    def freeze_live(self, turn: str | None = None) -> Snapshot:
        """Return a snapshot of the present state without touching the open layer.

        For when processes write: what they changed is copied, so the snapshot may hold a file
        in the middle of its writing; its record says `live`.
        """
        self.shelf.copy_open()
        return self.freeze_top(turn, live=True)

    def mark(self, turn: str | None = None) -> str:
        """Seal the open layer if it changed and return the mark of this state."""
        self._stack.seal(turn=turn)
        return self.last_mark()

    def last_mark(self) -> str:
        """Return the mark of the newest frozen state."""
        layers = self._manifest.value.layers
        return self._mark_of(layers[-1].n if layers else 0)

    def _mark_of(self, number: int) -> str:
        return f"m_{self._manifest.value.id[-12:]}{number:08d}"

    def rollback(self, mark: str) -> None:
        """Drop everything that came after `mark`.

        Raises:
            Stale: the mark is of another branch, or its layer was joined or dropped.
        """
        numbers = [0, *(layer.n for layer in self._manifest.value.layers)]
        number = next((n for n in numbers if self._mark_of(n) == mark), None)
        if number is None:
            raise Stale(f"mark {mark} no longer exists: its turn ended or it was rolled back; use a snapshot")
        if numbers[-1] > number:
            for needed in self._referenced():
                if needed > number:
                    self.shelf.keep(needed)
        self._stack.drop_above(number)
        self._forget_merges(number)

    def end_turn(self, turn: str | None, *, live: bool = False) -> Snapshot:
        """Make the turn's layers one snapshot and return it; without changes, the one before."""
        self._stack.seal(turn=turn)
        layers = self._manifest.value.layers
        loose = 0
        while loose < len(layers) and layers[-1 - loose].snapshot is None:
            loose += 1
        if loose > 1:
            self.shelf.join(layers[-loose:], covered=False)
        snapshot = self.freeze(turn, live=live)
        if self.shelf.consolidate():
            self.shelf.sweep()
        return snapshot

    # ------------------------------------------------------------ snapshots

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots, oldest first."""
        return [self._snapshot(layer) for layer in self.shelf.records() if layer.snapshot is not None]

    def snapshot_before_changes(self) -> Snapshot:
        """Return the state before any change of this branch; its id follows from the branch's."""
        manifest = self._manifest.value
        return Snapshot("s_" + manifest.id.partition("_")[2], 0, None, 0, 0, manifest.created_at)

    def find(self, snapshot: str) -> Snapshot:
        """Return a snapshot by id; raises NotFound."""
        first = self.snapshot_before_changes()
        for found in (first, *self.snapshots()):
            if found.id == snapshot:
                return found
        raise NotFound(f"this branch has no snapshot {snapshot}")

    def numbers_at(self, snapshot: str) -> list[int]:
        """Return the own layers, oldest first, that make the state of `snapshot`."""
        number = self.find(snapshot).n
        return self._prefix(self._manifest.value.layers, number)

    def pile_at(self, snapshot: str) -> Pile:
        """Return all frozen layers, the parents' included, of a snapshot."""
        numbers = self.numbers_at(snapshot)
        present = self._stack.pile(numbers[-1] if numbers else 0)
        if len(present.layers) - len(self._stack.lower.layers) == len(numbers):
            return present  # layers that were read already
        root = self.shelf.directory
        return self._stack.lower.plus(*(FrozenLayer(root / str(n)) for n in numbers))

    def own_at(self, snapshot: str) -> Node:
        """Return what the branch's own layers overrode in a snapshot."""
        tree = EMPTY
        for number in self.numbers_at(snapshot):
            tree = overlay(tree, FrozenLayer(self.shelf.directory / str(number)).node)
        return tree

    def view_at(self, snapshot: str) -> MergedView:
        """Return the merged view of a snapshot over the workspace as it is now."""
        return MergedView(self._stack.ground, self.pile_at(snapshot).node)

    def restore(self, snapshot: str) -> list[str]:
        """Make the view equal a snapshot as one new layer, and return the paths that changed."""
        own = self.own_at(snapshot)
        self._stack.seal()
        then = MergedView(self._stack.ground, overlay(self._stack.lower.node, own))
        wanted: dict[str, Side | None] = {}
        for path in sorted({*self._stack.changed(), *(p for p, _ in walk(own))}, key=os.fsencode):
            entry, present = then.lookup(path), self._stack.lookup(path)
            if not _same_entry(entry, present):
                side = side_of(then, path, entry) if entry and entry.layer is None else frozen_side(entry)
                wanted[path] = side
        self.shelf.put_layer(wanted)
        for path in wanted:
            if find(own, path) is None:
                # It read through then: what stands below now is no change of the branch.
                set_base_to_view(self._stack, path)
        return list(wanted)

    def _prefix(self, layers: Sequence[LayerRecord], upto: int) -> list[int]:
        """The layers that make the state at `upto`, going into joined ones where it lies inside."""
        numbers: list[int] = []
        for layer in layers:
            if layer.n > upto:
                # Joined layers lie in joined layers: how deep, only going down tells.
                return numbers + self._prefix(self.shelf.covered(layer.n), upto)
            numbers.append(layer.n)
        return numbers

    def _snapshot(self, layer: LayerRecord) -> Snapshot:
        identity = layer.snapshot or ""
        live = identity in self._live()
        return Snapshot(identity, layer.n, layer.turn, layer.paths, layer.bytes, layer.frozen_at, live)

    def _live(self) -> list[str]:
        return list(self._manifest.value.extra.get("live", ()))

    def _forget_merges(self, number: int) -> None:
        """Merges in dropped layers did not happen; see `merge.py` for the form of `merged`."""
        present = self._manifest.value.merged
        left = {child: [n for n in numbers if n <= number] for child, numbers in present.items()}
        left = {child: numbers for child, numbers in left.items() if numbers}
        if left != dict(present):
            self._manifest.update(merged=left)


def _same_entry(a: Entry | None, b: Entry | None) -> bool:
    """Whether two entries are the very same stored version (content is not compared)."""
    if a is None or b is None:
        return a is b
    if a.kind == b.kind == "dir":
        return True
    return a.source == b.source and a.layer == b.layer


def set_base_to_view(stack: Stack, path: str) -> None:
    """Make what the branch has at `path` its base: nothing of it is pending."""
    entry = stack.lookup(path)
    if entry is None or entry.kind != "file" or entry.source is None:
        stack.orig.save(path, entry, None)
        return
    fd = stack.open(path, entry)
    try:
        stack.orig.save(path, msgspec.structs.replace(entry, layer=None), fd)
    finally:
        os.close(fd)
