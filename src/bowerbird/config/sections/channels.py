"""Keys of chat channels and of voice messages: `channels`, `transcription` (AS-5, AS-13, AS-63).

Here: the keys of each channel and who may write there. Not here: the channels themselves.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from bowerbird.config.fields import Flag, Float, HttpUrl, Secret, Section, Text, Url, key, section


def _user_id(text: str) -> str:
    if not text or text != text.strip() or not text.isprintable():
        raise ValueError("must be the id of a user, such as 123456")
    return text


def _as_text(value: object) -> object:
    """Accept a number: ids are often written so."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


class AllowedUser(Section):
    """One user who may write."""

    id: Annotated[Text, BeforeValidator(_as_text), AfterValidator(_user_id)] = key(..., "The service's id.")
    role: Literal["owner", "guest"] = key("owner", "A guest may not land, undo or approve.")


def _user(value: object) -> object:
    """Accept an id alone."""
    return {"id": _as_text(value)} if isinstance(value, str | int) and not isinstance(value, bool) else value


AllowedUsers = tuple[
    Annotated[AllowedUser, BeforeValidator(_user, json_schema_input_type=AllowedUser | str | int)], ...
]


def _trigger(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text.strip()


class TelegramSection(Section):
    """The Telegram bot."""

    enabled: Flag = key(False, "Whether `serve` runs the bot.", applies="S")
    token: Secret | None = key(None, "The bot's token, from @BotFather.", applies="S")
    server: HttpUrl = key(
        Url("https://api.telegram.org"), "Address of the Bot API; another one for a server of your own.",
        applies="S", allowed="http(s) URL",
    )  # fmt: skip
    trigger: Annotated[Text, AfterValidator(_trigger)] = key(
        "@Bowerbird", "Word that calls the agent in groups, at the start of a message.", allowed="not blank"
    )
    allowed_users: AllowedUsers = key(
        (),
        "Who may write, beside those that `bowerbird channels` admits; empty = nobody.",
        allowed='ids, or {id: "123", role: owner|guest}',
    )
    stream_interval: Float = key(
        1.0, "Time between two changes of an answer that is being written; 3 s in groups.",
        unit="s", applies="S", ge=0.2, le=60,
    )  # fmt: skip
    show_tools: Flag = key(True, "Whether tool calls are shown.", applies="S")


class ChannelsSection(Section):
    """Chat channels."""

    telegram: TelegramSection = section(TelegramSection)


class TranscriptionSection(Section):
    """Voice messages: who turns them into text."""

    enabled: Flag = key(False, "Whether voice messages are transcribed.", applies="S")
    provider: Literal["groq", "openai"] = key("groq", "Service that transcribes.", applies="S")
    model: Text = key("whisper-large-v3-turbo", "Its model.", applies="S")
    api_key: Secret | None = key(None, "Its key.", applies="S")
    base_url: HttpUrl | None = key(
        None, "Address of a compatible service; unset = that of the provider.",
        applies="S", allowed="http(s) URL",
    )  # fmt: skip
    timeout: Float = key(30, "Longest try.", unit="s", applies="S", ge=1, le=600)
