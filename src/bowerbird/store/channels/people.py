"""Rows of who may write in chat channels: the stored list, codes, wrong guesses (AS-5 … AS-7).

Here: reading and writing those rows inside a given transaction. Not here: the list of the settings, what a
role may do, commands.
"""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Connection, and_, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.store.rows.turns import InboxRow
from bowerbird.store.sql.channel_tables import channel_codes, channel_guesses, channel_users
from bowerbird.store.sql.tables import inbox

CODE_MINUTES = 10
MOST_GUESSES = 5  # wrong codes of one sender in one hour
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # none that look alike


class ChannelUser(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the stored list; `role` is `owner`, `guest` or `denied`."""

    channel: str
    user_id: str
    role: str
    name: str = ""
    by: str = "cli"
    at: str = msgspec.field(default_factory=now_iso)


def put_user(connection: Connection, user: ChannelUser) -> None:
    """Add an entry, or change the one of this user."""
    table = channel_users.c
    connection.execute(
        channel_users.delete().where(table.channel == user.channel, table.user_id == user.user_id)
    )
    connection.execute(channel_users.insert().values(**msgspec.structs.asdict(user)))


def find_user(connection: Connection, channel: str, user_id: str) -> ChannelUser | None:
    """Return a user's entry, None when the list has none."""
    table = channel_users.c
    row = connection.execute(
        select(channel_users).where(table.channel == channel, table.user_id == user_id)
    ).mappings()
    found = row.first()
    return None if found is None else ChannelUser(**found)


def list_users_of(connection: Connection, channel: str) -> list[ChannelUser]:
    """Return the stored list of a channel, the oldest entries first."""
    table = channel_users.c
    query = select(channel_users).where(table.channel == channel).order_by(table.at, table.user_id)
    return [ChannelUser(**row) for row in connection.execute(query).mappings()]


def make_code(connection: Connection, channel: str, role: str) -> tuple[str, str]:
    """Return a new one-time code of 8 characters and when it ends; only its hash is kept."""
    now = datetime.now(UTC)
    connection.execute(channel_codes.delete().where(channel_codes.c.expires_at < to_iso(now)))
    code = "".join(secrets.choice(_LETTERS) for _ in range(8))
    until = to_iso(now + timedelta(minutes=CODE_MINUTES))
    values = {"sha256": _hash(channel, code), "channel": channel, "role": role, "expires_at": until}
    connection.execute(channel_codes.insert().values(**values))
    return code, until


def use_code(connection: Connection, channel: str, code: str, user_id: str, name: str) -> str | None:
    """Add the user whom a code admits; returns the role, None when the code admits nobody.

    A wrong code counts against its sender; after 5 in an hour no code of theirs is looked at.
    """
    now = now_iso()
    guess = channel_guesses.c
    here = and_(guess.channel == channel, guess.user_id == user_id, guess.hour == now[:13])
    wrong = int(connection.scalar(select(guess.n).where(here)) or 0)
    if wrong >= MOST_GUESSES:
        return None
    table = channel_codes.c
    is_open = and_(
        table.sha256 == _hash(channel, code.strip().upper()),
        table.channel == channel,
        table.expires_at > now,
        table.used_by.is_(None),
    )
    role = connection.scalar(select(table.role).where(is_open))
    taken = connection.execute(channel_codes.update().where(is_open).values(used_by=user_id)).rowcount
    if role is not None and taken:
        put_user(connection, ChannelUser(channel=channel, user_id=user_id, role=role, name=name, by="code"))
        return str(role)
    connection.execute(channel_guesses.delete().where(guess.hour < now[:13]))
    connection.execute(channel_guesses.delete().where(here))
    connection.execute(
        channel_guesses.insert().values(channel=channel, user_id=user_id, hour=now[:13], n=wrong + 1)
    )
    return None


def queued_inputs_of(connection: Connection, channel: str, user_id: str) -> list[InboxRow]:
    """Return what a user sent through a channel and no turn has taken yet."""
    rows = connection.execute(
        select(inbox).where(inbox.c.door == channel, inbox.c.state == "queued")
    ).mappings()
    return [row for row in (InboxRow(**found) for found in rows) if _sender(row) == user_id]


def _sender(row: InboxRow) -> str:
    return str(decode(row.sender, dict[str, object]).get("id"))


def _hash(channel: str, code: str) -> str:
    return hashlib.sha256(f"{channel}:{code}".encode()).hexdigest()
