"""Which branch belongs to which session, and its one open handle in this process.

Here: making, opening, forking and discarding branches for sessions. Not here: what a branch
can do (`workspace`), rows of sessions.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bowerbird.core.errors import BowerbirdError, BranchBusy, InvalidWorkspace, NotFound
from bowerbird.core.processes import descriptors
from bowerbird.core.threads import in_thread, to_thread

if TYPE_CHECKING:
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.workspace import Branch, FlagRules, HistoryRules, Workspace, WorkspaceLimits

LONGEST_WAIT_S = 120.0  # of a turn whose branch another process has, say for a background command

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Sandboxes(Protocol):
    """What runs on branches, as far as a branch's end concerns it."""

    async def release(self, branch_id: str) -> None:
        """End what runs on a branch."""
        ...

    async def background_over(self, branch_id: str) -> None:
        """Raise BranchBusy while a background command writes a branch."""
        ...

    def is_busy(self, branch_id: str) -> bool:
        """Whether a command, a background one too, runs on a branch."""
        ...

    async def close(self) -> None:
        """End what runs on any."""
        ...


class Branches:
    """Branches of one data directory; shared by the doors of a process, closed with it.

    Args:
        data_dir: where branches are kept.
        hide: globs hidden in every workspace (`workspace.hide`).
        limits: sizes of branches; the defaults when None.
        rules: flags and caches of landings; the built-in ones when None. git: what landings do with commits.
        sandboxes: ended before the branches they run on; closed with them.
        has_work: whether a turn of a session, by its id, is open; with it, branches that have rested longest
            are closed when this process is short of descriptors. They open again when they are used.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        hide: tuple[str, ...] = (),
        limits: "WorkspaceLimits | None" = None,
        rules: "FlagRules | None" = None,
        git: "HistoryRules | None" = None,
        sandboxes: Sandboxes | None = None,
        has_work: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._sandboxes = sandboxes
        self._data_dir = data_dir
        self._hide = hide
        self._limits = limits
        self._rules = rules
        self._git = git
        self._workspaces: dict[str | None, Workspace] = {}
        self._branches: dict[str, Branch] = {}
        self._has_work = has_work
        self._used: OrderedDict[str, SessionRow] = OrderedDict()  # by branch, the longest unused first
        self._relieving = asyncio.Lock()
        self._opening = asyncio.Lock()
        self._waits: dict[str, float] = {}  # since when, by turn

    async def create(
        self, workspace: str | None, *, name: str | None, policy: str, hide: tuple[str, ...]
    ) -> "Branch":
        """Make a branch of a directory (None: of nothing) and keep it open.

        Raises:
            InvalidWorkspace: the directory is missing or no directory.
        """
        await self._make_room()
        async with self._opening:
            found = await to_thread(self._workspace, workspace)
            branch = await to_thread(found.branch, name, policy=policy, hide=hide)
        self._branches[branch.id] = branch
        return branch

    async def remove(self, branch: "Branch") -> None:
        """Remove a branch that no session came to have, for good."""
        self._branches.pop(branch.id, None)
        await in_thread(branch.remove)

    async def of(self, session: "SessionRow") -> "Branch":
        """Return the open branch of a session.

        Raises:
            InvalidWorkspace: the session has no branch (it was imported or never had one).
            BranchBusy: another process writes it.
        """
        if session.branch_id is None:
            raise InvalidWorkspace(f"session {session.thread_id} has no branch")
        self._used[session.branch_id] = session
        self._used.move_to_end(session.branch_id)
        await self._make_room(session.branch_id)
        async with self._opening:
            branch = self._branches.get(session.branch_id)
            if branch is None:
                workspace = await to_thread(self._workspace, session.workspace)
                branch = await to_thread(workspace.open, session.branch_id)
                self._branches[session.branch_id] = branch
        return branch

    async def take_over(self, session: "SessionRow") -> bool:
        """Take a session's branch from a stopped process, whose lease the caller has by now.

        Returns:
            Whether one had it.
        """
        if session.branch_id is None:
            return False
        async with self._opening:
            workspace = await to_thread(self._workspace, session.workspace)
        taken = await in_thread(_take_over, workspace, session.branch_id)
        if taken:
            _log.warning("branch %s was taken from a process that is stopped", session.branch_id)
        return taken

    def may_wait(self, turn_id: str) -> bool:
        """Whether a turn may go on waiting for its branch, which another process has, instead of failing."""
        since = self._waits.setdefault(turn_id, time.monotonic())
        if time.monotonic() - since < LONGEST_WAIT_S:
            return True
        self.waited(turn_id)
        return False

    def waited(self, turn_id: str) -> None:
        """Note that a turn has its branch, or waits for it no longer."""
        self._waits.pop(turn_id, None)

    async def workspace(self, path: str | None) -> "Workspace":
        """Return the open workspace of a directory, for its landings and files; do not close it.

        Raises:
            InvalidWorkspace: the directory is missing or no directory.
        """
        async with self._opening:
            return await to_thread(self._workspace, path)

    async def release(self, session: "SessionRow", is_idle: Callable[[], Awaitable[bool]]) -> bool:
        """End what runs on a session's branch and close its handle; the branch stays as it is.

        Args:
            is_idle: asked while nobody can open the branch; a turn that begins afterwards opens it anew.

        Returns:
            Whether it was idle, and is released.
        """
        if session.branch_id is None:
            return True
        async with self._opening:
            if not await is_idle():
                return False
            if self._sandboxes is not None:
                await self._sandboxes.release(session.branch_id)
            self._used.pop(session.branch_id, None)
            if self._branches.pop(session.branch_id, None) is not None:
                workspace = await to_thread(self._workspace, session.workspace)
                await to_thread(workspace.forget, session.branch_id)
            return True

    async def _make_room(self, wanted: str | None = None) -> None:
        """Close what rests while descriptors are short, the longest unused first; all of it may be in use.

        Args:
            wanted: the branch that is about to be used.
        """
        if self._has_work is None or not descriptors.is_low():
            return
        async with self._relieving:
            for branch_id, session in list(self._used.items()):
                if not descriptors.is_low():
                    return
                if branch_id != wanted:
                    await self._rest(branch_id, session)

    async def _rest(self, branch_id: str, session: "SessionRow") -> None:
        async def is_idle() -> bool:
            assert self._has_work is not None, "asked before"
            if self._sandboxes is not None and self._sandboxes.is_busy(branch_id):
                return False
            return not await self._has_work(session.thread_id)

        try:
            await self.release(session, is_idle)
        except (BowerbirdError, OSError) as error:  # whoever wants room does not suffer for another's branch
            _log.warning("branch %s was not closed to make room: %s", branch_id, error)

    async def quiet(self, branch_id: str) -> None:
        """End what runs on a branch, if anything does; its handle stays open."""
        if self._sandboxes is not None:
            await self._sandboxes.release(branch_id)

    async def require_quiet(self, branch_id: str) -> None:
        """Raise BranchBusy while a background command writes a branch, which must not land half written."""
        if self._sandboxes is not None:
            await self._sandboxes.background_over(branch_id)

    async def fork(
        self,
        parent: "SessionRow",
        snapshot: str | None,
        name: str | None,
        branch_id: str | None = None,
        *,
        carry: bool = False,
    ) -> "Branch":
        """Return a new branch that stands on a snapshot of the parent's.

        Args:
            snapshot: None = the present state.
            branch_id: the branch that has the snapshot, when the session's own was discarded since;
                it is taken out of the trash for a moment.
            carry: what was pending in the parent is pending in the child.

        Raises:
            NotFound: that branch is gone for good.
        """
        if branch_id in (None, parent.branch_id):
            branch = await self.of(parent)
            child = await to_thread(branch.fork, name, snapshot=snapshot, carry=carry)
        else:
            workspace = await to_thread(self._workspace, parent.workspace)
            child = await in_thread(_fork_of_discarded, workspace, branch_id, name, snapshot, carry)
        self._branches[child.id] = child
        return child

    async def discard(self, session: "SessionRow", *, keep: bool = True) -> None:
        """Move a session's branch to the trash, if it has one; `keep=False` removes it for good."""
        if session.branch_id is None:
            return
        try:
            branch = await self.of(session)
        except InvalidWorkspace:  # its directory is gone; the branch is kept elsewhere, and goes all the same
            from bowerbird.workspace.registry.discarded import note_discarded

            await in_thread(note_discarded, self._data_dir / "branches" / session.branch_id)
            return
        if self._sandboxes is not None:
            await self._sandboxes.release(branch.id)
        await in_thread(partial(branch.discard, keep=keep))
        self._branches.pop(session.branch_id, None)
        self._used.pop(session.branch_id, None)

    async def restore(self, session: "SessionRow") -> None:
        """Take a session's branch out of the trash."""
        if session.branch_id is not None:
            workspace = await to_thread(self._workspace, session.workspace)
            await to_thread(workspace.restore_discarded, session.branch_id)

    async def trashed(self) -> dict[str, str]:
        """Return the branches in the trash, and when they went there."""
        workspace = await self.workspace(None)
        return await in_thread(workspace.trashed)

    async def empty_trash(self, days: float, keep: Collection[str], now_s: float | None = None) -> int:
        """Free the disk of branches that were discarded more than `days` ago; returns how many.

        Args:
            keep: those that a session can still be restored with. now_s: the clock's when None.
        """
        workspace = await self.workspace(None)
        return len(await in_thread(partial(workspace.empty_trash, days, keep, now_s)))

    async def remove_left(self) -> int:
        """Remove what processes that died had forked for a check; returns how many."""
        workspace = await self.workspace(None)
        return len(await in_thread(workspace.remove_left))

    async def forget_snapshots(self, branch_id: str, turns: Collection[str], keep: Collection[str]) -> int:
        """Free the disk that only snapshots of these turns need; returns how many went.

        A branch that another process writes, or that is gone, is left for the next pass.
        """
        workspace = await self.workspace(None)
        try:
            return await in_thread(workspace.forget_snapshots, branch_id, turns, keep)
        except (BranchBusy, NotFound):
            return 0

    async def finish_landings(self) -> int:
        """Finish what died half-way into any workspace; returns how many.

        At the start before anybody looks, and once a while: an error that kept a landing from its end, or
        a command that was killed in the middle of one, is over by then.
        """
        workspace = await self.workspace(None)
        return len(await in_thread(workspace.finish_landings))

    async def forget_landings(self) -> int:
        """Remove old landings of every open workspace that something landed in; returns how many."""
        async with self._opening:
            open_now = [workspace for workspace in self._workspaces.values() if workspace.has_landed]
        return sum([len(await in_thread(workspace.forget_landings)) for workspace in open_now])

    async def look_after(self) -> None:
        """Do what belongs to every minute: unfinished landings, old ones."""
        await self.finish_landings()
        await self.forget_landings()

    async def aclose(self) -> None:
        """End what runs on branches, then close every handle and workspace."""
        if self._sandboxes is not None:
            await self._sandboxes.close()
        self._branches = {}
        self._used.clear()
        workspaces, self._workspaces = list(self._workspaces.values()), {}
        await to_thread(_close_all, workspaces)

    def _workspace(self, path: str | None) -> "Workspace":
        found = self._workspaces.get(path)
        if found is None:
            from bowerbird.workspace import Workspace

            found = Workspace(
                path,
                data_dir=self._data_dir,
                hide=self._hide,
                limits=self._limits,
                rules=self._rules,
                git=self._git,
                trash_days=None,  # sessions say what can still be restored (`retention.py`)
            )
            self._workspaces[path] = found
        return found


def _fork_of_discarded(
    workspace: "Workspace", branch_id: str, name: str | None, snapshot: str | None, carry: bool
) -> "Branch":
    # What stands on a discarded branch keeps it from being removed, so it can go back at once.
    old = workspace.restore_discarded(branch_id)
    try:
        return old.fork(name, snapshot=snapshot, carry=carry)
    finally:
        old.discard()


def _take_over(workspace: "Workspace", branch_id: str) -> bool:
    from bowerbird.sessions.branches.takeover import take_over

    return take_over(workspace.lock_of(branch_id))


def _close_all(workspaces: list[Any]) -> None:
    for workspace in workspaces:  # each closes its branches
        workspace.close()
