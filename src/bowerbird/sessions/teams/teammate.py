"""The life of one teammate: WORK, then IDLE, until it ends (DE-56, DE-58, DE-59, DE-63 … DE-67).

Here: the order of things, each step of which a next process finds again and goes on with. Not here: what a
turn of it may do (`teams.py`), what changes rows (`teams/changes.py`), who is told
(`hub.py`).

    begin ─→ WORK: a turn on a fork of the lead's branch
               │ ends
               ├─ its plan waits for an answer ─→ wait, then WORK on the same fork
               ├─ merged ─→ IDLE: a message or a claimable task ─→ WORK on a new fork
               │                  nothing for `idle_s`          ─→ shutdown
               └─ failed, cancelled, agreed to stop, too many phases ─→ ended
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from sqlalchemy import Connection

from bowerbird.boards.rules import TaskData
from bowerbird.core.errors import BowerbirdError, LeaseLost, NotFound, StoreError, WorkspaceError
from bowerbird.core.events import AssistantStep, Notice, RunError
from bowerbird.core.forms import decode
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.dispatch.dispatcher import Signal, TurnRef
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.teams.hub import MAIL, TeamHub
from bowerbird.sessions.teams.unmerged_changes import keep_apart
from bowerbird.sessions.turn.undriven_turns import give_up
from bowerbird.store.rows.sessions import lock_session
from bowerbird.store.rows.team_mail import unread
from bowerbird.store.rows.teams import MemberRow, PhaseRow, member_at, update_phase
from bowerbird.store.rows.turns import TurnRow, get_turn
from bowerbird.teams.changes import Person, open_phase, put, require_held, set_status, start_phase, tell
from bowerbird.teams.requests import leaves, waits_for_plan
from bowerbird.teams.rules import (
    LEAD,
    MAX_CONTENT,
    QUIET,
    Ended,
    Next,
    after_phase,
    claimed_text,
    conflict_text,
    kept_text,
)

DRIVE_AGAIN_S = 0.25

_log = logging.getLogger(__name__)


class Life:
    """Keeps one teammate going in this process.

    Args:
        row: the teammate, held by this process.
    """

    def __init__(self, hub: TeamHub, row: MemberRow) -> None:
        self.row = row
        self.driving = False
        self._hub = hub
        self._bell = hub.bell(row.thread_id)
        self._stopped: Ended | None = None
        self._ref: TurnRef | None = None

    async def run(self) -> None:
        """Go on with it until it has ended, or the process stops."""
        tap = self._hub.live.tap(self.row.thread_id, self._heard, self._bell.set)
        try:
            while await self._step():
                if self._hub.stopping:
                    return
        except LeaseLost as error:
            _log.info("teammate %s: %s", self.row.thread_id, error)
        except (BowerbirdError, OSError) as error:
            # Its records are whole: the next sweep, or process, goes on with it.
            _log.warning("teammate %s: %s", self.row.thread_id, error)
        finally:
            tap.close()

    def _heard(self, published: Published) -> None:
        # Of this process or another one: on PostgreSQL a message wakes at once wherever it was sent.
        if isinstance(published.event, Notice) and published.event.kind == MAIL:
            self._bell.set()

    async def stop(self, status: Ended) -> None:
        """End it: what it does now is cancelled.

        Args:
            status: `shutdown` merges what it has done so far, `interrupted` keeps that apart.
        """
        self._stopped = self._stopped or status
        self._bell.set()
        if self._ref is not None:
            await self._hub.drives.tell(self._ref, Signal("cancel"))

    async def _step(self) -> bool:
        phase = await self._hub.store.read(lambda c: open_phase(c, self.row))
        if phase is None:
            return await self._rest()
        if phase.state == "waiting":
            return await self._await_answer(phase)
        turn = await self._driven(phase)
        return turn is not None and await self._settle(phase, turn)

    # ------------------------------------------------------------ WORK

    async def _driven(self, phase: PhaseRow) -> TurnRow | None:
        hub = self._hub
        self.driving = True
        try:
            while True:
                turn = await hub.store.read(lambda c: get_turn(c, phase.turn_id))
                if turn.is_ended:
                    return turn
                if hub.stopping:
                    return None
                if self._stopped is None:
                    await self._drive(turn)
                elif await hub.store.write(lambda c: give_up(c, phase.turn_id)):
                    continue
                else:
                    await asyncio.sleep(DRIVE_AGAIN_S)  # somebody drives it still
        finally:
            self.driving, self._ref = False, None

    async def _drive(self, turn: TurnRow) -> None:
        hub = self._hub
        if turn.state != "waiting":
            self._ref = TurnRef(turn.thread_id, turn.turn_id, turn.attempt)
            await hub.drives.drive(self._ref)
            fresh = await hub.store.read(lambda c: get_turn(c, turn.turn_id))
            if fresh.is_ended or hub.stopping:
                return
        # It waits for a person, or a process that died holds its lease for a while yet.
        self._bell.clear()
        if self._stopped is None:
            await self._pause(DRIVE_AGAIN_S)

    async def _settle(self, phase: PhaseRow, turn: TurnRow) -> bool:
        """Do what follows from the end of a turn; a next process repeats it without harm."""
        hub, row = self._hub, self.row
        following: Next = await hub.store.read(lambda c: self._next(c, phase, turn))
        if following == "wait":
            await hub.store.write(lambda c: self._let_wait(c, phase))
            return True
        report = await self._report(turn)
        apart: list[str] | None = None  # what is kept: None = nothing, [] = everything
        problem = ""
        merged = False
        if following in ("idle", "shutdown"):
            try:
                found = await hub.merge(row.lead, phase)
                merged = bool(found.written or found.deleted)
                apart = list(dict.fromkeys((*found.conflicts, *found.skipped))) or None
            except (NotFound, WorkspaceError) as error:
                apart, problem = [], str(error)
        elif await self._has_changes(phase):
            apart = []

        def commit(connection: Connection) -> bool:
            self._commit(connection, phase, following, report, apart, problem)
            return True

        if following == "idle":
            await hub.store.write(commit)
        else:
            await self._ended(following, commit)
        await hub.announce(row.lead)
        if merged:
            await hub.drives.note_changes(row.lead)
        await hub.rest(phase.fork)
        await hub.tidy(row, phase.fork)
        return following == "idle"

    def _next(self, connection: Connection, phase: PhaseRow, turn: TurnRow) -> Next:
        present = member_at(connection, self.row.thread_id)
        gone: Ended | None = None if present is None or present.lives else "interrupted"
        return after_phase(
            turn.state,
            leaves=leaves(connection, self.row),
            waits=waits_for_plan(connection, self.row),
            stopped=self._stopped or gone,
            phases=phase.n,
            most=self._hub.rules.phases,
        )

    def _let_wait(self, connection: Connection, phase: PhaseRow) -> None:
        lock_session(connection, self.row.lead)
        require_held(connection, self.row)
        update_phase(connection, phase, state="waiting", ended_at=now_iso())

    def _commit(
        self,
        connection: Connection,
        phase: PhaseRow,
        following: Next,
        report: str,
        apart: list[str] | None,
        problem: str,
    ) -> None:
        lock_session(connection, self.row.lead)
        present = require_held(connection, self.row)
        lead = Person(self.row.lead, LEAD, self.row.lead)
        # Who was stopped by somebody leaves word, but starts nothing.
        quiet = {} if self._stopped is None else {QUIET: True}
        if report and following != "interrupted":
            put(connection, lead, "message", self.row.name, report, {"status": following, **quiet})
        if apart is not None:
            handle = keep_apart(connection, present, phase)
            extra = {"handle": handle, "conflicts": apart, **quiet}
            tell(connection, lead, kept_text(present.name, handle, apart, problem), extra)
            if following == "idle":
                mine = Person(self.row.lead, self.row.name, self.row.thread_id, present)
                tell(connection, mine, conflict_text(handle, apart, problem), extra)
        state = "kept" if apart is not None else "merged"
        update_phase(connection, phase, state=state, ended_at=phase.ended_at or now_iso())
        set_status(connection, present, following)

    async def _report(self, turn: TurnRow) -> str:
        """Return what the lead is told of a turn that ended: its last words, or why it failed."""
        if turn.state == "failed":
            error = None if turn.error is None else decode(turn.error, RunError)
            said = turn.stop_reason if error is None else f"{error.type}: {error.message}"
            return f"{self.row.name} failed and has ended: {said}"[:MAX_CONTENT]
        records = await self._hub.store.records(turn.thread_id)
        steps = [event for _, event in events_of([r for r in records if r.turn == turn.turn_id])]
        last = next((event for event in reversed(steps) if isinstance(event, AssistantStep)), None)
        text = "" if last is None else last.message.text.strip()
        if turn.state == "done" and turn.stop_reason not in ("end_turn", None):
            text = f"{text}\n[ended: {turn.stop_reason}]".strip()
        return text[:MAX_CONTENT]

    async def _has_changes(self, phase: PhaseRow) -> bool:
        try:
            fork = await self._hub.fork_of(self.row.lead, phase.fork)
            found = await to_thread(fork.changes)
        except (NotFound, WorkspaceError):
            return False
        return bool(found.paths)

    async def _ended(self, status: Next, change: Callable[[Connection], bool]) -> bool:
        """Record its end, and give back what it had claimed in the same transaction.

        Args:
            change: records it; False when it goes on after all.
        """
        row, done = self.row, False

        def first(connection: Connection) -> bool:
            nonlocal done
            done = change(connection)
            return done

        reason = f"the teammate ended: {status}"
        key = await self._hub.board(row.lead)
        await self._hub.boards.release(key, row.name, reason, session=row.thread_id, first=first)
        return done

    # ------------------------------------------------------------ waiting

    async def _await_answer(self, phase: PhaseRow) -> bool:
        """Wait for the answer to its plan, or for another message."""
        hub = self._hub
        while True:
            self._bell.clear()
            waits, mail, present = await hub.store.read(self._look)
            if self._stopped is not None or present is None or not present.lives:
                turn = await hub.store.read(lambda c: get_turn(c, phase.turn_id))
                return await self._settle(phase, turn)
            if hub.stopping:
                return False
            if mail or not waits:
                return await self._go_on(phase, "" if mail else "Your plan request is decided.")
            await self._pause(hub.rules.poll_s)

    def _look(self, connection: Connection) -> tuple[bool, bool, MemberRow | None]:
        thread = self.row.thread_id
        mail = bool(unread(connection, thread))
        return waits_for_plan(connection, self.row), mail, member_at(connection, thread)

    async def _go_on(self, phase: PhaseRow, text: str) -> bool:
        await self._hub.store.write(lambda c: start_phase(c, self.row, phase.fork, text))
        return True

    async def _rest(self) -> bool:
        """IDLE: until a message or a task comes, or nothing did for long enough."""
        hub, row, rules = self._hub, self.row, self._hub.rules
        since = time.monotonic()
        await self._say_idle()
        while True:
            self._bell.clear()
            if self._stopped is not None:
                return await self._end(self._stopped)
            if hub.stopping:
                return False
            present = await hub.store.read(lambda c: member_at(c, row.thread_id))
            if present is None or not present.lives or not await hub.exists(row.lead):
                return False
            if await hub.has_mail(row.thread_id):
                return await self._begin()
            if await self._claim():
                return True
            left = since + rules.idle_s - time.monotonic()
            if left <= 0:
                return await self._end("shutdown")
            await self._pause(min(rules.poll_s, left))

    async def _say_idle(self) -> None:
        def note(connection: Connection) -> bool:
            present = require_held(connection, self.row)
            if present.status != "idle":
                set_status(connection, present, "idle")
            return present.status != "idle"

        if await self._hub.store.write(note):
            await self._hub.announce(self.row.lead)

    async def _begin(self) -> bool:
        """Start a turn for the messages that wait."""
        hub, row = self._hub, self.row
        fork = await hub.fork(row.lead, row.name)
        try:
            await hub.store.write(lambda c: start_phase(c, row, fork.id))
        except (LeaseLost, StoreError):
            await hub.drop(row.lead, fork.id)
            raise
        await self._began(fork.id)
        return True

    async def _claim(self) -> bool:
        """Claim the first claimable task of the board and start a turn with it: both, or nothing."""
        hub, row = self._hub, self.row
        key = await hub.board(row.lead)
        state = await hub.boards.state(key)
        if not any(map(_claimable, state.tasks)):
            return False
        fork = await hub.fork(row.lead, row.name)

        def also(connection: Connection, task: TaskData) -> None:
            start_phase(connection, row, fork.id, claimed_text(task))

        claimed = None
        try:
            claimed = await hub.boards.claim(key, row.name, also=also)
        finally:
            if claimed is None:
                await hub.drop(row.lead, fork.id)
        if claimed is None:
            return False
        await self._began(fork.id)
        return True

    async def _began(self, fork: str) -> None:
        await self._hub.announce(self.row.lead)
        await self._hub.tidy(self.row, fork)

    async def _end(self, status: Ended) -> bool:
        """End it while it rests; a message that came in between lets it go on."""
        hub, row = self._hub, self.row

        def note(connection: Connection) -> bool:
            lock_session(connection, row.lead)
            present = require_held(connection, row)
            if self._stopped is None and unread(connection, row.thread_id):
                return False
            set_status(connection, present, status)
            return True

        if not await self._ended(status, note):
            return True
        await hub.announce(row.lead)
        return False

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()


def _claimable(task: TaskData) -> bool:
    return task["status"] == "pending" and not task["owner"] and not task["blockedBy"]
