"""Bringing a branch's changes into the workspace (WS-49…55).

Here: one landing from choice to record: plan, refusals, steps, the branch's new bases.
Not here: the crash-safe change of files (`apply.py`), decisions (`plan.py`), undo (`undo.py`).
"""

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import msgspec

from bowerbird.core.errors import Stale, WorkspaceError
from bowerbird.core.ids import new_id
from bowerbird.core.processes.creation_mask import new_mode
from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.git.apart import apart, files_of, removed_repositories
from bowerbird.workspace.git.arrival import Bringing, bring
from bowerbird.workspace.git.committing import Committing, LandedFile
from bowerbird.workspace.git.landed_history import LandedHistory, add_note, write_history
from bowerbird.workspace.git.moving import refresh_index, settle_history
from bowerbird.workspace.history.history import History
from bowerbird.workspace.landing.apply import Applier, Changed
from bowerbird.workspace.landing.case_clashes import case_clashes
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.hard_links import HARD_LINK, links_at, split_note
from bowerbird.workspace.landing.landed_paths import LandedPaths, follow
from bowerbird.workspace.landing.lock import data_dir_of, workspace_lock
from bowerbird.workspace.landing.obstacles import Obstacles
from bowerbird.workspace.landing.plan import (
    Chosen,
    PlanEntry,
    PlanInput,
    choose,
    is_blocked,
    make_plan,
    moved_since,
    plan_id,
    refused_rows,
    with_git_units,
)
from bowerbird.workspace.landing.progress import UNSEEN, Checkpoint, Meter, Told, no_checkpoint
from bowerbird.workspace.landing.record import LandingEntry, LandingFolder, LandingRecord, Refused, Step
from bowerbird.workspace.landing.refusals import MOVED, file_refusal, refusal
from bowerbird.workspace.landing.unseen import unseen_note
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.marks.surroundings import around_changes
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import Change, Tops, Whole, base_side, side_of
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import path_b64, shown
from bowerbird.workspace.tree.real_directory import Beneath, Gone, Version, landed_form, version_of
from bowerbird.workspace.tree.regions import Take
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side


class LandRequest(msgspec.Struct, frozen=True):
    """What a person or the policy asks for.

    Attributes:
        paths, hunks: what to land, None = all.
        accept: flagged paths that a person accepted, `*` = all.
        force: take the branch's version of conflicts.
        partial: land the rest of what is refused.
        plan: the plan the person saw. seen: by path, the state in which it was shown.
        automatic: no person looks; what is held stays on the branch.
        history: what becomes of commits, None = they stay.
        include: paths that stay on the branch by themselves, to land with the rest.
        commit: prepared here, made by the caller when no lock is held: hooks may take their time; no file
            lands where it goes on another git branch.
        resolved: what a person decided of each conflicting place, by path.
        actor, door: who asks, through what.
    """

    paths: tuple[str, ...] | None = None
    hunks: tuple[str, ...] | None = None
    accept: tuple[str, ...] = ()
    force: bool = False
    partial: bool = False
    plan: str | None = None
    seen: Mapping[str, str] | None = None
    actor: str = ""
    door: str = ""
    automatic: bool = False
    history: Bringing | None = None
    include: tuple[str, ...] = ()
    commit: Committing | None = None
    resolved: Mapping[str, Sequence[Take]] = msgspec.field(default_factory=dict[str, Sequence[Take]])


class LandingContext(msgspec.Struct, frozen=True):
    """What a landing needs of its branch; the branch's writer lock is held.

    Attributes:
        changes: of the frozen state `snapshot`, without what stays on the branch by itself (`staying`);
            `whole`: what of a directory does.
        tainted: paths written with untrusted text in context, and what that was.
        checkpoint: see `Applier`. told: see `Branch.land`.
    """

    branch: str
    stack: Stack
    history: History
    changes: Sequence[Change]
    snapshot: str | None
    rules: FlagRules
    staying: Mapping[str, int]
    whole: Callable[[str], Whole]
    tainted: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    checkpoint: Checkpoint = msgspec.field(default=no_checkpoint)
    told: Told | None = None


