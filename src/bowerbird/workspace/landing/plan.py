"""What a landing would do, path by path (WS-49…52), before anything is touched.

Here: choosing changes by path and hunk, drift of the workspace, what is refused and why,
the plan's name. Not here: applying (`apply.py`, `landing.py`), rules of flags (`marks/flags.py`).
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

import msgspec

from bowerbird.core.errors import Stale
from bowerbird.workspace.compare.conflicts import Place, places_of, resolved_side
from bowerbird.workspace.compare.diff import change_hunks
from bowerbird.workspace.compare.merge import NamesOf, Planned, SideOf, plan_merge, wins
from bowerbird.workspace.compare.renames import perhaps_moved, perhaps_replaced, renames_of
from bowerbird.workspace.compare.results import Drift, LandingPlan, Op, PlannedPath, folded_rows
from bowerbird.workspace.git.apart import in_git
from bowerbird.workspace.landing.hard_links import with_links
from bowerbird.workspace.marks.flags import ALWAYS_REFUSED, FlagRules, Marks, grade_of
from bowerbird.workspace.marks.surroundings import Surroundings
from bowerbird.workspace.marks.table import FLAGS, Grade
from bowerbird.workspace.tree.changes import Change, Tops
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.hunks import apply_hunks
from bowerbird.workspace.tree.paths import path_b64, shown
from bowerbird.workspace.tree.real_directory import Version, landed_version, version_of
from bowerbird.workspace.tree.regions import Take
from bowerbird.workspace.tree.threeway import Decision, Side


class Chosen(msgspec.Struct, frozen=True):
    """A change to land; `change.new` is the part of it that lands.

    Attributes:
        part: ids of the hunks that land, None where all of the change does.
    """

    change: Change
    part: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether all of the change lands."""
        return self.part is None

    def hunks(self) -> tuple[str, ...]:
        """Return the ids of the hunks that land; reads both sides of a change that lands whole."""
        if self.part is not None:
            return self.part
        return tuple(hunk.id for hunk in change_hunks(self.change) or ())


