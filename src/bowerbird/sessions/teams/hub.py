"""What the parts of a process's teams share: who is told of a change, forks and merges of phases.

Here: bells, live events, waking leads, a phase's fork and what becomes of its changes. Not here: one
teammate's life (`teammate.py`), the tools' calls (`tool_calls.py`), rows and rules (`bowerbird.teams`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from bowerbird.boards.boards import BoardKey, Boards, board_of
from bowerbird.core.errors import BranchBusy, NotFound, SessionError, UnknownSession, WorkspaceError
from bowerbird.core.events import Notice, TeammateStatus
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.dispatch.dispatcher import Signal, TurnRef
from bowerbird.sessions.live.hub import Live, Published
from bowerbird.sessions.teams.readable_copies import TeamCopies
from bowerbird.sessions.teams.wake_lead import lead_turn
from bowerbird.store.rows.sessions import SessionRow, find_session, get_session
from bowerbird.store.rows.team_mail import MessageRow, messages_of, newest_message, unread
from bowerbird.store.rows.teams import MemberRow, PhaseRow, members_of, phases_of, update_phase
from bowerbird.store.rows.turns import TurnRow, turns_of
from bowerbird.store.store import Store
from bowerbird.teams.rules import LEAD, TeamRules

if TYPE_CHECKING:
    from bowerbird.workspace import Branch, MergeResult

BUSY_S = 0.25  # between tries while another process writes a branch
BUSY_TRIES = 120
NOTICE_CHARS = 500
MAIL = "team"  # kind of the notices that mail came

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Drives(Protocol):
    """What teams need of the session service."""

    async def drive(self, ref: TurnRef) -> None:
        """Drive a turn in this process until it stops, or return at once where another one does."""
        ...

    async def tell(self, ref: TurnRef, signal: Signal) -> None:
        """Let a signal reach the driver of a turn."""
        ...

    async def branch(self, thread_id: str) -> "Branch":
        """Return a session's open branch."""
        ...

    async def note_changes(self, thread_id: str) -> int:
        """Count the changed files of a session's branch anew."""
        ...


class _Told(msgspec.Struct):
    """How far the viewers of a team were told."""

    newest: int
    statuses: dict[int, str] = msgspec.field(default_factory=dict[int, str])


