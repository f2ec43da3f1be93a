"""Tools and types at the top of a module, as a configuration can name them."""

import msgspec

from bowerbird.tools import tool


class Verdict(msgspec.Struct):
    """A verdict."""

    good: bool
    why: str = ""


async def count_words(text: str) -> int:
    """Count words.

    Args:
        text: The text to count.
    """
    return len(text.split())


async def lower(text: str) -> str:
    """Make text small.

    Args:
        text: The text.
    """
    return text.lower()


@tool(effect="read")
async def shout(text: str) -> str:
    """Make text large.

    Args:
        text: The text.
    """
    return text.upper()
