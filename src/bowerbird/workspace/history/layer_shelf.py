"""Whole frozen layers: put on top in one step, joined, kept for those who need them.

Here: how layers enter and leave the list in the manifest. Not here: which state a layer
means (`history.py`), how a layer's directory is built (`layer_builder.py`).

Layer numbers only grow. Joining layers puts the joined one in the place of the newest of
them, which changes neither the view nor any state from there on; single layers that older
snapshots or forks need stay on disk beside a `<n>.kept` mark, their records in
`<n>.covered.json`.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.tree import handles, presence
from bowerbird.workspace.tree.changes import Change, parents_of
from bowerbird.workspace.tree.fork_point import Base
from bowerbird.workspace.tree.layers import FrozenLayer, Marks, Storage
from bowerbird.workspace.tree.manifest import LayerRecord, ManifestFile
from bowerbird.workspace.tree.nodes import EMPTY, Entry, Node, find, overlay
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side

if TYPE_CHECKING:
    from bowerbird.workspace.history.layer_builder import LayerBuilder

MOST_LAYERS = 64
LAYERS_AFTER = 8


class LayerShelf:
    """The frozen layers of one branch; every method expects the writer's lock.

    Args:
        stack: the branch's layers.
        manifest: its record.
        storage: what the filesystem can hold.
        referenced: numbers of this branch's layers that forks stand on.
    """

    def __init__(
        self, stack: Stack, manifest: ManifestFile, storage: Storage, referenced: Callable[[], set[int]]
    ) -> None:
        self.directory = stack.directory / "layers"
        self._stack = stack
        self._manifest = manifest
        self._storage = storage
        self._referenced = referenced

    def put_layer(
        self,
        wanted: Mapping[str, Side | None],
        *,
        known: Mapping[str, Side | None] | None = None,
        merged: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        """Put a frozen layer on top that makes each path what `wanted` says, all or none.

        Args:
            wanted: by path; None = absent.
            known: bases that `wanted` was decided on, None = nothing; a stored file is linked, not copied.
            merged: given the layer's number, returns the manifest's new `merged`, which is
                written in the same step.
        """
        stack = self._stack
        stack.seal()
        manifest = self._manifest.value
        if not wanted:
            if merged is not None:
                self._manifest.update(merged=merged(manifest.layers[-1].n if manifest.layers else 0))
            return
        number = manifest.open
        builder = self._builder(number)
        view = stack.below_open_view  # the open layer is empty now
        modes = {
            p: e.mode for p in parents_of(wanted) if (e := view.lookup(p)) is not None and e.kind == "dir"
        }
        closed = {path for path, side in wanted.items() if side is None or side.kind != "dir"}
        self.save_bases(wanted, known or {})
        for path in sorted(wanted, key=os.fsencode):
            side = wanted[path]
            present = view.lookup(path) if path in closed or side is None else None
            if present is not None and present.kind == "dir":
                for inner in view.subtree(path):
                    stack.save_base(inner)  # all of it goes out of the view
            if side is not None:
                builder.put(path, side, modes)
            elif closed.isdisjoint(parents_of([path])) and present is not None:
                builder.white_out(path, modes)
        self._adopt(builder, number, merged)

    def put_changes(self, changes: Sequence[Change]) -> None:
        """Put changes of another branch, sorted by path bytes, on top with the bases they have there.

        The view stays as it is when it has them already. A path that is deleted is named in the layer
        although nothing may be below it: so it stays a change of this branch.
        """
        self._stack.seal()
        number = self._manifest.value.open
        builder = self._builder(number)
        view = self._stack.below_open_view
        modes: dict[str, int] = {}
        for path in {*parents_of(c.path for c in changes), *(c.path for c in changes)}:
            entry = view.lookup(path)
            if entry is not None and entry.kind == "dir":
                modes[path] = entry.mode
        self._take_bases(changes)
        closed = {c.path for c in changes if c.new is None or c.new.kind != "dir"}
        for change in changes:
            if change.new is not None:
                builder.put(change.path, change.new, modes)
            elif closed.isdisjoint(parents_of([change.path])):
                builder.white_out(change.path, modes)
        self._adopt(builder, number, None)

    def _take_bases(self, changes: Sequence[Change]) -> None:
        orig = self._stack.orig
        linked: list[tuple[str, Entry, str]] = []
        plain: dict[str, Base] = {}
        for change in changes:
            base = change.base
            content = base.content if base is not None else None
            if base is None:
                plain[change.path] = Base(None, change.uncertain)
            elif content is None:
                entry = Entry(base.kind, base.mode or 0o755, 0, 0, 0, base.target)
                plain[change.path] = Base(entry, change.uncertain)
            elif content.frozen is not None and not change.uncertain:
                linked.append((change.path, Entry("file", base.mode, content.size, 0, 0), content.frozen))
            else:
                with content.stream() as stream:
                    entry = Entry("file", base.mode, content.size, 0, 0)
                    orig.save(change.path, entry, stream.fileno(), uncertain=change.uncertain)
        orig.link_many(linked)
        orig.save_many(plain)

    def save_bases(self, paths: Iterable[str], known: Mapping[str, Side | None]) -> None:
        """Save what stood at each path; what a change was decided on is not looked at again."""
        own, decided = self._stack.frozen_own, list[Change]()
        for path in paths:
            side = known.get(path)
            is_kept = side is None or side.content is None or side.content.frozen is not None
            if path in known and is_kept and find(own, path) is None:
                decided.append(Change(path, side, None))
            else:
                self._stack.save_base(path)
        self._take_bases(decided)
        self._stack.took_already(change.path for change in decided)

    def _adopt(
        self, builder: "LayerBuilder", number: int, merged: Callable[[int], dict[str, Any]] | None
    ) -> None:
        # The number is given away first: a directory `layers/<n>` below `open` that the
        # manifest does not name is a leftover, never taken for a finished seal.
        self._manifest.update(open=number + 1)
        built = builder.finish()
        built.rename(self.directory / str(number))
        manifest = self._manifest.value
        record = LayerRecord(number, None, None, builder.paths, builder.bytes, now_iso())
        values: dict[str, Any] = {"layers": (*manifest.layers, record)}
        if merged is not None:
            values["merged"] = merged(number)
        self._manifest.update(**values)
        self._stack.reload()

    def copy_open(self) -> None:
        """Put a copy of the open layer on top of the frozen ones; the open layer stays as it is."""
        layer = self._stack.open_layer
        if layer.is_empty():
            return
        number = self._manifest.value.open
        builder = self._builder(number)
        builder.add_tree(layer.scan(), copy=True)
        marks = layer.marks()
        if marks is not None:
            # The open layer takes the next number, and its deletions with it.
            Marks(marks.deleted, marks.opaque).save(self.directory / f"{number + 1}.json")
        self._adopt(builder, number, None)

    def _builder(self, number: int) -> "LayerBuilder":
        from bowerbird.workspace.history.layer_builder import LayerBuilder

        marks = None if self._storage.kernel_form else self.directory / f"{number}.json"
        return LayerBuilder(self._stack.open_layer.stage_name(), marks)

    # ------------------------------------------------------------ joining

    def consolidate(self) -> bool:
        """Join layers when there are more than 64, to 8; tell whether it did."""
        layers = self._manifest.value.layers
        if len(layers) <= MOST_LAYERS:
            return False
        self.join(layers[: len(layers) - LAYERS_AFTER + 1], covered=True)
        return True

    def join(self, group: Sequence[LayerRecord], *, covered: bool) -> None:
        """Replace neighbours by one layer in the newest one's place.

        Args:
            covered: older snapshots or forks need the single layers; keep them on disk.
        """
        tree: Node = EMPTY
        for record in group:
            tree = overlay(tree, FrozenLayer(self.directory / str(record.n)).node)
        last = group[-1]
        builder = self._builder(last.n)
        builder.add_tree(tree)
        if covered:
            rows = [record.to_json() for record in group[:-1]]
            replace_file(self.directory / f"{last.n}.covered.json", json.dumps(rows).encode())
        built = builder.finish()
        # From here on the newest layer alone says what the group says: nothing shows of the swap.
        self._exchange(built, str(last.n))
        if covered:
            for record in group[:-1]:
                self.keep(record.n)
        dropped = {record.n for record in group[:-1]}
        rest = (layer for layer in self._manifest.value.layers if layer.n not in dropped)
        sums = msgspec.structs.replace(last, paths=builder.paths, bytes=builder.bytes)
        self._manifest.update(layers=tuple(sums if layer.n == last.n else layer for layer in rest))
        self._stack.reload(replaced=(last.n,))
        discard(built)
        if not covered:
            for number in dropped & self._referenced():
                self.keep(number)  # a fork stands on it, from before a rollback
            for number in dropped:
                self._stack.discard_layer(number)

    def _exchange(self, built: Path, name: str) -> None:
        layers, work = (os.open(p, handles.DIRECTORY) for p in (self.directory, built.parent))
        try:
            handles.exchange(work, os.fsencode(built.name), layers, os.fsencode(name))
        finally:
            os.close(layers)
            os.close(work)

    # ------------------------------------------------------------ thinning

    def thin(self, unwanted: Collection[str]) -> None:
        """Free what only snapshots need to which nobody can go back any more.

        Covered layers between two that are needed become one, in the place of the newest of them. What the
        view is made of stays as it is, and so does what forks stand on. Killed at any point, every other
        snapshot is whole: a layer joined early says the same as before, and a list of layers is replaced
        before anything goes that the old one names.

        Args:
            unwanted: ids of snapshots.
        """
        held = self._referenced()
        above = 0
        for layer in self._manifest.value.layers:
            listed = self.covered(layer.n)
            runs = _runs(self._needed_within(listed, unwanted, above), unwanted, held)
            above = layer.n
            rows = [self._joined(run, unwanted) for run in runs]
            if rows != listed:
                content = json.dumps([row.to_json() for row in rows]).encode()
                replace_file(self.directory / f"{layer.n}.covered.json", content)
            for row in rows:  # what it joined is named by the list itself now
                (self.directory / f"{row.n}.covered.json").unlink(missing_ok=True)
        self.sweep()

    def _needed_within(
        self, records: Iterable[LayerRecord], unwanted: Collection[str], above: int
    ) -> list[LayerRecord]:
        """Layers, oldest first, with those in joined ones that a wanted snapshot needs."""
        found: dict[int, LayerRecord] = {}
        for record in records:
            if record.n <= above:
                continue
            inner = self._needed_within(self.covered(record.n), unwanted, above)
            if any(_is_wanted(each, unwanted) for each in inner):
                found |= {each.n: each for each in inner}
            found[record.n] = record
            above = record.n
        return [found[number] for number in sorted(found)]

    def _joined(self, run: Sequence[LayerRecord], unwanted: Collection[str]) -> LayerRecord:
        """Make the last layer of a run say what all of it says; return its record."""
        last = (
            run[-1]
            if _is_wanted(run[-1], unwanted)
            else msgspec.structs.replace(run[-1], snapshot=None, turn=None)
        )
        if len(run) == 1:
            return last
        tree: Node = EMPTY
        for record in run:
            tree = overlay(tree, FrozenLayer(self.directory / str(record.n)).node)
        builder = self._builder(last.n)
        builder.add_tree(tree)
        built = builder.finish()
        self._exchange(built, str(last.n))
        discard(built)
        return last

    # ------------------------------------------------------------ what stays on disk

    def sweep(self) -> None:
        """Delete kept layers that no snapshot and no fork needs any more."""
        live = {layer.n for layer in self._manifest.value.layers}
        needed = {n for number in live for n in self._covered_numbers(number)} | self._referenced()
        for mark in list(self.directory.glob("*.kept")):
            number = int(mark.stem)
            if number not in needed:
                mark.unlink()
                if number not in live:  # a kill while joining leaves marks of layers that the view needs
                    self._stack.discard_layer(number)
        for listed in list(self.directory.glob("*.covered.json")):
            if not presence.is_directory(self.directory / listed.name.partition(".")[0]):
                listed.unlink()

    def keep(self, number: int) -> None:
        (self.directory / f"{number}.kept").touch(mode=0o600)

    def records(self) -> list[LayerRecord]:
        """Every layer that a snapshot may need, oldest first."""
        found: dict[int, LayerRecord] = {}
        above = 0
        for layer in self._manifest.value.layers:
            for record in self._with_covered(layer, above):
                found.setdefault(record.n, record)  # a kill while joining leaves layers listed and covered
            above = layer.n
        return list(found.values())

    def _with_covered(self, layer: LayerRecord, above: int) -> list[LayerRecord]:
        """A layer after those it joined; a kill while thinning leaves some that the one before it says."""
        inner: list[LayerRecord] = []
        for record in self.covered(layer.n):
            if record.n > above:
                inner += self._with_covered(record, above)
                above = record.n
        return [*inner, layer]

    def covered(self, number: int) -> list[LayerRecord]:
        try:
            rows = json.loads((self.directory / f"{number}.covered.json").read_bytes())
        except FileNotFoundError:
            return []
        return [LayerRecord(**row) for row in rows]

    def _covered_numbers(self, number: int) -> set[int]:
        found: set[int] = set()
        for record in self.covered(number):
            found |= {record.n} | self._covered_numbers(record.n)
        return found


def _is_wanted(record: LayerRecord, unwanted: Collection[str]) -> bool:
    return record.snapshot is not None and record.snapshot not in unwanted


def _runs(
    records: Iterable[LayerRecord], unwanted: Collection[str], held: Collection[int]
) -> list[list[LayerRecord]]:
    """Cut layers into runs that end at a wanted snapshot; one that a fork stands on is a run of its own.

    What comes after the last wanted snapshot is left out: the layer that joined all of them says it, too.
    """
    runs: list[list[LayerRecord]] = [[]]
    for record in records:
        if record.n in held:
            runs += [[record], []]
        else:
            runs[-1].append(record)
            if _is_wanted(record, unwanted):
                runs.append([])
    runs = [run for run in runs if run]
    while runs and not _is_wanted(runs[-1][-1], unwanted):
        runs.pop()
    return runs