def plan_landing(
    ground: LandingContext, tree: Beneath, request: LandRequest, meter: Meter = UNSEEN
) -> tuple[list[PlanEntry], list[str]]:
    """Return the plan's entries, and given paths without a change; changes nothing."""
    around = around_changes(ground.stack, ground.changes)
    parts = apart(ground.changes, around)
    changes = [*parts.files, *parts.settings]
    wanted = None if request.paths is None else (*request.paths, *request.include)
    chosen, unknown = choose(changes, wanted, request.hunks)
    stay = Tops(ground.staying)
    unknown = [p for p in unknown if not stay.inside(p)]
    if wanted is None:
        present = Tops(change.path for change in changes)
        unknown = [p for p in request.include if not present.inside(p)]
    chosen = with_git_units(changes, chosen, around)
    given = PlanInput(
        rules=ground.rules,
        around=around,
        current_of=meter.asked("checking", lambda path: tree.side(os.fsencode(path[1:])), len(chosen)),
        names_of=lambda path: [os.fsdecode(name) for name in tree.names(os.fsencode(path[1:]))],
        case_clashes=lambda paths: case_clashes(tree, paths),
        obstacle_of=obstacle_in(tree),
        links_of=lambda path: links_at(tree, path),
        tainted=ground.tainted,
        accept=_accepted(request.accept, ground.changes),
        named=None if request.paths is None else frozenset(request.paths),
        force=request.force,
        automatic=request.automatic,
        resolved=request.resolved,
        staying=removed_repositories(ground.changes),
        ignored=stay,
    )
    return make_plan(chosen, given), unknown


def _accepted(accept: Sequence[str], changes: Sequence[Change]) -> frozenset[str]:
    """Return what was accepted; where a file has the name `*`, that names the file and nothing else."""
    given = frozenset(accept)
    is_name = "*" in given and any(change.path == "/*" for change in changes)
    return given - {"*"} | {"/*"} if is_name else given


def obstacle_in(tree: Beneath) -> Callable[[str, Side | None, Side | None, bool], str | None]:
    """Return the test of what the system will refuse, as plans ask it."""
    looking = Obstacles(tree)

    def of(path: str, present: Side | None, planned: Side | None, only_mode: bool) -> str | None:
        kinds = [side.kind if side is not None else None for side in (present, planned)]
        return looking.of(os.fsencode(path[1:]), *kinds, only_mode=only_mode and kinds[0] == "file")

    return of


def land(ground: LandingContext, root: Path, request: LandRequest) -> tuple[LandingRecord, LandingFolder]:
    """Land, and return the record with its folder.

    Raises:
        Stale: the plan or a hunk is no longer what it was.
        LandingRefused: paths are refused and `partial` was not given; nothing changed.
        ReadOnly, LimitExceeded, BranchBusy: see `apply.py`.
    """
    folder = LandingFolder(ground.stack.directory / "landings" / new_id("l"))
    landed = LandedPaths(ground.stack.directory)
    meter = Meter(ground.told)
    with Beneath(root) as tree, workspace_lock(tree, data_dir_of(ground.stack.directory)), refusals(folder):
        entries, unknown = plan_landing(ground, tree, request, meter)
        if request.seen is not None and (
            moved := moved_since(entries, ground.changes, request.seen, Tops(request.include))
        ):
            raise refusal([{"path": shown(path), "reason": MOVED} for path in moved])
        if request.plan is not None and plan_id(entries) != request.plan:
            raise Stale("the plan is no longer equal: branch or workspace changed; look at it again")
        refused = refused_rows(entries, unknown)
        landing = [e for e in entries if e.refused is None and not e.left_out]
        if is_blocked(entries, unknown) and not request.partial:
            raise refusal(refused)
        if request.commit is not None:
            files = [LandedFile(e.path, e.current, e.result) for e in landing]
            every = request.paths is None and request.hunks is None and not refused
            request.commit.prepare(root, files, whole=every)
            if request.commit.aside:
                record = _record(folder, ground, request, landing, refused)
                return msgspec.structs.replace(record, kind="commit", state="done"), folder
        history = _history(ground, request, landing)
        if refused and not request.partial and not landing and not history:
            raise refusal(refused)
        record = _record(folder, ground, request, landing, refused)
        if landing or history:
            applier = Applier(tree, folder, ground.checkpoint, meter)
            steps = [_closed(step, ground.stack) for step in _keep_all(folder, tree, landing, meter)]
            write_history(folder.path, history)
            settle = settler(ground.stack, folder, landed, tree, meter)
            record = applier.run(record, steps, with_history(settle, folder, ground.stack, root))
            add_note(folder.path, refresh_index(root, [step.path for step in steps]))
            add_note(folder.path, unseen_note(ground.stack, tree, [e.path for e in landing]))
            add_note(folder.path, split_note([e.path for e in landing if HARD_LINK in e.flags]))
        else:
            # Nothing to do is no event of the workspace: said, but not kept.
            record = msgspec.structs.replace(record, state="done")
        # A process that runs may have read what the branch had: of what it writes then, that is the base.
        if ground.stack.look_at_processes is None:
            with contextlib.suppress(OSError, WorkspaceError):  # it has landed; the next turn's start follows
                follow(ground.stack, ground.history, landed, tree)
        return record, folder


