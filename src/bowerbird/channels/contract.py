"""What a chat channel is to the rest of the house (AS-1, AS-2).

Here: the protocol and the values that cross it. Not here: the router, any channel.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from bowerbird.core.errors import BowerbirdError, ConfigError
from bowerbird.core.extras import install_command

Kind = Literal["message", "command", "button"]
MediaKind = Literal["photo", "voice", "audio", "document"]


class ChannelError(BowerbirdError):
    """A channel could not send."""


class NotInstalled(ConfigError):
    """The library of an enabled channel is missing."""

    def __init__(self, channel: str) -> None:
        super().__init__(
            f"channels.{channel} is enabled but its library is missing: {install_command(channel)}"
        )
        self.channel = channel


class RetryLater(ChannelError):
    """The service asks to wait, or could not be reached; `seconds` until the next try."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Rejected(ChannelError):
    """The service refuses this message, or a file of a message cannot be taken; the text says why."""


class Gone(ChannelError):
    """The chat is gone or the person blocked the bot: nothing will ever arrive there."""


@dataclass(frozen=True, slots=True)
class Button:
    """One button under a message; `data` comes back as the text of a `button` message (at most 64 bytes)."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class SendResult:
    """A message that the service has taken, by its own id."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Media:
    """A file of a message as the service names it; nothing of it is downloaded yet.

    Attributes:
        ref: the service's name for it. size: bytes, None where the service does not say.
    """

    kind: MediaKind
    ref: str
    name: str = ""
    mime_type: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """What arrived, before anything was decided about it; ids are strings.

    Attributes:
        kind: what it is: text (perhaps with files), a `/command`, or a pressed button (`text` is its data).
        chat_id: with a forum topic `{chat}.{topic}`.
        reply_to: id of the message that this answers; reply_to_bot: that one is the bot's own.
        mentions_bot: names the bot by its @username; the channel has removed the mention from `text`.
        media: what can be downloaded by `Channel.complete`, once the sender is admitted.
        file_path, image_base64, image_mime_type: the first ones, set by `Channel.complete`.
        files, images: all of them; an image is its base64 and its type.
        quote: the part of that message that a person marked when they answered it.
        transcript: what was said in a voice message, as it is quoted before the answer.
        dedupe_key: the same for each delivery of one update.
        received_at: ISO time, UTC.
    """

    channel: str
    chat_id: str
    user_id: str
    user_name: str
    text: str
    is_private: bool
    reply_to: str | None = None
    file_path: str | None = None
    reset_session: bool = False
    message_id: str | None = None
    image_base64: str | None = None
    image_mime_type: str = "image/jpeg"
    kind: Kind = "message"
    dedupe_key: str = ""
    received_at: str = ""
    reply_to_bot: bool = False
    mentions_bot: bool = False
    media: Sequence[Media] = ()
    files: Sequence[Path] = ()
    images: Sequence[tuple[str, str]] = ()
    transcript: str = ""
    quote: str = ""
    callback_id: str = field(default="", repr=False)


Deliver = Callable[[IncomingMessage], Awaitable[None]]
"""Takes a message; when it returns, what the message asks for is committed; it may come again."""


class Channel(Protocol):
    """One chat service.

    Attributes:
        name: as in thread ids. edits, buttons, files, voice: what the service can. max_text: of one message.
    """

    name: str
    edits: bool
    buttons: bool
    files: bool
    voice: bool
    max_text: int

    async def start(self, deliver: Deliver) -> None:
        """Begin to receive; raises where it cannot (the house tries again)."""
        ...

    async def stop(self) -> None:
        """End; nothing is delivered afterwards."""
        ...

    def parts(self, text: str) -> Sequence[str]:
        """Cut a Markdown text into pieces that each fit one message; pure.

        A piece is in the channel's own form: it is given to `send` as it is.
        """
        ...

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
        """Send one of `parts`, or Markdown (`is_plain`: as it stands); `buttons` in rows.

        Raises:
            RetryLater, Rejected, Gone: nothing else.
        """
        ...

    async def send_file(self, chat_id: str, path: Path, caption: str = "") -> None:
        """Send a file; raises like `send`."""
        ...

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        """Download and transcribe what an admitted message brought.

        Raises:
            Rejected: the text is for the sender (too large, voice is not configured …).
        """
        ...

    async def acknowledge(self, message: IncomingMessage, said: str = "") -> None:
        """Tell the service that a pressed button was seen, with a short text; nothing for other messages."""
        ...
