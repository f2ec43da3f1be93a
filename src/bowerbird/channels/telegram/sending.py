"""Messages out, within Telegram's limits, with a remedy for what it refuses (AS-19, AS-21, AS-24).

Here: one message, its fallbacks, files. Not here: what errors mean (`errors.py`), the limits themselves
(`limits.py`), when something is tried again (the outbox).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
)
from telegram.error import BadRequest, ChatMigrated, RetryAfter, TelegramError

from bowerbird.channels.contract import Button, ChannelError, Rejected, RetryLater, SendResult
from bowerbird.channels.telegram.bot import sent_message_id, was_taken
from bowerbird.channels.telegram.edit_turns import EditTurns
from bowerbird.channels.telegram.errors import (
    is_about_markup,
    is_about_reply,
    is_not_editable,
    is_not_modified,
    meaning,
    unknown_answer,
)
from bowerbird.channels.telegram.limits import Limits, Slot
from bowerbird.channels.telegram.markup import cut, to_text
from bowerbird.channels.telegram.pieces import ANSWER_FILE, read_pieces
from bowerbird.channels.telegram.polling import seconds_of
from bowerbird.core.threads import to_thread

MAX_FILE = 50 * 1000 * 1000
MAX_CAPTION = 1_024
MAX_BUTTON_DATA = 64  # bytes
LONGEST_WAIT_S = 30.0  # for a slot; who must wait longer is tried again later

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Address:
    """A chat, and the topic of a forum."""

    chat: int
    topic: int | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message as it is given to the bot."""

    to: Address
    text: str
    is_html: bool = True
    reply_to: int | None = None
    is_silent: bool = False
    buttons: InlineKeyboardMarkup | None = None
    edit: int | None = None


