"""The landings of a workspace: finding, taking back, forgetting old ones.

Here: `Landing`, the handle that callers get, and the landings of all branches of one
workspace. Not here: how one landing is made (`landing.py`) or undone (`undo.py`), what a crash left
(`unfinished.py`).
"""

import contextlib
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, NotFound, WorkspaceError
from bowerbird.core.ids import new_id
from bowerbird.workspace.compare.diff import diff_of
from bowerbird.workspace.compare.results import Diff
from bowerbird.workspace.git.landed_history import LandedCommit, LandedHistory, note_commit, read_history
from bowerbird.workspace.landing.progress import Checkpoint, Told, no_checkpoint
from bowerbird.workspace.landing.record import (
    ALWAYS_KEPT,
    KEPT_BYTES,
    KEPT_LANDINGS,
    KEPT_VERSIONS,
    VERSIONED,
    changed_below,
)
from bowerbird.workspace.landing.refusals import said_plainly
from bowerbird.workspace.landing.unfinished import REMOVED, Unfinished, all_folders, held, settle_of
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.registry.registry import BranchRegistry
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.real_directory import Beneath

if TYPE_CHECKING:
    from bowerbird.workspace.git.committing import Committing
    from bowerbird.workspace.landing.fix import Fix
    from bowerbird.workspace.landing.record import (
        Kind,
        LandingEntry,
        LandingFolder,
        LandingRecord,
        Refused,
        State,
    )
    from bowerbird.workspace.landing.undo import UndoRequest

ENDED = ("done", "undone", "given_up")

_log = logging.getLogger(__name__)


class Landing:
    """One landing or undo, as its record says, and the way to take it back.

    Example:
        landing = branch.land(paths=["src/a.py"])
        landing.state, [entry.path for entry in landing.entries]
        landing.undo()
    """

    def __init__(
        self,
        landings: "Landings",
        folder: "LandingFolder",
        record: "LandingRecord",
        aside: LandedCommit | None = None,
    ) -> None:
        self._landings = landings
        self._folder = folder
        self._record = record
        self._aside = aside

    @property
    def id(self) -> str:
        """`l_…`."""
        return self._record.id

    @property
    def state(self) -> "State":
        """`done`, `undone`, `needs_attention`, `given_up`, or where a crash left it."""
        return self._record.state

    @property
    def kind(self) -> "Kind":
        """`land`, `undo`, or `commit`: no file of the workspace changed, and it is not kept."""
        return self._record.kind

    @property
    def branch(self) -> str:
        """The id of the branch that it came from."""
        return self._record.branch

    @property
    def snapshot(self) -> str | None:
        """The branch's frozen state that the bytes came from."""
        return self._record.snapshot

    @property
    def actor(self) -> str:
        """Who asked for it."""
        return self._record.actor

    @property
    def door(self) -> str:
        """Through what it was asked for: `cli`, `web`, …"""
        return self._record.door

    @property
    def at(self) -> str:
        """When, as ISO 8601 in UTC."""
        return self._record.at

    @property
    def entries(self) -> "tuple[LandingEntry, ...]":
        """The landed paths."""
        return self._record.entries

    @property
    def refused(self) -> "tuple[Refused, ...]":
        """What a partial landing left out, and why."""
        return self._record.refused

    @property
    def undoes(self) -> str | None:
        """The landing that this one takes back."""
        return self._record.undoes

    @property
    def troubles(self) -> "tuple[Refused, ...]":
        """The paths of a landing that needs attention, and why each is stuck."""
        return self._record.troubles

    @property
    def workspace(self) -> str:
        """The directory landed in."""
        return self._record.workspace

    @property
    def whole(self) -> bool:
        """Of an undo: it takes back all of the landing, not some paths or hunks."""
        return self._record.whole

    def record(self) -> dict[str, Any]:
        """Return the record of WS-54, as plain data."""
        data = self._record.to_data()
        return data | {"history": [one.to_data() for one in self.history]}

    @property
    def history(self) -> tuple[LandedHistory, ...]:
        """What it did in the repositories of the workspace, beside their files."""
        if self._aside is not None:
            return (LandedHistory("/.git", commit=self._aside),)
        return read_history(self._folder.path)

    def diff(self, paths: Sequence[str] | None = None) -> Diff:
        """Return what it did to the workspace's files, like `Branch.diff`.

        Args:
            paths: virtual paths of files, None = all.

        Raises:
            WorkspaceError: its files cannot be read.
        """
        changes = [
            Change(
                "/" + os.fsdecode(step.path), self._folder.side(step.before), self._folder.side(step.after)
            )
            for step in self._folder.steps()
            if not step.implied
        ]
        return diff_of([c for c in changes if paths is None or c.path in paths], FlagRules())

    def undo(
        self,
        paths: Sequence[str] | None = None,
        force: bool = False,
        hunks: Sequence[str] | None = None,
        *,
        actor: str = "",
        door: str = "",
        told: Told | None = None,
        commit: "Committing | None" = None,
    ) -> "Landing":
        """Take this landing back, keeping what the user edited elsewhere since.

        Args:
            paths: files or directories of it, None = all.
            force: restore also where later edits overlap; those can be brought back by undoing
                the undo.
            hunks: ids of its hunks, None = all.
            told: called as by `Branch.land`. commit: makes the undo a commit, too.

        Returns:
            The undo, a landing of its own.

        Raises:
            LandingRefused: later edits overlap; nothing changed.
            Stale: a hunk is not one of this landing.
        """
        if (
            not self._record.entries and not self.history
        ):  # a landing of nothing was not kept; taking it back is nothing, too
            nothing = msgspec.structs.replace(self._record, id=new_id("l"), kind="undo", undoes=self.id)
            return self._landings.of(self._folder, nothing)
        undone = self._landings.undo(
            self.id, paths, force, hunks, actor=actor, door=door, told=told, commit=commit
        )
        with contextlib.suppress(WorkspaceError):  # it is taken back, whether that can be read now or not
            self._record = self._folder.record()
        return undone

    @property
    def folder(self) -> "LandingFolder":
        """The directory that holds it, for this package."""
        return self._folder

    def __repr__(self) -> str:
        return f"<Landing {self.id} {self.kind} {self.state}, {len(self._record.entries)} paths>"


