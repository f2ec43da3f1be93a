"""An answer as it is written: one message, edited now and then (AS-18).

Here: when the message is made and edited. Not here: what it shows (`progress.py`), the final answer, which
goes through the outbox and replaces it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from bowerbird.channels.contract import Button, RetryLater
from bowerbird.channels.telegram.pieces import html_piece
from bowerbird.channels.telegram.progress import Progress
from bowerbird.channels.telegram.sending import Sender
from bowerbird.core.errors import BowerbirdError
from bowerbird.sessions.live.hub import TurnMark

GROUP_INTERVAL_S = 3.0

_log = logging.getLogger(__name__)

Keep = Callable[[str], Awaitable[None]]
"""Stores the id of the message that the final answer shall edit."""


class LiveAnswer:
    """Shows one turn in one chat.

    Args:
        interval_s: between edits; in groups at least 3 s.
        keep: told the message's id as soon as there is one.
        buttons: under the message, say Details.
        message_id: of a message that shows this turn already, after a crash.
    """

    def __init__(
        self,
        sender: Sender,
        chat_id: str,
        progress: Progress,
        keep: Keep,
        *,
        interval_s: float = 1.0,
        buttons: Sequence[Sequence[Button]] = (),
        reply_to_message_id: str | None = None,
        message_id: str | None = None,
    ) -> None:
        self._sender = sender
        self._chat_id = chat_id
        self._progress = progress
        self._keep = keep
        is_group = chat_id.startswith("-")
        self._interval_s = max(interval_s, GROUP_INTERVAL_S) if is_group else interval_s
        self._buttons = buttons
        self._reply_to = reply_to_message_id
        self._message_id = message_id
        self._shown = ""
        self._news = asyncio.Event()
        self._ended = asyncio.Event()

    async def show(self, events: AsyncIterator[object]) -> None:
        """Show the events of a turn until it stops, or nothing more can be shown.

        Args:
            events: of the turn, as `Published.event` has them; end with the turn's mark, or by themselves.
        """
        writer = asyncio.create_task(self._write(), name="telegram-stream")
        try:
            async for event in events:
                if isinstance(event, TurnMark) and event.has_stopped:
                    break
                if self._progress.add(event):
                    self._news.set()
        except asyncio.CancelledError:
            writer.cancel()  # the process ends: what is being sent must not hold it up
            raise
        finally:
            self._ended.set()
            self._news.set()
            await writer

    async def _write(self) -> None:
        while not self._ended.is_set():
            await self._news.wait()
            self._news.clear()
            if self._ended.is_set() or not self._progress.has_something:
                continue
            wait_s = self._interval_s
            try:
                await self._update()
            except RetryLater as error:
                wait_s = max(wait_s, error.seconds)
                self._news.set()
            except BowerbirdError as error:
                # The final answer is owed by the outbox, which has the remedies.
                _log.info("telegram: the progress of a turn cannot be shown: %s", error)
                return
            await self._rest(wait_s)

    async def _update(self) -> None:
        source = self._progress.html()
        if source == self._shown:
            return
        if self._message_id is None:
            if not self._sender.is_free(self._chat_id):
                self._news.set()
                return
            await self._begin(source)
        elif not await self._sender.edit_if_free(self._chat_id, self._message_id, source, self._buttons):
            self._news.set()  # dropped: what is new then is shown at the next time
            return
        self._shown = source

    async def _begin(self, source: str) -> None:
        sent = await self._sender.send(
            self._chat_id, html_piece(source), reply_to_message_id=self._reply_to, buttons=self._buttons
        )
        if sent is None:
            return
        if self._ended.is_set():
            # The answer may be on its way as a message of its own: this one would stay beside it.
            await self._sender.delete(self._chat_id, sent.message_id)
            return
        try:
            await self._keep(sent.message_id)
        except BowerbirdError:
            await self._sender.delete(self._chat_id, sent.message_id)  # the answer would not find it
            raise
        self._message_id = sent.message_id

    async def _rest(self, seconds: float) -> None:
        """Wait, but no longer than the turn."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return
