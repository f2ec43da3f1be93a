"""What an update of Telegram says, as an incoming message (AS-2, AS-13, AS-15). Pure.

Here: text, commands, mentions, buttons, files, albums. Not here: fetching (`polling.py`), who may write.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from bowerbird.channels.contract import IncomingMessage, Media, MediaKind
from bowerbird.channels.telegram.forms import (
    CallbackQuery,
    Entity,
    File,
    Message,
    PhotoSize,
    Update,
    User,
)
from bowerbird.core.forms import convert
from bowerbird.core.timestamps import now_iso, to_iso

NAME = "telegram"
MAX_PHOTO = 5 * 1024 * 1024
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@(\w{1,64}))?(?=\s|$)(.*)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself."""

    bot_id: int
    username: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message, and the album that it is a piece of."""

    message: IncomingMessage
    album: str | None = None


def read_update(raw: object, me: Me) -> Arrival | None:
    """Return what an update says, None when there is nothing to do about it.

    Raises:
        msgspec.ValidationError: it is not an update as Telegram sends them.
    """
    update = convert(raw, Update)
    key = f"{me.bot_id}:{update.update_id}"
    if update.callback_query is not None:
        return _pressed(update.callback_query, key)
    if update.message is None:
        return None
    return _written(update.message, me, key)


def merged(pieces: Sequence[IncomingMessage]) -> IncomingMessage:
    """Return the pieces of an album as one message, under the first one's key."""
    first = pieces[0]
    return replace(
        first,
        text="\n".join(piece.text for piece in pieces if piece.text),
        media=tuple(media for piece in pieces for media in piece.media),
        reply_to=next((piece.reply_to for piece in pieces if piece.reply_to), None),
        reply_to_bot=any(piece.reply_to_bot for piece in pieces),
        mentions_bot=any(piece.mentions_bot for piece in pieces),
    )


def _pressed(query: CallbackQuery, key: str) -> Arrival | None:
    message = query.message
    if message is None:
        return None  # of a message that was sent through another chat's inline mode
    return Arrival(
        IncomingMessage(
            channel=NAME,
            chat_id=_chat_id(message),
            user_id=str(query.from_user.id),
            user_name=_name(query.from_user),
            text=_whole(query.data),
            is_private=message.chat.type == "private",
            message_id=str(message.message_id),
            kind="button",
            dedupe_key=key,
            received_at=now_iso(),
            callback_id=query.id,
        )
    )


def _written(message: Message, me: Me, key: str) -> Arrival | None:
    sender = message.from_user
    if sender is None or message.chat.type == "channel" or message.is_automatic_forward:
        return None
    media = _media(message)
    text, is_mentioned = _without_mentions(message, me)
    if not text and not media and not is_mentioned:
        return None  # somebody joined, a title changed …
    command = _COMMAND.fullmatch(text) if not media else None
    if command is not None and command[2]:
        if command[2].lower() != me.username.lower():
            return None  # for another bot of the group
        text, is_mentioned = f"/{command[1]}{command[3]}", True
    answered = None if _is_topic_head(message) else message.reply_to_message
    return Arrival(
        IncomingMessage(
            channel=NAME,
            chat_id=_chat_id(message),
            # Anonymous admins all share one user: there, the chat that they speak for is who wrote.
            user_id=str(sender.id if message.sender_chat is None else message.sender_chat.id),
            user_name=_name(sender),
            text=text,
            is_private=message.chat.type == "private",
            reply_to=None if answered is None else str(answered.message_id),
            reply_to_bot=_is_by(answered, me),
            message_id=str(message.message_id),
            kind="message" if command is None else "command",
            dedupe_key=key,
            received_at=_sent_at(message),
            mentions_bot=is_mentioned,
            media=media,
            quote="" if message.quote is None else _whole(message.quote.text),
        ),
        None if message.media_group_id is None else f"{message.chat.id}/{message.media_group_id}",
    )


def _chat_id(message: Message) -> str:
    is_topic = message.is_topic_message and message.message_thread_id is not None
    return f"{message.chat.id}.{message.message_thread_id}" if is_topic else str(message.chat.id)


def _is_topic_head(message: Message) -> bool:
    """Whether the message "answers" only the creation of its topic, as all first-level messages of it do."""
    answered = message.reply_to_message
    return (
        message.is_topic_message and answered is not None and answered.message_id == message.message_thread_id
    )


def _is_by(message: Message | None, me: Me) -> bool:
    return message is not None and message.from_user is not None and message.from_user.id == me.bot_id


def _name(user: User) -> str:
    name = f"{user.first_name} {user.last_name}".strip() or user.username or str(user.id)
    return _whole(name)


def _whole(text: str) -> str:
    """Return a text with U+FFFD for half a character, which JSON can name and nothing can store."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _sent_at(message: Message) -> str:
    try:
        return to_iso(datetime.fromtimestamp(message.date, UTC)) if message.date > 0 else now_iso()
    except (ValueError, OverflowError, OSError):
        return now_iso()


def _without_mentions(message: Message, me: Me) -> tuple[str, bool]:
    """Return the text without the bot's own name, and whether the name was in it."""
    text = message.text or message.caption
    if not text and message.sticker is not None:
        return _whole(message.sticker.emoji), False
    source = text.encode("utf-16-le", "surrogatepass")
    kept = bytearray()
    at, is_mentioned = 0, False
    entities = message.entities if message.text else message.caption_entities
    for entity in sorted(entities, key=lambda entity: entity.offset):
        begin, end = entity.offset * 2, (entity.offset + entity.length) * 2
        if at <= begin < end <= len(source) and _names(entity, source[begin:end], me):
            kept += source[at:begin]
            at, is_mentioned = end, True
    kept += source[at:]
    left = kept.decode("utf-16-le", "replace")
    return (left.strip() if is_mentioned else left), is_mentioned


def _names(entity: Entity, place: bytes, me: Me) -> bool:
    if entity.type == "text_mention":
        return entity.user is not None and entity.user.id == me.bot_id
    said = place.decode("utf-16-le", "replace").lower()
    return entity.type == "mention" and bool(me.username) and said == f"@{me.username.lower()}"


def _media(message: Message) -> tuple[Media, ...]:
    found = [Media("photo", photo.file_id, size=photo.file_size) for photo in _best(message.photo)]
    if message.voice is not None:
        found.append(_file("voice", message.voice))
    if message.audio is not None:
        found.append(_file("audio", message.audio))
    others = (message.document, message.video, message.video_note)
    return (*found, *(_file("document", file) for file in others if file is not None))


def _best(sizes: Sequence[PhotoSize]) -> Sequence[PhotoSize]:
    """Return the largest size that may be downloaded; the smallest where none may."""
    by_area = sorted(sizes, key=lambda size: size.width * size.height)
    return [size for size in by_area if (size.file_size or 0) <= MAX_PHOTO][-1:] or by_area[:1]


def _file(kind: MediaKind, file: File) -> Media:
    name = PurePosixPath(_whole(file.file_name).replace("\\", "/")).name
    return Media(kind, file.file_id, name, file.mime_type, file.file_size)