def _history(
    ground: LandingContext, request: LandRequest, landing: Sequence[PlanEntry]
) -> tuple[LandedHistory, ...]:
    """Bring the branch's commits over; which of the user's refs follow depends on the files that land."""
    if request.history is None:
        return ()
    whole = {entry.path for entry in landing if entry.chosen.whole}
    left = ({c.path for c in files_of(ground.changes, ground.stack.ground)} | ground.staying.keys()) - whole
    how = msgspec.structs.replace(request.history, left=left)
    return bring(ground.stack, ground.changes, ground.stack.directory, how)


def with_history(
    settle: Callable[[LandingRecord, Sequence[Step]], None], folder: LandingFolder, stack: Stack, root: Path
) -> Callable[[LandingRecord, Sequence[Step]], None]:
    """Return `settle` followed by the moves of refs that the landing's folder still asks for."""

    def both(record: LandingRecord, steps: Sequence[Step]) -> None:
        settle(record, steps)
        settle_history(folder.path, stack.directory, root)

    return both


@contextlib.contextmanager
def refusals(folder: LandingFolder) -> Generator[None]:
    """Tell what stopped a landing in its own words; one that never began leaves no folder."""
    try:
        yield
    except Changed as error:
        rows = [{"path": path, "reason": "changed while landing"} for path in error.paths]
        raise refusal(rows) from error
    except Gone as error:  # deleted, perhaps to be written anew: a change like any other
        path = shown("/" + os.fsdecode(error.filename))
        raise refusal([{"path": path, "reason": "changed while landing"}]) from error
    except OSError as error:
        raise file_refusal(error) from error
    finally:
        with contextlib.suppress(OSError):
            if not presence.exists(folder.path / "steps.json") and not folder.started:
                folder.remove()  # else something is still to be done, and it says what


def _keep_all(folder: LandingFolder, tree: Beneath, entries: Sequence[PlanEntry], meter: Meter) -> list[Step]:
    """Store every version that the landing or its undo may need, and return the steps."""
    folder.create()
    steps: list[Step] = []
    known = {os.fsencode(e.path[1:]) for e in entries}
    with Flushing() as flushing:
        for entry in meter.each("saving", entries):
            path = os.fsencode(entry.path[1:])
            if entry.result is not None:
                steps += made_above(tree, path, known)
            change = entry.chosen.change
            versions = (*entry.versions(), version_of(change.base), version_of(change.new))
            sides = (entry.current, entry.result, change.base, change.new)
            folder.keep_all(zip(sides, versions, strict=True), flushing)
            steps.append(Step(path, *versions))
        flushing.finish()
    return steps


