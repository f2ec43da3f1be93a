"""Branches of branches: forking one and merging it back (WS-40, WS-45).

Here: the two calls that involve two branches, over their states and the registry.
Not here: decisions (`compare/merge.py`, `tree/threeway.py`), layers of one branch (`history/history.py`).
"""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import NotFound, NotRelated, Stale
from bowerbird.core.ids import new_id
from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.history.history import History
from bowerbird.workspace.history.steps import UNDER_WAY, StepStore
from bowerbird.workspace.registry.registry import BranchRegistry
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.registry.taint import tainted_paths, take_taint
from bowerbird.workspace.tree.changes import Change, base_side, changes_of, covering, select, stored_side
from bowerbird.workspace.tree.manifest import ManifestFile
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side

if TYPE_CHECKING:
    from bowerbird.workspace.compare.merge import Planned
    from bowerbird.workspace.compare.results import MergeResult


def history_of(state: BranchState, registry: BranchRegistry) -> History:
    """Return the time line of a branch; its methods expect `state.writing()`."""
    return History(state.stack, state.manifest, state.storage, lambda: registry.referenced(state.id))


def pending(
    state: BranchState, paths: Collection[str] | None = None, *, stack: Stack | None = None
) -> list[Change]:
    """Return all changes of a branch, or those at and below some paths, without hidden and private ones.

    Args:
        stack: a state of it that is looked at (`Stack.at_rest`), None = as it is now.
    """
    stack = stack or state.reading()
    named = frozenset(paths or ())

    def hidden(path: str) -> bool:
        return not stack.ground.shows(path) or (bool(named) and named.isdisjoint(covering(path)))

    return changes_of(stack, hidden)


def fork(
    state: BranchState,
    registry: BranchRegistry,
    name: str | None,
    snapshot: str | None,
    *,
    live: bool,
    carry: bool = False,
    throwaway: bool = False,
) -> BranchState:
    """Make a branch that stands on a frozen state of another; nothing is copied.

    Args:
        snapshot: an earlier state, None = the present one.
        live: background processes write; the layers are left as they are and the child
            stands on the newest frozen state.
        carry: what was pending in that state is pending in the child.
        throwaway: the child goes with this process.

    Raises:
        NotFound: there is no such snapshot.
    """
    with state.writing():
        history = history_of(state, registry)
        if snapshot is not None:
            point = history.find(snapshot)
        else:
            point = history.freeze_live() if live else history.freeze()
        numbers = history.numbers_at(point.id)
        manifest = state.manifest.value
        below = history.pile_at(point.id)
        rows = [(str(row[0]), int(row[1])) for row in manifest.extra.get("lower", ())]
        rows += [(state.id, number) for number in numbers]
        child = registry.create(
            name=name,
            policy=manifest.policy,
            hide=manifest.hide,
            parent={"branch": state.id, "snapshot": point.id},
            lower=rows,
            below=below,
            private=manifest.private,
            root=state.workspace,
            throwaway=throwaway,
        )
        if carry:
            from bowerbird.workspace.carry_pending import carry as carry_over
            from bowerbird.workspace.carry_pending import pending_at

            changes = pending_at(state, point, below)
            carry_over(child, history_of(child, registry), changes, tainted_paths(state))
        return child


