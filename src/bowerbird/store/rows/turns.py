"""Rows of `turns`, `inbox` and `snapshots`: what was asked, what became of it (SE-17 … 23, 35).

Here: reading and writing those rows inside a given transaction. Not here: which turn runs
when, what ends one, or the journal.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    tuple_,
)

from bowerbird.core.errors import UnknownTurn
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.turn_value import Turn
from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.statements import insert_row, rows_where, update_rows
from bowerbird.store.sql.tables import inbox, leases, sessions, snapshots, turns, usage

ENDED = ("done", "failed", "cancelled", "interrupted")
OPEN = ("queued", "running", "waiting")
MESSAGE_KINDS = ("message", "steer", "interrupt")


class TurnRow(Turn, frozen=True, kw_only=True):
    """One turn as it is stored; `usage` and `error` as JSON text."""

    epoch: int = 0
    error: str | None = None
    usage: str | None = None

    @property
    def is_ended(self) -> bool:
        """Whether the turn is over (it may be resumable all the same)."""
        return self.state in ENDED

    @property
    def is_paused(self) -> bool:
        """Whether it waits for a person and no process waits with it (one that still asks has no reason)."""
        return self.state == "waiting" and self.stop_reason is not None


class InboxRow(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted input; `sender` and `body` as JSON text."""

    id: str
    thread_id: str
    door: str
    dedupe_key: str
    kind: str
    sender: str
    body: str
    state: str = "queued"
    turn_id: str | None = None
    received_at: str = msgspec.field(default_factory=now_iso)


class SnapshotRow(msgspec.Struct, frozen=True, kw_only=True):
    """The branch's state at the end of a turn."""

    snapshot_id: str
    thread_id: str
    turn_id: str
    seq: int
    branch_id: str
    layer: int | None = None
    paths: int = 0
    bytes: int = 0
    created_at: str = msgspec.field(default_factory=now_iso)


# ---------------------------------------------------------------- turns

_THREAD: BindParameter[str] = bindparam("b_thread")
_OPEN_TURNS = (
    select(turns)
    .where(turns.c.thread_id == _THREAD, turns.c.state.in_([literal_column(f"'{state}'") for state in OPEN]))
    .order_by(turns.c.n)
)
_HERE = (turns.c.thread_id == _THREAD,)
_ACTIVE = select(turns).where(
    *_HERE, turns.c.state.in_([literal_column("'running'"), literal_column("'waiting'")])
)
_OPEN_COUNT = (
    select(func.count())
    .select_from(turns)
    .where(*_HERE, turns.c.state.in_([literal_column(f"'{state}'") for state in OPEN]))
)
_LAST_NUMBER = select(func.max(turns.c.n)).where(turns.c.thread_id == _THREAD)
_LAST_NUMBER_UPTO = _LAST_NUMBER.where(
    turns.c.turn_id.in_(
        select(snapshots.c.turn_id).where(
            snapshots.c.thread_id == _THREAD, snapshots.c.seq <= bindparam("b_upto")
        )
    )
)
_PARENT = select(sessions.c.parent_thread_id, sessions.c.parent_seq).where(sessions.c.thread_id == _THREAD)
_QUEUED = select(func.count()).select_from(inbox).where(inbox.c.state == literal_column("'queued'"))
_WAITING_HERE = _QUEUED.where(inbox.c.thread_id == _THREAD)
# By way of the open turns, which are few: the inputs of all time are not.
_WAITING = _QUEUED.where(
    inbox.c.turn_id.in_(
        select(turns.c.turn_id).where(turns.c.state.in_([literal_column(f"'{state}'") for state in OPEN]))
    )
)
_FORGET_SNAPSHOT = snapshots.delete().where(snapshots.c.turn_id == bindparam("b_turn"))


def insert_turn(connection: Connection, turn: TurnRow) -> None:
    """Add a turn."""
    insert_row(connection, turns, msgspec.structs.asdict(turn))


