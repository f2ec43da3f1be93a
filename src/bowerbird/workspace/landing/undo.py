"""Taking a landing back (WS-56).

Here: the three-way per path (base = after, theirs = before), the undo as a landing of its
own, what the branch has pending afterwards. Not here: changing files (`apply.py`).
"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from bowerbird.core.errors import InvalidArgument, Stale
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.compare.diff import change_hunks
from bowerbird.workspace.compare.merge import Planned, plan_merge, wins
from bowerbird.workspace.git.apart import in_git
from bowerbird.workspace.git.committing import Committing, LandedFile
from bowerbird.workspace.git.landed_history import (
    add_note,
    read_history,
    reversed_history,
    write_history,
)
from bowerbird.workspace.git.moving import refresh_index
from bowerbird.workspace.landing.apply import Applier, Settle
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.hard_links import HARD_LINK, links_at, split_note
from bowerbird.workspace.landing.landed_paths import LandedPaths
from bowerbird.workspace.landing.landing import (
    is_pending,
    made_above,
    obstacle_in,
    refusals,
    set_base,
    with_history,
)
from bowerbird.workspace.landing.lock import data_dir_of, workspace_lock
from bowerbird.workspace.landing.plan import operation
from bowerbird.workspace.landing.progress import UNSEEN, Checkpoint, Meter, Told, no_checkpoint
from bowerbird.workspace.landing.record import LandingEntry, LandingFolder, LandingRecord, Refused, Step
from bowerbird.workspace.landing.refusals import refusal
from bowerbird.workspace.marks.names import folded_parts
from bowerbird.workspace.tree.changes import Change, Tops, base_side
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.hunks import apply_hunks
from bowerbird.workspace.tree.paths import path_b64, shown
from bowerbird.workspace.tree.real_directory import Beneath, Version, landed_version, version_of
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, decide

ENDED_STATES = ("done", "needs_attention", "undone", "given_up")


class UndoRequest(msgspec.Struct, frozen=True):
    """What to take back.

    Attributes:
        paths: files or directories of the landing, None = all.
        hunks: ids of hunks between what was there before and what landed, None = all.
        force: restore even over later edits of the user.
        commit: prepared here, as of a landing.
    """

    paths: tuple[str, ...] | None = None
    hunks: tuple[str, ...] | None = None
    force: bool = False
    actor: str = ""
    door: str = ""
    commit: Committing | None = None


def undo(
    folder: LandingFolder,
    root: Path,
    request: UndoRequest,
    stack: Stack | None,
    checkpoint: Checkpoint = no_checkpoint,
    told: Told | None = None,
) -> tuple[LandingRecord, LandingFolder]:
    """Take a landing back and return the undo's own record and folder.

    Args:
        stack: of the branch that landed, its writer lock held; None when it is gone.
        told: see `Branch.land`.

    Raises:
        LandingRefused: later edits overlap and `force` was not given; nothing changed.
        InvalidArgument: the landing is not finished. Stale: a hunk is not one of it.
    """
    record = folder.record()
    if record.state not in ENDED_STATES:
        raise InvalidArgument(f"landing {record.id} is {record.state}; only a finished one can be undone")
    target = LandingFolder(folder.path.parent / new_id("l"))
    meter = Meter(told, undoes=record.id)
    data_dir = data_dir_of(folder.path.parent.parent)
    with Beneath(root) as tree, workspace_lock(tree, data_dir), refusals(target):
        planned, kept = without_live_repositories(_plan(folder, tree, request, meter))
        if rows := _refused(planned, tree, force=request.force):
            raise refusal(rows)
        if request.commit is not None:
            files = [LandedFile(item.path, item.ours, item.decision.result) for item in planned]
            request.commit.prepare(root, files)
        whole = request.paths is None and request.hunks is None
        history = reversed_history(read_history(folder.path)) if whole else ()
        if not planned and not history:
            raise InvalidArgument(f"nothing of landing {record.id} is left to take back")
        steps = _keep_all(folder, target, tree, planned, stack, meter)
        made = _record(folder, target, record, request, planned, tree)
        made = msgspec.structs.replace(made, refused=tuple(Refused(path, "git-moved") for path in kept))
        write_history(target.path, history)
        settle = undo_settler(stack, folder, target, tree, meter)
        if stack is not None:
            settle = with_history(settle, target, stack, root)
        done = Applier(tree, target, checkpoint, meter).run(made, steps, settle)
        add_note(target.path, refresh_index(root, [step.path for step in steps]))
        add_note(target.path, split_note([e.path for e in made.entries if HARD_LINK in e.flags], undone=True))
        return done, target


def _refused(planned: Sequence[Planned], tree: Beneath, *, force: bool) -> list[dict[str, str]]:
    """Return `{"path", "reason"}` of what cannot be taken back: later edits, or what the system refuses."""
    obstacle_of = obstacle_in(tree)
    rows: list[dict[str, str]] = []
    for item in planned:
        ours, result = item.ours, item.decision.result
        overlaps = item.decision.action == "conflict" and not (force and wins(item.decision))
        reason = str(item.decision.reason) if overlaps else None
        reason = reason or obstacle_of(item.path, ours, result, _only_mode(ours, result))
        if reason is not None:
            rows.append({"path": shown(item.path), "reason": reason})
    return rows


def without_live_repositories(planned: Sequence[Planned]) -> tuple[list[Planned], list[str]]:
    """Leave out git directories that somebody used since they landed: no undo drops a commit.

    Returns:
        What is left, and the git directories.
    """
    kept = {_git_root(p.path) for p in planned if in_git(p.path) and p.decision.action == "conflict"}
    rest = [p for p in planned if not kept or not in_git(p.path) or _git_root(p.path) not in kept]
    return rest, sorted(shown(path) for path in kept)


def _git_root(path: str) -> str:
    at = folded_parts(path).index(".git")
    return "/".join(path.split("/")[: at + 2])


def _plan(folder: LandingFolder, tree: Beneath, request: UndoRequest, meter: Meter) -> list[Planned]:
    """Decide every path of the landing; implied directories go only when empty, without refusal."""
    changes: list[Change] = []
    implied: set[str] = set()
    wanted = set(request.hunks or ())
    tops = None if request.paths is None else Tops(request.paths)
    for step in folder.steps():
        path = "/" + os.fsdecode(step.path)
        if step.before == step.after:
            continue
        if step.implied:
            implied.add(path)
        elif tops is not None and not tops.cover(path):
            continue
        change = Change(path, folder.side(step.after), folder.side(step.before))
        if request.hunks is not None and not step.implied:
            chosen = _hunks(change, wanted)
            if chosen is None:
                continue
            change = chosen
        changes.append(change)
    if wanted:
        raise Stale(f"hunk {min(wanted)} is not one of this landing")
    changes.sort(key=lambda change: os.fsencode(change.path))
    planned = plan_merge(
        changes,
        meter.asked("checking", lambda path: tree.side(os.fsencode(path[1:])), len(changes)),
        lambda path: [os.fsdecode(name) for name in tree.names(os.fsencode(path[1:]))],
        force=request.force,
    )
    return [p for p in planned if p.decision.action != "none" and not _stays(p, implied)]


def _stays(item: Planned, implied: Collection[str]) -> bool:
    return item.path in implied and item.decision.action == "conflict"


def _hunks(change: Change, wanted: set[str]) -> Change | None:
    """The change that takes back only the wanted hunks of a path; None when it has none of them."""
    landed = change_hunks(Change(change.path, change.new, change.base)) or ()
    named = {h.id for h in landed} & wanted
    if not named or change.base is None or change.base.content is None:
        return None
    wanted.difference_update(named)
    if len(named) == len(landed):
        return change
    before = change.new.content.read() if change.new is not None and change.new.content is not None else b""
    rest = apply_hunks(before, change.base.content.read(), landed, {h.id for h in landed} - named)
    return msgspec.structs.replace(change, new=Side("file", change.base.mode, Content(rest)))


def _keep_all(
    source: LandingFolder,
    target: LandingFolder,
    tree: Beneath,
    planned: Sequence[Planned],
    stack: Stack | None,
    meter: Meter,
) -> list[Step]:
    target.create()
    steps: list[Step] = []
    moved = {step.path: step for step in source.steps()}
    known = {os.fsencode(item.path[1:]) for item in planned}
    with Flushing() as flushing:
        for item in meter.each("saving", planned):
            path = os.fsencode(item.path[1:])
            result = item.decision.result
            if result is not None:
                steps += made_above(tree, path, known)
            step = moved[path]
            before, after = version_of(item.ours), _restored(step, result)
            # What landed and still stands there is kept already, and costs a link.
            ours = source.side(before) if before == step.after else item.ours
            target.keep_all([(ours, before), (result, after)], flushing)
            base = new = None
            if stack is not None and stack.touched(item.path) is not None:
                present = base_side(stack, item.path)
                earlier = _base_after(source, step, present, result)
                base, new = version_of(present), version_of(earlier)
                target.keep_all([(present, base), (earlier, new)], flushing)
            again = step.owned if after is not None and after.kind == "dir" else None
            steps.append(Step(path, before, after, base, new, step.implied, owned=again))
        flushing.finish()
    return steps


def _restored(step: Step, result: Side | None) -> Version | None:
    """What the workspace gets back: what stood there, with setuid and setgid; nothing else has them."""
    version = version_of(result)
    return version if version == step.before else landed_version(result)


def _only_mode(one: Side | None, other: Side | None) -> bool:
    if one is None or other is None or one.content is None or other.content is None:
        return False
    return one.content.same(other.content)


def _base_after(folder: LandingFolder, step: Step, present: Side | None, result: Side | None) -> Side | None:
    """The branch's base once the landed part is taken out of it again.

    Where that overlaps what the branch did since, what the workspace now has is the base.
    """
    decision = decide(folder.side(step.new), present, folder.side(step.base))
    if decision.action == "none":
        return present
    return decision.result if decision.action == "take" else result


def _record(
    source: LandingFolder,
    target: LandingFolder,
    undone: LandingRecord,
    request: UndoRequest,
    planned: Sequence[Planned],
    tree: Beneath,
) -> LandingRecord:
    entries: list[LandingEntry] = []
    split = {entry.path for entry in undone.entries if HARD_LINK in entry.flags}
    steps = {"/" + os.fsdecode(step.path): step for step in source.steps()}
    for item in planned:
        before, after = version_of(item.ours), _restored(steps[item.path], item.decision.result)
        is_split = shown(item.path) in split or (after is not None and links_at(tree, item.path) > 1)
        entries.append(
            LandingEntry(
                path=shown(item.path),
                op=operation(Change(item.path, item.ours, item.decision.result)),
                before=before.shown if before else None,
                after=after.shown if after else None,
                mode=after.mode if after is not None and after.kind == "file" else None,
                flags=(HARD_LINK,) if is_split else (),
                merged=item.decision.merged,
                path_b64=path_b64(item.path) or msgspec.UNSET,
            )
        )
    return LandingRecord(
        id=target.path.name,
        kind="undo",
        branch=undone.branch,
        snapshot=undone.snapshot,
        actor=request.actor,
        door=request.door,
        at=now_iso(),
        entries=tuple(entries),
        undoes=undone.id,
        workspace=undone.workspace,
        whole=request.paths is None and request.hunks is None,
    )


def undo_settler(
    stack: Stack | None, undone: LandingFolder, target: LandingFolder, tree: Beneath, meter: Meter = UNSEEN
) -> Settle:
    """Return what follows once the files are back; may run twice.

    The change is pending in the branch again, and the landing taken back says so.
    """

    def settle(record: LandingRecord, steps: Sequence[Step]) -> None:
        paths = ["/" + os.fsdecode(step.path) for step in steps]
        if stack is not None:
            for step in meter.steps("recording", steps):
                if stack.touched(path := "/" + os.fsdecode(step.path)) is not None:
                    set_base(stack, target, path, step.new)
            LandedPaths(stack.directory).update(tree, (), gone=[p for p in paths if is_pending(stack, p)])
        if record.whole and record.state == "done":
            _set_state(undone)

    return settle


def _set_state(undone: LandingFolder) -> None:
    """Mark a landing as taken back; taking back an undo makes the first landing true again."""
    record = undone.record()
    undone.set_state(record, "undone")
    if record.kind == "undo" and record.undoes is not None:
        first = LandingFolder(undone.path.parent / record.undoes)
        if first.started:
            first.set_state(first.record(), "done")
