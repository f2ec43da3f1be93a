"""What all handles on one branch share: its directory, stack, journal, lock, order.

Here: `BranchState`, made by creating or opening a branch directory, and the one gate to
changing it. Not here: what the calls do (`files/file_branch.py`, `branch.py`), which branches exist.
"""

import contextlib
import shutil
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bowerbird.core.errors import BranchBusy, Hidden, InvalidWorkspace, NotFound, ReadOnly
from bowerbird.workspace.find.searchable import SearchMemory
from bowerbird.workspace.history.branch_journal import Journal, Step, Via
from bowerbird.workspace.history.steps import StepStore
from bowerbird.workspace.processes.copy_use import CopyUse, taken_back
from bowerbird.workspace.processes.mirror import Mirror, tree_of
from bowerbird.workspace.registry.frozen_refs import FrozenRefs
from bowerbird.workspace.registry.limits import ChangeAccount, WorkspaceLimits
from bowerbird.workspace.registry.lock import WriterLock
from bowerbird.workspace.registry.path_order import PathOrder
from bowerbird.workspace.registry.removal import UNSEEN
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.hiding import hidden_by
from bowerbird.workspace.tree.layers import Pile, Storage
from bowerbird.workspace.tree.manifest import Manifest, ManifestFile
from bowerbird.workspace.tree.paths import HIDDEN, shown_path
from bowerbird.workspace.tree.reserved import is_reserved
from bowerbird.workspace.tree.stack import Stack


