"""What tools did in a turn, opened and closed below its answer (AS-20).

Here: the two buttons and the messages between them. Not here: how it reads (the channel's own), the answer
that carries the button (`delivering.py`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from bowerbird.channels.cards import CardDesk, Face, Option, Outcome, Press, Rows, card_of
from bowerbird.channels.contract import Channel
from bowerbird.channels.live import LiveRules
from bowerbird.core.events import AssistantStep, StepEvent, SubagentStart, ToolIntent
from bowerbird.core.messages import ThinkingBlock
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.cards import CardRow, find_card, set_body
from bowerbird.store.journal.reading import read_turn_records

NOTHING = "Nothing is known of this turn any more."


@runtime_checkable
class DetailedChannel(Protocol):
    """A channel that can show what tools did, and take messages of its own back."""

    def details(self, events: Sequence[object], hide: Callable[[str], str]) -> Sequence[str]:
        """Return parts that say what the tools of a turn did; `hide` masks secrets. Pure."""
        ...

    async def delete(self, chat_id: str, message_id: str) -> None:
        """Delete a message of the bot; one that is gone is no error. Raises like `send`."""
        ...


class DetailCards:
    """Handles the cards of kind `more`; makes them."""

    kind = "more"
    deciding = frozenset({"open", "close"})
    rows: Rows = ((Option("Details", "open"),),)

    def __init__(self, sessions: SessionService, cards: CardDesk, channel: Channel, rules: LiveRules) -> None:
        self._sessions = sessions
        self._cards = cards
        self._channel = channel
        self._rules = rules

    async def card(self, chat_id: str, thread_id: str, turn_id: str) -> CardRow | None:
        """Return the card of a turn's answer, None where there is nothing to open."""
        if not self._rules.show_tools or not isinstance(self._channel, DetailedChannel):
            return None
        if not any(map(_is_worth_it, await self._events(thread_id, turn_id))):
            return None
        return card_of(self._channel.name, chat_id, thread_id, self.kind, {"turn": turn_id})

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`."""
        if not isinstance(self._channel, DetailedChannel):
            return Outcome(NOTHING)
        if press.verb == "open":
            return await self._open(self._channel, press.card)
        return await self._close(self._channel, press.card)

    async def _open(self, channel: DetailedChannel, card: CardRow) -> Outcome:
        if card.body.get("is_open"):
            return Outcome("The details are below.")
        events = await self._events(card.thread_id, str(card.body["turn"]))
        parts = channel.details(events, self._rules.hide)
        if not parts:
            return Outcome(NOTHING)
        shown: list[str] = []
        for part in parts[:-1]:
            sent = await self._channel.send(card.chat_id, part, disable_notification=True)
            shown += [] if sent is None else [sent.message_id]
        body = {"of": card.card_id, "shown": shown}
        closing = card_of(self._channel.name, card.chat_id, card.thread_id, self.kind, body)
        face = Face(parts[-1], ((Option("Close", "close"),),), is_part=True)
        await self._cards.show(card.chat_id, face, closing, silent=True)
        return Outcome("The details are below.", body=card.body | {"is_open": True})

    async def _close(self, channel: DetailedChannel, card: CardRow) -> Outcome:
        own = () if card.message_id is None else (card.message_id,)
        for message_id in (*card.body.get("shown", ()), *own):
            await channel.delete(card.chat_id, str(message_id))
        of = str(card.body["of"])
        opened = await self._sessions.store.read(lambda c: find_card(c, of))
        if opened is not None:
            body = opened.body | {"is_open": False}
            await self._sessions.store.write(lambda c: set_body(c, of, body))
        return Outcome("Closed.", is_decided=True)

    async def _events(self, thread_id: str, turn_id: str) -> list[StepEvent]:
        records = await self._sessions.store.read(lambda c: read_turn_records(c, thread_id, turn_id))
        return [event for _, event in events_of(records) if event is not None]


def _is_worth_it(event: StepEvent) -> bool:
    if isinstance(event, AssistantStep):
        thoughts = [block.thinking for block in event.message.content if isinstance(block, ThinkingBlock)]
        return any(thought.strip() for thought in thoughts)
    return isinstance(event, ToolIntent | SubagentStart)