def no_places() -> None:
    """For paths that do not conflict."""


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One path of a plan.

    Attributes:
        result: what the workspace gets; equal to `current` for `same`.
        left_out: git's own leavings that the landing did not name: they stay on the branch.
        reasons: a sentence for each flag.
        unit: the git directory that it lands with, whole or not at all.
        repository: the git directory that it is a part of, where that is new.
        aside: it lies in a git directory that nobody named, or is a device, socket or pipe that a
            program left: whatever becomes of it, the other files land.
        taint: what the turn that wrote it had read from outside.
        refused: why it does not land, None when it does.
        links: how many names the workspace's file has; the others keep the old bytes.
        places: reads the conflicting file and returns where it conflicts, None where lines cannot decide.
    """

    chosen: Chosen
    op: Op
    drift: Drift
    current: Side | None
    result: Side | None
    merged: bool
    flags: tuple[str, ...]
    tainted: bool
    refused: str | None = None
    left_out: bool = False
    links: int = 1
    reasons: tuple[str, ...] = ()
    unit: str | None = None
    repository: str | None = None
    taint: tuple[str, ...] = ()
    aside: bool = False
    places: Callable[[], tuple[Place, ...] | None] = field(default=no_places, compare=False)

    @property
    def grade(self) -> Grade:
        """What landing it asks for."""
        return grade_of(self.flags)

    @property
    def path(self) -> str:
        """The virtual path."""
        return self.chosen.change.path

    def versions(self) -> tuple[Version | None, Version | None]:
        """Return what the workspace has, and what it gets."""
        before = version_of(self.current)
        return before, before if self.drift == "same" else landed_version(self.result)

    def planned(self) -> PlannedPath:
        """Return what callers see of it."""
        change = self.chosen.change
        return PlannedPath(
            path=shown(self.path),
            path_b64=path_b64(self.path),
            op=self.op,
            base=_shown(version_of(change.base)),
            current=_shown_now(self.current),
            new=_shown(version_of(change.new)),
            drift=self.drift,
            flags=self.flags,
            grade=self.grade,
            reasons=self.reasons,
            tainted=self.tainted,
            taint=self.taint,
            ignored=self.left_out,
            hunks=self.chosen.hunks(),
            links=self.links,
            repository=None if self.repository is None else shown(self.repository),
            state=state_of(change, self.current),
        )


def choose(
    changes: Sequence[Change],
    paths: Collection[str] | None,
    hunks: Collection[str] | None,
) -> tuple[list[Chosen], list[str]]:
    """Return what to land, and given paths without a change.

    A path lands whole unless some of its hunks are named; then only those land. With
    `hunks` alone nothing else lands.

    Raises:
        Stale: a hunk is not a present one.
    """
    wanted = set(hunks or ())
    chosen: list[Chosen] = []
    matched: set[str] = set()
    tops = Tops(paths or ())
    for change in changes:
        given = tops.over(change.path)
        matched.update(given)
        selected = bool(given) if paths is not None else hunks is None
        if not selected and not wanted:
            continue
        found = (change_hunks(change) or ()) if wanted else ()
        named = tuple(h.id for h in found if h.id in wanted)
        wanted.difference_update(named)
        if named and len(named) < len(found):
            chosen.append(Chosen(_part(change, named), named))
        elif named or selected:
            chosen.append(Chosen(change))
    if wanted:
        raise Stale(f"hunk {min(wanted)} is not a present change; look at the diff again")
    return chosen, [path for path in paths or () if path not in matched]


def _part(change: Change, named: Collection[str]) -> Change:
    """The change reduced to some hunks; a changed mode comes with the last of them."""
    new = change.new
    if new is None or new.content is None:
        return change
    base = change.base if change.base is not None and change.base.kind == "file" else None
    old = base.content.read() if base is not None and base.content is not None else b""
    data = apply_hunks(old, new.content.read(), change_hunks(change) or (), named)
    return msgspec.structs.replace(
        change, new=Side("file", base.mode if base is not None else new.mode, Content(data))
    )


def nothing_in_the_way(path: str, present: Side | None, planned: Side | None, only_mode: bool) -> None:
    """For plans about no real directory."""
    del path, present, planned, only_mode


def one_link(path: str) -> int:
    """For plans about no real directory."""
    del path
    return 1


class PlanInput(msgspec.Struct, frozen=True):
    """What a plan depends on beside the changes.

    Attributes:
        current_of, names_of: the workspace as it is.
        obstacle_of: why the system will refuse to change a path (path, present, planned, only the mode).
        links_of: how many names the workspace's file has; a landing splits it from the others.
        case_clashes: paths equal to another name on a case-insensitive disk.
        tainted: by path, what the turn that wrote it had read from outside.
        accept: paths whose flags a person accepted, `*` = all; a git directory that is new may be named
            for everything in it.
        automatic: nobody looks: what is held stays on the branch.
        named: the paths given to the landing, for what is in git directories.
        resolved: a person's decisions of conflicting places, by path.
        staying: git directories that the branch removed: what holds one stays with it, and holds nothing up.
        ignored: what stays on the branch by itself, as the workspace has it: as that.
    """

    rules: FlagRules
    current_of: SideOf
    names_of: NamesOf
    case_clashes: Callable[[Collection[str]], set[str]]
    around: Surroundings
    tainted: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    obstacle_of: Callable[[str, Side | None, Side | None, bool], str | None] = nothing_in_the_way
    links_of: Callable[[str], int] = one_link
    accept: Collection[str] = ()
    named: Collection[str] | None = None
    force: bool = False
    automatic: bool = False
    resolved: Mapping[str, Sequence[Take]] = msgspec.field(default_factory=dict[str, Sequence[Take]])
    staying: Tops = msgspec.field(default_factory=lambda: Tops(()))
    ignored: Tops = msgspec.field(default_factory=lambda: Tops(()))


def make_plan(chosen: Sequence[Chosen], given: PlanInput) -> list[PlanEntry]:
    """Decide every chosen change against the workspace; changes nothing."""
    by_path = {item.change.path: item for item in chosen}
    planned = plan_merge(
        [item.change for item in chosen], given.current_of, given.names_of, force=given.force
    )
    clashes = given.case_clashes(by_path)
    entries = {item.path: _entry(item, by_path[item.path], given, clashes) for item in planned}
    closed = Tops(entry.path for entry in entries.values() if entry.refused == "unreadable")
    made = [
        replace(entry, refused="holds_unreadable")
        if entry.refused == "dir_gained" and closed.inside(entry.path)
        else entry
        for entry in (entries[item.change.path] for item in chosen)
    ]
    return _whole_renames(_git_units(made, given.force))


def _entry(item: Planned, chosen: Chosen, given: PlanInput, clashes: Collection[str]) -> PlanEntry:
    change, decision = item.change, item.decision
    tainted = item.path in given.tainted
    marks = given.rules.marks(item.path, change.base, change.new, given.around, tainted=tainted)
    if item.path in clashes:
        clash = FLAGS["case-clash"].reason
        marks = msgspec.structs.replace(
            marks, flags=("case-clash", *marks.flags), reasons=(clash, *marks.reasons)
        )
    op = operation(change)
    links = given.links_of(item.path) if op == "modify" else 1
    marks = with_links(marks, item.path, links, given.rules)
    left_out = marks.is_scrap and item.path not in (given.named or ())
    settled = resolved_side(item, given.resolved[item.path]) if item.path in given.resolved else None
    taken = decision.action == "take" or _forced(decision, chosen, given) or settled is not None
    result = (settled or decision.result) if taken else item.ours
    refused = None if left_out else _refusal(decision, marks, chosen, given)
    if refused == "uncertain_base" and _is_file(change.base) and change.base.content is None:
        refused = "unreadable"
    if taken and not left_out and refused is None:
        refused = given.obstacle_of(item.path, item.ours, result, op == "chmod")
    made = marks.git.root if marks.git is not None and marks.git.is_new else ""
    aside = in_git(item.path) or marks.git is not None or decision.reason == "special"
    if decision.reason == "dir_gained":
        aside = aside or given.staying.inside(item.path) or given.ignored.inside(item.path)
        if refused == "dir_gained" and given.ignored.inside(item.path):
            refused = "holds_ignored"
    return PlanEntry(
        chosen, op, _drift(decision), item.ours, result, decision.merged or settled is not None, marks.flags,
        tainted, refused, left_out, links, marks.reasons, _unit(marks), made or None,
        given.tainted.get(item.path, ()), aside and not _named(item.path, marks, given),
        partial(places_of, item),
    )  # fmt: skip


def _drift(decision: Decision) -> Drift:
    if decision.action == "none":
        return "same"
    return "conflict" if decision.action == "conflict" else "mergeable" if decision.merged else "none"


def _forced(decision: Decision, chosen: Chosen, given: PlanInput) -> bool:
    """Whether `force` lets a conflict land: whole files only, for a part would take edits beside it along."""
    return given.force and chosen.whole and wins(decision)


def _refusal(decision: Decision, marks: Marks, chosen: Chosen, given: PlanInput) -> str | None:
    path = chosen.change.path
    always = sorted(ALWAYS_REFUSED.intersection(marks.flags))
    if always:
        return always[0]
    settled = path in given.resolved or _forced(decision, chosen, given)
    if decision.action == "conflict" and not settled:
        return decision.reason
    if marks.grade == "needs_accept" and not _accepted(path, marks, given.accept):
        return "flagged: " + ", ".join(marks.flags)
    if marks.grade != "free" and given.automatic:
        return "held: " + ", ".join(marks.flags)
    return None


def _accepted(path: str, marks: Marks, accept: Collection[str]) -> bool:
    """Whether a person named the path; a git directory that comes whole is one thing with one name."""
    if "*" in accept or path in accept:
        return True
    return marks.git is not None and marks.git.is_new and marks.git.root in accept


def _named(path: str, marks: Marks, given: PlanInput) -> bool:
    """Whether a person asked for a path of a git directory, or for the directory, by name."""
    named = {*given.accept, *(given.named or ())}
    return path in named or (marks.git is not None and marks.git.root in named)


def operation(change: Change) -> Op:
    """Return what landing a change is called."""
    base, new = change.base, change.new
    if new is None:
        return "rmdir" if base is not None and base.kind == "dir" else "delete"
    if new.kind == "symlink":
        return "symlink"
    if new.kind == "dir":
        return "mkdir"
    if base is None or base.kind != "file":
        return "create"
    only_mode = base.content is not None and new.content is not None and base.content.same(new.content)
    return "chmod" if only_mode else "modify"


def _git_units(entries: list[PlanEntry], force: bool) -> list[PlanEntry]:
    """All of a git directory's data lands or none, and a new one whole: only together they make sense."""
    left: dict[str, str] = {}
    for entry in entries:
        if entry.unit is None or force or entry.left_out:
            continue
        if entry.drift in ("mergeable", "conflict"):
            left[entry.unit] = "git-moved: HEAD, refs or index of the workspace changed"
        elif entry.refused is not None:
            left.setdefault(entry.unit, entry.refused)
    return [
        replace(e, refused=e.refused or left[e.unit]) if e.unit in left and not e.left_out else e
        for e in entries
    ]