def find_turn(connection: Connection, turn_id: str) -> TurnRow | None:
    """Return the turn or None."""
    row = rows_where(connection, turns, {"turn_id": turn_id}).mappings().first()
    return None if row is None else TurnRow(**row)


def get_turn(connection: Connection, turn_id: str) -> TurnRow:
    """Return the turn; raises UnknownTurn."""
    turn = find_turn(connection, turn_id)
    if turn is None:
        raise UnknownTurn(f"there is no turn {turn_id}")
    return turn


def turns_of(connection: Connection, thread_id: str, states: Sequence[str] = ()) -> list[TurnRow]:
    """Return a session's own turns in order, all or those in `states`."""
    if states == OPEN:
        rows = connection.execute(_OPEN_TURNS, {"b_thread": thread_id})
    else:
        statement = select(turns).where(turns.c.thread_id == thread_id)
        if states:
            statement = statement.where(turns.c.state.in_(states))
        rows = connection.execute(statement.order_by(turns.c.n))
    return [TurnRow(**row) for row in rows.mappings()]


def active_and_open(connection: Connection, thread_id: str) -> tuple[TurnRow | None, int]:
    """Return a session's turn that runs or waits for a person, and how many turns are open; reads one row."""
    rows = connection.execute(_ACTIVE, {"b_thread": thread_id}).mappings()
    found = sorted((TurnRow(**row) for row in rows), key=lambda turn: turn.n)
    count = connection.scalar(_OPEN_COUNT, {"b_thread": thread_id})
    return (found[0] if found else None), int(count or 0)


def open_turns_with(
    connection: Connection, states: Sequence[str] = OPEN, limit: int = 10_000
) -> list[TurnRow]:
    """Return the turns of all sessions in these states that have begun, the newest first."""
    begun = (turns.c.state.in_(states), turns.c.started_at.is_not(None))
    statement = select(turns).where(*begun).order_by(turns.c.turn_id.desc())
    return [TurnRow(**row) for row in connection.execute(statement.limit(limit)).mappings()]


def waiting_below(connection: Connection, thread_id: str) -> list[TurnRow]:
    """Return the turns of a session's subagents and teammates that wait for a person."""
    here = (turns.c.state == "waiting", turns.c.thread_id.startswith(f"{thread_id}.", autoescape=True))
    rows = connection.execute(select(turns).where(*here).order_by(turns.c.turn_id)).mappings()
    return [TurnRow(**row) for row in rows]


def threads_waiting_for(connection: Connection, what: str | None = None) -> list[str]:
    """Return the sessions whose turn waits for a person: for `approval` …, or for anything."""
    here = [turns.c.state == "waiting", *([] if what is None else [turns.c.waiting_for == what])]
    return list(connection.scalars(select(turns.c.thread_id).where(*here)))


def update_turn(connection: Connection, turn_id: str, **values: Any) -> None:
    """Set columns of a turn."""
    update_rows(connection, turns, {"turn_id": turn_id}, values)


def last_turn_number(connection: Connection, thread_id: str) -> int:
    """Return the number of the newest turn in a session's history, a fork's ancestors included."""
    thread: str | None = thread_id
    upto: int | None = None
    while thread is not None:
        if upto is None:
            found = connection.scalar(_LAST_NUMBER, {"b_thread": thread})
        else:
            found = connection.scalar(_LAST_NUMBER_UPTO, {"b_thread": thread, "b_upto": upto})
        if found is not None:
            return int(found)
        row = connection.execute(_PARENT, {"b_thread": thread}).first()
        thread, upto = (row.parent_thread_id, row.parent_seq) if row else (None, None)
    return 0


class TurnSums(msgspec.Struct, frozen=True):
    """What lists say about a session's own turns.

    Attributes:
        cost: USD of its turns, None when one of them has no price; `waiting_for` of the open one.
        stop_reason: why the newest turn ended; None where it has not.
    """

    last_n: int | None = None
    queued: int = 0
    waiting_for: str | None = None
    cost: float | None = 0.0
    stop_reason: str | None = None


