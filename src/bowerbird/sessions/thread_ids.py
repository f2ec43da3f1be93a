"""How a thread id is spelled (SE-1, SE-2). Pure.

Here: ids of chats, scheduled tasks, subagents and teammates, and reading them back. Not here:
counters and rows (`store`), ids of conversations without a chat (`core/ids.py`).
"""

import re
from urllib.parse import unquote_to_bytes

import msgspec

from bowerbird.core.errors import InvalidThreadId
from bowerbird.core.ids import MOST_THREAD_BYTES

_CHANNEL = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-")
_ENDS_LIKE_A_RESET = re.compile(r"_s[0-9]+$")
_CHAT = re.compile(r"(?P<channel>[a-z][a-z0-9-]{0,31})_(?P<chat>.+?)(?:_s(?P<counter>[1-9][0-9]*))?")
_BELOW = re.compile(r"(?:\.sub[0-9]+|\.team\.[a-z0-9_-]+(?:\.[0-9]+)?)+$")
_SCHEDULER = "scheduler"


class Chat(msgspec.Struct, frozen=True):
    """A chat of a channel and how often it was reset."""

    channel: str
    chat_id: str
    counter: int = 0

    @property
    def base_key(self) -> str:
        """The thread id before any reset: the key of the chat's counter."""
        return thread_of_chat(self.channel, self.chat_id)


def thread_of_chat(channel: str, chat_id: str, counter: int = 0) -> str:
    """Return the thread id of a chat after `counter` resets; two chats never share one.

    Raises:
        InvalidThreadId: a malformed or reserved channel, an empty chat id, more than 200 bytes.

    Example:
        >>> thread_of_chat("telegram", "-100 5", 2)
        'telegram_-100%205_s2'
    """
    if not _CHANNEL.fullmatch(channel):
        raise InvalidThreadId(f"channel {channel!r}: use a-z, then at most 31 of a-z, 0-9 and -")
    if channel == _SCHEDULER:
        raise InvalidThreadId("channel 'scheduler' is reserved for scheduled tasks")
    if not chat_id:
        raise InvalidThreadId("the chat id is empty")
    if counter < 0:
        raise InvalidThreadId(f"the reset counter is {counter}; it counts from 0")
    suffix = f"_s{counter}" if counter else ""
    return _bounded(f"{channel}_{_encoded(chat_id)}{suffix}")


def chat_of_thread(thread_id: str) -> Chat | None:
    """Return the chat of a thread id, None for the id of anything else.

    Example:
        >>> chat_of_thread("telegram_5_s3")
        Chat(channel='telegram', chat_id='5', counter=3)
    """
    match = _CHAT.fullmatch(thread_id)
    if match is None or match["channel"] == _SCHEDULER:
        return None
    chat_id = unquote_to_bytes(match["chat"]).decode("utf-8", "surrogateescape")
    return Chat(match["channel"], chat_id, int(match["counter"] or 0))


def thread_of_teammate(parent: str, name: str, nth: int = 1) -> str:
    """Return the thread id of a teammate of a thread.

    Args:
        nth: how many had this name, this one included; a name is used again when its bearer has ended.
    """
    return _bounded(f"{parent}.team.{name}" if nth == 1 else f"{parent}.team.{name}.{nth}")


def root_of(thread_id: str) -> str:
    """Return the session that a subagent or teammate works for, through all depths; else the same id.

    Example:
        >>> root_of("3f2a9c41d0b7.sub1.sub0")
        '3f2a9c41d0b7'
    """
    return _BELOW.sub("", thread_id)


def _encoded(chat_id: str) -> str:
    raw = chat_id.encode("utf-8", "surrogateescape")
    text = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)
    if text.startswith("."):
        text = "%2E" + text[1:]
    # A chat that is really called …_s2 must not look like another chat after two resets.
    return _ENDS_LIKE_A_RESET.sub(lambda found: "%5F" + found[0][1:], text)


def _bounded(thread_id: str) -> str:
    size = len(thread_id.encode())
    if size > MOST_THREAD_BYTES:
        raise InvalidThreadId(
            f"the thread id would have {size} bytes; at most {MOST_THREAD_BYTES} are allowed"
        )
    return thread_id
