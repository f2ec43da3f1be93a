"""How an attempt stops: the branch frozen, the policy's landing, the last commit, the log (SE-35, 54).

Here: that order. Not here: what the transactions write (`end_transaction.py`), when a turn stops.

A crash between freezing and the commit is harmless: the next attempt finds the frozen layer as
the newest state and ends the turn with it. The policy lands before the commit, so that files are
in place when the end is shown; landed parts are the branch's new base and do not land twice.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, LandingRefused
from bowerbird.core.events import ApprovalRequest, Notice
from bowerbird.core.threads import ThreadDefect, in_thread
from bowerbird.sessions.delivery.messages import (
    BY_PARTS,
    answer_parcels,
    error_parcels,
    has_address,
    request_parcels,
    words_at_end,
)
from bowerbird.sessions.dispatch.lease import Lease
from bowerbird.sessions.journal.audit_log import AuditLine
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.live.hub import Published, SessionEvent, TurnMark
from bowerbird.sessions.review import land_by_policy, outcome_of
from bowerbird.sessions.turn.background_notices import DRIVEN_BY_OTHERS
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.end_transaction import (
    Ended,
    Ending,
    Frozen,
    Pause,
    Paused,
    end_turn,
    leave_turn,
    pause_turn,
)
from bowerbird.store.journal.journal import Append, Record
from bowerbird.store.journal.outcomes import OWN_AGENT, note_work, settle
from bowerbird.store.rows.outbox import OutboxRow, insert_parcels
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.turns import TurnRow

if TYPE_CHECKING:
    from bowerbird.workspace import Branch, Landing
    from bowerbird.workspace.registry.lock import Pin

DRIVES = "drives a turn on it"
WAIT_S = 2.0  # for another process that works on the branch: most are at their end

_log = logging.getLogger(__name__)


class LastStep(msgspec.Struct, frozen=True):
    """A turn's last step, recorded together with the end.

    Attributes:
        append: prepared (`Store.prepared`). change: what else belongs to its transaction.
        shown: told its records after the commit.
    """

    append: Append
    change: Callable[[Connection], None] | None
    shown: Callable[[tuple[Record, ...]], None]


class Closer:
    """Stops one attempt; `branch` is None when it could not be opened."""

    def __init__(self, context: DriverContext, turn: TurnRow, session: SessionRow, lease: Lease) -> None:
        self.branch: Branch | None = None
        self._pin: Pin | None = None
        self._changed = False
        self._landed: list[Landing] = []
        self._work: tuple[str, ...] = ()
        self._left: tuple[str, ...] = ()
        self._context = context
        self._turn = turn
        self._session = session
        self._lease = lease

    async def keep(self, branch: "Branch") -> None:
        """Keep other processes from changing the branch while the turn works on it.

        Raises:
            BranchBusy: one works on it for longer.
        """

        def pin() -> None:
            self._pin = branch.lock.pin(
                DRIVES, wait_s=WAIT_S
            )  # kept even if the caller is cancelled meanwhile

        self.branch = branch
        await in_thread(pin)

    def let_go(self) -> None:
        """Let other processes change the branch again; a second time does nothing.

        Before the commit that lets another process drive the session: it finds the branch free.
        """
        if self._pin is not None:
            self._pin.release()

    async def end(self, ending: Ending, last: LastStep | None = None) -> TurnRow | None:
        """End the turn; returns the session's next open turn.

        Args:
            last: a step that is not recorded yet.

        Raises:
            LeaseLost: another process drives the turn; nothing was recorded.
        """
        turn = self._turn
        await self._lease.confirm()
        frozen = await self._freeze()
        if self.branch is not None:
            for part in reversed(self._context.parts):
                await part.turn_ended(self.branch.id)
        if ending.state == "done":
            await self.land(("turn", "step"))
        frozen = await self._counted(frozen)
        parcels = self._parcels(ending)

        def commit(connection: Connection) -> tuple[Ending, Ended]:
            told = self._with_others(connection, ending)
            append = None if last is None else last.append
            ended = end_turn(connection, turn, self._lease.epoch, told, frozen, append)
            self._note_outcome(connection)
            if last is not None and last.change is not None:
                last.change(connection)
            insert_parcels(connection, parcels)
            for part in self._context.parts:
                part.ended(connection, self._session, turn, told)
            return told, ended

        self.let_go()
        ending, ended = await self._lease.kept(lambda: self._context.store.write(commit))
        if last is not None:
            last.shown(ended.steps)
        self._context.recall.note(turn.thread_id, (ended.record,))
        if parcels:
            self._context.outbox.look()
        self._lease.was_released()
        if ending.state == "done" and ending.text:
            channel = self._session.channel or self._session.kind
            line = AuditLine("assistant", ending.text, ended.record.at, channel, None)
            await in_thread(self._context.audit.append, turn.thread_id, [line])
        snapshot = None if frozen is None else frozen.snapshot_id
        self._publish(
            ended.record.seq,
            TurnMark(
                ending.state,
                stop_reason=ending.stop_reason,
                snapshot=snapshot,
                usage=ending.usage,
                text=ending.text,
                error=ending.error,
            ),
        )
        return ended.following

    async def pause(self, pause: Pause) -> TurnRow | None:
        """Let the turn wait for a person, without a lease.

        Returns:
            The turn when it must be driven again at once: something came that it need not wait for.
        """
        session, turn = self._session, self._turn

        def commit(connection: Connection) -> Paused:
            paused = pause_turn(connection, turn, self._lease.epoch, pause)
            for _, event in events_of([] if paused.record is None else [paused.record]):
                if isinstance(event, ApprovalRequest) and paused.again is None:
                    insert_parcels(connection, request_parcels(session, turn, event))
            return paused

        self.let_go()
        paused = await self._lease.kept(lambda: self._context.store.write(commit))
        record = paused.record
        self._context.outbox.look()
        self._lease.was_released()
        if record is not None:
            self._context.recall.note(turn.thread_id, (record,))
            for found, event in events_of([record]):
                if event is not None:
                    self._publish(found.seq, event)
        if paused.again is None:
            self._publish(
                None, TurnMark("waiting", pause.waiting_for, stop_reason=pause.stop_reason, usage=pause.usage)
            )
        return paused.again

    async def leave(self) -> None:
        """Put the turn back into the queue for the next process."""
        self.let_go()
        await self._context.store.write(lambda c: leave_turn(c, self._turn, self._lease.epoch))
        self._lease.was_released()
        self._publish(None, TurnMark("queued"))

    async def land(self, policies: tuple[str, ...]) -> None:
        """Land what the branch's policy lets through, if the policy is one of these; say what happened."""
        branch = self.branch
        if branch is None or branch.policy not in policies or branch.root is None:
            return
        try:
            from bowerbird.sessions.live.landing_watch import watched

            changed, commits = await in_thread(
                lambda: (branch.changes(ignored=False).paths, branch.has_commits())
            )
            for part in self._context.parts if changed or commits else ():
                await part.landing(self._session, changed)
            async with watched(self._context.live, self._turn.thread_id, self._turn.turn_id) as told:
                landing = await in_thread(land_by_policy, branch, told, self._turn.thread_id)
        except LandingRefused as error:
            self._publish(None, Notice("landing", str(error)))
        except (BowerbirdError, OSError, ThreadDefect) as error:
            # Nothing that a landing meets may end the turn's driver: its words are still to be kept.
            _log.warning("turn %s: nothing landed: %s", self._turn.turn_id, error)
            self._publish(None, Notice("landing", f"nothing landed: {error}"))
        else:
            if landing is not None:
                self._changed = True  # what earlier turns left may have landed, too
                self._landed.append(landing[0])
                self._publish(None, Notice("landing", landing[1]))

    def _with_others(self, connection: Connection, ending: Ending) -> Ending:
        """Add what others used for the session since its last turn, each use once."""
        for part in self._context.parts:
            used = part.turn_ending(connection, self._turn)
            ending = ending if used is None else msgspec.structs.replace(ending, usage=ending.usage + used)
        return ending

    def _parcels(self, ending: Ending) -> tuple[OutboxRow, ...]:
        """What the session's chat must be told of the end."""
        session, turn = self._session, self._turn
        if not has_address(session) or turn.kind in BY_PARTS:
            return ()
        said = words_at_end(ending.text, ending.state, ending.stop_reason)
        if said and ending.state != "failed":
            parts = self._context.outbox.parts(session.channel, said)
            return answer_parcels(session, turn, parts)
        if ending.error is not None:
            return error_parcels(session, turn, ending.error.message)
        return ()

    async def _freeze(self) -> Frozen | None:
        branch = self.branch
        if branch is None:
            return None
        try:
            snapshot = await in_thread(branch.end_turn, self._turn.turn_id)
        except (BowerbirdError, OSError, ThreadDefect) as error:
            # The turn's words must not be lost because its files cannot be frozen now; the next
            # turn's end freezes them.
            _log.warning("turn %s: the branch was not frozen: %s", self._turn.turn_id, error)
            return None
        self._changed = snapshot.turn == self._turn.turn_id
        if self._session.kind not in DRIVEN_BY_OTHERS:  # whose changes are their makers'
            by_step = [entry.path for landing in self._landed for entry in landing.entries]
            changed = await self._paths(branch) if self._changed else ()
            self._work = tuple(dict.fromkeys([*changed, *by_step]))
        return Frozen(snapshot.id, branch.id, snapshot.n, snapshot.paths, snapshot.bytes)

    async def _counted(self, frozen: Frozen | None) -> Frozen | None:
        """Add how many files differ now, when this turn changed any."""
        branch = self.branch
        if branch is None or frozen is None or not self._changed:
            return frozen
        try:
            count = await in_thread(branch.count)
            if self._landed:
                self._left = await in_thread(lambda: branch.changes(ignored=False).paths)
        except (BowerbirdError, OSError, ThreadDefect) as error:
            _log.warning("turn %s: its changes were not counted: %s", self._turn.turn_id, error)
            return frozen
        return msgspec.structs.replace(frozen, changed=count)

    async def _paths(self, branch: "Branch") -> tuple[str, ...]:
        try:
            return await in_thread(branch.changed_since, self._turn.turn_id)
        except (BowerbirdError, OSError, ThreadDefect) as error:
            _log.warning("turn %s: what it changed was not listed: %s", self._turn.turn_id, error)
            return ()

    def _note_outcome(self, connection: Connection) -> None:
        """Record what the turn changed, and what landings by its policy made of that and of what was left."""
        turn = self._turn
        note_work(connection, turn.thread_id, turn.turn_id, OWN_AGENT, self._work)
        for landing in self._landed:
            settle(connection, turn.thread_id, outcome_of("land", self._left, landing))

    def _publish(self, seq: int | None, event: SessionEvent) -> None:
        turn = self._turn
        self._context.live.publish(Published(turn.thread_id, turn.turn_id, seq, event))
