"""Merging one branch into another (WS-45…48).

Here: which changes of the child go in, what each does to the parent's view, the memory of
what was merged. Not here: the decision on one path (`tree/threeway.py`), landing.

The result is one frozen layer and one manifest write: all of it or, after a crash, nothing.
What was merged is remembered at the parent, so that going back behind a merge also makes
the child's changes mergeable again: `merged` in the parent's manifest lists the layers that
came from each child, and `layers/<n>.merged.json` says for each path which of the child's
snapshots was merged. That version is the base of the next merge of the path.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.workspace.compare.diff import change_hunks
from bowerbird.workspace.compare.results import MergeConflict, MergeResult
from bowerbird.workspace.tree.changes import Change, frozen_side, parents_of, side_of
from bowerbird.workspace.tree.hunks import Hunk
from bowerbird.workspace.tree.manifest import ManifestFile
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import shown
from bowerbird.workspace.tree.real_directory import version_of
from bowerbird.workspace.tree.threeway import Decision, Side, decide, same_side

SideOf = Callable[[str], Side | None]
NamesOf = Callable[[str], Collection[str]]
_DETAIL_LIMIT = 1024 * 1024


class Planned(msgspec.Struct, frozen=True):
    """One path: the change, the versions it was decided from, the decision."""

    change: Change
    base: Side | None
    ours: Side | None
    decision: Decision

    @property
    def path(self) -> str:
        """The virtual path."""
        return self.change.path


class MergeReport(msgspec.Struct):
    """What a merge did so far; paths are virtual."""

    written: list[str] = msgspec.field(default_factory=list[str])
    deleted: list[str] = msgspec.field(default_factory=list[str])
    conflicts: list[str] = msgspec.field(default_factory=list[str])
    skipped: list[str] = msgspec.field(default_factory=list[str])
    merged: list[str] = msgspec.field(default_factory=list[str])
    unknown: list[str] = msgspec.field(default_factory=list[str])
    details: dict[str, MergeConflict] = msgspec.field(default_factory=dict[str, MergeConflict])

    def withheld(self) -> MergeResult:
        """Return the result of a merge that was not carried out."""
        return replace(self.result(), written=(), deleted=(), merged=())

    def result(self) -> MergeResult:
        """Return what callers see of it."""
        return MergeResult(
            written=_shown(self.written),
            deleted=_shown(self.deleted),
            conflicts=_shown(self.conflicts),
            skipped=_shown(self.skipped),
            merged=_shown(self.merged),
            unknown=_shown(self.unknown),
            details={shown(path): detail for path, detail in self.details.items()},
        )


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(shown(path) for path in paths)


def plan_merge(
    changes: Sequence[Change], ours_of: SideOf, names_of: NamesOf, *, force: bool = False
) -> list[Planned]:
    """Decide every change against our view; pure but for reading.

    Args:
        changes: theirs; `base` is the version of the last merge of the path, if any.
        ours_of: what stands at a path on our side.
        names_of: names in a directory on our side.
        force: known files in conflict will go as well; counts for directories that are removed.
    """
    planned: list[Planned] = []
    for change in changes:
        ours = ours_of(change.path)
        planned.append(
            Planned(change, change.base, ours, decide(change.base, ours, change.new, change.uncertain))
        )
    return _keep_files_in_the_way(_keep_gained(planned, names_of, force), ours_of)


def _keep_gained(planned: list[Planned], names_of: NamesOf, force: bool) -> list[Planned]:
    """A directory that they removed stays when ours holds more than they knew of (`dir_gained`)."""
    gone = {p.path for p in planned if p.ours is None or _removes(p, force)}
    kept: list[Planned] = []
    for item in reversed(planned):  # inner directories first: one that stays keeps its parent
        clears = item.ours is not None and item.ours.kind == "dir" and _removes(item, force, replaced=True)
        if clears and not all(f"{item.path}/{name}" in gone for name in names_of(item.path)):
            gone.discard(item.path)
            conflict = Decision("conflict", item.ours, "dir_gained")
            kept.append(Planned(item.change, item.base, item.ours, conflict))
        else:
            kept.append(item)
    return kept[::-1]


def _removes(item: Planned, force: bool, *, replaced: bool = False) -> bool:
    decision = item.decision
    if not (decision.action == "take" or (force and wins(decision))):
        return False
    return decision.result is None or (replaced and decision.result.kind != "dir")


def _keep_files_in_the_way(planned: list[Planned], ours_of: SideOf) -> list[Planned]:
    """A path below something of ours that is no directory is a conflict of type."""
    turned = {p.path for p in planned if p.decision.action == "take"}
    blocked: dict[str, bool] = {}
    result: list[Planned] = []
    for item in planned:
        if item.decision.action != "take" or item.decision.result is None:
            result.append(item)
            continue
        directories = parents_of([item.path])
        for above in directories - blocked.keys():
            stands = None if above in turned else ours_of(above)
            blocked[above] = stands is not None and stands.kind != "dir"
        if any(blocked[above] for above in directories):
            conflict = Decision("conflict", item.decision.result, "type")
            result.append(Planned(item.change, item.base, item.ours, conflict))
        else:
            result.append(item)
    return result


def wins(decision: Decision) -> bool:
    """Whether `force` takes their version of a conflict."""
    return decision.action == "conflict" and decision.reason not in ("special", "dir_gained")


def outcome(planned: Sequence[Planned], *, force: bool) -> tuple[MergeReport, dict[str, Side | None]]:
    """Return the report, and by path the version that our view gets."""
    result = MergeReport()
    wanted: dict[str, Side | None] = {}
    left = _DETAIL_LIMIT
    for item in planned:
        decision = item.decision
        if decision.action == "none":
            continue
        if decision.action == "conflict":
            left = _report(result, item, left, force)
            if not (force and wins(decision)):
                continue
        wanted[item.path] = decision.result
        (result.deleted if decision.result is None else result.written).append(item.path)
        if decision.merged:
            result.merged.append(item.path)
    return result, wanted


def _report(result: MergeReport, item: Planned, left: int, force: bool) -> int:
    """Add a conflict to the report; returns the bytes that further hunk texts may have."""
    reason = item.decision.reason
    if reason != "special":
        result.conflicts.append(item.path)
    if reason == "special" or not force:
        result.skipped.append(item.path)
    hunks = change_hunks(Change(item.path, item.base, item.change.new)) or ()
    left -= sum(len(h.body) for h in hunks)
    lost: tuple[Hunk, ...] | None = ()
    forced = force and wins(item.decision)
    if forced:
        # Their whole file goes in: what ours had changed in it is said, for it is nowhere else any more.
        lost = change_hunks(Change(item.path, item.base, item.ours)) if item.ours is not None else ()
        left -= sum(len(h.body) for h in lost or ())
    base, ours, theirs = (version_of(side) for side in (item.base, item.ours, item.change.new))
    result.details[item.path] = MergeConflict(
        reason=reason,
        base=base.shown if base else None,
        ours=ours.shown if ours else None,
        theirs=theirs.shown if theirs else None,
        hunks=hunks if left >= 0 else None,
        forced=forced,
        lost=lost if left >= 0 else None,
    )
    return left


# ---------------------------------------------------------------- reading the two branches


def ours_of(view: MergedView) -> SideOf:
    """Return what gives a path's version in a view without open layer."""

    def side(path: str) -> Side | None:
        entry = view.lookup(path)
        return (
            frozen_side(entry)
            if entry is not None and entry.layer is not None
            else side_of(view, path, entry)
        )

    return side