def _whole_renames(entries: list[PlanEntry]) -> list[PlanEntry]:
    """A renamed file lands at both of its names or at none: else the branch would have its only copy."""
    while True:
        staying = {entry.path for entry in entries if entry.refused is not None or entry.left_out}
        held = _held(entries, staying)
        if not held.keys() - staying:
            return entries
        aside = {entry.path for entry in entries if entry.aside or entry.left_out}
        entries = [
            replace(e, refused=e.refused or held[e.path][0], aside=e.aside or held[e.path][1] in aside)
            if e.path in held and not e.left_out
            else e
            for e in entries
        ]


def _held(entries: list[PlanEntry], staying: set[str]) -> dict[str, tuple[str, str]]:
    """Return what may not land because of what stays: why, and the path that stays."""
    changes = [entry.chosen.change for entry in entries]
    old = [change for change in changes if _is_file(change.base)]
    if not staying or not old:
        return {}
    made = [
        # One that a file of the user's stands in the way of is a new name all the same.
        msgspec.structs.replace(change, base=None) if change.path in staying else change
        for change in changes
        if _is_file(change.new)
    ]
    gone = [change for change in old if change.new is None]
    held = {
        path: (f"moved from {shown(rename.source.path)}, which stays as it is", rename.source.path)
        for path, rename in renames_of([*gone, *made]).items()
        if rename.source.path in staying
    }
    left = [change for change in made if change.path in staying or change.path in held]
    pairs = perhaps_moved([*gone, *left])
    explained, waiting = {path for _, path in pairs}, staying | held.keys()
    new = [c for c in changes if c.path in waiting and c.path not in explained]
    pairs += perhaps_replaced([c for c in old if c.path not in staying], new)
    for source, path in pairs:
        held.setdefault(source, (f"moved to {shown(path)}, which does not land", path))
    return held


