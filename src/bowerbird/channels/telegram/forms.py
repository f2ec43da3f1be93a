"""Updates of the Bot API, as far as they are read; whatever else is in them is ignored.

Here: the forms. Not here: what they mean (`updates.py`).
"""

import msgspec


class Chat(msgspec.Struct, frozen=True):
    """Where a message was written; `type` is `private`, `group`, `supergroup` or `channel`."""

    id: int
    type: str = ""


class User(msgspec.Struct, frozen=True):
    """Who wrote."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Entity(msgspec.Struct, frozen=True):
    """A marked place of a text, counted in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class File(msgspec.Struct, frozen=True):
    """A voice message, an audio file, a document or a video."""

    file_id: str
    file_size: int | None = None
    file_name: str = ""
    mime_type: str = ""


class PhotoSize(msgspec.Struct, frozen=True):
    """One size of a photo."""

    file_id: str
    width: int = 0
    height: int = 0
    file_size: int | None = None


class Sticker(msgspec.Struct, frozen=True):
    """A sticker, of which only its emoji is read."""

    emoji: str = ""


class Quote(msgspec.Struct, frozen=True):
    """The part of a message that somebody marked when they answered it."""

    text: str = ""


class Message(msgspec.Struct, frozen=True, rename={"from_user": "from"}):
    """A message; one that a bot may no longer see has only its chat and id."""

    message_id: int
    chat: Chat
    date: int = 0
    from_user: User | None = None
    sender_chat: Chat | None = None
    text: str = ""
    caption: str = ""
    entities: list[Entity] = []
    caption_entities: list[Entity] = []
    reply_to_message: "Message | None" = None
    quote: Quote | None = None
    photo: list[PhotoSize] = []
    voice: File | None = None
    audio: File | None = None
    document: File | None = None
    video: File | None = None
    video_note: File | None = None
    sticker: Sticker | None = None
    media_group_id: str | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    is_automatic_forward: bool = False


class CallbackQuery(msgspec.Struct, frozen=True, rename={"from_user": "from"}):
    """A pressed button."""

    id: str
    from_user: User
    message: Message | None = None
    data: str = ""


class Update(msgspec.Struct, frozen=True):
    """One update; of other kinds than these two there is only the number."""

    update_id: int
    message: Message | None = None
    callback_query: CallbackQuery | None = None
