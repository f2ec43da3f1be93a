"""Messages with buttons: shown, changed, pressed (AS-21).

Here: which press reaches what handles its kind, and that each card is decided once. Not here: what any kind
of card shows and does (`review/review_cards.py`, `request_cards.py`, …), rows (`store/channels/cards.py`).

A button's data is `kind:verb:key`. The key names a stored row, so that nothing but the key of a button that
was shown does anything, and what it does is what the row says.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec
from sqlalchemy import Connection

from bowerbird.channels.admission import Role
from bowerbird.channels.contract import Button, Channel, IncomingMessage, SendResult
from bowerbird.core.errors import BowerbirdError, StoreError
from bowerbird.store.channels.cards import (
    ButtonRow,
    CardRow,
    bind_card,
    claim_card,
    find_button,
    find_card,
    finish_card,
    insert_card,
    new_key,
    put_buttons,
    release_card,
    set_body,
)
from bowerbird.store.store import Store

NOT_FOR_YOU = "Not for you"
EXPIRED = "Expired"
UNDER_WAY = "It is being done"
MAX_DATA_BYTES = 64
SAID_CHARS = 200  # a service shows no more in answer to a press

_DATA = re.compile(r"(?P<kind>[a-z]{1,12}):(?P<verb>[a-z_]{1,16}):(?P<key>[A-Za-z0-9_-]{22})")


@dataclass(frozen=True, slots=True)
class Option:
    """One button of a card before it is shown.

    Attributes:
        verb: what it does, in its kind's words. who: `owner`, `any` of the chat, or a user's id.
    """

    label: str
    verb: str
    argument: str = ""
    who: str = "any"


Rows = Sequence[Sequence[Option]]


@dataclass(frozen=True, slots=True)
class Face:
    """How a card looks: Markdown, and its buttons in rows.

    Attributes:
        is_plain: the text is shown as it stands. is_part: it is one of the channel's own parts already.
    """

    text: str
    rows: Rows = ()
    is_plain: bool = False
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Press:
    """A press that was found to be allowed."""

    card: CardRow
    verb: str
    argument: str
    message: IncomingMessage
    role: Role

    @property
    def by(self) -> str:
        """Who pressed, for records."""
        return self.message.user_name or self.message.user_id


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a press did.

    Attributes:
        said: shown to whoever pressed. face: how the card looks now; None = as before.
        body: what the card holds now; None = as before.
        is_decided: the card is done: every later press only reports `said`.
        following: a new card that takes the message over, with the buttons of `face`.
    """

    said: str = ""
    face: Face | None = None
    body: dict[str, Any] | None = None
    is_decided: bool = False
    following: CardRow | None = None


class CardKind(Protocol):
    """What handles the cards of one kind."""

    @property
    def deciding(self) -> frozenset[str]:
        """The verbs that decide a card: one press of them at a time."""
        ...

    async def pressed(self, press: Press) -> Outcome:
        """Do what a button says.

        Raises:
            BowerbirdError: it was not done; the text is shown, and the card stays open.
        """
        ...


Verdict = Literal["go", "not_for_you", "expired", "done"]


def verdict(button: ButtonRow, card: CardRow, message: IncomingMessage, role: Role) -> Verdict:
    """Return what becomes of a press. Pure.

    A card whose message is not known yet was pressed before its sending was noted: its key is proof enough.
    """
    if card.channel != message.channel or card.chat_id != message.chat_id:
        return "not_for_you"
    if button.who == "owner" and role != "owner":
        return "not_for_you"
    if button.who not in ("owner", "any") and button.who != message.user_id:
        return "not_for_you"
    if card.is_over or card.message_id not in (None, message.message_id):
        return "expired"
    return "done" if card.state == "done" else "go"


def data_of(kind: str, verb: str, key: str) -> str:
    """Return the data of a button; raises ValueError when it would be too long."""
    data = f"{kind}:{verb}:{key}"
    if not _DATA.fullmatch(data) or len(data.encode()) > MAX_DATA_BYTES:
        raise ValueError(f"the data of a button is {data!r}")
    return data


