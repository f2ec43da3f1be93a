"""What is said to a chat at once: answers to commands and to what could not be accepted.

Here: saying it, again for a moment where the service asks to wait. Not here: answers of turns, which the
outbox delivers until they arrive (`delivering.py`).
"""

import asyncio
import logging

from bowerbird.channels.cards import CardDesk, Face
from bowerbird.channels.commands import Answer
from bowerbird.channels.contract import Channel, ChannelError, IncomingMessage, RetryLater
from bowerbird.store.channels.cards import CardRow

TRIES = 3
LONGEST_WAIT_S = 60.0

_log = logging.getLogger(__name__)


class Speaker:
    """Speaks in one channel."""

    def __init__(self, channel: Channel, cards: CardDesk) -> None:
        self._channel = channel
        self._cards = cards

    async def answer(self, message: IncomingMessage, answer: Answer) -> None:
        """Say what a command answers; what cannot be said is logged."""
        if answer is None:
            return
        if isinstance(answer, str):
            await self.say(message.chat_id, answer, reply_to=self._reply_to(message))
        else:
            await self.say(message.chat_id, answer.face, answer.card, reply_to=self._reply_to(message))

    async def say(
        self, chat_id: str, said: Face | str, card: CardRow | None = None, *, reply_to: str | None = None
    ) -> None:
        """Say something; what cannot be said within a minute or so is logged."""
        face = Face(said) if isinstance(said, str) else said
        for attempt in range(1, TRIES + 1):
            try:
                await self._send(chat_id, face, card, reply_to)
            except RetryLater as error:
                if attempt == TRIES:
                    _log.warning("%s: an answer was not sent: %s", self._channel.name, error)
                    return
                await asyncio.sleep(min(error.seconds, LONGEST_WAIT_S))
            except ChannelError as error:
                _log.warning("%s: an answer was not sent: %s", self._channel.name, error)
                return
            else:
                return

    async def _send(self, chat_id: str, face: Face, card: CardRow | None, reply_to: str | None) -> None:
        if card is not None and face.rows:
            await self._cards.show(chat_id, face, card, reply_to=reply_to)
            return
        for part in [face.text] if face.is_plain else self._channel.parts(face.text):
            await self._channel.send(chat_id, part, reply_to_message_id=reply_to, is_plain=face.is_plain)
            reply_to = None

    @staticmethod
    def _reply_to(message: IncomingMessage) -> str | None:
        """In a group it is said whom an answer is for."""
        return None if message.is_private else message.message_id
