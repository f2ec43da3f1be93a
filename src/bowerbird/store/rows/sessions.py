"""Rows of `sessions` and `counters`: one durable dialogue each (SE-1 … SE-4, 49).

Here: reading and writing those rows inside a given transaction. Not here: how a thread id is
spelled (`sessions/thread_ids.py`), turns, journals.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, and_, bindparam, func, or_, select

from bowerbird.core.errors import UnknownSession
from bowerbird.core.forms import decode
from bowerbird.core.ids import check_stored_thread_id
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.statements import Prepared, insert_row, rows_where, update_rows
from bowerbird.store.sql.tables import counters, sessions


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session; columns of SE §2, `flags` as a mapping."""

    thread_id: str
    kind: str = "cli"
    channel: str | None = None
    chat_id: str | None = None
    counter: int = 0
    owner: str | None = None
    title: str | None = None
    preset: str | None = None
    system_prompt: str | None = None
    flags: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    thinking_effort: str | None = None
    auto_approve: bool = False
    workspace: str | None = None
    branch_id: str | None = None
    status: str = "idle"
    last_seq: int = 0
    parent_thread_id: str | None = None
    parent_seq: int | None = None
    created_at: str = msgspec.field(default_factory=now_iso)
    updated_at: str = msgspec.field(default_factory=now_iso)
    deleted_at: str | None = None
    changed_files: int = 0
    messages: int = 0
    bytes: int = 0


_LOCKED = select(sessions).where(sessions.c.thread_id == bindparam("b_thread")).with_for_update()
_MORE_MESSAGES = (
    sessions.update()
    .where(sessions.c.thread_id == bindparam("b_thread"))
    .values(messages=sessions.c.messages + bindparam("b_more"))
)
_STATUS = Prepared(
    sessions.update()
    .where(sessions.c.thread_id == bindparam("b_thread"))
    .values(
        status=bindparam("b_status"),
        messages=sessions.c.messages + bindparam("b_more"),
        updated_at=bindparam("b_now"),
    ),
    ("b_status", "b_more", "b_now", "b_thread"),
)


def _row(row: RowMapping) -> SessionRow:
    values: dict[str, Any] = {str(key): value for key, value in row.items()}
    values["flags"] = decode(values["flags"] or "{}")
    return SessionRow(**values)


def insert_session(connection: Connection, session: SessionRow) -> None:
    """Add a session; the id must be new. Raises InvalidThreadId."""
    check_stored_thread_id(session.thread_id)
    values = msgspec.structs.asdict(session)
    values["flags"] = msgspec.json.encode(session.flags).decode()
    insert_row(connection, sessions, values)


def find_session(connection: Connection, thread_id: str, *, deleted: bool = False) -> SessionRow | None:
    """Return the session, None when there is none; deleted ones only if asked for."""
    row = rows_where(connection, sessions, {"thread_id": thread_id}).mappings().first()
    if row is None or (row["deleted_at"] is not None and not deleted):
        return None
    return _row(row)


def session_of_branch(connection: Connection, branch_id: str) -> SessionRow | None:
    """Return the living session that a branch belongs to, None without one."""
    rows = rows_where(connection, sessions, {"branch_id": branch_id}).mappings()
    return next((_row(row) for row in rows if row["deleted_at"] is None), None)


def get_session(connection: Connection, thread_id: str) -> SessionRow:
    """Return the session; raises UnknownSession."""
    session = find_session(connection, thread_id)
    if session is None:
        raise UnknownSession(f"no session {thread_id}")
    return session


def lock_session(connection: Connection, thread_id: str) -> SessionRow:
    """Return the session, its row locked until the transaction ends; raises UnknownSession."""
    row = connection.execute(_LOCKED, {"b_thread": thread_id}).mappings().first()
    if row is None or row["deleted_at"] is not None:
        raise UnknownSession(f"no session {thread_id}")
    return _row(row)


def sessions_like(connection: Connection, prefix: str, *, below: bool = True) -> list[SessionRow]:
    """Return the living sessions whose id starts with `prefix`, newest first.

    Args:
        below: subagents and teammates too, whose ids begin with their session's.
    """
    is_meant = sessions.c.thread_id.startswith(prefix, autoescape=True) & sessions.c.deleted_at.is_(None)
    statement = (
        select(sessions)
        .where(is_meant if below else is_meant & sessions.c.kind.not_in(("subagent", "teammate")))
        .order_by(sessions.c.updated_at.desc())
        .limit(50)
    )
    return [_row(row) for row in connection.execute(statement).mappings()]


def deleting_sessions(connection: Connection) -> list[SessionRow]:
    """Return deleted sessions whose branch may not be put away yet."""
    statement = select(sessions).where(sessions.c.deleted_at.is_not(None), sessions.c.status == "deleting")
    return [_row(row) for row in connection.execute(statement).mappings()]