def _closed(step: Step, stack: Stack) -> Step:
    """Return a step that makes a directory with the mode that it has on the branch, where that is closed.

    It is never wider than the user's own new directories, nor closed to the user. Whether it hands its group
    on (setgid) follows from where it lies; a sticky bit does not land.
    """
    if step.before is not None or step.after is None or step.after.kind != "dir":
        return step
    entry = stack.lookup("/" + os.fsdecode(step.path))
    usual = new_mode(0o777)
    mode = entry.mode & usual | 0o700 if entry is not None and entry.kind == "dir" else usual
    return step if mode == usual else msgspec.structs.replace(step, owned=(mode, -1, -1))


def _record(
    folder: LandingFolder,
    ground: LandingContext,
    request: LandRequest,
    entries: Sequence[PlanEntry],
    refused: Sequence[dict[str, str]],
) -> LandingRecord:
    return LandingRecord(
        id=folder.path.name,
        kind="land",
        branch=ground.branch,
        snapshot=ground.snapshot,
        actor=request.actor,
        door=request.door,
        at=now_iso(),
        entries=tuple(landing_entry(e.chosen, e) for e in entries),
        refused=tuple(Refused(row["path"], row["reason"]) for row in refused),
        workspace=str(ground.stack.ground.root or ""),
    )


def landing_entry(chosen: Chosen, entry: PlanEntry) -> LandingEntry:
    """Return the record's row of one landed path."""
    before, after = entry.versions()
    return LandingEntry(
        path=shown(entry.path),
        op=entry.op,
        before=before.shown if before else None,
        after=after.shown if after else None,
        mode=after.mode if after is not None and after.kind == "file" else None,
        hunks=chosen.part or (),
        flags=entry.flags,
        merged=entry.merged,
        tainted=entry.tainted,
        taint=entry.taint,
        path_b64=path_b64(entry.path) or msgspec.UNSET,
    )


def settler(
    stack: Stack, folder: LandingFolder, landed: LandedPaths, tree: Beneath, meter: Meter = UNSEEN
) -> Callable[[LandingRecord, Sequence[Step]], None]:
    """Return what moves the branch's bases once the files are in place; may run twice.

    The parts that landed are the new base, so that `changes()` shows what remains.
    """

    def settle(_: LandingRecord, steps: Sequence[Step]) -> None:
        taken: list[str] = []
        joined: list[str] = []
        for step in meter.steps("recording", steps):
            path = "/" + os.fsdecode(step.path)
            if stack.touched(path) is None:
                continue
            set_base(stack, folder, path, step.new)
            if not step.implied:
                (taken if step.after == landed_form(step.new) else joined).append(path)
        landed.update(tree, taken, joined)

    return settle


def made_above(tree: Beneath, path: bytes, known: set[bytes]) -> list[Step]:
    """Return the steps of directories that exist only for what is put in them.

    Args:
        known: paths that have a step, or a directory already; those above `path` are added.
    """
    above, missing, made = path.rpartition(b"/")[0], list[bytes](), Version("dir")
    while above and above not in known:
        known.add(above)
        if tree.lstat(above) is None:
            missing.append(above)
        above = above.rpartition(b"/")[0]
    return [Step(each, None, made, None, made, implied=True) for each in reversed(missing)]


def set_base(stack: Stack, folder: LandingFolder, path: str, version: Version | None) -> None:
    """Make a stored version the branch's base of `path`."""
    if version is None:
        stack.orig.save(path, None, None)
    elif version.kind == "file":
        source = folder.blob(version.digest or "")
        stack.orig.save(path, Entry("file", version.mode, os.lstat(source).st_size, 0, 0), source)
    else:
        target = os.fsdecode(version.target) if version.target is not None else None
        stack.orig.save(path, Entry(version.kind, 0o755, 0, 0, 0, target), None)


def is_pending(stack: Stack, path: str) -> bool:
    """Whether the branch has a change of `path` against its base."""
    return not same_side(base_side(stack, path), side_of(stack, path, stack.lookup(path)))
