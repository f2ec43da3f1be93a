"""What an error of the Bot API means for a message (AS-19). Pure.

Here: errors of the library to the three of a channel, and which of them have a remedy. Not here: the remedy.
"""

import random
import re

from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

from bowerbird.channels.contract import ChannelError, Gone, Rejected, RetryLater
from bowerbird.channels.telegram.bot import said
from bowerbird.channels.telegram.polling import seconds_of

_MARKUP = re.compile(
    r"can't parse|can't find end (tag|of)|unsupported start tag|unclosed|unexpected end tag|entit(y|ies)",
    re.I,
)
_GONE = re.compile(
    r"chat not found|user not found|deactivated|was deleted|was kicked|not a member|bot was blocked|"
    r"peer_id_invalid|thread not found|topic_(closed|deleted)|have no rights|not enough rights|"
    r"chat_(write_forbidden|restricted|admin_required)|need administrator rights|group chat was upgraded",
    re.I,
)
_REPLY = re.compile(r"(replied|to be replied|reply).*not found", re.I)
_SAME = re.compile(r"not modified", re.I)
_NO_EDIT = re.compile(r"to edit not found|can't be edited|message_id_invalid|message identifier", re.I)


def meaning(error: TelegramError) -> ChannelError:
    """Return what a door is told."""
    text = said(error)
    if isinstance(error, RetryAfter):
        return RetryLater(f"Telegram asks to wait: {text}", seconds_of(error) + random.random())
    if isinstance(error, Forbidden) or (isinstance(error, BadRequest) and _GONE.search(text)):
        return Gone(f"Telegram: {text}")
    if isinstance(error, InvalidToken):
        return RetryLater("Telegram refuses the token; set channels.telegram.token", 60.0)
    if isinstance(error, BadRequest | ChatMigrated):
        return Rejected(f"Telegram: {text}")
    return RetryLater(f"Telegram cannot be reached: {text}", 1.0)


def unknown_answer(error: Exception) -> RetryLater:
    """Return what a door is told when the library could not read an answer."""
    return RetryLater(f"Telegram answered in an unknown form ({type(error).__name__})", 5.0)


def is_about_markup(error: BadRequest) -> bool:
    """Whether plain text would be taken."""
    return bool(_MARKUP.search(str(error)))


def is_about_reply(error: BadRequest) -> bool:
    """Whether the message that is answered is gone."""
    return bool(_REPLY.search(str(error)))


def is_not_modified(error: BadRequest) -> bool:
    """Whether an edit would change nothing."""
    return bool(_SAME.search(str(error)))


def is_not_editable(error: BadRequest) -> bool:
    """Whether the message must be sent anew."""
    return bool(_NO_EDIT.search(str(error)))
