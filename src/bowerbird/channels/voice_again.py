"""A voice message that could not be written down, and the button that tries again (AS-22).

Here: that card. Not here: downloading and transcribing, which the channel does.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import msgspec

from bowerbird.channels.cards import EXPIRED, Face, Option, Outcome, Press, card_of
from bowerbird.channels.contract import IncomingMessage
from bowerbird.core.forms import convert
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.store.channels.cards import CardRow

RETRY_HOURS = 24


class VoiceAgain:
    """Handles the cards of voice messages that failed.

    Args:
        again: carries the message out once more.
    """

    kind = "again"
    deciding = frozenset({"retry"})

    def __init__(self, again: Callable[[IncomingMessage], Awaitable[None]]) -> None:
        self._again = again

    @staticmethod
    def face(text: str, message: IncomingMessage) -> Face:
        """Return what is said of a message that failed."""
        is_voice = any(media.kind in ("voice", "audio") for media in message.media)
        return Face(text, ((Option("Retry", "retry", who=message.user_id),),) if is_voice else ())

    @classmethod
    def card(cls, message: IncomingMessage, thread_id: str) -> CardRow:
        """Return the card that knows the message."""
        until = to_iso(datetime.now(UTC) + timedelta(hours=RETRY_HOURS))
        body = {"message": msgspec.to_builtins(message, enc_hook=str), "until": until}
        return card_of(message.channel, message.chat_id, thread_id, cls.kind, body)

    async def pressed(self, press: Press) -> Outcome:
        """Try again."""
        if from_iso(str(press.card.body["until"])) < datetime.now(UTC):
            return Outcome(EXPIRED, is_decided=True)
        await self._again(convert(press.card.body["message"], IncomingMessage))
        return Outcome("Trying again", Face("Trying again …"), is_decided=True)
