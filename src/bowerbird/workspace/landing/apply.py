"""Changing a real directory all at once, or not at all (WS-53, D-1).

Here: the order of a landing, what an error or a crash in the middle leads to. Not here: one change
(`acts.py`), the hidden place (`staging.py`), the lock (`lock.py`), which paths change (`plan.py`).

Order on disk: blobs and steps.json → new files in the hidden place → record `prepared` → every path
looked at again → record `applying` → removals, directories, renames, modes → fsync of the directories →
the hidden place goes → the branch's bases → record `done`.
Killed before `applying`: the hidden place goes and nothing happened. Killed after: each path is still
`before`, already `after`, or between two kinds, and the rest is done.
An error before `applying`: nothing happened. After: everything is taken back, and nothing happened. Where
even that meets an error, the record says `needs_attention`, with path and reason.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec

from bowerbird.core.errors import LandingStuck, WorkspaceError
from bowerbird.workspace.landing.acts import Action, Acts, ordered
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.obstacles import Obstacles
from bowerbird.workspace.landing.progress import UNSEEN, Checkpoint, Meter, no_checkpoint
from bowerbird.workspace.landing.record import LandingFolder, LandingRecord, Refused, Step
from bowerbird.workspace.landing.refusals import file_refusal
from bowerbird.workspace.landing.staging import Staging
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.paths import shown
from bowerbird.workspace.tree.real_directory import Beneath, Gone

Settle = Callable[[LandingRecord, Sequence[Step]], None]
SOMEBODY_ELSE = "somebody else changed it meanwhile; their version was left"

_log = logging.getLogger(__name__)


def settle_nothing(_: LandingRecord, __: Sequence[Step]) -> None:
    """For a landing whose branch is gone: no base to move."""


class Changed(WorkspaceError):
    """Paths of the workspace changed between planning and applying; nothing was written."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__("the workspace changed while landing: " + ", ".join(paths))
        self.paths = tuple(paths)