class Landings:
    """All landings of a registry's workspace."""

    def __init__(self, registry: BranchRegistry, checkpoint: Checkpoint = no_checkpoint) -> None:
        self._registry = registry
        self.checkpoint = checkpoint
        self._unfinished = Unfinished(registry)
        self.made = 0  # since old ones were last forgotten

    def of(self, folder: "LandingFolder", record: "LandingRecord") -> Landing:
        """Return the handle of one landing."""
        return Landing(self, folder, record)

    def made_one(
        self, folder: "LandingFolder", record: "LandingRecord", commit: "Committing | None" = None
    ) -> Landing:
        """Make the commit of a new landing, and return its handle; old ones are forgotten later."""
        if commit is not None and record.entries:
            made = commit.make()
            if commit.aside:
                return Landing(self, folder, record, made)
            note_commit(folder.path, made)
        self.made += 1
        return self.of(folder, record)

    def all(self) -> list[Landing]:
        """Return the readable landings, oldest first."""
        found = [self.of(folder, record) for folder, record in self._readable()]
        return sorted(found, key=lambda landing: (landing.at, landing.id))

    def find(self, landing: str) -> Landing:
        """Return a landing by id; raises NotFound, and WorkspaceError when it cannot be read."""
        from bowerbird.workspace.landing.record import LandingFolder

        for directory in self._registry.directories():
            folder = LandingFolder(directory / "landings" / landing)
            if _is_id(landing) and presence.is_directory(folder.path) and self._registry.is_ours(directory):
                return self.of(folder, folder.record())
        raise NotFound(f"there is no landing {landing} of this workspace")

    def undo(
        self,
        landing: str,
        paths: Sequence[str] | None,
        force: bool,
        hunks: Sequence[str] | None,
        *,
        actor: str = "",
        door: str = "",
        told: Told | None = None,
        commit: "Committing | None" = None,
    ) -> Landing:
        """See `Landing.undo`; paths are virtual or relative."""
        from bowerbird.workspace.landing.undo import UndoRequest

        given = None if paths is None else tuple("/" + path.strip("/").removeprefix("./") for path in paths)
        request = UndoRequest(given, None if hunks is None else tuple(hunks), force, actor, door, commit)
        with said_plainly():
            return self._undo(landing, request, told)

    def _undo(self, landing: str, request: "UndoRequest", told: Told | None) -> Landing:
        folder = self.find(landing).folder
        with self._registry.borrowed(folder.path.parent.parent) as state, state.writing() as stack:
            from bowerbird.workspace.landing.undo import undo

            if state.workspace is None:
                raise InvalidWorkspace("the branch of this landing has no workspace")
            record, target = undo(folder, state.workspace, request, stack, self.checkpoint, told)
            state.account.forget()
        return self.made_one(target, record, request.commit)

    # ------------------------------------------------------------ after a crash

    def recover(self, branch: str | None = None, *, everywhere: bool = False) -> "list[LandingRecord]":
        """Finish or discard what died half-way; returns what was finished. Nothing that it meets is raised.

        A record that cannot be read, or a landing that can be brought neither to its end nor back now,
        is left as it is, logged, and stops nothing else; the next call tries again.

        Args:
            branch: look at this branch only. everywhere: at the branches of every workspace.
        """
        return self._unfinished.finish(branch, everywhere=everywhere)

    def fix(self, landing: str, how: "Fix") -> Landing:
        """Lead a landing that needs attention, or never came to its end, out of it.

        Args:
            how: `retry` goes on where it stopped; `take_back` brings its files back to what they were;
                `give_up` leaves every file as it is now and ends the landing.

        Returns:
            The landing as it is then: `done`, `undone`, `given_up`, or still `needs_attention`.

        Raises:
            InvalidArgument: it needs no attention.
        """
        folder = self.find(landing).folder
        with said_plainly(), held(self._registry, folder) as (stack, tree):
            from bowerbird.workspace.landing.fix import fix

            record = folder.record()
            if record.state not in ("applying", "needs_attention"):
                raise InvalidArgument(f"landing {landing} is {record.state}: there is nothing to fix")
            done = fix(tree, folder, how, settle_of(folder, stack, tree), stack)
        return self.of(folder, done)

    # ------------------------------------------------------------ what is kept

    def forget_old(self) -> list[str]:
        """Remove the oldest landings beyond 100 or 2 GiB, never the last 10; return their ids.

        The last 20 that changed memory or skills stay beyond the 100, as their versions.

        For one caller now and then, never for a landing: it looks at every branch. Two at once, in
        whatever processes, remove each landing once.

        Raises:
            BranchBusy: landings held the workspace all the time; the next call does it.
        """
        from bowerbird.workspace.landing.lock import workspace_lock

        self.made = 0
        root = self._registry.root
        old = self._beyond()
        if root is None or not old:
            return []
        removed: list[str] = []
        hidden: list[Path] = []
        with Beneath(root) as tree, workspace_lock(tree, self._registry.data_dir):
            for folder in old:
                # Out of sight first: whoever reads it at this moment finds all of it, or nothing.
                gone = folder.path.with_name(REMOVED + folder.path.name)
                with contextlib.suppress(FileNotFoundError):
                    folder.path.rename(gone)
                    removed.append(folder.path.name)
                    hidden.append(gone)
        left = [path for folder in old for path in folder.path.parent.glob(f"{REMOVED}*")]
        for gone in {*hidden, *left}:  # also what somebody was killed over
            shutil.rmtree(gone, ignore_errors=True)
        return removed

    def _beyond(self) -> "list[LandingFolder]":
        from bowerbird.workspace.landing.record import LandingFolder

        kept_bytes, found, versions = 0, list[LandingFolder](), Counter[str]()
        for age, landing in enumerate(reversed(self.all())):
            try:
                kept_bytes += landing.folder.bytes_used()
            except FileNotFoundError:
                continue  # removed meanwhile
            changed = [top for top in VERSIONED if changed_below(landing.state, landing.entries, top)]
            new = [top for top in changed if versions[top] < KEPT_VERSIONS]
            versions.update(new)
            beyond = (age >= KEPT_LANDINGS and not new) or kept_bytes > KEPT_BYTES
            if age >= ALWAYS_KEPT and beyond and landing.state in ENDED:
                found.append(landing.folder)
        return found

    def _readable(self) -> "Iterator[tuple[LandingFolder, LandingRecord]]":
        for folder in all_folders(self._registry):
            with contextlib.suppress(WorkspaceError):  # named when it is asked for by id
                if folder.started:
                    yield folder, folder.record()


def _is_id(landing: str) -> bool:
    return "/" not in landing and landing not in ("", ".", "..")