class TeamHub:
    """Shared by the parts of a process's teams; belongs to its event loop.

    Args:
        drives: the session service. boards: task boards of the process.
        holder: the executor that this process is. wake: drives a queued turn.
    """

    def __init__(
        self,
        store: Store,
        branches: Branches,
        drives: Drives,
        live: Live,
        *,
        rules: TeamRules,
        boards: Boards,
        copies: TeamCopies,
        holder: str,
        wake: Callable[[TurnRow], Awaitable[object]],
    ) -> None:
        self.store = store
        self.branches = branches
        self.drives = drives
        self.live = live
        self.rules = rules
        self.boards = boards
        self.copies = copies
        self.holder = holder
        self.stopping = False
        self.asked = asyncio.Event()  # a request may have been made: whoever expires them looks again
        self.awaiting: set[str] = set()  # threads of teammates whose plan waits for an answer
        self._wake = wake
        self._bells: dict[str, asyncio.Event] = {}
        self._told: dict[str, _Told] = {}
        self._hands: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # ------------------------------------------------------------ telling

    def bell(self, thread_id: str) -> asyncio.Event:
        """Return what is set when there is news for a teammate."""
        return self._bells.setdefault(thread_id, asyncio.Event())

    def ring(self, thread_id: str) -> None:
        """Say that there is news for a teammate; nothing happens where nobody waits."""
        found = self._bells.get(thread_id)
        if found is not None:
            found.set()

    def ring_all(self) -> None:
        """Have every teammate of this process look around."""
        for found in self._bells.values():
            found.set()

    def forget(self, thread_id: str) -> None:
        """Drop what was kept for a teammate that ended."""
        self._bells.pop(thread_id, None)
        self.awaiting.discard(thread_id)

    async def know(self, lead: str) -> None:
        """Begin to tell the viewers of a team from now on, if this was not done."""
        if lead not in self._told:
            rows, newest = await self.store.read(lambda c: (members_of(c, lead), newest_message(c, lead)))
            self._told.setdefault(lead, _Told(newest, {row.number: row.status for row in rows}))

    def forget_team(self, lead: str) -> None:
        """Drop what was kept for a team whose session is deleted."""
        self._told.pop(lead, None)

    def has_team(self, lead: str) -> bool:
        """Whether this process has had to do with a team of a session."""
        return lead in self._told

    async def announce(self, lead: str) -> None:
        """Tell everybody concerned what was committed since the last time: viewers, teammates, the lead."""
        self.asked.set()
        told = self._told.setdefault(lead, _Told(0))
        rows, fresh = await self.store.read(
            lambda c: (members_of(c, lead), messages_of(c, lead, told.newest))
        )
        for row in rows:
            if told.statuses.get(row.number) != row.status:
                told.statuses[row.number] = row.status
                self.publish(lead, TeammateStatus(row.name, row.role, row.status))
        fresh = [message for message in fresh if message.n > told.newest]
        told.newest = max([told.newest, *(message.n for message in fresh)])
        for message in fresh:
            self.ring(message.reader)
            # Who watches the reader sees it, and a process that keeps the reader going elsewhere hears of it.
            self.publish(message.reader, Notice(MAIL, _said(message)))
        await self.copy(lead)
        if any(message.box == LEAD for message in fresh):
            await self.wake_lead(lead)

    def hands(self, lead: str) -> asyncio.Lock:
        """Return what is held by whoever uses, or closes, the forks of a team beside their turns."""
        found = self._hands.get(lead)
        if found is None:
            found = self._hands[lead] = asyncio.Lock()
        return found

    async def copy(self, lead: str) -> None:
        """Bring a team's readable copies up to date."""
        async with self.hands(lead):
            await self.copies.refresh(lead)

    def publish(self, thread_id: str, event: Notice | TeammateStatus) -> None:
        """Show an event to the viewers of a session."""
        self.live.publish(Published(thread_id, None, None, event))

    async def wake_lead(self, lead: str) -> None:
        """Start a turn of a lead that is idle and has mail, where settings and limits allow it."""
        if self.stopping:
            return
        turn = await self.store.write(lambda c: lead_turn(c, self.rules, lead))
        if turn is not None:
            try:
                await self._wake(turn)
            except SessionError as error:  # it stays queued: the next sweep finds it
                _log.info("session %s was not woken at once: %s", lead, error)

    # ------------------------------------------------------------ forks and merges

    async def session(self, thread_id: str) -> SessionRow:
        """Return a session's row; raises UnknownSession."""
        return await self.store.read(lambda c: get_session(c, thread_id))

    async def fork(self, lead: str, name: str) -> "Branch":
        """Return a fork of the lead's branch as it is now."""
        await self.drives.branch(lead)  # an imported session has its own from now on
        row = await self.session(lead)
        fork = await self._patient(lambda: self.branches.fork(row, None, name))
        await to_thread(fork.set_policy, "review")  # only a merge takes anything from it
        return fork

    async def drop(self, lead: str, fork: str) -> None:
        """Free a fork that nobody needs."""
        try:
            row = msgspec.structs.replace(await self.session(lead), branch_id=fork)
            async with self.hands(lead):
                await self.branches.discard(row, keep=False)
        except (NotFound, UnknownSession):
            return
        except WorkspaceError as error:
            _log.info("fork %s of session %s stays: %s", fork, lead, error)

    async def merge(self, lead: str, phase: PhaseRow) -> "MergeResult":
        """Merge a phase's changes into the lead's branch.

        Raises:
            WorkspaceError: it cannot be merged, say because the lead's branch is another one by now.
        """

        async def once() -> "MergeResult":
            fork = await self.fork_of(lead, phase.fork)
            branch = (await self.drives.branch(lead)).bound(turn=phase.turn_id)
            return await in_thread(partial(branch.merge, fork))

        async with self.hands(lead):
            return await self._patient(once)

    async def rest(self, fork: str) -> None:
        """End what runs on a fork; its handle stays open."""
        await self.branches.quiet(fork)

    async def let_go(self, row: MemberRow) -> None:
        """Close the fork of a teammate that has ended, unless a handle for `merge_subagent` names it."""

        async def is_idle() -> bool:
            phases = await self.store.read(lambda c: phases_of(c, row.lead, row.number))
            return not phases or phases[-1].state != "kept"

        try:
            async with self.hands(row.lead):
                await self.branches.release(await self.session(row.thread_id), is_idle)
        except (UnknownSession, WorkspaceError) as error:
            _log.info("the fork of %s stays open: %s", row.thread_id, error)

    async def fork_of(self, lead: str, fork: str) -> "Branch":
        """Return the open branch of a phase."""
        row = msgspec.structs.replace(await self.session(lead), branch_id=fork)
        return await self.branches.of(row)

    async def merge_again(self, lead: str, since: str) -> None:
        """Merge anew what phases brought into a branch that was taken back meanwhile.

        Merging what is there already changes nothing.

        Args:
            since: only phases that ended later.
        """
        phases = await self.store.read(lambda c: phases_of(c, lead))
        for phase in phases:
            if phase.state == "merged" and phase.ended_at is not None and phase.ended_at >= since:
                try:
                    await self.merge(lead, phase)
                except (NotFound, WorkspaceError) as error:
                    _log.warning("phase %s of session %s: %s", phase.turn_id, lead, error)

    async def tidy(self, row: MemberRow, keep: str) -> None:
        """Free a teammate's forks that are merged and on which nothing can fall back.

        Args:
            keep: the fork it works on.
        """

        def free(connection: Any) -> list[PhaseRow]:
            open_turn = next((t for t in turns_of(connection, row.lead) if not t.is_ended), None)
            began = None if open_turn is None else open_turn.started_at
            phases = phases_of(connection, row.lead, row.number)
            used = {p.fork for p in phases if p.state not in ("merged", "gone")} | {keep}
            old = [p for p in phases if p.state == "merged" and p.fork not in used]
            return [p for p in old if began is None or (p.ended_at or "") < began]

        for phase in await self.store.read(free):
            await self.drop(row.lead, phase.fork)
            await self.store.write(partial(update_phase, row=phase, state="gone"))

    async def board(self, lead: str) -> BoardKey:
        """Return the board that a team takes tasks from."""
        return board_of(await self.session(lead))

    async def has_mail(self, thread_id: str) -> bool:
        """Whether somebody has unread messages."""
        return bool(await self.store.read(lambda c: unread(c, thread_id)))

    async def exists(self, thread_id: str) -> bool:
        """Whether a session is there and not deleted."""
        return await self.store.read(lambda c: find_session(c, thread_id)) is not None

    async def _patient(self, work: Callable[[], Awaitable[T]]) -> T:
        for _ in range(BUSY_TRIES):
            try:
                return await work()
            except BranchBusy:
                if self.stopping:
                    raise
                await asyncio.sleep(BUSY_S)
        return await work()


def _said(message: MessageRow) -> str:
    return f"{message.sender}: {message.content}"[:NOTICE_CHARS]