class Applier:
    """Applies one landing; its folder already holds the bytes of every version.

    Args:
        tree: the workspace, locked by the caller with `workspace_lock`.
        checkpoint: called with the name of each write point, before it; for crash tests.
        meter: counts what was done.
    """

    def __init__(
        self,
        tree: Beneath,
        folder: LandingFolder,
        checkpoint: Checkpoint = no_checkpoint,
        meter: Meter = UNSEEN,
    ) -> None:
        self._tree = tree
        self._folder = folder
        self._checkpoint = checkpoint
        self._meter = meter
        self._staging = Staging(tree, folder)
        self._acts = Acts(tree, self._staging)

    def run(self, record: LandingRecord, steps: Sequence[Step], settle: Settle) -> LandingRecord:
        """Apply `steps` and return the record as it ended.

        Raises:
            Changed: a path is no longer what the plan saw; nothing changed.
            ReadOnly, LimitExceeded, WorkspaceError: the file system refused; nothing changed.
            LandingStuck: it refused in the middle, and taking back, too.
        """
        self._staging.gives_back = record.kind == "undo"
        with self._staging:
            try:
                self._checkpoint("steps")
                steps = self._staging.assign(steps)
                Obstacles(self._tree).check(steps)
                self._folder.write_steps(steps)
                self._stage(steps)
                self._checkpoint("prepared")
                self._folder.write_record(record)
                self._refuse_changed(steps)
                self._checkpoint("applying")
                record = msgspec.structs.replace(record, state="applying")
                self._folder.write_record(record)
            except BaseException as error:  # also a cancelled run leaves nothing behind
                discard(self._tree, self._folder, steps)
                if isinstance(error, OSError) and not isinstance(error, Gone):
                    raise file_refusal(error) from error
                raise
            try:
                third = self._apply(steps)
                if third:
                    raise Changed(third)
            except BaseException as error:  # noqa: BLE001 - whatever it is: all of it goes back
                self._give_back(record, steps, error)
            return self._end(record, steps, settle, {})

    def finish(
        self,
        record: LandingRecord,
        steps: Sequence[Step],
        settle: Settle,
        unsettle: Callable[[], None] = lambda: None,
    ) -> LandingRecord | None:
        """Bring a landing that was interrupted, or needs attention, to its end.

        Args:
            unsettle: takes back what `settle` did at an earlier attempt, when the files are taken back.

        Returns:
            The record as it is now: `done`, or `needs_attention` where paths are in a third state or can
            be brought neither to their end nor back. None when it was taken back.
        """
        self._staging.gives_back = record.kind == "undo"
        with self._staging:
            try:
                third = self._apply(steps)
            except Exception as error:  # noqa: BLE001 - a start goes on whatever one landing meets
                _log.warning("landing %s could not be finished, taking it back: %s", record.id, error)
                stuck = self.take_back(steps)
                if not stuck:
                    unsettle()
                    withdraw(self._tree, self._folder, record, steps)
                    return None
                return self._note_stuck(record, stuck)
            return self._end(record, steps, settle, dict.fromkeys(third, SOMEBODY_ELSE))

    def take_back(self, steps: Sequence[Step]) -> dict[str, str]:
        """Bring every path back to what it was; returns why not, by path.

        What somebody else changed meanwhile stays theirs and is no failure.
        """
        stuck: dict[str, str] = {}
        with contextlib.suppress(OSError):
            self._tree.forget()
        for action in self._meter.actions("taking_back", ordered(steps)[::-1], steps):
            step = steps[action.index]
            self._checkpoint(f"back {action.verb} {action.index}")
            why = self._undone(action, step)
            if why is not None:
                stuck["/" + os.fsdecode(step.path)] = why
        try:
            self._sync(steps)
        except OSError as error:
            _log.warning(
                "landing %s: what came back is perhaps not on disk: %s", self._folder.path.name, error
            )
        return stuck

    # ------------------------------------------------------------ there

    def _stage(self, steps: Sequence[Step]) -> None:
        staged = [action for action in ordered(steps) if action.verb in ("place", "remove")]
        with Flushing() as flushing:
            for action in self._meter.actions("writing", staged, steps):
                self._checkpoint(f"stage {action.index}")
                self._staging.place(steps[action.index])
                if action.verb == "place":
                    self._staging.write(steps[action.index], action.index, flushing=flushing)
            flushing.finish()

    def _refuse_changed(self, steps: Sequence[Step]) -> None:
        moved = [s for s in steps if self._tree.version(s.path) != s.before]
        if moved:
            raise Changed([shown("/" + os.fsdecode(step.path)) for step in moved])

    def _apply(self, steps: Sequence[Step]) -> list[str]:
        """Do every action; returns the paths in a third state, which are left as they are."""
        third: list[str] = []
        for action in self._meter.actions("placing", ordered(steps), steps):
            step = steps[action.index]
            self._checkpoint(f"{action.verb} {action.index}")
            if not self._acts.do(action, step):
                third.append("/" + os.fsdecode(step.path))
        self._checkpoint("sync")
        self._sync(steps)
        return third

    def _sync(self, steps: Sequence[Step]) -> None:
        with Flushing() as flushing:
            for directory in {s.path.rpartition(b"/")[0] for s in steps if s.before != s.after}:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    flushing.written(self._tree.directory(directory))
            flushing.finish()

    def _end(
        self, record: LandingRecord, steps: Sequence[Step], settle: Settle, attention: dict[str, str]
    ) -> LandingRecord:
        """Note a landing whose files are in place; errors do not take it back any more."""
        remove_places(self._staging, self._folder, steps)
        ended = _with_attention(record, attention)
        landed = [s for s in steps if "/" + os.fsdecode(s.path) not in attention]
        try:
            self._note(ended, landed, settle)
        except (OSError, WorkspaceError):
            try:  # once more: a full table of open files is empty a moment later
                self._note(ended, landed, settle)
            except (OSError, WorkspaceError) as error:
                raise LandingStuck(
                    f"the files of landing {record.id} are in place, but that could not be noted ({error}); "
                    "the next landing or start does it",
                    record.id,
                ) from error
        return ended

    def _note(self, ended: LandingRecord, landed: Sequence[Step], settle: Settle) -> None:
        self._checkpoint("settle")
        settle(ended, landed)
        self._checkpoint(ended.state)
        self._folder.write_record(ended)

    # ------------------------------------------------------------ and back

    def _give_back(self, record: LandingRecord, steps: Sequence[Step], error: BaseException) -> NoReturn:
        stuck = self.take_back(steps)
        if not stuck:
            withdraw(self._tree, self._folder, record, steps)
            if isinstance(error, OSError):
                raise file_refusal(error) from error
            raise error
        self._note_stuck(record, stuck)
        path, why = next(iter(stuck.items()))
        raise LandingStuck(
            f"landing {record.id} stopped half-way ({error}), and {path.lstrip('/')} could not be taken "
            f"back: {why}. Nothing else is blocked; `bowerbird landings fix {record.id}` tries again, "
            "takes back or gives up",
            record.id,
        ) from error

    def _undone(self, action: Action, step: Step) -> str | None:
        """Take one action back, trying twice; returns why it could not be."""
        for attempt in range(2):
            try:
                if not self._acts.undo(action, step):
                    _log.warning("%r: %s", step.path, SOMEBODY_ELSE)
                return None
            except (OSError, WorkspaceError) as error:
                if attempt:
                    return str(error)
        return None

    def _note_stuck(self, record: LandingRecord, stuck: dict[str, str]) -> LandingRecord:
        ended = _with_attention(record, stuck)
        try:
            self._folder.write_record(ended)
        except OSError as error:  # it stays `applying`: the next start tries again
            _log.warning("landing %s needs attention, which could not be noted: %s", record.id, error)
        return ended