class BranchState:
    """One branch, opened.

    Args:
        directory: `…/branches/<id>`, with a manifest (see `create`).
        workspace: the workspace's directory, resolved; None for a branch of nothing.
        masked: virtual path of the data directory if it lies in the workspace.
        lower: frozen layers of the parents.
        storage: what the data directory's filesystem can hold.
        limits: see `WorkspaceLimits`.
        memory: what searches of this workspace know already, to share between branches.
    """

    def __init__(
        self,
        directory: Path,
        *,
        workspace: Path | None,
        masked: str | None,
        lower: Pile,
        storage: Storage,
        limits: WorkspaceLimits,
        memory: SearchMemory | None = None,
    ) -> None:
        self.directory = directory
        self.workspace = workspace
        self.limits = limits
        self.storage = storage
        self.manifest = ManifestFile(directory)
        hide = self.manifest.load().hide
        self.ground = Ground(
            workspace, masked=masked, hidden=hidden_by(hide), copy=tree_of(directory / "copy")
        )
        self.stack = Stack(directory, self.manifest, self.ground, lower, storage)
        self.journal = Journal(directory / "journal.jsonl")
        self.steps = StepStore(directory / "steps", self.stack)
        self.git_refs = FrozenRefs(self.stack)
        self.lock = WriterLock(directory / "lock")
        self.order = PathOrder()
        self.memory = memory or SearchMemory()
        self.account = ChangeAccount(limits, self._count)
        self.mirror: Mirror | None = None  # set while processes work on a copy of the branch
        self.rollbacks = 0  # since it was opened
        self._is_trashed = presence.exists(directory / "discarded_at")  # opened for what landed from it
        self._swept = False
        self._looked = False  # for a copy that a killed process left in use
        self._closing = threading.Lock()
        self._closed = False

    @classmethod
    def create(
        cls,
        directory: Path,
        manifest: Manifest,
        *,
        workspace: Path | None,
        masked: str | None,
        lower: Pile,
        storage: Storage,
        limits: WorkspaceLimits,
        memory: SearchMemory | None = None,
    ) -> "BranchState":
        """Make the directory of a new branch and open it."""
        hidden_by(manifest.hide)  # a malformed glob makes no branch
        unseen = directory.with_name(f"{UNSEEN}{directory.name}")
        unseen.mkdir(mode=0o700, parents=True)
        try:
            ManifestFile(unseen).save(manifest)
            unseen.rename(directory)  # whole: whoever lists branches takes half a record for a broken one
            made = cls(
                directory, workspace=workspace, masked=masked, lower=lower, storage=storage, limits=limits,
                memory=memory,
            )  # fmt: skip
        except OSError as error:  # a full disk: what is half made would be an empty branch for ever
            is_taken = not presence.exists(unseen) and not presence.exists(directory)
            for left in (unseen, directory):
                shutil.rmtree(left, ignore_errors=True)
            if is_taken:
                raise NotFound(f"branch {directory.name} was removed while it was being made") from error
            raise
        if made._is_trashed:  # else its maker would work in the trash
            made.close()
            raise NotFound(f"branch {directory.name} was discarded while it was being made")
        return made

    @property
    def id(self) -> str:
        """The branch's id, `b_…`."""
        return self.directory.name

    @contextmanager
    def writing(self) -> Generator[Stack]:
        """Hold the right to change the branch; gives its stack, up to date.

        Raises:
            BranchBusy: another process writes it. NotFound: it is gone, see `alive`.
        """
        self.alive()
        with self.lock.hold():
            if self.lock.behind:  # what is remembered here may be older than what another process wrote
                self._check_kept()
                self.account.forget()
                self.stack.wrote_elsewhere()
                self.git_refs.forget()
                self._swept = self.lock.behind = False
            self.stack.refresh()
            if not self._swept:
                self._swept = self._looked = True
                self.stack.sweep()
                self._pick_up()
            mirror = self.mirror  # the last command may end while this thread changes the branch
            if mirror is not None:
                mirror.take_back(self.stack)
            with self.stack.changing():
                yield self.stack
            if mirror is not None:
                mirror.bring_in(self.stack, beside=True)

    def _pick_up(self) -> None:
        """Take in what a killed process's commands left in their copy, and back what a kill has cut."""
        for left in self.steps.under_way():
            self.steps.rollback(left)
            self.account.forget()
        use = CopyUse(self.directory / "copy")
        if self.mirror is None and use.was_killed:
            mirror = Mirror(self.directory / "copy")
            steps = taken_back(self.stack, mirror)[1] if mirror.exists else []
            if steps:
                self.account.forget()
                self.record(steps, via="process")
            use.end()

    def reading(self) -> Stack:
        """Return the stack with what other processes sealed or saved meanwhile."""
        self.alive()
        if not self._looked:
            self._looked = True
            if CopyUse(self.directory / "copy").was_killed or self.steps.under_way():
                with contextlib.suppress(BranchBusy), self.writing():  # busy: its process lives
                    pass
        mirror = self.mirror
        if mirror is not None:
            with self.lock.hold():  # what processes changed in their copy comes in first
                self.stack.refresh()
                mirror.take_back(self.stack)
                return self.stack
        # While a thread of ours changes the branch, nobody else does, and it says itself what it made.
        if self.lock.is_quiet():
            self.stack.refresh()
        return self.stack

    def check_writable(self, path: str, *, own: bool = False) -> None:
        """Refuse a change of `path` that the view does not allow; `own`: a record of Bowerbird's.

        Raises:
            Hidden: `hide` names it. ReadOnly: Bowerbird's own data, or a read-only mount.
            LimitExceeded: deeper than `workspace.depth`.
        """
        if self.ground.is_masked(path) or (not own and is_reserved(path)):
            raise ReadOnly(f"{shown_path(path)} is reserved for Bowerbird's own data", path)
        if self.ground.hidden(path):
            raise Hidden(f"{shown_path(path)} {HIDDEN}, and cannot be written here", path)
        self.limits.check_depth(path)
        # A vanished workspace stops no writing: the branch's own changes stay usable.
        there = self.workspace is not None and presence.is_directory(self.workspace)
        if there and self.ground.is_read_only(path):
            raise ReadOnly(f"{shown_path(path)} lies on a read-only mount", path)

    def rollback_step(self, call: str, turn: str | None = None) -> list[str]:
        """Put back what stood at every path that a call's file tools changed."""
        with self.writing() as stack:
            paths = self.steps.rollback(call)
            self.went_back()
            done: list[Step] = []
            for path in paths:
                entry = stack.lookup(path)
                if entry is None:
                    done.append(Step("delete", path))
                elif entry.kind == "dir":
                    done.append(Step("mkdir", path))
                else:
                    done.append(Step("write", path, "modify", entry.size))
            self.record(done, turn=turn, call=call, via="restore")
            return paths

    def went_back(self) -> None:
        """Note that the view was taken back: sizes are counted anew, users of a later state can tell."""
        self.account.forget()
        self.git_refs.forget()
        self.rollbacks += 1

    @contextmanager
    def recorded(
        self, steps: Sequence[Step], *, turn: str | None = None, call: str | None = None, via: Via = "tool"
    ) -> Generator[None]:
        """Record steps that are taken inside: what cannot be recorded is not done, and the other way round.

        First the record: taking it back needs no room on the disk, taking a change back may.
        """
        private = self.stack.private_paths()
        before = self.journal.size()
        self.journal.append([s for s in steps if s.path not in private], turn=turn, call=call, via=via)
        try:
            yield
        except BaseException:
            self.journal.take_back(before)
            raise
        self.git_refs.keep(step.path for step in steps)

    def record(
        self, steps: Sequence[Step], *, turn: str | None = None, call: str | None = None, via: Via = "tool"
    ) -> bool:
        """Add to the journal; private paths are left out.

        Returns:
            True when refs of a repository were kept with the change.
        """
        private = self.stack.private_paths()
        self.journal.append([s for s in steps if s.path not in private], turn=turn, call=call, via=via)
        return self.git_refs.keep(step.path for step in steps)

    def _count(self) -> tuple[int, int]:
        changed = self.stack.changed()
        return len(changed), sum(e.size for e in changed.values() if e is not None and e.kind == "file")

    def alive(self) -> "BranchState":
        """Return this state, opened again if it was closed: handles outlive their workspace.

        Raises:
            NotFound: the branch was discarded, or its data directory is gone.
            InvalidWorkspace: it was bound to another directory meanwhile.
        """
        if self._closed:
            with self._closing:
                if self._closed:
                    self._check_there()
                    self.stack.reload()
                    self._swept = self._looked = self._closed = False
        return self

    def _check_there(self) -> None:
        self._check_kept()
        bound = self.manifest.load().workspace
        if bound != (None if self.workspace is None else str(self.workspace)):
            raise InvalidWorkspace(f"branch {self.id} was bound to {bound} meanwhile; open it again")

    def _check_kept(self) -> None:
        if not presence.is_directory(self.directory):
            raise NotFound(
                f"branch {self.id} is gone: {self.directory} was removed; a temporary data directory ends "
                "when its Agent or Workspace is closed, data_dir=… keeps branches"
            )
        where = f"Workspace({str(self.workspace)!r}, data_dir={str(self.directory.parent.parent)!r})"
        if not self._is_trashed and presence.exists(self.directory / "discarded_at"):
            raise NotFound(
                f"branch {self.id} was discarded; {where}.restore_discarded({self.id!r}) brings it back"
            )

    def close(self) -> None:
        """Close files and give the writer's lock back; what uses the branch afterwards opens it again."""
        with self._closing:
            self.lock.release()
            self.journal.close()
            self.stack.close()
            self._closed = True  # last, and under the guard: nobody opens it again half-way
