"""Requests and answers of models, kept while tracing is on (SV-33, MO-34): `retention.traces_days`, 1 GB.

Here: keeping, reading and forgetting them inside a given transaction. Not here: making the records
(`models/wrappers/tracing.py`), what is masked in them.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.tables import traces

MAX_BYTES = 1 << 30
_AT_ONCE = 200


def add_trace(connection: Connection, thread_id: str, turn_id: str | None, record: dict[str, Any]) -> int:
    """Keep one record of a session; returns its number there."""
    last = connection.scalar(select(func.max(traces.c.n)).where(traces.c.thread_id == thread_id))
    body = msgspec.json.encode(record).decode()
    number = int(last or 0) + 1
    connection.execute(
        traces.insert().values(
            thread_id=thread_id, n=number, turn_id=turn_id, at=now_iso(), bytes=len(body), body=body
        )
    )
    return number


def traces_of(connection: Connection, thread_id: str, after: int, limit: int) -> list[dict[str, Any]]:
    """Return records with a number above `after`, each with `n`, `at` and `turn_id`, in order."""
    rows = connection.execute(
        select(traces)
        .where(traces.c.thread_id == thread_id, traces.c.n > after)
        .order_by(traces.c.n)
        .limit(limit)
    ).mappings()
    return [
        {"n": row["n"], "at": row["at"], "turn_id": row["turn_id"], **decode(row["body"])} for row in rows
    ]


def last_trace_seq(connection: Connection, thread_id: str) -> int:
    """Return the highest `seq` of a session's newest records, 0 when there is none.

    Calls of subagents run beside each other, so the newest record may be the answer to an earlier request.
    """
    newest = select(traces.c.body).where(traces.c.thread_id == thread_id).order_by(traces.c.n.desc())
    bodies = connection.scalars(newest.limit(_AT_ONCE)).all()
    return max((int(decode(body).get("seq") or 0) for body in bodies), default=0)


def forget_traces(connection: Connection, before: str | None, max_bytes: int = MAX_BYTES) -> int:
    """Drop records older than `before`, then the oldest beyond `max_bytes`; returns how many."""
    gone = 0
    if before is not None:
        gone += int(connection.execute(traces.delete().where(traces.c.at < before)).rowcount)
    total = int(connection.scalar(select(func.coalesce(func.sum(traces.c.bytes), 0))) or 0)
    while total > max_bytes:
        oldest = connection.execute(
            select(traces.c.thread_id, traces.c.n, traces.c.bytes).order_by(traces.c.at).limit(_AT_ONCE)
        ).all()
        if not oldest:
            break
        for thread_id, number, size in oldest:
            here = (traces.c.thread_id == thread_id) & (traces.c.n == number)
            connection.execute(traces.delete().where(here))
            total -= int(size)
            gone += 1
            if total <= max_bytes:
                break
    return gone
