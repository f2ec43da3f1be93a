"""Rows of `outbox`: what doors must deliver, in order per address (SE-37, 38).

Here: reading and writing those rows inside a given transaction. Not here: when to try again,
what is delivered, any door.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, func, or_, select

from bowerbird.core.errors import UnknownSession
from bowerbird.store.sql.tables import outbox

OPEN = ("pending", "sending")


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True):
    """One part of one thing to deliver; `body` as JSON text.

    Attributes:
        address: the door's own name of the receiver, say a chat id.
        state: `pending`, `sending` (`receipt` then names the process), `sent`, `dead`.
        next_at: earliest time of the next try; while `sending`, when the claim ends.
    """

    id: str
    thread_id: str
    turn_id: str | None
    door: str
    address: str
    part: int
    body: str
    dedupe_key: str
    state: str = "pending"
    attempts: int = 0
    next_at: str | None = None
    receipt: str | None = None
    last_error: str | None = None


def insert_parcels(connection: Connection, rows: Sequence[OutboxRow]) -> int:
    """Add what is not there yet under its key; returns how many were new."""
    added = 0
    for row in rows:
        same = and_(
            outbox.c.door == row.door, outbox.c.dedupe_key == row.dedupe_key, outbox.c.part == row.part
        )
        if connection.execute(select(outbox.c.id).where(same)).first() is None:
            connection.execute(outbox.insert().values(**msgspec.structs.asdict(row)))
            added += 1
    return added


def heads(connection: Connection, doors: Collection[str]) -> list[OutboxRow]:
    """Return the first undelivered row of each address of these doors."""
    first = (
        select(outbox.c.door, outbox.c.address, func.min(outbox.c.id).label("id"))
        .where(outbox.c.state.in_(OPEN), outbox.c.door.in_(list(doors)))
        .group_by(outbox.c.door, outbox.c.address)
        .subquery()
    )
    rows = connection.execute(select(outbox).join(first, first.c.id == outbox.c.id)).mappings()
    return [OutboxRow(**row) for row in rows]


def owes(connection: Connection, door: str, address: str, besides: str) -> bool:
    """Whether an address of a door still waits for something that is not of the turn `besides`."""
    its = and_(outbox.c.door == door, outbox.c.address == address, outbox.c.state.in_(OPEN))
    others = or_(outbox.c.turn_id.is_(None), outbox.c.turn_id != besides)
    return connection.execute(select(outbox.c.id).where(its, others).limit(1)).first() is not None


def claim(connection: Connection, row_id: str, holder: str, now: str, until: str) -> OutboxRow | None:
    """Take a row to send it; None when another process has it, or it is no longer open."""
    is_free = or_(outbox.c.state == "pending", outbox.c.next_at <= now)
    changed = connection.execute(
        outbox.update()
        .where(outbox.c.id == row_id, outbox.c.state.in_(OPEN), is_free)
        .values(state="sending", attempts=outbox.c.attempts + 1, next_at=until, receipt=holder)
    )
    return find_parcel(connection, row_id) if changed.rowcount else None


def free_claims(connection: Connection, holders: Collection[str]) -> int:
    """Put back what processes that died were sending: it may arrive once more, never not at all."""
    changed = connection.execute(
        outbox.update()
        .where(outbox.c.state == "sending", outbox.c.receipt.in_(list(holders)))
        .values(state="pending", next_at=None, receipt=None)
    )
    return int(changed.rowcount)


def claimants(connection: Connection) -> list[str]:
    """Return the processes that say they are sending something."""
    found = select(outbox.c.receipt).where(outbox.c.state == "sending", outbox.c.receipt.is_not(None))
    return [str(holder) for holder in connection.scalars(found.distinct())]


def update_parcel(connection: Connection, row_id: str, **values: Any) -> None:
    """Set columns of a row."""
    connection.execute(outbox.update().where(outbox.c.id == row_id).values(**values))


def find_parcel(connection: Connection, row_id: str) -> OutboxRow:
    """Return a row; raises UnknownSession naming it."""
    row = connection.execute(select(outbox).where(outbox.c.id == row_id)).mappings().first()
    if row is None:
        raise UnknownSession(f"nothing to deliver is called {row_id}")
    return OutboxRow(**row)


def parcels(
    connection: Connection, *, thread_id: str | None = None, states: Sequence[str] = (), limit: int = 1000
) -> list[OutboxRow]:
    """Return rows in the order of their making."""
    statement = select(outbox).order_by(outbox.c.id).limit(limit)
    if thread_id is not None:
        statement = statement.where(outbox.c.thread_id == thread_id)
    if states:
        statement = statement.where(outbox.c.state.in_(states))
    return [OutboxRow(**row) for row in connection.execute(statement).mappings()]
