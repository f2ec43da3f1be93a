"""Rows of `notifications`: what a session's model is told once, before its next call (DE-29).

Here: reading and writing them inside a given transaction. Not here: what they say, who is woken
(`sessions/turn/background_notices.py`).
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, select

from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.store.sql.statements import rows_where
from bowerbird.store.sql.tables import journal, notifications, sessions

KEPT_DAYS = 90


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One notice.

    Attributes:
        source, key: what it is about; a session is told of each such pair once.
        body: what viewers are told. content: what the model is told.
        wakes: an idle session starts a turn for it.
        state: `pending`, `delivered`.
    """

    thread_id: str
    source: str
    key: str
    body: dict[str, str]
    content: str
    wakes: bool = False
    state: str = "pending"
    id: str = msgspec.field(default_factory=lambda: new_id("n"))
    created_at: str = msgspec.field(default_factory=now_iso)


def insert_notification(connection: Connection, row: Notification) -> bool:
    """Add a notice; False when there is one of the same source and key, or no such session.

    What the session was told long ago is forgotten.
    """
    same = (
        (notifications.c.thread_id == row.thread_id)
        & (notifications.c.source == row.source)
        & (notifications.c.key == row.key)
    )
    if connection.scalar(select(notifications.c.id).where(same)) is not None:
        return False
    if connection.scalar(select(sessions.c.thread_id).where(sessions.c.thread_id == row.thread_id)) is None:
        return False
    old = (notifications.c.state == "delivered") & (notifications.c.thread_id == row.thread_id)
    connection.execute(notifications.delete().where(old, notifications.c.created_at < _days_ago(KEPT_DAYS)))
    values = {**msgspec.structs.asdict(row), "body": msgspec.json.encode(row.body).decode()}
    connection.execute(notifications.insert().values(**values))
    return True


def pending_notifications(connection: Connection, thread_id: str) -> list[Notification]:
    """Return what a session's model was not told yet, oldest first."""
    rows = rows_where(connection, notifications, {"state": "pending", "thread_id": thread_id}).mappings()
    return sorted(map(_notification, rows), key=lambda row: (row.created_at, row.id))


def threads_to_wake(connection: Connection) -> list[str]:
    """Return the living sessions that have a notice for which an idle one starts a turn."""
    waiting = (notifications.c.state == "pending") & notifications.c.wakes
    statement = (
        select(notifications.c.thread_id)
        .join(sessions, sessions.c.thread_id == notifications.c.thread_id)
        .where(waiting, sessions.c.deleted_at.is_(None))
        .distinct()
        .order_by(notifications.c.thread_id)
    )
    return list(connection.scalars(statement))


def mark_delivered(connection: Connection, thread_id: str, ids: Collection[str]) -> None:
    """Say that the model was told of these; ids of something else are ignored."""
    if ids:
        here = (notifications.c.thread_id == thread_id) & notifications.c.id.in_(list(ids))
        connection.execute(notifications.update().where(here).values(state="delivered"))


def told_before(connection: Connection, thread_id: str, ids: Collection[str]) -> set[str]:
    """Return which of these the session's journal holds already."""
    here = (journal.c.thread_id == thread_id) & (journal.c.type == "injected")
    told: set[str] = set()
    for body in connection.scalars(select(journal.c.body).where(here)):
        told |= {wanted for wanted in ids if wanted in body}
    return told


def _notification(row: RowMapping) -> Notification:
    values: dict[str, Any] = {str(key): value for key, value in row.items()}
    values["body"] = decode(values["body"], dict[str, str])
    return Notification(**values)


def _days_ago(days: int) -> str:
    return to_iso(datetime.now(UTC) - timedelta(days=days))
