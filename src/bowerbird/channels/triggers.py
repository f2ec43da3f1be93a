"""When a message is meant for the agent (AS-8). Pure.

Here: that decision, and the text without the words that only called the agent. Not here: who may write.
"""

from bowerbird.channels.contract import IncomingMessage

_AFTER_A_NAME = " \t\r\n,:;"


def meant(message: IncomingMessage, trigger: str) -> str | None:
    """Return the text for the agent, None when the message is not for it.

    In a group it is for the agent when it replies to it, names it, or begins with the trigger.
    """
    rest = after_trigger(message.text, trigger)
    if message.is_private or message.reply_to_bot or message.mentions_bot:
        text = message.text if rest is None or message.is_private else rest
        return text.strip() if _may_speak(message) else None
    return rest if rest is not None and _may_speak(message) else None


def after_trigger(text: str, trigger: str) -> str | None:
    """Return what follows the trigger at the start of a text, None when it does not begin with it.

    Example:
        >>> after_trigger("@bowerbird, hello", "@Bowerbird"), after_trigger("@Bowerbirds", "@Bowerbird")
        ('hello', None)
    """
    begun = text.lstrip()
    if not trigger or begun[: len(trigger)].casefold() != trigger.casefold():
        return None
    rest = begun[len(trigger) :]
    if rest and (rest[0].isalnum() or rest[0] == "_"):
        return None
    return rest.lstrip(_AFTER_A_NAME).rstrip()


def _may_speak(message: IncomingMessage) -> bool:
    """Voice in a group is for the agent only as a reply to it (AS-22)."""
    has_voice = any(media.kind in ("voice", "audio") for media in message.media)
    return message.is_private or message.reply_to_bot or not has_voice