def turn_sums(connection: Connection, thread_ids: Sequence[str]) -> dict[str, TurnSums]:
    """Return the sums of many sessions; those without a turn are left out."""
    found: dict[str, TurnSums] = {}
    ended = turns.c.ended_at.is_not(None)  # what the others cost so far is in their calls alone
    unpriced = case((and_(ended, turns.c.usage.is_not(None), turns.c.cost.is_(None)), 1), else_=0)
    spent = case((ended, turns.c.cost))
    queued = case((turns.c.state == "queued", 1), else_=0)
    waiting = case((turns.c.state == "waiting", turns.c.waiting_for))
    for at in range(0, len(thread_ids), 500):
        rows = connection.execute(
            select(
                turns.c.thread_id,
                func.max(turns.c.n),
                func.sum(queued),
                func.max(waiting),
                func.coalesce(func.sum(spent), 0.0),
                func.sum(unpriced),
            )
            .where(turns.c.thread_id.in_(thread_ids[at : at + 500]))
            .group_by(turns.c.thread_id)
        ).all()
        calls = connection.execute(
            select(turns.c.thread_id, func.sum(usage.c.cost), func.count() - func.count(usage.c.cost))
            .join(usage, usage.c.turn_id == turns.c.turn_id)
            .where(turns.c.thread_id.in_(thread_ids[at : at + 500]), turns.c.ended_at.is_(None))
            .group_by(turns.c.thread_id)
        )
        open_calls = {thread: (float(cost or 0.0), bool(unpriced)) for thread, cost, unpriced in calls}
        newest = [(thread, last) for thread, last, *_ in rows]
        ends = select(turns.c.thread_id, turns.c.stop_reason).where(
            ended, tuple_(turns.c.thread_id, turns.c.n).in_(newest)
        )
        reasons = {row.thread_id: row.stop_reason for row in connection.execute(ends)}
        for thread, last, waits, asked, cost, unknown in rows:
            more, lacking = open_calls.get(thread, (0.0, False))
            total = None if unknown or lacking else float(cost) + more
            found[thread] = TurnSums(int(last), int(waits), asked, total, reasons.get(thread))
    return found


def move_queue_back(connection: Connection, thread_id: str, running_n: int) -> int:
    """Make room for one turn directly after `running_n`, ahead of the queue.

    Returns:
        The number that is free now.
    """
    later = and_(turns.c.thread_id == thread_id, turns.c.n > running_n)
    # Through negative numbers, because each single change must keep (thread, n) unique.
    connection.execute(turns.update().where(later).values(n=-(turns.c.n + 1)))
    connection.execute(
        turns.update().where(turns.c.thread_id == thread_id, turns.c.n < 0).values(n=-turns.c.n)
    )
    return running_n + 1


def drivable_turns(connection: Connection, limit: int = 1000) -> list[tuple[str, str, int]]:
    """Return (thread, turn, attempt) of the first open turn of each session that nobody drives.

    A turn that stopped to wait for a person holds its session: what is behind it is not returned. One that
    died while it asked is returned, to ask again. Whether the holder of a lease is dead is for the caller
    to find out (`take_lease`).
    """
    first = (
        select(turns.c.thread_id, func.min(turns.c.n).label("n"))
        .where(turns.c.state.in_(OPEN))
        .group_by(turns.c.thread_id)
        .subquery()
    )
    statement = (
        select(turns.c.thread_id, turns.c.turn_id, turns.c.attempt)
        .join(first, and_(first.c.thread_id == turns.c.thread_id, first.c.n == turns.c.n))
        .where(
            or_(
                turns.c.state.in_(("queued", "running")),
                and_(turns.c.state == "waiting", turns.c.stop_reason.is_(None)),
            )
        )
        # A subagent's turn is driven by the call of its caller, a teammate's by its team, never by itself.
        .where(turns.c.kind.not_in(("subagent", "teammate")))
        .order_by(turns.c.turn_id)
        .limit(limit)
    )
    return [(row.thread_id, row.turn_id, row.attempt) for row in connection.execute(statement)]


