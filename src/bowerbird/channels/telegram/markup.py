"""Text with Telegram's tags as a flat list of runs, from which valid HTML follows by itself (AS-16). Pure.

Here: the run, its HTML, HTML back to text. Not here: Markdown (`formatting.py`), cutting (`splitting.py`).

Each run carries the tags around it, outermost first. Between two runs only the tags that differ are closed
and opened, so any cut between or inside runs is valid HTML, however the Markdown was nested.
"""

import html
import re
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile("[&<>]")
_TAG = re.compile(r"</?[a-z][^<>]*>")


class Run(NamedTuple):
    """A piece of text and the tags around it, outermost first, as they stand between `<` and `>`."""

    text: str
    tags: tuple[str, ...] = ()


def to_html(runs: Iterable[Run]) -> str:
    """Return the HTML of runs.

    Example:
        >>> to_html([Run("a<", ("b",)), Run("b", ("b", "i"))])
        '<b>a&lt;<i>b</i></b>'
    """
    written: list[str] = []
    tags: tuple[str, ...] = ()
    for run in runs:
        written += (between(tags, run.tags), escaped(run.text))
        tags = run.tags
    return "".join([*written, between(tags, ())])


def between(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Return what closes and opens tags between two runs."""
    common = shared(before, after)
    closed = "".join(f"</{tag.partition(' ')[0]}>" for tag in reversed(before[common:]))
    return closed + "".join(f"<{tag}>" for tag in after[common:])


def shared(before: tuple[str, ...], after: tuple[str, ...]) -> int:
    """Return how many tags two runs have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def escaped(text: str) -> str:
    """Return text as HTML shows it."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def cost(char: str) -> int:
    """Return how many UTF-16 units a character takes in the source."""
    found = _ESCAPES.get(char)
    return len(found) if found is not None else 1 + (char > "\uffff")


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Telegram counts."""
    return len(text) + sum(char > "\uffff" for char in text)


def cut(text: str, most: int) -> str:
    """Return the beginning of a text that has at most so many UTF-16 units; no character is halved.

    Example:
        >>> cut("ab\U0001f426", 3), cut("ab\U0001f426", 4)
        ('ab', 'ab\U0001f426')
    """
    return text.encode("utf-16-le", "replace")[: 2 * most].decode("utf-16-le", "ignore")


def to_text(source: str) -> str:
    """Return what HTML of `to_html` shows, without its tags."""
    return html.unescape(_TAG.sub("", source))
