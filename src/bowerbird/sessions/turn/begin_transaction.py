"""The transaction that begins an attempt at a turn (SE-22, SE-23, SE-28, SE-50).

Here: the lease taken, which turn may begin, its first records, its inputs taken. Not here: keeping
the lease, what the loop does then.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.forms import decode
from bowerbird.core.messages import blocks_from_data
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.journal.events_as_records import user_record
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.store.journal.journal import Append, NewRecord, Record, append_one
from bowerbird.store.rows.leases import release_lease, take_lease
from bowerbird.store.rows.sessions import SessionRow, find_session, lock_session, set_status
from bowerbird.store.rows.turns import (
    MESSAGE_KINDS,
    OPEN,
    InboxRow,
    TurnRow,
    find_turn,
    inputs_of,
    message_behind,
    turns_of,
    update_inputs,
    update_turn,
)
from bowerbird.store.rows.usage import settle_dead
from bowerbird.store.rows.usage_report import standing_limits


class Waiting(msgspec.Struct, frozen=True):
    """A turn as it lies in the database before an attempt."""

    session: SessionRow
    turn: TurnRow
    inputs: tuple[InboxRow, ...]
    limits: dict[tuple[str, str], float]


class Begun(msgspec.Struct, frozen=True):
    """An attempt that may go on.

    Attributes:
        records: the turn's first records, when this was its first attempt.
        crash_loop: too many processes died with this turn; it must fail.
        answers: what people decided meanwhile. notes: that a new message or a cancel came instead.
        behind: the message that waits behind a turn which had stopped to wait for a person.
        sender: who asked: `id`, `name`, `door`.
        limits: in USD, by (scope, key), that people set.
    """

    session: SessionRow
    turn: TurnRow
    records: tuple[Record, ...]
    crash_loop: bool
    answers: tuple[InboxRow, ...]
    notes: tuple[InboxRow, ...]
    sender: dict[str, Any]
    limits: dict[tuple[str, str], float]
    behind: InboxRow | None = None

    @property
    def is_first(self) -> bool:
        """Whether nothing of this turn was done before."""
        return bool(self.records)


def begin(
    connection: Connection, thread_id: str, turn_id: str, context: DriverContext
) -> Begun | Waiting | None:
    """Take the session's lease and begin the next attempt at a turn; None when it may not run now.

    Returns:
        `Waiting` when the first records may be too large for the journal: nothing is changed; the caller
        prepares them and calls `taken`.
    """
    session, turn = find_session(connection, thread_id), find_turn(connection, turn_id)
    if session is None or turn is None:
        return None
    inputs = inputs_of(connection, turn_id=turn_id, kinds=MESSAGE_KINDS)
    waiting = Waiting(session, turn, tuple(inputs), standing_limits(connection))
    if turn.started_at is not None:
        return taken(connection, waiting, None, context)
    append = _first_append(waiting, context)
    return waiting if append is None else taken(connection, waiting, append, context)


def begin_accepted(
    connection: Connection, session: SessionRow, turn: TurnRow, row: InboxRow, context: DriverContext
) -> Begun | None:
    """Begin a session's only open turn in the transaction that made it; None when it has to wait.

    Args:
        session: its row, which the transaction locked. row: the input that the turn is for.
    """
    waiting = Waiting(session, turn, (row,), standing_limits(connection))
    append = _first_append(waiting, context)
    if append is None:
        return None
    epoch = take_lease(
        connection, session.thread_id, context.executor_id, context.settings.lease_s, is_locked=True
    )
    if epoch is None:
        return None
    return _begun(connection, waiting, append, epoch, context.settings)


def _first_append(waiting: Waiting, context: DriverContext) -> Append | None:
    """Return the first records, None when they may be too large for the journal."""
    records = first_records(waiting, context.maker.model_of(waiting.session))
    return context.store.inline(Append(waiting.session.thread_id, None, records))


def first_records(waiting: Waiting, model: str) -> tuple[NewRecord, ...]:
    """Return `turn_started` and the user's messages, for a turn that never began."""
    turn, flags = waiting.turn, waiting.session.flags
    started = {
        "n": turn.n,
        "inbox": [row.id for row in waiting.inputs],
        "kind": turn.kind,
        "model": model,
        "mode": "plan" if flags.get("enable_plan_mode") else "normal",
    }
    return (
        NewRecord("turn_started", started, turn.turn_id),
        *(_user_record(row, turn.turn_id) for row in waiting.inputs),
    )


def taken(
    connection: Connection, waiting: Waiting, append: Append | None, context: DriverContext
) -> Begun | None:
    """Take the session's lease and begin the next attempt; None when the turn may not run now.

    Args:
        append: the first records, prepared; None when the turn has begun before.

    Raises:
        UnknownSession.
    """
    thread_id = waiting.session.thread_id
    epoch = take_lease(connection, thread_id, context.executor_id, context.settings.lease_s)
    if epoch is None:
        return None
    session = lock_session(connection, thread_id)
    first = next(iter(turns_of(connection, thread_id, OPEN)), None)
    if (
        first is None
        or first.turn_id != waiting.turn.turn_id
        or first.is_paused
        or (first.started_at is None) != (append is not None)
    ):
        release_lease(connection, thread_id, epoch)
        return None
    waiting = msgspec.structs.replace(waiting, session=session, turn=first)
    return _begun(connection, waiting, append, epoch, context.settings)


def _begun(
    connection: Connection, waiting: Waiting, append: Append | None, epoch: int, settings: SessionSettings
) -> Begun:
    session, turn = waiting.session, waiting.turn
    died = turn.state == "running"
    values: dict[str, Any] = {
        "state": "running",
        "attempt": turn.attempt + 1,
        "epoch": epoch,
        "waiting_for": None,
        "stop_reason": None,
        "error": None,
        "started_at": turn.started_at or now_iso(),
        "ended_at": None,
    }
    update_turn(connection, turn.turn_id, **values)
    set_status(connection, session.thread_id, "running", 0 if append is None else len(waiting.inputs))
    records: tuple[Record, ...] = ()
    if append is not None:
        records = append_one(connection, msgspec.structs.replace(append, epoch=epoch))
        update_inputs(connection, [row.id for row in waiting.inputs], state="taken")
    left: list[InboxRow] = []
    behind: InboxRow | None = None
    if append is None:  # nobody answers, and nothing is held for, a turn that never ran
        settle_dead(connection, session.thread_id, turn.turn_id, now_iso())
        left = inputs_of(
            connection, turn_id=turn.turn_id, states=("queued",), kinds=("answer", "notification")
        )
        # A question that was asked while its process lived is asked again first, with all its time.
        behind = None if turn.stop_reason is None else message_behind(connection, turn)
    return Begun(
        session=session,
        turn=msgspec.structs.replace(turn, **values),
        records=records,
        crash_loop=died and turn.attempt >= settings.max_attempts,
        answers=tuple(row for row in left if row.kind == "answer"),
        notes=tuple(row for row in left if row.kind == "notification"),
        sender=sender_of(waiting.inputs[0]) if waiting.inputs else {},
        limits=waiting.limits,
        behind=behind,
    )


def sender_of(row: InboxRow) -> dict[str, Any]:
    """Return who sent an input: `id`, `name`, `door`."""
    return {**decode(row.sender, dict[str, Any]), "door": row.door}


def _user_record(row: InboxRow, turn_id: str) -> NewRecord:
    body = decode(row.body, dict[str, Any])
    return user_record(blocks_from_data(body["content"]), turn_id, sender_of(row))