def names_of(view: MergedView) -> NamesOf:
    """Return what lists a directory of a view."""
    return lambda path: view.children(path).keys()


class MergeMemory:
    """What was merged from which child, at the parent.

    Args:
        directory: the parent's.
        manifest: the parent's record.
    """

    def __init__(self, directory: Path, manifest: ManifestFile) -> None:
        self._layers = directory / "layers"
        self._manifest = manifest

    def snapshots(self, child: str) -> dict[str, str]:
        """Return, by path, the child's snapshot that was merged last."""
        found: dict[str, str] = {}
        for number in sorted(self._manifest.value.merged.get(child, ())):
            found.update(self._read(number).get(child, {}))
        return found

    def named(self, child: str) -> set[str]:
        """Return the child's snapshots that were ever merged; going back brings earlier ones up again."""
        numbers = self._manifest.value.merged.get(child, ())
        return {name for number in numbers for name in self._read(number).get(child, {}).values()}

    def remember(self, number: int, child: str, snapshot: str, paths: Iterable[str]) -> dict[str, Any]:
        """Write what layer `number` took and return the manifest's new `merged`."""
        rows = self._read(number) if number in self._numbers() else {}
        rows.setdefault(child, {}).update(dict.fromkeys(paths, snapshot))
        replace_file(self._file(number), json.dumps(rows).encode())
        present = {key: list(numbers) for key, numbers in self._manifest.value.merged.items()}
        present[child] = sorted({*present.get(child, []), number})
        return present

    def _numbers(self) -> set[int]:
        return {number for numbers in self._manifest.value.merged.values() for number in numbers}

    def _read(self, number: int) -> dict[str, dict[str, str]]:
        try:
            return json.loads(self._file(number).read_bytes())
        except FileNotFoundError:
            return {}

    def _file(self, number: int) -> Path:
        return self._layers / f"{number}.merged.json"


def since_last_merge(
    changes: Sequence[Change],
    merged: Mapping[str, str],
    entry_at: Callable[[str, str], Entry | None],
    theirs_of: SideOf,
) -> list[Change]:
    """Return the child's changes against what was merged before, sorted by path bytes.

    Args:
        merged: by path, the child's snapshot merged last.
        theirs_of: what the child has at a path now.
        entry_at: the child's entry of a path in a snapshot; raises KeyError when that is gone.
    """
    if not merged:
        return list(changes)
    found = {change.path: change for change in changes}
    for path, snapshot in merged.items():
        try:
            base = frozen_side(entry_at(snapshot, path))
        except KeyError:
            continue
        present = found.pop(path, None)
        new = present.new if present is not None else theirs_of(path)
        if not same_side(base, new):
            found[path] = Change(path, base, new)
    return [found[path] for path in sorted(found, key=os.fsencode)]
