"""Removing what is older than settings keep it (SE-48, SE-49).

Here: which rows go, in an order that leaves no orphan. Not here: when this runs, files and
branches (`sessions/upkeep/retention.py`).

A deleted session's records stay as long as a fork refers to them. Usage rows lose their detail,
not their sums: budgets and totals count what was spent, however long ago.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, and_, func, or_, select

from bowerbird.store.sql.tables import (
    effects,
    inbox,
    journal,
    leases,
    metadata,
    outbox,
    reservations,
    sessions,
    snapshots,
    turns,
    usage,
)

ROLLED_UP = "total"  # purpose of a row that stands for many
BATCH = 100  # sessions, or a tenth of the rows, of one transaction: turns are written in between
_OF_THREAD = (effects, journal, inbox, outbox, snapshots, usage, leases)
_OF_OTHERS = ("parent", "lead")  # columns that name whose children or teammates rows are about


def finished_before(connection: Connection, inputs: str, parcels: str, most: int = 10 * BATCH) -> int:
    """Drop finished inputs and deliveries older than these times, `most` of each; returns how many rows."""
    done = and_(inbox.c.state.in_(("done", "cancelled")), inbox.c.received_at < inputs)
    received = list(connection.scalars(select(inbox.c.id).where(done).limit(most)))
    # An outbox row has no time of its own; its id begins with one, and its turn's end is near it.
    old_turns = select(turns.c.turn_id).where(turns.c.ended_at < parcels)
    sent = and_(outbox.c.state.in_(("sent", "dead")), outbox.c.turn_id.in_(old_turns))
    delivered = list(connection.scalars(select(outbox.c.id).where(sent).limit(most)))
    connection.execute(inbox.delete().where(inbox.c.id.in_(received)))
    connection.execute(outbox.delete().where(outbox.c.id.in_(delivered)))
    return len(received) + len(delivered)


def roll_up_usage(connection: Connection, before: str, threads: int = BATCH) -> int:
    """Replace usage rows older than a time by one per session, model and price; returns how many went.

    Args:
        threads: of so many sessions at most; 0 is returned when there is none left.
    """
    aged = and_(usage.c.at < before, usage.c.purpose != ROLLED_UP)
    some = list(connection.scalars(select(usage.c.thread_id).where(aged).distinct().limit(threads)))
    if not some:
        return 0
    old = and_(aged, usage.c.thread_id.in_(some))
    columns = (
        usage.c.input_tokens, usage.c.output_tokens, usage.c.cache_read_tokens, usage.c.cache_write_tokens,
    )  # fmt: skip
    sums = connection.execute(
        select(
            usage.c.thread_id,
            usage.c.agent,
            usage.c.model,
            usage.c.priced,
            usage.c.estimated,
            func.max(usage.c.at).label("at"),
            func.sum(usage.c.cost).label("cost"),
            *(func.sum(column).label(column.name) for column in columns),
        )
        .where(old)
        .group_by(usage.c.thread_id, usage.c.agent, usage.c.model, usage.c.priced, usage.c.estimated)
    ).mappings()
    rows = [{**row, "purpose": ROLLED_UP, "turn_id": None} for row in sums]
    for row in rows:
        for column in columns:
            row[column.name] = int(row[column.name] or 0)
    gone = connection.execute(usage.delete().where(old)).rowcount
    if rows:
        connection.execute(usage.insert(), rows)
    return int(gone)


def idle_sessions(connection: Connection, before: str) -> list[str]:
    """Return living sessions that nobody has used since a time and in which nothing is open."""
    quiet = sessions.c.status.in_(("idle", "done", "failed", "cancelled", "interrupted"))
    found = select(sessions.c.thread_id).where(
        sessions.c.deleted_at.is_(None), sessions.c.updated_at < before, quiet
    )
    return list(connection.scalars(found))


def forgettable_sessions(connection: Connection, deleted_before: str, limit: int = 5_000) -> list[str]:
    """Return deleted sessions whose time to be restored is over and that no fork stands on."""
    child = sessions.alias()
    is_parent = select(child.c.thread_id).where(child.c.parent_thread_id == sessions.c.thread_id).exists()
    found = (
        select(sessions.c.thread_id)
        .where(sessions.c.deleted_at < deleted_before, ~is_parent)
        .order_by(sessions.c.thread_id)
        .limit(limit)
    )
    return list(connection.scalars(found))


def branches_of_sessions(connection: Connection) -> list[str]:
    """Return the branches of all sessions, the deleted ones' that can be restored included."""
    found = select(sessions.c.branch_id).where(sessions.c.branch_id.is_not(None))
    return [str(branch) for branch in connection.scalars(found)]


def forget_sessions(connection: Connection, thread_ids: Sequence[str]) -> None:
    """Remove sessions with everything that refers to them."""
    gone = list(thread_ids)
    mine = select(turns.c.turn_id).where(turns.c.thread_id.in_(gone))
    connection.execute(reservations.delete().where(reservations.c.turn_id.in_(mine)))
    known = {table.name for table in _OF_THREAD} | {"turns", "sessions"}
    others = [table for table in metadata.sorted_tables if table.name not in known]
    for column in _OF_OTHERS:
        for table in (t for t in others if column in t.c):
            connection.execute(table.delete().where(table.c[column].in_(gone)))
    for table in (*(t for t in others if "thread_id" in t.c), *_OF_THREAD):
        connection.execute(table.delete().where(table.c.thread_id.in_(gone)))
    connection.execute(turns.delete().where(turns.c.thread_id.in_(gone)))
    connection.execute(sessions.delete().where(sessions.c.thread_id.in_(gone)))


def thin_snapshots(connection: Connection, thread_id: str, newest: int, every: int) -> int:
    """Drop snapshots of old turns but each `every`-th; those a fork begins at stay. Returns how many went."""
    last = connection.scalar(select(func.max(turns.c.n)).where(turns.c.thread_id == thread_id)) or 0
    forked = select(sessions.c.parent_seq).where(
        sessions.c.parent_thread_id == thread_id, sessions.c.parent_seq.is_not(None)
    )
    old = select(turns.c.turn_id).where(
        turns.c.thread_id == thread_id, turns.c.n <= last - newest, turns.c.n % every != 0
    )
    gone = connection.execute(
        snapshots.delete().where(snapshots.c.turn_id.in_(old), snapshots.c.seq.not_in(forked))
    )
    return int(gone.rowcount)


def thinned_turns(connection: Connection, thread_id: str, newest: int) -> tuple[set[str], set[str]]:
    """Return the ids of old turns to which nobody can go back, and of the snapshots that stay."""
    last = connection.scalar(select(func.max(turns.c.n)).where(turns.c.thread_id == thread_id)) or 0
    kept = connection.execute(
        select(snapshots.c.turn_id, snapshots.c.snapshot_id).where(snapshots.c.thread_id == thread_id)
    ).all()
    old = select(turns.c.turn_id).where(turns.c.thread_id == thread_id, turns.c.n <= last - newest)
    return set(connection.scalars(old)) - {row.turn_id for row in kept}, {row.snapshot_id for row in kept}


def long_sessions(connection: Connection, more_turns_than: int) -> list[str]:
    """Return living sessions with more snapshots than a number."""
    found = (
        select(snapshots.c.thread_id)
        .join(sessions, sessions.c.thread_id == snapshots.c.thread_id)
        .where(or_(sessions.c.deleted_at.is_(None)))
        .group_by(snapshots.c.thread_id)
        .having(func.count() > more_turns_than)
    )
    return list(connection.scalars(found))
