"""Rows of messages with buttons in chats: what each button does, and what became of it (AS-21).

Here: reading and writing those rows inside a given transaction. Not here: what a verb does, sending.

A card is one message. It is `open` until one of its buttons decides it, `taken` while that is done, `done`
with a result that every later press reports.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, or_, select

from bowerbird.core.forms import decode
from bowerbird.core.json_text import json_text
from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.store.sql.channel_tables import channel_buttons, channel_cards

CARD_DAYS = 7
KEY_BYTES = 16


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One message with buttons; `body` as a mapping."""

    card_id: str
    channel: str
    chat_id: str
    thread_id: str
    kind: str
    body: dict[str, Any]
    message_id: str | None = None
    state: str = "open"
    claim: str | None = None
    result: str | None = None
    expires_at: str = ""

    @property
    def is_over(self) -> bool:
        """Whether its days have passed."""
        return self.expires_at < now_iso()


class ButtonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One button; `who` is `owner`, `any` or a user's id."""

    key: str
    card_id: str
    verb: str
    argument: str = ""
    who: str = "any"


def new_key() -> str:
    """Return 128 random bits as text that fits into a button's data."""
    return secrets.token_urlsafe(KEY_BYTES)


def insert_card(connection: Connection, card: CardRow) -> None:
    """Add a card; it ends in 7 days."""
    until = to_iso(datetime.now(UTC) + timedelta(days=CARD_DAYS))
    values = msgspec.structs.asdict(card) | {"expires_at": until, "body": _text(card.body)}
    connection.execute(channel_cards.insert().values(**values))


def put_buttons(connection: Connection, card_id: str, wanted: Sequence[ButtonRow]) -> list[ButtonRow]:
    """Return buttons that do what these do, under the keys of those that the card has already.

    Those that are no longer shown stay: a second press must find what came of the first.
    """
    table = channel_buttons.c
    known = [
        ButtonRow(**row)
        for row in connection.execute(select(channel_buttons).where(table.card_id == card_id)).mappings()
    ]
    by_act = {(row.verb, row.argument, row.who): row for row in known}
    found = [by_act.get((row.verb, row.argument, row.who), row) for row in wanted]
    fresh = [row for row in found if row not in known]
    if fresh:
        connection.execute(channel_buttons.insert(), [msgspec.structs.asdict(row) for row in fresh])
    return found


def find_button(connection: Connection, key: str) -> tuple[ButtonRow, CardRow] | None:
    """Return a button and its card, None for an unknown key."""
    row = connection.execute(select(channel_buttons).where(channel_buttons.c.key == key)).mappings().first()
    if row is None:
        return None
    button = ButtonRow(**row)
    card = find_card(connection, button.card_id)
    return None if card is None else (button, card)


def find_card(connection: Connection, card_id: str) -> CardRow | None:
    """Return a card, None when there is none."""
    row = (
        connection.execute(select(channel_cards).where(channel_cards.c.card_id == card_id)).mappings().first()
    )
    if row is None:
        return None
    values: dict[str, Any] = dict(row)
    values["body"] = decode(values["body"], dict[str, Any])
    return CardRow(**values)


def newest_card(connection: Connection, thread_id: str, kind: str) -> CardRow | None:
    """Return the card of a kind that was shown last for a session."""
    table = channel_cards.c
    query = (
        select(table.card_id)
        .where(table.thread_id == thread_id, table.kind == kind)
        .order_by(table.expires_at.desc())
        .limit(1)
    )
    found = connection.scalar(query)
    return None if found is None else find_card(connection, found)


def open_cards(connection: Connection, channel: str, thread_id: str, kind: str) -> list[CardRow]:
    """Return the open cards of a kind that were shown for a session."""
    table = channel_cards.c
    query = select(table.card_id).where(
        table.channel == channel, table.thread_id == thread_id, table.kind == kind, table.state == "open"
    )
    found = [find_card(connection, card_id) for card_id in connection.scalars(query)]
    return [card for card in found if card is not None]


def card_at(connection: Connection, thread_id: str, message_id: str, kind: str) -> CardRow | None:
    """Return the card of a kind that a message of a session's chat is, None when it is none."""
    table = channel_cards.c
    found = connection.scalar(
        select(table.card_id).where(
            table.thread_id == thread_id, table.message_id == message_id, table.kind == kind
        )
    )
    return None if found is None else find_card(connection, found)


def bind_card(connection: Connection, card_id: str, message_id: str) -> None:
    """Say which message a card became."""
    connection.execute(
        channel_cards.update().where(channel_cards.c.card_id == card_id).values(message_id=message_id)
    )


def set_body(connection: Connection, card_id: str, body: dict[str, Any]) -> None:
    """Change what a card holds."""
    connection.execute(
        channel_cards.update().where(channel_cards.c.card_id == card_id).values(body=_text(body))
    )


def claim_card(connection: Connection, card_id: str, claim: str) -> bool:
    """Take an open card for one press; the same press may take it again, as after a crash."""
    table = channel_cards.c
    is_free = or_(table.state == "open", (table.state == "taken") & (table.claim == claim))
    changed = connection.execute(
        channel_cards.update().where(table.card_id == card_id, is_free).values(state="taken", claim=claim)
    )
    return changed.rowcount > 0


def release_card(connection: Connection, card_id: str) -> None:
    """Open a taken card again: nothing was decided."""
    table = channel_cards.c
    connection.execute(
        channel_cards.update()
        .where(table.card_id == card_id, table.state == "taken")
        .values(state="open", claim=None)
    )


def finish_card(connection: Connection, card_id: str, result: str) -> None:
    """Keep what came of a card; every press from now on reports it."""
    connection.execute(
        channel_cards.update()
        .where(channel_cards.c.card_id == card_id)
        .values(state="done", result=result, claim=None)
    )


def forget_cards(connection: Connection) -> None:
    """Forget cards whose days have passed, with their buttons."""
    over = select(channel_cards.c.card_id).where(channel_cards.c.expires_at < now_iso())
    connection.execute(delete(channel_buttons).where(channel_buttons.c.card_id.in_(over)))
    connection.execute(delete(channel_cards).where(channel_cards.c.expires_at < now_iso()))


def _text(body: dict[str, Any]) -> str:
    return json_text(body)
