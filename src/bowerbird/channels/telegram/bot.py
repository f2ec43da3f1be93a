"""The connection to the Bot API.

Here: the bot, the request that polls, errors without the token. Not here: what is asked or sent.

The token is part of every address, and the libraries log addresses: it is taken out of their logs.
"""

import logging
import os
import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec
from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from bowerbird.channels.contract import ChannelError
from bowerbird.core.forms import decode

SERVER = "https://api.telegram.org"
READ_S = 20.0
AT_ONCE = 64  # calls: more than the outbox has chats at a time, so that chats whose calls hang leave room

_NAME_ADDRESSES = ("httpx", "telegram.Bot", "telegram.request.HTTPXRequest", "telegram.request.BaseRequest")
_TOKEN = re.compile(r"\d{3,20}:[\w-]{20,}", re.ASCII)
_IN_ADDRESS = re.compile(r"/bot[^/\s]+")


@dataclass(frozen=True, slots=True)
class Link:
    """One bot and its two connections: `poll` waits long, the bot's own serves all else."""

    bot: Bot
    poll: HTTPXRequest
    server: str

    async def open(self) -> None:
        """Ask Telegram who the bot is.

        Raises:
            ChannelError: the token was refused, or Telegram cannot be reached.
        """
        try:
            await self.poll.initialize()
            await self.bot.initialize()
            # While a webhook is set, Telegram refuses to be polled. What waits is kept.
            await self.bot.delete_webhook(drop_pending_updates=False)
        except TelegramError as error:
            await self.close()
            raise ChannelError(f"Telegram: {said(error)}") from None
        except Exception as error:  # noqa: BLE001  an answer of unknown form makes the library raise anything
            await self.close()
            what = f"{self.server} does not answer as Telegram does ({type(error).__name__})"
            raise ChannelError(what) from None

    async def close(self) -> None:
        """Close the connections."""
        await self.bot.shutdown()
        await self.poll.shutdown()


def open_link(token: str, server: str = SERVER) -> Link:
    """Return the link of a bot; nothing is sent yet."""
    _keep_out_of_log()
    # The library's own switch for how it gives durations; without it each 429 writes a warning.
    os.environ.setdefault("PTB_TIMEDELTA", "true")
    poll = HTTPXRequest(connection_pool_size=1, read_timeout=READ_S, pool_timeout=READ_S)
    rest = _Remembering(connection_pool_size=AT_ONCE, read_timeout=READ_S, pool_timeout=READ_S)
    server = server.rstrip("/")
    bot = Bot(
        token,
        base_url=f"{server}/bot",
        base_file_url=f"{server}/file/bot",
        request=rest,
        get_updates_request=poll,
    )
    return Link(bot, poll, server)


def said(error: BaseException) -> str:
    """Return what an error says, without the token."""
    return without_token(f"{error}" or type(error).__name__)


def without_token(text: str) -> str:
    """Return a text in which no token of a bot is left."""
    return _TOKEN.sub("[token]", _IN_ADDRESS.sub("/bot[token]", text))[:500]


def sent_message_id() -> str | None:
    """Return the id in this task's last answer, None when nothing was sent.

    Telegram's forms grow, and an older library cannot read an answer with a form that it does not know. The
    message is sent all the same: whoever tries again would send it for ever.
    """
    try:
        return str(decode(_answer.get(), _Sent).result.message_id)
    except (msgspec.DecodeError, RecursionError):
        return None


def was_taken() -> bool:
    """Return whether this task's last request was granted, whatever else its answer holds."""
    try:
        return decode(_answer.get(), _Granted).ok
    except (msgspec.DecodeError, RecursionError):
        return False


class _Granted(msgspec.Struct):
    ok: bool


class _Message(msgspec.Struct):
    message_id: int


class _Sent(msgspec.Struct):
    result: _Message


_answer: ContextVar[bytes] = ContextVar("bowerbird_telegram_answer", default=b"")


class _Remembering(HTTPXRequest):
    async def do_request(self, *args: Any, **options: Any) -> tuple[int, bytes]:
        _answer.set(b"")
        status, payload = await super().do_request(*args, **options)
        _answer.set(payload if status == 200 else b"")
        return status, payload


class _Hide(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_token(record.getMessage()), ()
        return True


_hide = _Hide()


def _keep_out_of_log() -> None:
    for name in _NAME_ADDRESSES:
        logging.getLogger(name).addFilter(_hide)