def held_threads(connection: Connection) -> dict[str, str]:
    """Return the holder (executor id) of every lease that has not ended, by thread."""
    rows = connection.execute(
        select(leases.c.thread_id, leases.c.holder).where(
            leases.c.holder.is_not(None), leases.c.expires_at > DbNow()
        )
    )
    return {row.thread_id: row.holder for row in rows}


# ---------------------------------------------------------------- inbox


def insert_input(connection: Connection, row: InboxRow) -> None:
    """Add an accepted input."""
    insert_row(connection, inbox, msgspec.structs.asdict(row))


def find_input(connection: Connection, door: str, dedupe_key: str) -> InboxRow | None:
    """Return the input accepted under this key, None when it is new."""
    row = rows_where(connection, inbox, {"door": door, "dedupe_key": dedupe_key}).mappings().first()
    return None if row is None else InboxRow(**row)


def inputs_of(
    connection: Connection,
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    states: Sequence[str] = (),
    kinds: Sequence[str] = (),
) -> list[InboxRow]:
    """Return inputs in order of acceptance, of a turn or of a whole session."""
    where = {name: v for name, v in (("turn_id", turn_id), ("thread_id", thread_id)) if v is not None}
    # A turn has few inputs: sorting them here costs less than a statement for each wish.
    rows = [InboxRow(**row) for row in rows_where(connection, inbox, where).mappings()]
    wanted = [row for row in rows if (not states or row.state in states) and (not kinds or row.kind in kinds)]
    return sorted(wanted, key=lambda row: (row.received_at, row.id))


def message_behind(connection: Connection, turn: TurnRow) -> InboxRow | None:
    """Return the first message of a person's that waits for the end of `turn`, None when none does."""
    later = [other.turn_id for other in turns_of(connection, turn.thread_id, OPEN) if other.n > turn.n]
    for turn_id in (turn.turn_id, *later):
        rows = inputs_of(connection, turn_id=turn_id, states=("queued",), kinds=MESSAGE_KINDS)
        if rows:
            return rows[0]
    return None


def update_inputs(connection: Connection, ids: Sequence[str], **values: Any) -> None:
    """Set columns of inputs, say `state`."""
    for id_ in ids:
        update_rows(connection, inbox, {"id": id_}, values)


def count_waiting(connection: Connection, thread_id: str | None = None) -> int:
    """Return how many inputs wait, in one session or in all."""
    if thread_id is None:
        return int(connection.scalar(_WAITING) or 0)
    return int(connection.scalar(_WAITING_HERE, {"b_thread": thread_id}) or 0)


# ---------------------------------------------------------------- snapshots


def insert_snapshot(connection: Connection, row: SnapshotRow, *, replaces: bool = True) -> None:
    """Add a snapshot; a turn has one, so a turn that ends again replaces its own.

    Args:
        replaces: whether there may be one.
    """
    if replaces:
        connection.execute(_FORGET_SNAPSHOT, {"b_turn": row.turn_id})
    insert_row(connection, snapshots, msgspec.structs.asdict(row))


def find_snapshot(connection: Connection, turn_id: str) -> SnapshotRow | None:
    """Return the snapshot of a turn."""
    row = rows_where(connection, snapshots, {"turn_id": turn_id}).mappings().first()
    return None if row is None else SnapshotRow(**row)


def find_snapshot_by_id(connection: Connection, snapshot_id: str) -> SnapshotRow | None:
    """Return a snapshot by its id."""
    row = rows_where(connection, snapshots, {"snapshot_id": snapshot_id}).mappings().first()
    return None if row is None else SnapshotRow(**row)
