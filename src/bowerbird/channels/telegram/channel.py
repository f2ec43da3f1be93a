"""Telegram as a channel (AS-1, AS-13).

Here: the channel's life and what it hands to its parts. Not here: receiving (`polling.py`), sending
(`sending.py`), files (`downloads.py`), the answer as it is written (`streaming.py`).

The extra `telegram` must be installed: importing this module imports its library.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bowerbird.channels.contract import Button, ChannelError, Deliver, IncomingMessage, RetryLater, SendResult
from bowerbird.channels.telegram.bot import SERVER, Link, open_link
from bowerbird.channels.telegram.bot import said as words_of
from bowerbird.channels.telegram.downloads import Downloads
from bowerbird.channels.telegram.markup import cut
from bowerbird.channels.telegram.pieces import pieces_of
from bowerbird.channels.telegram.polling import Begun, Lease, Poller, Quarantine, Report, Timing
from bowerbird.channels.telegram.progress import Hide, Progress
from bowerbird.channels.telegram.sending import Sender
from bowerbird.channels.telegram.splitting import LIMIT
from bowerbird.channels.telegram.streaming import Keep, LiveAnswer
from bowerbird.channels.telegram.tool_lines import detail_pages
from bowerbird.channels.telegram.updates import NAME, Me
from bowerbird.channels.transcription import Transcriber
from bowerbird.core.threads import to_thread

MAX_SAID = 200  # characters of the answer to a pressed button, as Telegram allows

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """What the channel is told.

    Attributes:
        files: private directory for what is downloaded. server: the Bot API's address.
    """

    token: str = field(repr=False)
    files: Path
    server: str = SERVER
    timing: Timing = field(default_factory=Timing)


class TelegramChannel:
    """One bot.

    Args:
        lease: one process at a time polls with a token.
        quarantine: keeps updates that cannot be handled.
        report: told what is wrong with receiving, "" when it is well again.
        transcriber: None = voice is not configured.

    Example:
        channel = TelegramChannel(settings, lease, quarantine, print)
        await channel.start(deliver)
    """

    name = NAME
    edits = True
    buttons = True
    files = True
    voice = True
    max_text = LIMIT

    def __init__(
        self,
        settings: TelegramSettings,
        lease: Lease,
        quarantine: Quarantine,
        report: Report,
        transcriber: Transcriber | None = None,
    ) -> None:
        self._settings = settings
        self._lease = lease
        self._quarantine = quarantine
        self._report = report
        self._transcriber = transcriber
        self._link: Link | None = None
        self._sender: Sender | None = None
        self._downloads: Downloads | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun: Begun | None = None
        self.username = ""  # known once it has started

    async def start(self, deliver: Deliver) -> None:
        """Begin to receive.

        Raises:
            ChannelError: no token, a refused one, or Telegram cannot be reached.
        """
        if not self._settings.token.strip():
            raise ChannelError(
                "channels.telegram is enabled but channels.telegram.token is empty; "
                "set it to the token that @BotFather gave you"
            )
        # Reading the certificates of all authorities takes longer than the loop may stand still.
        link = await to_thread(open_link, self._settings.token.strip(), self._settings.server)
        await link.open()
        self.username = link.bot.username
        me = Me(link.bot.id, self.username)
        self._link = link
        self._sender = Sender(link.bot)
        self._downloads = Downloads(link.bot, self._settings.files, self._transcriber)
        await self._downloads.sweep()
        poller = Poller(
            link, me, self._lease, self._quarantine, self._report, self._settings.timing, self._has_begun
        )
        self._task = asyncio.create_task(poller.run(deliver), name="telegram")
        self._task.add_done_callback(self._ended)

    def when_receiving(self, begun: Begun) -> None:
        """Have `begun` awaited each time this process has become the one that receives."""
        self._begun = begun

    async def _has_begun(self) -> None:
        if self._begun is not None:
            await self._begun()

    async def stop(self) -> None:
        """End; what was not settled comes again at the next start."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def parts(self, text: str) -> Sequence[str]:
        """Return an answer as parts for `send`; they are in a form of their own (`pieces.py`)."""
        return pieces_of(text)

    async def send(
        self,
        chat_id: str,
        text: str,
        *,
        reply_to_message_id: str | None = None,
        disable_notification: bool = False,
        buttons: Sequence[Sequence[Button]] = (),
        edit_message_id: str | None = None,
        is_plain: bool = False,
    ) -> SendResult | None:
        """Send a part or Markdown, see `Channel.send`."""
        return await self.sender.send(
            chat_id,
            text,
            reply_to_message_id=reply_to_message_id,
            disable_notification=disable_notification,
            buttons=buttons,
            edit_message_id=edit_message_id,
            is_plain=is_plain,
        )

    async def send_file(self, chat_id: str, path: Path, caption: str = "") -> None:
        """Send a file of at most 50 MB, see `Channel.send_file`."""
        await self.sender.send_file(chat_id, path, caption)

    async def delete(self, chat_id: str, message_id: str) -> None:
        """Delete a message of the bot; one that is gone is no error. Raises like `send`."""
        await self.sender.delete(chat_id, message_id)

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Set the bot's reaction to a message, "" for none; raises like `send`."""
        await self.sender.react(chat_id, message_id, emoji)

    def details(self, events: Sequence[object], hide: Hide) -> Sequence[str]:
        """Return parts that say what the tools of a turn did."""
        return detail_pages(events, hide)

    def live_answer(
        self,
        chat_id: str,
        keep: Keep,
        hide: Hide,
        *,
        interval_s: float = 1.0,
        show_tools: bool = True,
        buttons: Sequence[Sequence[Button]] = (),
        reply_to_message_id: str | None = None,
        message_id: str | None = None,
    ) -> LiveAnswer:
        """Return what shows a turn in a chat while it runs; see `LiveAnswer`."""
        return LiveAnswer(
            self.sender,
            chat_id,
            Progress(hide, show_tools=show_tools),
            keep,
            interval_s=interval_s,
            buttons=buttons,
            reply_to_message_id=reply_to_message_id,
            message_id=message_id,
        )

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        """Download what a message brought, see `Channel.complete`."""
        if not message.media:
            return message
        return await _started(self._downloads).complete(message)

    async def acknowledge(self, message: IncomingMessage, said: str = "") -> None:
        """Answer a pressed button; one that is too old to be answered is no error."""
        if not message.callback_id:
            return
        try:
            await _started(self._link).bot.answer_callback_query(
                message.callback_id, text=cut(said, MAX_SAID) or None
            )
        except Exception as error:  # noqa: BLE001  a press that is not answered only shows a clock
            _log.debug("telegram: a button was not answered: %s", words_of(error))

    @property
    def sender(self) -> Sender:
        """What sends and edits; raises RetryLater before the start."""
        return _started(self._sender)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report(f"Receiving has ended by a defect: {type(error).__name__}: {words_of(error)}")


def _started(part: T | None) -> T:
    if part is None:
        raise RetryLater("Telegram is not connected yet", 1.0)
    return part
