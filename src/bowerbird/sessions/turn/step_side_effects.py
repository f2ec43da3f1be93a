"""What else changes in the transaction of a step: inputs taken, flags, limits (SE-14, 19, 21).

Here: functions of a connection, by event; a tool's change of the store and its outcome as one transaction.
Not here: the step's own record (`step_records.py`), committing the other outcomes (`attempt.py`).

Such a change runs when its tool asks, before the loop tells of the call's end, and its outcome is shown as
soon as it is committed, so that what is shown keeps the order of the records. What the loop says of such a
call afterwards is not recorded again. A process that lost its lease cannot change anything: the append's
fence takes the change back with it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.always import DECISIONS
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    Compaction,
    Injected,
    ModeChange,
    StepEvent,
    ToolOutcome,
    UserStep,
)
from bowerbird.core.ids import new_id
from bowerbird.sessions.delivery.messages import has_address, request_parcels
from bowerbird.sessions.inbox.accept import ANSWER_DOOR
from bowerbird.sessions.journal.events_as_records import MessageSeqs
from bowerbird.sessions.permission_rules import keep_rules
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.thread_ids import root_of
from bowerbird.sessions.turn.money import add_money
from bowerbird.sessions.turn.step_records import Writer, append_of
from bowerbird.store.journal.journal import Record, append_one
from bowerbird.store.rows.outbox import insert_parcels
from bowerbird.store.rows.sessions import (
    SessionRow,
    count_messages,
    find_session,
    get_session,
    update_session,
)
from bowerbird.store.rows.team_mail import mark_read
from bowerbird.store.rows.turns import (
    InboxRow,
    TurnRow,
    find_input,
    get_turn,
    insert_input,
    insert_turn,
    move_queue_back,
    update_inputs,
)
from bowerbird.store.store import Store
from bowerbird.tools.result import ToolResult

Change = Callable[[Connection], None]

GO_AHEAD = "The plan is approved. Carry it out."
REVISE = "The plan is rejected. Revise it."


class OutcomeChanges(msgspec.Struct):
    """`agent.turn.Changes` over a store, for one attempt at a turn.

    Attributes:
        writer: on whose behalf it writes.
        recorded: told of each outcome at once after its commit; shows it.
    """

    store: Store
    writer: Writer
    recorded: Callable[[ToolOutcome, tuple[Record, ...]], None]
    _calls: dict[str, asyncio.Task[ToolResult]] = msgspec.field(
        default_factory=dict[str, "asyncio.Task[ToolResult]"]
    )

    async def run(self, call: str, tool: str, change: Callable[[Any], ToolResult]) -> ToolResult:
        """See `Changes`; whoever is cancelled meanwhile does not take the change back."""
        self.store.require_space()
        task = asyncio.ensure_future(self._record(call, tool, change))
        self._calls[call] = task
        return await asyncio.shield(task)

    async def has_outcome(self, call: str) -> bool:
        """Whether the outcome of a call is on record already; waits for a change under way."""
        task = self._calls.pop(call, None)
        if task is None:
            return False
        await asyncio.wait([task])
        # One that failed changed nothing: its tool was told, and the loop's outcome says so.
        return not task.cancelled() and task.exception() is None

    async def _record(self, call: str, tool: str, change: Callable[[Any], ToolResult]) -> ToolResult:
        started = time.perf_counter()

        def both(connection: Connection) -> tuple[ToolResult, ToolOutcome, tuple[Record, ...]]:
            result = change(connection)
            outcome = ToolOutcome(
                call=call,
                tool=tool,
                status="error" if result.is_error else "ok",
                content=result.content,
                data=result.data,
                ms=int((time.perf_counter() - started) * 1000),
            )
            return result, outcome, append_one(connection, append_of(outcome, self.writer, MessageSeqs()))

        result, outcome, records = await self.store.write(both)
        self.recorded(outcome, records)
        return result


def beside(
    event: StepEvent,
    turn: TurnRow,
    *,
    session: SessionRow,
    steers: Mapping[str, InboxRow],
    requests: Mapping[str, ApprovalRequest],
    settings: SessionSettings,
) -> Change | None:
    """Return the further changes of the event's transaction, None for none.

    Args:
        steers: inputs handed to the loop, by message id.
        requests: open requests by id.
    """
    if isinstance(event, UserStep) and (row := steers.get(event.message.id)) is not None:
        return lambda c: _joined(c, turn.thread_id, row)
    if isinstance(event, Injected) and event.source == "inbox":
        return lambda c: mark_read(c, turn.thread_id, event.ids)
    if isinstance(event, Compaction) and event.reason == "user":
        # Somebody asked for one summary, and this is it.
        return lambda c: _change_flags(c, turn.thread_id, {"compact": None})
    if isinstance(event, ModeChange):
        return lambda c: _change_flags(c, turn.thread_id, event.changes)
    if isinstance(event, ApprovalRequest) and has_address(session):
        return lambda c: _ask_the_chat(c, session, turn, event)
    if isinstance(event, ApprovalAnswer):
        request = requests.get(event.id)
        return lambda c: _answered(c, turn, event, request, settings)
    return None


def together(one: Change | None, other: Change | None) -> Change | None:
    """Return both changes as one, None for none."""
    if one is None or other is None:
        return one or other

    def both(connection: Connection) -> None:
        one(connection)
        other(connection)

    return both


def _joined(connection: Connection, thread_id: str, row: InboxRow) -> None:
    update_inputs(connection, [row.id], state="taken")
    count_messages(connection, thread_id, 1)


def _ask_the_chat(
    connection: Connection, session: SessionRow, turn: TurnRow, request: ApprovalRequest
) -> None:
    insert_parcels(connection, request_parcels(session, turn, request))


def _change_flags(connection: Connection, thread_id: str, changes: Mapping[str, Any]) -> None:
    session = get_session(connection, thread_id)
    update_session(connection, thread_id, flags={**session.flags, **changes})


def _answered(
    connection: Connection,
    turn: TurnRow,
    answer: ApprovalAnswer,
    request: ApprovalRequest | None,
    settings: SessionSettings,
) -> None:
    row = find_input(connection, ANSWER_DOOR, answer.id)
    if row is not None:
        update_inputs(connection, [row.id], state="done")
    if answer.decision == "auto_approve":
        # A subagent's question is answered in the conversation that it works for.
        for thread_id in {turn.thread_id, root_of(turn.thread_id)}:
            update_session(connection, thread_id, auto_approve=True)
    if request is None:
        return
    if answer.decision in DECISIONS and request.kind == "approval":
        keep_rules(connection, turn.thread_id, request, answer)
    if request.kind == "budget" and answer.decision == "raise":
        session = get_session(connection, turn.thread_id)
        add_money(connection, session, turn, settings, (request, answer))
    if request.kind == "plan" and row is not None:
        _next_after_plan(connection, turn, answer)


def _next_after_plan(connection: Connection, turn: TurnRow, answer: ApprovalAnswer) -> None:
    """Queue the turn that carries the plan out, or the one that revises it.

    Only for a decision: a message that came instead has a turn of its own, a cancel has none. Plan
    mode goes off with an approval; after a rejection it is as people set it.
    """
    approved = answer.decision == "approve"
    session = find_session(connection, turn.thread_id)
    if approved and session is not None:
        flags = {**session.flags, "enable_plan_mode": False}
        update_session(connection, turn.thread_id, flags=flags)
    text = GO_AHEAD if approved else REVISE
    if answer.feedback:
        text = f"{text}\n\n{answer.feedback}"
    present = get_turn(connection, turn.turn_id)
    following = TurnRow(
        turn_id=new_id("t"),
        thread_id=turn.thread_id,
        n=move_queue_back(connection, turn.thread_id, present.n),
        kind="plan_execution" if approved else "plan_revision",
    )
    insert_turn(connection, following)
    content = [{"type": "text", "text": text}]
    sender = {"id": answer.by or None, "name": answer.by or None}
    insert_input(
        connection,
        InboxRow(
            id=new_id("i"),
            thread_id=turn.thread_id,
            door=ANSWER_DOOR,
            dedupe_key=f"plan:{answer.id}",
            kind="message",
            sender=msgspec.json.encode(sender).decode(),
            body=msgspec.json.encode({"content": content}).decode(),
            turn_id=following.turn_id,
        ),
    )
