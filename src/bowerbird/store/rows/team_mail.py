"""Rows of `team_messages` and `team_requests`: what a team writes and asks (DE-57, DE-62).

Here: reading and writing those rows inside a given transaction. Not here: who may send what
(`teams/rules.py`), which answer belongs to which request (`teams/request_rules.py`).
"""

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, func, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.team_tables import team_messages, team_requests


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One message.

    Attributes:
        n: counted up per lead. box: name of the recipient. reader: its thread.
        read_at: when it was told to the reader's model; None = not yet.
    """

    lead: str
    n: int
    box: str
    reader: str
    type: str
    sender: str
    content: str
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    at: str = msgspec.field(default_factory=now_iso)
    read_at: str | None = None

    @property
    def id(self) -> str:
        """Its name in journals."""
        return f"mail:{self.n}"


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One request between a lead and a teammate; `number` is the teammate's."""

    lead: str
    request_id: str
    kind: str
    number: int
    status: str = "pending"
    created_at: str = msgspec.field(default_factory=now_iso)
    expires_at: str
    answered_at: str | None = None
    detail: str = ""


# ---------------------------------------------------------------- messages


def put_message(
    connection: Connection,
    lead: str,
    *,
    box: str,
    reader: str,
    kind: str,
    sender: str,
    content: str,
    extra: dict[str, Any],
) -> MessageRow:
    """Add a message and return it; the lead's row is locked."""
    row = MessageRow(
        lead=lead, n=newest_message(connection, lead) + 1, box=box, reader=reader, type=kind, sender=sender,
        content=content, extra=extra,
    )  # fmt: skip
    values = {**msgspec.structs.asdict(row), "extra": msgspec.json.encode(extra).decode()}
    connection.execute(team_messages.insert().values(**values))
    return row


def unread(connection: Connection, reader: str) -> list[MessageRow]:
    """Return what a thread's model was not told yet, oldest first."""
    here = (team_messages.c.reader == reader) & team_messages.c.read_at.is_(None)
    statement = select(team_messages).where(here).order_by(team_messages.c.n)
    return [_message(row) for row in connection.execute(statement).mappings()]


def unread_counts(connection: Connection, lead: str) -> dict[str, int]:
    """Return how many messages each thread of a team has not read, those without any left out."""
    statement = (
        select(team_messages.c.reader, func.count())
        .where(team_messages.c.lead == lead, team_messages.c.read_at.is_(None))
        .group_by(team_messages.c.reader)
    )
    return {reader: int(count) for reader, count in connection.execute(statement)}


def mark_read(connection: Connection, reader: str, ids: Collection[str]) -> None:
    """Say that a thread's model is told of these in this very transaction."""
    numbers = [int(found.removeprefix("mail:")) for found in ids if found.startswith("mail:")]
    if numbers:
        here = (team_messages.c.reader == reader) & team_messages.c.n.in_(numbers)
        connection.execute(team_messages.update().where(here).values(read_at=now_iso()))


def messages_of(connection: Connection, lead: str, after: int = 0) -> list[MessageRow]:
    """Return the messages of a team, oldest first; only those with a greater number than `after`."""
    here = (team_messages.c.lead == lead) & (team_messages.c.n > after)
    statement = select(team_messages).where(here).order_by(team_messages.c.n)
    return [_message(row) for row in connection.execute(statement).mappings()]


def newest_message(connection: Connection, lead: str) -> int:
    """Return the number of a team's newest message, 0 without one."""
    newest = connection.scalar(select(func.max(team_messages.c.n)).where(team_messages.c.lead == lead))
    return int(newest or 0)


def leads_with_mail(connection: Connection) -> list[str]:
    """Return the threads that have unread messages as leads."""
    here = team_messages.c.read_at.is_(None) & (team_messages.c.reader == team_messages.c.lead)
    return list(connection.scalars(select(team_messages.c.lead).where(here).distinct()))


def _message(row: RowMapping) -> MessageRow:
    values: dict[str, Any] = {str(key): value for key, value in row.items()}
    values["extra"] = decode(values["extra"], dict[str, Any])
    return MessageRow(**values)


# ---------------------------------------------------------------- requests


def requests_of(connection: Connection, lead: str, number: int | None = None) -> list[RequestRow]:
    """Return the requests of a team, or of one teammate, oldest first."""
    statement = select(team_requests).where(team_requests.c.lead == lead)
    if number is not None:
        statement = statement.where(team_requests.c.number == number)
    order = (team_requests.c.created_at, team_requests.c.request_id)
    return [RequestRow(**row) for row in connection.execute(statement.order_by(*order)).mappings()]


def insert_request(connection: Connection, row: RequestRow) -> None:
    """Add a request; its id is new in its team."""
    connection.execute(team_requests.insert().values(**msgspec.structs.asdict(row)))


def close_request(connection: Connection, row: RequestRow, status: str, detail: str | None = None) -> bool:
    """Decide a pending request; False when it is decided already."""
    here = (team_requests.c.lead == row.lead) & (team_requests.c.request_id == row.request_id)
    here &= team_requests.c.status == "pending"
    values: dict[str, Any] = {"status": status, "answered_at": now_iso()}
    values |= {} if detail is None else {"detail": detail}
    return connection.execute(team_requests.update().where(here).values(**values)).rowcount > 0


def due_requests(connection: Connection, now: str) -> list[RequestRow]:
    """Return the pending requests of all teams whose time is over."""
    here = (team_requests.c.status == "pending") & (team_requests.c.expires_at <= now)
    return [RequestRow(**row) for row in connection.execute(select(team_requests).where(here)).mappings()]


def next_expiry(connection: Connection) -> str | None:
    """Return when the next pending request expires, None without one."""
    statement = select(func.min(team_requests.c.expires_at)).where(team_requests.c.status == "pending")
    return connection.scalar(statement)