class CardDesk:
    """The cards of one channel."""

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._kinds: dict[str, CardKind] = {}

    def handle(self, kind: str, by: CardKind) -> None:
        """Have the cards of a kind handled."""
        self._kinds[kind] = by

    async def show(
        self,
        chat_id: str,
        face: Face,
        card: CardRow,
        *,
        reply_to: str | None = None,
        silent: bool = False,
        edits: str | None = None,
        same: Callable[[Connection, str], None] | None = None,
    ) -> str | None:
        """Send a new card; returns the id of its message.

        Args:
            card: where it belongs and what it holds; its id is its own.
            edits: id of a message that becomes the card.
            same: what else is noted in the transaction that notes the message.

        Raises:
            RetryLater, Rejected, Gone: it was not sent.
        """

        def keep(connection: Connection) -> list[ButtonRow]:
            if find_card(connection, card.card_id) is None:  # it may be a second try
                insert_card(connection, card)
            return put_buttons(connection, card.card_id, _rows(card, face))

        drawn = _drawn(card, face, await self._store.write(keep))
        *before, last = self._cut(face)
        for part in before:
            await self._channel.send(chat_id, part, reply_to_message_id=reply_to, disable_notification=silent)
            reply_to = None
        sent = await self._channel.send(
            chat_id, last, reply_to_message_id=reply_to, disable_notification=silent, buttons=drawn,
            is_plain=face.is_plain, edit_message_id=None if before else edits,
        )  # fmt: skip

        def bind(connection: Connection) -> None:
            if sent is not None:
                bind_card(connection, card.card_id, sent.message_id)
            if same is not None:
                same(connection, "" if sent is None else sent.message_id)

        await self._store.write(bind)
        return None if sent is None else sent.message_id

    async def redraw(self, card: CardRow, face: Face) -> SendResult | None:
        """Change a card's message, or send it anew where the channel cannot; raises like `show`."""
        wanted = _rows(card, face)
        drawn = _drawn(card, face, await self._store.write(lambda c: put_buttons(c, card.card_id, wanted)))
        target = card.message_id if self._channel.edits else None
        sent = await self._channel.send(
            card.chat_id, self._cut(face)[-1], buttons=drawn, edit_message_id=target, is_plain=face.is_plain,
            disable_notification=True,
        )  # fmt: skip
        if sent is not None and sent.message_id != card.message_id:
            await self._store.write(lambda c: bind_card(c, card.card_id, sent.message_id))
        return sent

    def _cut(self, face: Face) -> Sequence[str]:
        """Return the messages of a face: its buttons are under the last, which is the card's own."""
        if face.is_plain or face.is_part:
            return [face.text]
        return self._channel.parts(face.text) or [face.text]

    async def close(self, card: CardRow, face: Face, result: str) -> None:
        """Decide a card from elsewhere, and show it so."""
        await self._store.write(lambda c: finish_card(c, card.card_id, result))
        await self.redraw(card, face)

    async def say(self, chat_id: str, text: str) -> list[str]:
        """Say something longer beside a card; returns the ids of its messages. Raises like `show`."""
        sent = [await self._channel.send(chat_id, part) for part in self._channel.parts(text)]
        return [one.message_id for one in sent if one is not None]

    async def remember(self, card: CardRow, message_ids: Iterable[str]) -> None:
        """Keep what was shown without buttons, for those who answer it."""

        def keep(connection: Connection) -> None:
            for message_id in message_ids:
                row = msgspec.structs.replace(card, card_id=new_key(), message_id=message_id)
                insert_card(connection, row)

        await self._store.write(keep)

    async def press(self, message: IncomingMessage, role: Role) -> str:
        """Do what a pressed button says; returns what to tell whoever pressed it.

        Raises:
            StoreError: nothing is known to have been done; the press comes again.
            RetryLater, Rejected, Gone: it was done, and could not be shown.
        """
        data = _DATA.fullmatch(message.text)
        if data is None:
            return EXPIRED
        found = await self._store.read(lambda c: find_button(c, data["key"]))
        if found is None or found[1].kind != data["kind"] or found[0].verb != data["verb"]:
            return EXPIRED
        button, card = found
        kind = self._kinds.get(card.kind)
        what = verdict(button, card, message, role)
        if what == "not_for_you":
            return NOT_FOR_YOU
        if what == "expired" or kind is None:
            return EXPIRED
        if what == "done":
            return card.result or EXPIRED
        return await self._act(kind, Press(card, button.verb, button.argument, message, role))

    async def act(self, card: CardRow, verb: str, message: IncomingMessage, role: Role) -> str:
        """Do what a button of a card would, because a command asks for it; raises like `press`."""
        return await self._act(self._kinds[card.kind], Press(card, verb, "", message, role))

    async def _act(self, kind: CardKind, press: Press) -> str:
        card = press.card
        decides = press.verb in kind.deciding
        if decides:
            claim = press.message.dedupe_key
            if not await self._store.write(lambda c: claim_card(c, card.card_id, claim)):
                now = await self._store.read(lambda c: find_card(c, card.card_id))
                return (now.result if now is not None else None) or UNDER_WAY
        try:
            outcome = await kind.pressed(press)
        except StoreError:
            raise
        except BowerbirdError as error:
            if decides:
                await self._store.write(lambda c: release_card(c, card.card_id))
            return str(error)[:SAID_CHARS]
        await self._store.write(lambda c: _note(c, card, outcome, decides=decides))
        if outcome.face is not None:
            following = outcome.following
            if following is not None:
                following = msgspec.structs.replace(following, message_id=card.message_id)
            await self.redraw(following or card, outcome.face)
        return outcome.said[:SAID_CHARS]


def _note(connection: Connection, card: CardRow, outcome: Outcome, *, decides: bool) -> None:
    if outcome.body is not None:
        set_body(connection, card.card_id, outcome.body)
    if outcome.is_decided:
        finish_card(connection, card.card_id, outcome.said)
        if outcome.following is not None:
            insert_card(connection, msgspec.structs.replace(outcome.following, message_id=card.message_id))
    elif decides:
        release_card(connection, card.card_id)


def _rows(card: CardRow, face: Face) -> list[ButtonRow]:
    return [
        ButtonRow(key=new_key(), card_id=card.card_id, verb=one.verb, argument=one.argument, who=one.who)
        for row in face.rows
        for one in row
    ]


def _drawn(card: CardRow, face: Face, buttons: Sequence[ButtonRow]) -> list[list[Button]]:
    left = iter(buttons)
    return [
        [Button(one.label, data_of(card.kind, one.verb, next(left).key)) for one in row] for row in face.rows
    ]


def card_of(channel: str, chat_id: str, thread_id: str, kind: str, body: Mapping[str, Any]) -> CardRow:
    """Return a new card."""
    return CardRow(
        card_id=new_key(), channel=channel, chat_id=chat_id, thread_id=thread_id, kind=kind, body=dict(body)
    )