def thread_ids(connection: Connection) -> list[str]:
    """Return the ids of all sessions, deleted ones included."""
    return list(connection.scalars(select(sessions.c.thread_id)))


def list_sessions(
    connection: Connection,
    *,
    workspace: str | None = None,
    kinds: Sequence[str] = (),
    before: str | None = None,
    query: str | None = None,
    owner: str | None = None,
    limit: int | None = 1000,
) -> list[SessionRow]:
    """Return living sessions, the most recently used first.

    Args:
        workspace: only those of this directory. kinds: only these kinds.
        before: only those used earlier than this one (a thread id), for paging.
        query: only those whose title or id contains it, any case.
        owner: only those of this user.
        limit: at most so many; None = all.
    """
    statement = select(sessions).where(
        _is_listed(workspace=workspace, kinds=kinds, before=before, owner=owner)
    )
    if query:
        statement = statement.where(
            or_(
                func.lower(sessions.c.title).contains(query.lower(), autoescape=True),
                sessions.c.thread_id.contains(query, autoescape=True),
            )
        )
    statement = statement.order_by(*_NEWEST).limit(limit)
    return [_row(row) for row in connection.execute(statement).mappings()]


def session_titles(
    connection: Connection,
    *,
    workspace: str | None = None,
    kinds: Sequence[str] = (),
    before: str | None = None,
    owner: str | None = None,
) -> list[tuple[str, str]]:
    """Return id and title of all living sessions, in the order of `list_sessions`; same arguments."""
    is_meant = _is_listed(workspace=workspace, kinds=kinds, before=before, owner=owner)
    statement = select(sessions.c.thread_id, sessions.c.title).where(is_meant).order_by(*_NEWEST)
    return [(str(row[0]), str(row[1] or "")) for row in connection.execute(statement)]


def sessions_of(connection: Connection, thread_ids: Sequence[str]) -> list[SessionRow]:
    """Return sessions by id, in that order; those that are not there are left out."""
    statement = select(sessions).where(sessions.c.thread_id.in_(thread_ids))
    found = {row["thread_id"]: _row(row) for row in connection.execute(statement).mappings()}
    return [found[thread_id] for thread_id in thread_ids if thread_id in found]


_NEWEST = (sessions.c.updated_at.desc(), sessions.c.thread_id)


def _is_listed(
    *, workspace: str | None, kinds: Sequence[str], before: str | None, owner: str | None
) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [sessions.c.deleted_at.is_(None)]
    if workspace is not None:
        conditions.append(sessions.c.workspace == workspace)
    if kinds:
        conditions.append(sessions.c.kind.in_(kinds))
    if owner is not None:
        conditions.append(sessions.c.owner == owner)
    if before is not None:
        mark = select(sessions.c.updated_at).where(sessions.c.thread_id == before).scalar_subquery()
        # Those used at the same instant follow in the order of their ids, as in `_NEWEST`.
        same = and_(sessions.c.updated_at == mark, sessions.c.thread_id > before)
        conditions.append(or_(sessions.c.updated_at < mark, same))
    return and_(*conditions)


def update_session(connection: Connection, thread_id: str, **values: Any) -> None:
    """Set columns of a session; `flags` is given as a mapping. Also moves `updated_at`."""
    if "flags" in values:
        values["flags"] = msgspec.json.encode(values["flags"]).decode()
    values.setdefault("updated_at", now_iso())
    update_rows(connection, sessions, {"thread_id": thread_id}, values)


def set_status(connection: Connection, thread_id: str, status: str, messages: int = 0) -> None:
    """Set a session's status, and count `messages` more of what people said and were answered."""
    _STATUS.one(connection, (status, messages, now_iso(), thread_id))


def count_messages(connection: Connection, thread_id: str, more: int) -> None:
    """Count `more` messages of a session."""
    connection.execute(_MORE_MESSAGES, {"b_thread": thread_id, "b_more": more})


# ---------------------------------------------------------------- counters


def counter_of(connection: Connection, base_key: str) -> int:
    """Return how often the chat `base_key` was reset."""
    found = connection.scalar(select(counters.c.n).where(counters.c.base_key == base_key))
    return int(found or 0)


def raise_counter(connection: Connection, base_key: str, at_least: int | None = None) -> int:
    """Raise a chat's counter by one, or up to `at_least`; it never goes down.

    Returns:
        The counter after the call.
    """
    present = counter_of(connection, base_key)
    wanted = present + 1 if at_least is None else max(present, at_least)
    if wanted == present:
        return present
    changed = connection.execute(counters.update().where(counters.c.base_key == base_key).values(n=wanted))
    if changed.rowcount == 0:
        connection.execute(counters.insert().values(base_key=base_key, n=wanted))
    return wanted
