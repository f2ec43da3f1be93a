"""Rows of what arrived in chat channels and of what was sent there (AS-4, AS-14, AS-19).

Here: reading and writing those rows inside a given transaction. Not here: plain messages, whose row is in
`inbox`; what an update does.
"""

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.timestamps import now_iso
from bowerbird.store.journal.quarantine import put_aside
from bowerbird.store.rows.turns import find_input
from bowerbird.store.sql.channel_tables import channel_sent, channel_updates

MOST_ATTEMPTS = 3


class UpdateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One update that is carried out apart from its arrival; `body` is the message as JSON."""

    id: int
    channel: str
    dedupe_key: str
    state: str
    attempts: int
    body: str
    at: str


def is_known(connection: Connection, channel: str, dedupe_key: str) -> bool:
    """Whether an update was accepted before; one that only failed so far was not."""
    table = channel_updates.c
    row = connection.execute(
        select(table.state, table.body).where(table.channel == channel, table.dedupe_key == dedupe_key)
    ).first()
    if row is not None and not (row.state == "waiting" and not row.body):
        return True
    return find_input(connection, channel, dedupe_key) is not None


def keep_update(connection: Connection, channel: str, dedupe_key: str, body: str) -> UpdateRow | None:
    """Keep an update that is to be carried out; None when it is known."""
    if is_known(connection, channel, dedupe_key):
        return None
    table = channel_updates.c
    here = (table.channel == channel, table.dedupe_key == dedupe_key)
    connection.execute(channel_updates.delete().where(*here))
    values = {
        "channel": channel,
        "dedupe_key": dedupe_key,
        "state": "waiting",
        "attempts": 0,
        "at": now_iso(),
    }
    connection.execute(channel_updates.insert().values(body=body, **values))
    return _row(connection, channel, dedupe_key)


def waiting_updates(connection: Connection, channel: str) -> list[UpdateRow]:
    """Return what was accepted and not carried out, in the order of its arrival."""
    table = channel_updates.c
    query = (
        select(channel_updates)
        .where(table.channel == channel, table.state == "waiting", table.body != "")
        .order_by(table.id)
    )
    return [UpdateRow(**row) for row in connection.execute(query).mappings()]


def begin_update(connection: Connection, update_id: int) -> int:
    """Count an attempt at carrying an update out; returns which one it is."""
    table = channel_updates.c
    connection.execute(
        channel_updates.update().where(table.id == update_id).values(attempts=table.attempts + 1)
    )
    return int(connection.scalar(select(table.attempts).where(table.id == update_id)) or 0)


def leave_update(connection: Connection, update_id: int) -> None:
    """Take an attempt back that was ended without fault of the update."""
    table = channel_updates.c
    connection.execute(
        channel_updates.update().where(table.id == update_id).values(attempts=table.attempts - 1)
    )


def finish_update(connection: Connection, update_id: int) -> None:
    """Note that an update was carried out; its key stays."""
    table = channel_updates.c
    connection.execute(channel_updates.update().where(table.id == update_id).values(state="done", body=""))


def note_failure(connection: Connection, channel: str, dedupe_key: str, raw: str, reason: str) -> bool:
    """Count a failure to accept an update; at the third it is set aside. Returns whether it was."""
    row = _row(connection, channel, dedupe_key)
    if row is None:
        values = {"channel": channel, "dedupe_key": dedupe_key, "state": "waiting", "body": ""}
        connection.execute(channel_updates.insert().values(attempts=1, at=now_iso(), **values))
        return False
    attempts = begin_update(connection, row.id)
    if attempts < MOST_ATTEMPTS:
        return False
    quarantine_update(connection, row, raw, reason)
    return True


def quarantine_update(connection: Connection, row: UpdateRow, raw: str, reason: str) -> None:
    """Set an update aside: it is kept as it came, and not tried again."""
    put_aside(connection, source=row.channel, key=row.dedupe_key, reason=reason, raw=raw, at=now_iso())
    table = channel_updates.c
    connection.execute(channel_updates.update().where(table.id == row.id).values(state="set_aside", body=""))


def _row(connection: Connection, channel: str, dedupe_key: str) -> UpdateRow | None:
    table = channel_updates.c
    query = select(channel_updates).where(table.channel == channel, table.dedupe_key == dedupe_key)
    row = connection.execute(query).mappings().first()
    return None if row is None else UpdateRow(**row)


# ------------------------------------------------------------ what was sent


def sent_parts(connection: Connection, channel: str, key: str) -> dict[int, str]:
    """Return the ids of the messages that parts of a parcel became, by part."""
    table = channel_sent.c
    query = select(table.part, table.message_id).where(table.channel == channel, table.key == key)
    return {int(row.part): str(row.message_id) for row in connection.execute(query)}


def note_sent(connection: Connection, channel: str, key: str, part: int, message_id: str) -> None:
    """Note that a part arrived."""
    table = channel_sent.c
    here = (table.channel == channel, table.key == key, table.part == part)
    connection.execute(channel_sent.delete().where(*here))
    values = {"channel": channel, "key": key, "part": part, "message_id": message_id, "at": now_iso()}
    connection.execute(channel_sent.insert().values(**values))


def forget_updates(connection: Connection, before: str) -> None:
    """Forget keys and parts from before a time."""
    connection.execute(channel_updates.delete().where(channel_updates.c.at < before))
    connection.execute(channel_sent.delete().where(channel_sent.c.at < before))