class Sender:
    """Sends with one bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._limits = Limits()
        self._gate = asyncio.Lock()  # who waits for a slot of all gets it in order
        self._turns = EditTurns()
        self._moved: dict[int, int] = {}  # groups that became supergroups have a new id

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
        """Send a part or Markdown; of more than one message the reply is on the first, buttons on the last.

        Raises:
            RetryLater, Rejected, Gone: nothing else.
        """
        first = Outgoing(
            address_of(chat_id),
            "",
            reply_to=_number(reply_to_message_id),
            is_silent=disable_notification,
            edit=_number(edit_message_id),
        )
        keyboard = keyboard_of(buttons)
        pieces = read_pieces(text, is_plain=is_plain)
        sent: SendResult | None = None
        for number, piece in enumerate(pieces):
            last = keyboard if number == len(pieces) - 1 else None
            one = first if number == 0 else replace(first, reply_to=None, edit=None)
            if piece.file is not None:
                content = InputFile(piece.file.encode("utf-8", "replace"), filename=ANSWER_FILE)
                sent = await self._document(one.to, content, "", last)
            else:
                message = replace(one, text=piece.text, is_html=piece.is_html, buttons=last)
                sent = await self._message(message)
        return sent

    async def edit_if_free(
        self, chat_id: str, message_id: str, source: str, buttons: Sequence[Sequence[Button]] = ()
    ) -> bool:
        """Edit a message of an unfinished answer; False when it was dropped: no slot, or the answer is final.

        Raises:
            RetryLater, Rejected, Gone.
        """
        to = address_of(chat_id)
        edit = Outgoing(to, source, edit=_number(message_id), buttons=keyboard_of(buttons))
        async with self._turns.of(to.chat, edit.edit or 0) as is_open:
            if not is_open or self._limits.delay(self._chat(to), _now(), is_edit=True) > 0:
                return False
            try:
                await self._guarded(to, lambda: self._edit(edit), self._limits.take(self._chat(to), _now()))
            except BadRequest as error:
                raise self._told(to, error) from None
        return True

    def is_free(self, chat_id: str) -> bool:
        """Whether something that may as well be left out can be sent at this moment; raises Rejected."""
        return self._limits.delay(self._chat(address_of(chat_id)), _now(), is_edit=True) <= 0

    async def delete(self, chat_id: str, message_id: str) -> None:
        """Delete a message; one that is gone is no error."""
        to, number = address_of(chat_id), _number(message_id)
        if number is None:
            return
        try:
            await self._bot.delete_message(self._chat(to), number)
        except BadRequest:
            return  # already deleted, or too old
        except TelegramError as error:
            raise self._told(to, error) from None
        except Exception as error:  # noqa: BLE001  as in `_guarded`
            raise unknown_answer(error) from None

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Set the bot's reaction to a message, "" for none; no error where it is gone. Raises like `send`."""
        to, number = address_of(chat_id), _number(message_id)
        if number is None:
            return
        try:
            await self._bot.set_message_reaction(self._chat(to), number, emoji or None)
        except BadRequest:
            return  # the message is gone, or the group allows no reactions
        except TelegramError as error:
            raise self._told(to, error) from None
        except Exception as error:  # noqa: BLE001  as in `_guarded`
            raise unknown_answer(error) from None

    async def send_file(self, chat_id: str, path: Path, caption: str = "") -> None:
        """Send a file; raises like `send`."""
        to = address_of(chat_id)
        try:
            size = await to_thread(lambda: path.stat().st_size if path.is_file() else None)
            if size is None:
                raise Rejected(f"File not found: {path}")
            if size > MAX_FILE:
                raise Rejected(f"{path.name} has {size / 1e6:.0f} MB; Telegram takes up to 50 MB.")
            if size == 0:
                raise Rejected(f"{path.name} is empty; Telegram takes no empty file.")
            file = await to_thread(lambda: path.open("rb"))
        except OSError as error:
            raise Rejected(f"{path.name} cannot be read: {error.strerror or error}") from None
        with file:
            document = InputFile(file, filename=path.name, read_file_handle=False)
            await self._document(to, document, caption, None)

    async def _document(
        self, to: Address, file: InputFile, caption: str, buttons: InlineKeyboardMarkup | None
    ) -> SendResult:
        async def upload() -> SendResult:
            sending = self._bot.send_document(
                self._chat(to),
                file,
                caption=cut(caption, MAX_CAPTION) or None,
                message_thread_id=to.topic,
                reply_markup=buttons,
                read_timeout=120,
                write_timeout=120,
            )
            return await self._sent(sending)

        try:
            return await self._in_slot(to, upload)
        except BadRequest as error:
            raise self._told(to, error) from None

    async def _message(self, message: Outgoing) -> SendResult:
        """Send or edit, with a remedy for each refusal that has one, each tried once."""
        for _ in range(4):
            try:
                return await self._in_slot(message.to, lambda message=message: self._once(message))
            except BadRequest as error:
                remedy = _remedy(message, error)
                if remedy is None:
                    raise self._told(message.to, error) from None
                message = remedy
        raise Rejected("Telegram refuses the message in every form")

    async def _once(self, message: Outgoing) -> SendResult:
        if message.edit is not None:
            async with self._turns.of(message.to.chat, message.edit):
                await self._edit(message)
                self._turns.close(message.to.chat, message.edit)
            return SendResult(str(message.edit))
        reply = None
        if message.reply_to is not None:
            reply = ReplyParameters(message.reply_to, allow_sending_without_reply=True)
        sending = self._bot.send_message(
            self._chat(message.to),
            message.text,
            parse_mode="HTML" if message.is_html else None,
            disable_notification=message.is_silent,
            reply_parameters=reply,
            reply_markup=message.buttons,
            message_thread_id=message.to.topic,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        return await self._sent(sending)

    async def _edit(self, message: Outgoing) -> None:
        try:
            await self._bot.edit_message_text(
                message.text,
                self._chat(message.to),
                message.edit,
                parse_mode="HTML" if message.is_html else None,
                reply_markup=message.buttons,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )
        except BadRequest as error:
            if not is_not_modified(error):
                raise
        except (TypeError, ValueError, AttributeError):
            if not was_taken():
                raise

    async def _in_slot(self, to: Address, action: Callable[[], Awaitable[T]]) -> T:
        return await self._guarded(to, action, await self._slot(to))

    async def _slot(self, to: Address) -> Slot:
        """Wait until a message to a chat may be sent; raises RetryLater where that takes too long."""
        while True:
            while (delay_s := self._limits.delay_of(self._chat(to), _now())) > 0:
                if delay_s > LONGEST_WAIT_S:
                    raise RetryLater("Telegram's limit for this chat is reached", delay_s)
                await asyncio.sleep(delay_s)
            async with self._gate:
                while True:
                    delay_s = self._limits.delay_of_all(_now())
                    if delay_s <= 0:
                        break
                    await asyncio.sleep(delay_s)
                if self._limits.delay_of(self._chat(to), _now()) <= 0:
                    return self._limits.take(self._chat(to), _now())

    async def _guarded(self, to: Address, action: Callable[[], Awaitable[T]], slot: Slot) -> T:
        """Run an action in its slot, and follow a group that has moved; raises BadRequest, too."""
        try:
            try:
                return await action()
            except ChatMigrated as moved:
                self._moved[to.chat] = moved.new_chat_id
                return await action()
        except BadRequest:
            raise  # the caller may have a remedy
        except TelegramError as error:
            raise self._told(to, error) from None
        except Exception as error:  # noqa: BLE001  an answer of unknown form makes the library raise anything
            raise unknown_answer(error) from None
        finally:
            slot.ended = _now()

    async def _sent(self, sending: Awaitable[Message]) -> SendResult:
        """Return what was sent, also if the library cannot read Telegram's answer."""
        try:
            return SendResult(str((await sending).message_id))
        except (TypeError, ValueError, AttributeError):
            number = sent_message_id()
            if number is None:
                raise
            return SendResult(number)

    def _told(self, to: Address, error: TelegramError) -> ChannelError:
        if isinstance(error, RetryAfter):
            self._limits.keep_quiet(self._chat(to), _now() + seconds_of(error))
        return meaning(error)

    def _chat(self, to: Address) -> int:
        return self._moved.get(to.chat, to.chat)


def _remedy(message: Outgoing, error: BadRequest) -> Outgoing | None:
    if message.edit is not None and is_not_editable(error):
        return replace(message, edit=None)
    if message.is_html and is_about_markup(error):
        return replace(message, text=to_text(message.text), is_html=False)
    if message.reply_to is not None and is_about_reply(error):
        return replace(message, reply_to=None)
    return None


def address_of(chat_id: str) -> Address:
    """Return the chat and topic of `{chat}` or `{chat}.{topic}`; raises Rejected."""
    chat, _, topic = chat_id.partition(".")
    try:
        return Address(int(chat), int(topic) if topic else None)
    except ValueError:
        raise Rejected(f"{chat_id[:50]!r} is no chat of Telegram") from None


def keyboard_of(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """Return buttons as Telegram takes them; raises Rejected."""
    for row in rows:
        for button in row:
            if not 1 <= len(button.data.encode()) <= MAX_BUTTON_DATA:
                raise Rejected(f"The button {button.label!r} has more than 64 bytes of data, or none")
    keys = [[InlineKeyboardButton(button.label, callback_data=button.data) for button in row] for row in rows]
    return InlineKeyboardMarkup(keys) if any(keys) else None


def _number(message_id: str | None) -> int | None:
    if message_id is None:
        return None
    try:
        return int(message_id)
    except ValueError:
        raise Rejected(f"{message_id[:50]!r} is no message of Telegram") from None


def _now() -> float:
    return asyncio.get_running_loop().time()