def merge(
    parent: BranchState,
    child: BranchState,
    registry: BranchRegistry,
    paths: Sequence[str] | None,
    *,
    force: bool,
    whole: bool = False,
    turn: str | None = None,
    call: str | None = None,
) -> "MergeResult":
    """Merge a descendant's changes into a branch, all or nothing.

    Args:
        paths: virtual files and directories, None = all.
        whole: merge nothing at all when a path is in conflict or skipped.

    Raises:
        NotRelated: `child` does not descend from `parent`.
        BranchBusy: another process writes one of the two.
    """
    if parent.id not in registry.ancestors(child.id):
        raise NotRelated(f"branch {child.id} does not descend from {parent.id}; only descendants merge")
    with child.writing() as theirs:
        child_history = history_of(child, registry)
        snapshot = child_history.freeze().id
        changes = pending(child, stack=theirs.at_rest())
        entry_at = _EntriesAt(child_history)
        with parent.writing() as stack:
            from bowerbird.workspace.compare.merge import (
                MergeMemory,
                ours_of,
                outcome,
                since_last_merge,
            )
            from bowerbird.workspace.git.merged_git import with_history

            memory = MergeMemory(parent.directory, parent.manifest)
            theirs_of = ours_of(theirs.below_open_view)  # frozen a moment ago
            changes = since_last_merge(changes, memory.snapshots(child.id), entry_at, theirs_of)
            chosen, unknown = select(changes, paths)
            shelf = history_of(parent, registry).shelf
            is_live = stack.open_layer.live
            shelf.copy_open() if is_live else stack.seal(turn=turn)
            view = stack.below_open_view
            planned = _planned(stack, chosen, force)
            planned = with_history(planned, child.id, ours_of(view))
            report, wanted = outcome(planned, force=force)
            report.unknown.extend(unknown)
            if whole and (report.conflicts or report.skipped):
                return report.withheld()
            private = stack.private_paths()
            wanted = {path: side for path, side in wanted.items() if path not in private}
            settled = [p.path for p in planned if p.decision.action == "none" or p.path in wanted]
            if not settled:
                return report.result()
            steps = _journal_steps(wanted, {p.path: p.ours for p in planned})
            looked_at = {p.path for p in planned}
            taken = [p for p in planned if p.decision.action == "take" and not p.decision.merged]
            # What its user put into a directory meanwhile was looked at by nobody: it is no deletion.
            recorded = parent.recorded(
                steps, turn=take_taint(parent, child, steps, turn), call=call, via="merge"
            )
            seen = stack.seen_by(lambda path, entry: entry.layer is not None or path in looked_at or None)
            known = dict.fromkeys(p.path for p in planned if p.ours is None) | {p.path: p.base for p in taken}

            def remember(number: int) -> dict[str, Any]:
                return memory.remember(number, child.id, snapshot, settled)

            with recorded, seen:
                if is_live:
                    shelf.save_bases(wanted, known)
                    put_beside(parent, stack, wanted, view)
                    parent.manifest.update(merged=remember(stack.open_layer.number))
                else:
                    shelf.put_layer(wanted, known=known, merged=remember)
            for item in planned:
                # Forced, by whoever merges: what the user has in the workspace is not theirs to give up.
                is_forced = item.path in wanted and item.decision.action == "conflict"
                is_seen = not item.change.uncertain and same_side(base_side(stack, item.path), item.base)
                if is_forced and not is_seen:
                    stack.doubt(item.path)
            parent.account.forget()
            return report.result()


def put_beside(state: BranchState, stack: Stack, wanted: Mapping[str, Side | None], view: MergedView) -> None:
    """Make each path what `wanted` says through the mount of processes that run, all or none.

    Args:
        view: what was decided on. What a process has changed since then is left to it.

    Raises:
        Stale: a process changed one of the paths meanwhile.
    """
    steps, call = (
        state.steps,
        f"{UNDER_WAY}{new_id('u')}",
    )  # a kill on the way is taken back by the next writer
    try:
        for path in sorted(wanted, key=os.fsencode):
            _put_one(steps, call, stack, path, wanted[path], view)
    except BaseException:
        steps.rollback(call)
        raise
    steps.settle(call)


def _put_one(
    steps: StepStore, call: str, stack: Stack, path: str, side: Side | None, view: MergedView
) -> None:
    present = stack.lookup(path)
    goes = present is not None and present.kind == "dir" and (side is None or side.kind != "dir")
    before, now = ({path: v.lookup(path), **(v.subtree(path) if goes else {})} for v in (view, stack))
    if before.keys() != now.keys() or not all(_as_decided(before[each], now[each]) for each in now):
        raise Stale(f"{path[1:]} was changed by a running command while it was merged; merge again", path)
    if present is not None and (side is None or goes):
        stack.remove(path, keep=steps.save(call, path, tree=True))
    if side is None:
        return
    above = path.rpartition("/")[0]
    top = path
    while above and stack.lookup(above) is None:
        top, above = above, above.rpartition("/")[0]
    steps.save(call, top)
    if side.kind == "dir":
        stack.put_dir(path, side.mode or 0o755)
    elif side.kind == "symlink":
        stack.put_symlink(path, side.target or "")
    elif side.content is not None:
        with side.content.stream() as stream:
            stack.put_file(path, stream.fileno(), side.mode)