def _with_attention(record: LandingRecord, attention: dict[str, str]) -> LandingRecord:
    return msgspec.structs.replace(
        record,
        state="needs_attention" if attention else "done",
        attention=tuple(shown(path) for path in attention),
        troubles=tuple(Refused(shown(path), why) for path, why in attention.items()),
    )


def remove_places(staging: Staging, folder: LandingFolder, steps: Sequence[Step]) -> bool:
    """Remove the hidden places; what cannot go now is noted, and goes at the next start."""
    try:
        staging.remove(steps)
    except (OSError, WorkspaceError):
        try:
            staging.remove(steps)
        except (OSError, WorkspaceError) as error:
            _log.warning("landing %s left files behind: %s", folder.path.name, error)
            with contextlib.suppress(OSError):
                folder.untidy.touch()
            return False
    with contextlib.suppress(OSError):
        folder.untidy.unlink(missing_ok=True)
    return True


def discard(tree: Beneath, folder: LandingFolder, steps: Sequence[Step]) -> None:
    """Take back a landing that never came to `applying`; what cannot go now, goes at the next start."""
    try:
        folder.forget_record()  # first: without it, nothing that is left can come to life
    except OSError as error:
        _log.warning("landing %s was not forgotten: %s", folder.path.name, error)
    with Staging(tree, folder) as staging:
        tidy = remove_places(staging, folder, steps)
    if tidy:
        with contextlib.suppress(OSError):
            folder.remove()


def withdraw(tree: Beneath, folder: LandingFolder, record: LandingRecord, steps: Sequence[Step]) -> None:
    """Forget a landing whose files are all back."""
    try:
        folder.forget_record()
    except OSError:
        # `applying` would be finished by the next start, which nobody wants any more.
        with contextlib.suppress(OSError):
            folder.set_state(record, "prepared")
    discard(tree, folder, steps)


def recover(tree: Beneath, folder: LandingFolder, settle: Settle) -> LandingRecord | None:
    """Finish or discard a landing whose process died; the caller holds `workspace_lock`.

    Returns:
        The record as it is now, None when the landing was discarded.

    Raises:
        WorkspaceError: the record cannot be read; nothing was touched.
    """
    if not presence.exists(folder.path / "steps.json"):
        folder.remove()
        return None
    steps = folder.steps()
    if not folder.started:
        discard(tree, folder, steps)
        return None
    record = folder.record()
    if record.state == "prepared":
        discard(tree, folder, steps)
        return None
    if record.state == "applying":
        return Applier(tree, folder).finish(record, steps, settle)
    if presence.exists(folder.untidy):
        with Staging(tree, folder) as staging:
            remove_places(staging, folder, steps)
    return record
