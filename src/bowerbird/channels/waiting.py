"""A mark on each message that waits for its turn (AS-9).

Here: setting it when a message is queued, and taking it off when its turn begins. Not here: queueing.

What is marked is remembered by this process alone: after a restart a mark may stay, which costs nothing.
"""

import logging
from collections import OrderedDict
from typing import Protocol, runtime_checkable

from bowerbird.channels.contract import Channel, ChannelError, IncomingMessage
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.tasks import Tasks
from bowerbird.sessions.live.hub import InputMark, Published, TurnMark
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.values import Receipt

WAITS = "👀"
MOST = 1_000

_log = logging.getLogger(__name__)


@runtime_checkable
class ReactingChannel(Protocol):
    """A channel whose bot can react to a message."""

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Set the bot's reaction to a message, "" for none; raises like `send`."""
        ...


class WaitingMarks:
    """The marks of one channel."""

    def __init__(self, sessions: SessionService, channel: Channel) -> None:
        self._sessions = sessions
        self._channel = channel
        self._tasks = Tasks(f"marks of {channel.name}")
        self._marked: OrderedDict[str, tuple[str, str]] = OrderedDict()  # by turn: chat and message

    def accepted(self, message: IncomingMessage, receipt: Receipt) -> None:
        """Mark a message that was accepted and has to wait; returns at once."""
        is_marked = isinstance(self._channel, ReactingChannel) and message.message_id is not None
        if not is_marked or receipt.duplicate or receipt.position == 0 or receipt.turn_id in self._marked:
            return
        self._marked[receipt.turn_id] = (message.chat_id, str(message.message_id))
        while len(self._marked) > MOST:
            self._marked.popitem(last=False)
        self._tasks.spawn(self._mark(receipt.turn_id))

    def heard(self, published: Published) -> None:
        """Take the mark off a message whose turn begins, or that was taken back; returns at once."""
        event, turn_id = published.event, published.turn_id
        is_over = (isinstance(event, TurnMark) and event.state != "queued") or (
            isinstance(event, InputMark) and event.state == "cancelled"
        )
        if is_over and turn_id in self._marked:
            self._tasks.spawn(self._react(*self._marked.pop(turn_id), ""))

    async def stop(self) -> None:
        """Mark nothing more."""
        await self._tasks.cancel()

    async def _mark(self, turn_id: str) -> None:
        place = self._marked.get(turn_id)
        if place is None:
            return
        await self._react(*place, WAITS)
        if turn_id not in self._marked:  # its turn began meanwhile, and its mark may have come later
            await self._react(*place, "")

    async def _react(self, chat_id: str, message_id: str, emoji: str) -> None:
        try:
            if isinstance(self._channel, ReactingChannel):
                await self._channel.react(chat_id, message_id, emoji)
        except (ChannelError, BowerbirdError) as error:  # of all that is sent it is the least
            _log.info("%s: a message is not marked as waiting: %s", self._channel.name, error)
