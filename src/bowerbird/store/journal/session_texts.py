"""Rows of `session_texts`: what was said in sessions, folded, to find them by (UI-82).

Here: those rows, and the records they are made from, inside a given transaction. Not here: what a record's
text is, folding, when the rows are made (`sessions/searching.py`).

They say nothing that the journal does not: made again whenever they are missing. A part covers the records
up to `upto`; it grows while it is small, so that many searches leave few rows.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, case, func, literal, or_, select

from bowerbird.store.journal.journal import Record
from bowerbird.store.journal.reading import read_of_types
from bowerbird.store.sql.statements import insert_row
from bowerbird.store.sql.tables import session_texts, sessions

PART_CHARS = 16_000
_RECORDS = 500  # read of one session at once
_TYPES = ("user", "assistant")


class Behind(msgspec.Struct, frozen=True):
    """A session of which something was said that no row has.

    Attributes:
        part, upto: its last row and what that covers; -1 and 0 when it has none.
        last_seq: its newest record.
    """

    thread_id: str
    part: int
    upto: int
    last_seq: int


def sessions_behind(connection: Connection, kinds: Sequence[str], limit: int) -> list[Behind]:
    """Return sessions that rows are missing of, the most recently used first."""
    newest = (
        select(
            session_texts.c.thread_id,
            func.max(session_texts.c.part).label("part"),
            func.max(session_texts.c.upto).label("upto"),
        )
        .group_by(session_texts.c.thread_id)
        .subquery()
    )
    upto = func.coalesce(newest.c.upto, 0)
    statement = (
        select(
            sessions.c.thread_id,
            func.coalesce(newest.c.part, -1).label("part"),
            upto.label("upto"),
            sessions.c.last_seq,
        )
        .join_from(sessions, newest, newest.c.thread_id == sessions.c.thread_id, isouter=True)
        .where(sessions.c.deleted_at.is_(None), sessions.c.kind.in_(kinds), sessions.c.last_seq > upto)
        .order_by(sessions.c.updated_at.desc())
        .limit(limit)
    )
    return [Behind(**row) for row in connection.execute(statement).mappings()]


def said_after(connection: Connection, behind: Behind) -> tuple[list[Record], int]:
    """Return what was said that no row has, a bounded number of records, and the record they reach to."""
    found = read_of_types(
        connection, behind.thread_id, _TYPES, after=behind.upto, upto=behind.last_seq, limit=_RECORDS
    )
    return found, found[-1].seq if len(found) == _RECORDS else behind.last_seq


def add_texts(connection: Connection, behind: Behind, texts: Sequence[tuple[int, str]]) -> None:
    """Keep folded texts, each with the record it reaches to; nothing when somebody else did so meanwhile."""
    table = session_texts.c
    of_thread = table.thread_id == behind.thread_id
    row = connection.execute(
        select(table.part, table.upto, func.length(table.text))
        .where(of_thread)
        .order_by(table.part.desc())
        .limit(1)
    ).first()
    part, upto, size = (-1, 0, PART_CHARS) if row is None else (int(row[0]), int(row[1]), int(row[2]))
    is_there = select(sessions.c.thread_id).where(sessions.c.thread_id == behind.thread_id)
    if (part, upto) != (behind.part, behind.upto) or connection.scalar(is_there) is None:
        return
    for reach, text in texts:
        if size + len(text) < PART_CHARS:
            change = session_texts.update().where(of_thread, table.part == part)
            connection.execute(
                change.values(upto=reach, text=table.text + f"\n{text}" if text else table.text)
            )
            size += len(text) + 1
        else:
            part, size = part + 1, len(text)
            values = {"thread_id": behind.thread_id, "part": part, "upto": reach, "text": text}
            insert_row(connection, session_texts, values)


def matches(connection: Connection, words: Sequence[str]) -> dict[str, tuple[bool, ...]]:
    """Return which of the folded words each session has that has any of them; bit by bit as in `words`."""
    has = [_has(word) for word in words]
    columns = [func.max(case((one, 1), else_=0)) for one in has]
    statement = (
        select(session_texts.c.thread_id, *columns).where(or_(*has)).group_by(session_texts.c.thread_id)
    )
    return {str(row[0]): tuple(bool(bit) for bit in row[1:]) for row in connection.execute(statement)}


def records_with(connection: Connection, thread_id: str, words: Sequence[str]) -> list[Record]:
    """Return what was said in the part of a session with most of the folded words, the newest such part."""
    table = session_texts.c
    has = [_has(word) for word in words]
    how_many = sum((case((one, 1), else_=0) for one in has), start=literal(0))
    found = connection.execute(
        select(table.part, table.upto)
        .where(table.thread_id == thread_id, or_(*has))
        .order_by(how_many.desc(), table.part.desc())
        .limit(1)
    ).first()
    if found is None:
        return []
    before = select(table.upto).where(and_(table.thread_id == thread_id, table.part == found[0] - 1))
    after = int(connection.scalar(before) or 0)
    return read_of_types(connection, thread_id, _TYPES, after=after, upto=int(found[1]))


def _has(word: str) -> ColumnElement[bool]:
    return session_texts.c.text.contains(word, autoescape=True)