def _is_file(side: Side | None) -> TypeGuard[Side]:
    return side is not None and side.kind == "file"


def _unit(marks: Marks) -> str | None:
    if marks.git is None or marks.is_scrap:
        return None
    return marks.git.root if marks.git.is_new or "git-data" in marks.flags else None


def with_git_units(changes: Sequence[Change], chosen: Sequence[Chosen], around: Surroundings) -> list[Chosen]:
    """Add the rest of each git directory that a choice touches, in the order of the changes."""
    present = {item.change.path: item for item in chosen}
    units = {place.root for path in present if (place := around.git_place(path)) is not None}
    if not units:
        return list(chosen)
    rest = [
        c for c in changes
        if c.path in present or ((place := around.git_place(c.path)) is not None and place.root in units)
    ]  # fmt: skip
    return [present.get(c.path) or Chosen(c) for c in rest]


def state_of(change: Change, current: Side | None) -> str:
    """Return a name of what a review shows of a path: its base, the branch's version, the workspace's."""
    versions = [*map(_readable, (change.base, change.new, current)), change.uncertain]
    return hashlib.sha256(repr(versions).encode()).hexdigest()[:20]


def _readable(side: Side | None) -> Version | None:
    """Return the record form of a side; of what nobody may read, that it is there."""
    try:
        return version_of(side)
    except PermissionError:
        return None if side is None else Version(side.kind, side.mode)


def moved_since(
    entries: Sequence[PlanEntry], changes: Sequence[Change], seen: Mapping[str, str], beside: Tops
) -> list[str]:
    """Return the paths that would land and are no longer what was shown, or were not shown at all.

    Args:
        changes: whole, whatever of them lands. seen: by path, its state as shown.
        beside: what lands with the rest, and is shown as a name alone.
    """
    whole = {change.path: change for change in changes}
    unseen = [
        entry.path
        for entry in entries
        if entry.path not in seen and entry.refused is None and not entry.left_out
    ]
    return [
        *(path for path in unseen if not in_git(path) and not beside.over(path)),
        *(e.path for e in entries if e.path in seen and seen[e.path] != state_of(whole[e.path], e.current)),
    ]


def plan_id(entries: Sequence[PlanEntry]) -> str:
    """Return the plan's name: equal for equal entries, whoever asks."""
    return _name_of([entry.planned() for entry in entries])


def _name_of(entries: Sequence[PlannedPath]) -> str:
    rows = [entry.record() for entry in entries]
    data = json.dumps(rows, sort_keys=True, ensure_ascii=True).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()


def shown_plan(
    entries: Sequence[PlanEntry], staying: Mapping[str, int], whole: Callable[[str], object]
) -> LandingPlan:
    """Return the plan as callers see it, with what stays on the branch by itself (`folded_rows`)."""
    planned = tuple(entry.planned() for entry in entries)
    return LandingPlan(_name_of(planned), planned, folded=folded_rows(staying, whole))


def refused_rows(entries: Sequence[PlanEntry], unknown: Collection[str]) -> list[dict[str, str]]:
    """Return `{"path", "reason"}` of every path that does not land."""
    rows: dict[str, str] = {}
    for entry in entries:
        if entry.refused is not None:
            # A new repository is one thing with one name.
            unit = entry.repository or (entry.unit if in_git(entry.path) else None)
            rows.setdefault(unit or entry.path, entry.refused)
    rows |= {path: "git-data" if in_git(path) else "unchanged" for path in unknown}
    return [{"path": shown(path), "reason": reason} for path, reason in rows.items()]


def is_blocked(entries: Sequence[PlanEntry], unknown: Collection[str]) -> bool:
    """Whether a landing of everything chosen is refused: something that was asked for cannot land."""
    return bool(unknown) or any(e.refused is not None and not e.aside for e in entries)


def _shown_now(side: Side | None) -> str | None:
    try:
        return _shown(version_of(side))
    except PermissionError:
        return None  # nobody but its owner knows


def _shown(version: Version | None) -> str | None:
    return version.shown if version is not None else None