def _as_decided(before: Entry | None, now: Entry | None) -> bool:
    """Whether an entry is what its copy was made of; one of the workspace is compared with its base."""
    if before is None or now is None or is_ground(before):
        return before is now or (is_ground(before) and is_ground(now))
    if before.kind in ("dir", "symlink"):
        return (before.kind, before.target) == (now.kind, now.target)
    return (before.kind, before.size, before.mtime_ns) == (now.kind, now.size, now.mtime_ns)


def _planned(stack: Stack, chosen: Sequence[Change], force: bool) -> "list[Planned]":
    """Decide each change; what is joined with the user's lines, or beats them, on bytes that stay."""
    from bowerbird.workspace.compare.merge import names_of, ours_of, plan_merge

    view = stack.below_open_view  # the open layer is empty
    live, taken = ours_of(view), set[str]()

    def ours(path: str) -> Side | None:
        return stored_side(stack.take(path)) if path in taken else live(path)

    while True:
        planned = plan_merge(chosen, ours, names_of(view), force=force)
        weighed = {p.path for p in planned if p.decision.merged or p.decision.action == "conflict"}
        rest = {path for path in weighed - taken if is_ground(view.lookup(path))}
        if not rest:
            return _whole_renames(planned, force)
        taken |= rest


def _whole_renames(planned: "list[Planned]", force: bool) -> "list[Planned]":
    """A file whose new name is in conflict keeps its old one, too: else only the child would have it."""
    from bowerbird.workspace.compare.merge import wins
    from bowerbird.workspace.compare.renames import perhaps_moved, perhaps_replaced

    left = {
        p.path: p for p in planned if p.decision.action == "conflict" and not (force and wins(p.decision))
    }
    made = [msgspec.structs.replace(p.change, base=None) for p in left.values() if p.change.new is not None]
    taken = [p.change for p in planned if p.decision.action == "take"]
    pairs = perhaps_moved([*(change for change in taken if change.new is None), *made])
    explained = {path for _, path in pairs}
    pairs += perhaps_replaced(taken, [p.change for p in left.values() if p.path not in explained])
    held = {source: left[path] for source, path in pairs}
    if not held:
        return planned
    kept = [
        msgspec.structs.replace(p, decision=msgspec.structs.replace(held[p.path].decision, result=p.ours))
        if p.path in held
        else p
        for p in planned
    ]
    return _whole_renames(kept, force)  # what was moved to one of these stays, too


def is_ground(entry: Entry | None) -> bool:
    """Whether an entry is the workspace's own."""
    return entry is not None and entry.layer is None


def _journal_steps(wanted: dict[str, Side | None], ours: dict[str, Side | None]) -> list[Step]:
    steps: list[Step] = []
    for path, side in wanted.items():
        had = ours.get(path)
        if side is None:
            steps.append(Step("rmdir" if had is not None and had.kind == "dir" else "delete", path))
        elif side.kind == "dir":
            steps.append(Step("mkdir", path))
        else:
            size = side.content.size if side.content is not None else len(side.target or "")
            steps.append(Step("write", path, "create" if had is None else "modify", size))
    return steps


class _EntriesAt:
    """What the child had at a path in a snapshot; each snapshot's view is made once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._views: dict[str, MergedView | None] = {}

    def __call__(self, snapshot: str, path: str) -> Entry | None:
        if snapshot not in self._views:
            try:
                self._views[snapshot] = self._history.view_at(snapshot)
            except NotFound:
                self._views[snapshot] = None
        view = self._views[snapshot]
        if view is None:
            raise KeyError(snapshot)
        return view.lookup(path)


def forget_snapshots(
    state: BranchState, registry: BranchRegistry, turns: Collection[str], keep: Collection[str]
) -> int:
    """Free what only snapshots of these turns need; returns how many snapshots went.

    Those stay that the view is still made of, on which a fork stands, and whose state a merge took.

    Args:
        keep: ids of snapshots that stay.

    Raises:
        BranchBusy: another process writes the branch.
    """
    with state.writing():
        from bowerbird.workspace.compare.merge import MergeMemory

        history = history_of(state, registry)
        above = [registry.directory(branch) for branch in registry.ancestors(state.id)]
        merged = {name for d in above for name in MergeMemory(d, ManifestFile(d)).named(state.id)}
        had = history.snapshots()
        unwanted = {s.id for s in had if s.turn in turns and s.id not in keep} - merged
        if not unwanted:
            return 0
        history.shelf.thin(unwanted)
        return len(had) - len(history.snapshots())
