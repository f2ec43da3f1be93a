"""One attempt at one turn, from its begin to its end (SE-14, 22, 25 … 29, 34, 35).

Here: the order of things, and the commit of each step before the loop goes on. Not here: the loop
itself (`agent`), what each transaction writes (`step_records.py`, `step_side_effects.py`,
`end_transaction.py`), how an attempt is begun (`driver.py`, `begin_transaction.py`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.stop import StopSignal
from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.errors import BowerbirdError, BranchBusy, LeaseLost, StorageFull, StoreError
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    Done,
    LiveEvent,
    Notice,
    StepEvent,
    SubagentEnd,
    ToolIntent,
    ToolOutcome,
    taint_source,
)
from bowerbird.core.threads import in_thread
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BothBudgets
from bowerbird.sessions.dispatch.lease import Lease
from bowerbird.sessions.forks import branch_of
from bowerbird.sessions.journal.audit_log import audit_lines
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.journal.history import Loaded, is_final
from bowerbird.sessions.live.hub import Published, SessionEvent, TurnMark
from bowerbird.sessions.parts import run_of
from bowerbird.sessions.turn.approver_and_inbox import DoorApprover, DoorInbox, Inboxes, approver_for
from bowerbird.sessions.turn.background_notices import DRIVEN_BY_OTHERS
from bowerbird.sessions.turn.begin_transaction import Begun
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.end_transaction import Ending, Pause, conclude, crash_loop, failure
from bowerbird.sessions.turn.finish import Closer, LastStep
from bowerbird.sessions.turn.money import StoreBudget, money_scopes
from bowerbird.sessions.turn.prepare import Ready, expires_at, opened
from bowerbird.sessions.turn.step_records import Writer, append_of
from bowerbird.sessions.turn.step_side_effects import Change, OutcomeChanges, beside, together
from bowerbird.sessions.turn_maker import TurnContext
from bowerbird.sessions.values import DISCONNECTED
from bowerbird.store.journal.journal import Append, Record, append_one
from bowerbird.store.rows.sessions import SessionRow, find_session, update_session
from bowerbird.store.rows.turns import TurnRow, update_turn

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)
_LIVE: tuple[type, ...] = get_args(LiveEvent)


class Drained(Exception):
    """The turn goes back into the queue: the process shuts down, or another one has the branch."""


@dataclass(slots=True)
class Attempt:
    """The mutable state of one attempt; owned by the task that drives it."""

    context: DriverContext
    begun: Begun
    lease: Lease
    stop: StopSignal
    draining: bool
    was_left: Callable[[], bool]
    usage: Usage = field(default_factory=Usage)
    asked: dict[str, ApprovalRequest] = field(default_factory=dict[str, ApprovalRequest])
    alias: dict[str, str] = field(default_factory=dict[str, str])
    open_calls: set[str] = field(default_factory=set[str])
    batch: list[ToolIntent | ToolOutcome] = field(default_factory=list[ToolIntent | ToolOutcome])
    has_acted: bool = False  # a tool was called
    may_keep: bool = False  # no reservation must be settled with a step's record
    kept: AssistantStep | None = None  # not recorded yet
    loaded: Loaded | None = None
    budget: StoreBudget | None = None
    turn: TurnRow = field(init=False)
    approver: DoorApprover = field(init=False)
    inbox: DoorInbox = field(init=False)
    closer: Closer = field(init=False)
    changes: OutcomeChanges = field(init=False)

    def __post_init__(self) -> None:
        store = self.context.store
        self.turn = self.begun.turn
        timeout_s = self.context.settings.approval_timeout_s
        self.approver = DoorApprover(
            store, self.turn.turn_id, timeout_s, self.alias, self._show_wait,
            leaves_money=self.turn.kind not in DRIVEN_BY_OTHERS,
        )  # fmt: skip
        self.inbox = DoorInbox(store, self.turn.turn_id)
        self.closer = Closer(self.context, self.turn, self.begun.session, self.lease)
        writer = Writer(self.turn.thread_id, self.turn.turn_id, self.lease.epoch)
        self.changes = OutcomeChanges(store, writer, self._note)

    async def drive(self) -> TurnRow | None:
        """Carry the attempt out and record how it stops.

        Raises:
            LeaseLost: another process took over; nothing more was recorded.
        """
        try:
            verdict = await self._verdict()
            if verdict.stop_reason == "cancelled" and self.was_left():
                verdict = msgspec.structs.replace(verdict, stop_reason=DISCONNECTED)
            if isinstance(verdict, Pause):
                await self._record_kept()
                return await self.closer.pause(verdict)
            if self.open_calls and verdict.state == "failed":
                from bowerbird.sessions.turn.unrecorded import without_unrecorded

                await self.lease.confirm()
                verdict = await without_unrecorded(verdict, self.batch, self.closer.branch, self.context)
            last = None if self.kept is None else await self._last_step(self.kept)
            return await self.closer.end(verdict, last)
        except Drained:
            await self._leave()
            return None
        except asyncio.CancelledError:
            # The grace of a shutdown is over: one last note, so that nobody counts this as a crash.
            try:
                await asyncio.shield(asyncio.ensure_future(self._leave()))
            except StoreError as error:
                _log.warning("turn %s was left without a note: %s", self.turn.turn_id, error)
            raise
        finally:
            self.closer.let_go()

    async def _leave(self) -> None:
        await self._record_kept()
        await self.closer.leave()

    async def _verdict(self) -> Ending | Pause:
        try:
            started = next((r.seq for r in self.begun.records if r.type == "turn_started"), None)
            self._publish(started, TurnMark("running", head=self.begun.session.last_seq))
            await self._show(self.begun.records)
            loaded = await self.context.recall.load(self.begun.session, self.turn.turn_id, self.begun.records)
            self.loaded = loaded
            self.usage = loaded.turn.used
            if self.begun.crash_loop:
                return crash_loop(self.turn.attempt - 1, loaded.turn.last_intent, self.usage)
            if not self.begun.is_first:
                await self.context.branches.take_over(self.begun.session)
            branch = await branch_of(self.context, self.begun.session)
            bound = branch.bound(turn=self.turn.turn_id)
            await self._take(bound)
            await in_thread(bound.begin_turn)
            return await self._work(loaded, bound)
        except (LeaseLost, Drained):
            raise
        except StorageFull as error:
            self.context.store.space.free_reserve()
            return self._failed(error)
        except BowerbirdError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001  a defect ends this turn with its name, not the process
            _log.exception("turn %s failed", self.turn.turn_id)
            return self._failed(error)

    def _failed(self, error: Exception) -> Ending:
        return failure(error, self.usage if self.kept is None else self.usage + self.kept.usage)

    async def _take(self, branch: "Branch") -> None:
        """Have the branch to ourselves.

        Raises:
            BranchBusy: another process has had it for too long. Drained: it, or this one later, drives.
        """
        branches, turn_id = self.context.branches, self.turn.turn_id
        try:
            await self.closer.keep(branch)
        except BranchBusy as error:
            if await branches.take_over(self.begun.session):
                await self.closer.keep(branch)
            elif branches.may_wait(turn_id):
                self._publish(None, Notice("branch", f"{error}; the turn begins when it is free"))
                raise Drained from error
            else:
                raise
        branches.waited(turn_id)

    async def _work(self, loaded: Loaded, branch: "Branch") -> Ending | Pause:
        self.asked = {request.id: request for request in loaded.turn.open_requests}
        ready = await opened(self.context, self.begun, loaded, branch, self.commit)
        if not isinstance(ready, Ready):
            return ready
        self.loaded = ready.loaded
        self.usage = ready.used
        if not self.begun.is_first:
            for part in self.context.parts:
                self.usage += await part.used_before(self.turn)
        state = ready.loaded.turn
        if state.final:
            # Everything was said before the process died; only the end was missing.
            return Ending("done", "end_turn", self.usage, state.text)
        context = TurnContext(
            session=self.begun.session,
            turn=self.turn,
            branch=branch,
            changes=state.changes,
            tier=state.tier,
            sender=ready.sender,
            inbox=self.inbox,
        )
        run = await run_of(self.context.maker, self.context.parts, context)
        done = await self._loop(self._completed(run, ready, branch))
        newest = next(reversed(self.asked.values()), None)
        return conclude(done, None if newest is None else newest.kind)

    def _completed(self, run: TurnRun, ready: Ready, branch: "Branch") -> TurnRun:
        """Return the run with everything that is the session's."""
        session, settings, blobs = self.begun.session, self.context.settings, self.context.store.blobs
        scopes = money_scopes(session, self.turn, settings, standing=ready.limits)
        budget = run.budget
        if scopes:
            self.budget = StoreBudget(self.context.store, self.turn.turn_id, scopes, run)
            budget = self.budget if budget is None else BothBudgets(budget, self.budget)
        self.may_keep = budget is None
        return msgspec.structs.replace(
            run,
            branch=branch,
            history=ready.loaded.history.recent(run.history_turns),
            new=(),
            used=self.usage,
            answers=ready.loaded.turn.answers,
            approver=approver_for(run.policy, self.approver) if self.context.attended else None,
            inbox=self.inbox if run.inbox is None else Inboxes(self.inbox, run.inbox),
            changes=self.changes,
            budget=budget,
            policy=run.policy.approved() if session.auto_approve else run.policy,
            switched=self._switches(run),
            tier=ready.loaded.turn.tier or run.tier,
            stop=self.stop,
            storage=msgspec.structs.replace(run.storage, store_blob=blobs.keep, read_blob=blobs.get),
            who=msgspec.structs.replace(run.who, session=self.turn.thread_id, turn=self.turn.turn_id),
        )

    def _switches(self, run: TurnRun) -> Callable[[], Awaitable[dict[str, Any]]]:
        """Return what tells which switches people moved since it was asked last."""
        thread_id, seen = self.turn.thread_id, _switches_of(self.begun.session)
        usual = run.policy.enable_approval if seen["enable_approval"] is None else False

        async def switched() -> dict[str, Any]:
            nonlocal seen
            row = await self.context.store.read(lambda c: find_session(c, thread_id))
            now = seen if row is None else _switches_of(row)
            changes = {key: value for key, value in now.items() if value != seen[key]}
            seen = now
            if changes.get("enable_approval", True) is None:
                changes["enable_approval"] = usual
            return changes

        return switched

    async def _loop(self, run: TurnRun) -> Done:
        async with aclosing(run_turn(run)) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event
                await self._record_kept()
                if isinstance(event, SubagentEnd):
                    self.usage += event.usage.as_subagents
                if isinstance(event, _LIVE):
                    self._publish(None, event)  # pyright: ignore[reportArgumentType]  narrowed by the union's members
                else:
                    await self._step(event)  # pyright: ignore[reportArgumentType]  likewise: what is left
        raise StoreError(f"the run of turn {self.turn.turn_id} ended without a result")

    async def _step(self, event: StepEvent) -> None:
        if isinstance(event, ApprovalRequest) and self._is_repeated(event):
            return
        self.context.store.require_space()
        if isinstance(event, ToolIntent):
            await self.lease.confirm()  # a process that was stopped for long must do nothing more
            self.open_calls.add(event.call)
            self.has_acted = True
        if isinstance(event, AssistantStep) and self._may_keep(event):
            self.kept = event
            return
        await self.commit(event)
        if isinstance(event, AssistantStep):
            self.batch.clear()  # what it asks for comes now
        elif isinstance(event, ToolIntent | ToolOutcome):
            self.batch.append(event)
        if isinstance(event, ToolOutcome):
            self.open_calls.discard(event.call)
            if event.tainted and self.closer.branch is not None:
                await in_thread(self.closer.branch.taint, None, taint_source(event))
            if event.status == "ok":
                await self.closer.land(("step",))
        if self.draining and not self.open_calls and isinstance(event, AssistantStep | ToolOutcome):
            raise Drained

    async def commit(self, event: StepEvent) -> None:
        """Commit one step with everything that belongs to it, then show it."""
        if isinstance(event, ToolOutcome) and await self.changes.has_outcome(event.call):
            return  # recorded and shown with the change that the call made
        if isinstance(event, ApprovalRequest):
            event = msgspec.structs.replace(event, expires_at=expires_at(self.context.settings))
        store, append, change = self.context.store, *self._written(event)
        if change is None:
            records = await self.lease.kept(lambda: store.append(append))
        else:
            prepared = await store.prepared(append)

            def both(connection: Connection) -> tuple[Record, ...]:
                written = append_one(connection, prepared)
                change(connection)
                return written

            records = await self.lease.kept(lambda: store.write(both))
        self._note(event, records)

    def _written(self, event: StepEvent) -> tuple[Append, Change | None]:
        """Return what one step appends, and what else its transaction changes."""
        assert self.loaded is not None, "steps come after loading"
        append = append_of(event, self.changes.writer, self.loaded.seqs)
        change = beside(
            event,
            self.turn,
            session=self.begun.session,
            steers=self.inbox.taken,
            requests=self.asked,
            settings=self.context.settings,
        )
        if isinstance(event, AssistantStep) and self.budget is not None:
            change = together(change, self.budget.settle_last())
        return append, change

    def _may_keep(self, step: AssistantStep) -> bool:
        """Whether a step may wait for the turn's end, to be recorded in one commit with it.

        Only the answer of a turn that did nothing else: what ran, or lands by itself before the end is
        recorded, must never be ahead of the words about it.
        """
        branch = self.closer.branch
        lands = branch is None or branch.policy != "review"
        if self.has_acted or self.draining or lands or not (self.may_keep and self.begun.is_first):
            return False
        return is_final(step)

    async def _record_kept(self) -> None:
        """Record a step that was kept for the end, which did not come next."""
        step, self.kept = self.kept, None
        if step is not None:
            await self.commit(step)

    async def _last_step(self, step: AssistantStep) -> LastStep:
        append, change = self._written(step)
        prepared = await self.context.store.prepared(append)

        def shown(records: tuple[Record, ...]) -> None:
            self.kept = None  # until then a shutdown records it by itself
            self._note(step, records)

        return LastStep(prepared, change, shown)

    def _note(self, event: StepEvent, records: tuple[Record, ...]) -> None:
        self.context.recall.note(self.turn.thread_id, records)
        seq = records[0].seq if records else None
        if seq is not None and self.loaded is not None:
            self.loaded.seqs.add(event, seq)
        if isinstance(event, AssistantStep):
            self.usage += event.usage
        elif isinstance(event, ApprovalRequest):
            self.asked[event.id] = event
            self.context.outbox.look()
        elif isinstance(event, ApprovalAnswer):
            self.asked.pop(event.id, None)
        self._publish(seq, event)

    def _is_repeated(self, event: ApprovalRequest) -> bool:
        """Whether the question is on record from before a crash; then that record's id is used."""
        for known in self.asked.values():
            if known.kind == event.kind and known.calls == event.calls:
                self.alias[event.id] = known.id
                return True
        return False

    async def _show(self, records: tuple[Record, ...]) -> None:
        for record, event in events_of(records):
            if event is not None:
                self._publish(record.seq, event)
        session = self.begun.session
        lines = audit_lines(records, session.channel or session.kind)
        await in_thread(self.context.audit.append, self.turn.thread_id, lines)

    async def _show_wait(self, request: ApprovalRequest | None) -> None:
        turn_id, thread_id = self.turn.turn_id, self.turn.thread_id
        state = "running" if request is None else "waiting"
        waiting_for = None if request is None else request.kind

        def change(connection: Connection) -> None:
            update_turn(connection, turn_id, state=state, waiting_for=waiting_for)
            update_session(connection, thread_id, status=state)

        await self.context.store.write(change)
        self._publish(None, TurnMark(state, waiting_for))

    def _publish(self, seq: int | None, event: SessionEvent) -> None:
        self.context.live.publish(Published(self.turn.thread_id, self.turn.turn_id, seq, event))


def _switches_of(session: SessionRow) -> dict[str, Any]:
    return {
        "enable_approval": session.flags.get("enable_approval"),
        "enable_plan_mode": bool(session.flags.get("enable_plan_mode")),
        "auto_approve": bool(session.auto_approve),
    }
