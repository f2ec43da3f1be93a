"""Reading the journal back, forks' referenced history included (SE-8, 36, 59).

Here: records of a session or a turn, in order, gaps and damage named. Not here: appending
(`journal.py`), what a record's body means (`sessions`), blobs.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, func, select

from bowerbird.core.errors import UnknownSession
from bowerbird.core.forms import decoder
from bowerbird.store.journal.body_forms import problem_of
from bowerbird.store.journal.journal import CORRUPT, VERSION, Record
from bowerbird.store.sql.tables import journal, sessions


class Span(msgspec.Struct, frozen=True):
    """Records of one thread with `after` < seq ≤ `upto` (None: no end)."""

    thread_id: str
    after: int
    upto: int | None


def lineage(connection: Connection, thread_id: str) -> list[Span]:
    """Return where the history of a session lies, oldest first: its ancestors' part, then its own."""
    spans: list[Span] = []
    upto: int | None = None
    thread: str | None = thread_id
    while thread is not None:
        row = connection.execute(_PARENT, {"b_thread": thread}).first()
        if row is None:
            raise UnknownSession(f"no session {thread}")
        spans.append(Span(thread, row.parent_seq or 0, upto))
        thread, upto = row.parent_thread_id, row.parent_seq
    return spans[::-1]


def read_records(
    connection: Connection,
    thread_id: str,
    *,
    after: int = 0,
    upto: int | None = None,
    limit: int | None = None,
) -> list[Record]:
    """Return the records of a session in order, with the history that a fork refers to.

    A record that cannot be read, or is missing, is replaced by one of type `corrupt` whose body
    is `{"reason", "raw", "thread"}`; its neighbours are not affected.

    Args:
        after, upto: only records with `after` < seq ≤ `upto`.
        limit: at most so many, the oldest first.
    """
    records: list[Record] = []
    for span in lineage(connection, thread_id):
        low = max(after, span.after)
        high = min((b for b in (upto, span.upto) if b is not None), default=None)
        # Each row is a record at least: no more rows than records are wanted have to be read and decoded.
        most = _NO_END if limit is None else limit - len(records)
        place = {"b_thread": span.thread_id, "b_low": low, "b_high": _NO_END if high is None else high}
        rows = connection.execute(_READ, {**place, "b_most": most}).all()
        expected = low + 1
        for row in rows:
            records.extend(_missing(span.thread_id, expected, row.seq))
            records.append(_decoded(span.thread_id, row))
            expected = row.seq + 1
        if limit is not None and len(records) >= limit:
            return records[:limit]
        if high is not None and span.thread_id != thread_id:
            records.extend(_missing(span.thread_id, expected, high + 1))
    return records


def read_of_types(
    connection: Connection,
    thread_id: str,
    types: Sequence[str],
    *,
    after: int = 0,
    upto: int,
    limit: int | None = None,
) -> list[Record]:
    """Return a session's records of some types with `after` < seq ≤ `upto`, inherited ones included."""
    records: list[Record] = []
    for span in lineage(connection, thread_id):
        low, high = max(after, span.after), min(upto, upto if span.upto is None else span.upto)
        statement = select(journal).where(
            journal.c.thread_id == span.thread_id,
            journal.c.seq > low,
            journal.c.seq <= high,
            journal.c.type.in_(types),
        )
        if limit is not None:
            statement = statement.limit(limit - len(records))
        rows = connection.execute(statement.order_by(journal.c.seq)).all()
        records += [_decoded(span.thread_id, row) for row in rows]
        if limit is not None and len(records) >= limit:
            break
    return records


def read_turn_records(
    connection: Connection, thread_id: str, turn_id: str, types: Sequence[str] = ()
) -> list[Record]:
    """Return the records of one turn in order, all or those of `types`; large bodies as their previews."""
    statement = select(journal).where(journal.c.thread_id == thread_id, journal.c.turn_id == turn_id)
    if types:
        statement = statement.where(journal.c.type.in_(types))
    rows = connection.execute(statement.order_by(journal.c.seq)).all()
    return [_decoded(thread_id, row) for row in rows]


def last_seq_of_turn(connection: Connection, thread_id: str, turn_id: str) -> int:
    """Return the seq of a turn's newest record, 0 when it has none."""
    newest = select(func.max(journal.c.seq)).where(
        journal.c.thread_id == thread_id, journal.c.turn_id == turn_id
    )
    return int(connection.scalar(newest) or 0)


_decode_body = decoder(dict[str, Any])
_NO_END = (1 << 63) - 1
_PARENT = select(sessions.c.parent_thread_id, sessions.c.parent_seq).where(
    sessions.c.thread_id == bindparam("b_thread")
)
_READ = (
    select(journal)
    .where(
        journal.c.thread_id == bindparam("b_thread"),
        journal.c.seq > bindparam("b_low"),
        journal.c.seq <= bindparam("b_high"),
    )
    .order_by(journal.c.seq)
    .limit(bindparam("b_most"))
)


def _decoded(thread_id: str, row: Any) -> Record:
    try:
        body = _decode_body(row.body)
        wrong = problem_of(row.type, body) if row.v <= VERSION else None
        if wrong is not None:
            return _stand_in(thread_id, row.seq, row.turn_id, f"malformed {row.type}: {wrong}", str(row.body))
        return Record(row.v, row.seq, row.turn_id, row.type, row.at, row.epoch, body)
    except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
        return _stand_in(thread_id, row.seq, row.turn_id, f"unreadable: {error}", str(row.body))


def _missing(thread_id: str, expected: int, found: int) -> list[Record]:
    return [_stand_in(thread_id, seq, None, "missing", "") for seq in range(expected, found)]


def _stand_in(thread_id: str, seq: int, turn: str | None, reason: str, raw: str) -> Record:
    body = {"reason": reason, "raw": raw, "thread": thread_id}
    return Record(VERSION, seq, turn, CORRUPT, "", 0, body)
