"""Answers shown while they are written, where a channel can do that (AS-18).

Here: which turns are shown, for how long, and under which message. Not here: how it looks and how often it
changes (the channel's own), the final answer (`delivering.py`), which takes the message over.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bowerbird.channels.contract import Channel
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.tasks import Tasks
from bowerbird.sessions.live.hub import Published, TurnMark
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.updates import note_sent, sent_parts
from bowerbird.store.rows.outbox import owes

BEHIND_LOOKS, BEHIND_S = 8, 0.25  # whether the answer before is delivered
SETTLES_S = 10.0  # what is being shown has so long to end before the final answer comes all the same

_log = logging.getLogger(__name__)


class Showing(Protocol):
    """One turn as a channel shows it while it runs."""

    async def show(self, events: AsyncIterator[object]) -> None:
        """Show the events of the turn until it stops."""
        ...


@runtime_checkable
class LiveChannel(Protocol):
    """A channel that can show an answer while it is written."""

    def live_answer(
        self,
        chat_id: str,
        keep: Callable[[str], Awaitable[None]],
        hide: Callable[[str], str],
        *,
        interval_s: float = 1.0,
        show_tools: bool = True,
        reply_to_message_id: str | None = None,
        message_id: str | None = None,
    ) -> Showing:
        """Return what shows a turn; `keep` stores its message's id, `hide` masks secrets."""
        ...


@dataclass(frozen=True, slots=True)
class LiveRules:
    """How a channel shows what is written: seconds between changes, tools or not, what masks secrets."""

    interval_s: float = 1.0
    show_tools: bool = True
    hide: Callable[[str], str] = str


def live_key(turn_id: str) -> str:
    """Return the key under which the message of a turn that is shown is kept."""
    return f"live:{turn_id}"


class LiveAnswers:
    """Shows the turns of one channel's chats that this process drives."""

    def __init__(self, sessions: SessionService, channel: Channel, rules: LiveRules) -> None:
        self._sessions = sessions
        self._channel = channel
        self._rules = rules
        self._tasks = Tasks(f"answers of {channel.name} as they are written")
        self._shown: dict[str, asyncio.Task[None]] = {}

    def heard(self, published: Published) -> None:
        """Begin to show a turn that begins; returns at once."""
        event, turn_id = published.event, published.turn_id
        is_begin = isinstance(event, TurnMark) and event.state == "running"
        if not is_begin or turn_id is None or turn_id in self._shown:
            return
        if isinstance(self._channel, LiveChannel):
            task = self._tasks.spawn(self._show(self._channel, published.thread_id, turn_id))
            self._shown[turn_id] = task
            task.add_done_callback(lambda _: self._shown.pop(turn_id, None))

    async def settled(self, turn_id: str) -> str | None:
        """Wait until a turn is shown no more; return the message that its answer takes over."""
        task = self._shown.get(turn_id)
        if task is not None:
            await asyncio.wait([task], timeout=SETTLES_S)
        found = await self._sessions.store.read(
            lambda c: sent_parts(c, self._channel.name, live_key(turn_id))
        )
        return found.get(0)

    async def stop(self) -> None:
        """Show nothing more."""
        await self._tasks.cancel()

    async def _show(self, channel: LiveChannel, thread_id: str, turn_id: str) -> None:
        name, store, rules = self._channel.name, self._sessions.store, self._rules

        async def keep(message_id: str) -> None:
            await store.write(lambda c: note_sent(c, name, live_key(turn_id), 0, message_id))

        with self._sessions.subscribe(thread_id) as viewer:
            row = await self._sessions.find(thread_id)
            if row is None or row.channel != name or row.chat_id is None or row.kind != "chat":
                return
            known = await store.read(lambda c: sent_parts(c, name, live_key(turn_id)))
            if not known and await self._is_behind(row.chat_id, turn_id):
                return  # its message would stand above an earlier answer, which is still owed
            shown = channel.live_answer(
                row.chat_id, keep, rules.hide, interval_s=rules.interval_s, show_tools=rules.show_tools,
                message_id=known.get(0),
            )  # fmt: skip
            async with contextlib.aclosing(_events_of(viewer, turn_id)) as events:
                try:
                    await shown.show(events)
                except BowerbirdError as error:  # the final answer comes all the same
                    _log.info("%s: a turn is not shown as it runs: %s", name, error)

    async def _is_behind(self, address: str, turn_id: str) -> bool:
        """Whether an earlier answer is still on its way after a moment: it may be refused for a while."""
        for _ in range(BEHIND_LOOKS):
            if not await self._sessions.store.read(lambda c: owes(c, self._channel.name, address, turn_id)):
                return False
            await asyncio.sleep(BEHIND_S)
        return True


async def _events_of(viewer: AsyncIterator[Published], turn_id: str) -> AsyncGenerator[object]:
    async for published in viewer:
        if published.turn_id == turn_id:
            yield published.event
            if isinstance(published.event, TurnMark) and published.event.has_stopped:
                return
