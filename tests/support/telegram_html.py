"""Telegram's HTML, read more strictly than Telegram reads it.

Here: what a message's source shows, and errors as the Bot API words them. Not here: any code of the product.
"""

import html
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"<[^<>]*>|[^<>]+|<|>")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);")
_ATTRIBUTES = {
    "a": re.compile(r' href="(https?:|mailto:|tg:)[^"<>]*"', re.IGNORECASE),
    "code": re.compile(r'( class="language-[^"\s<>]+")?'),
}
_PLAIN = {"b", "i", "u", "s", "tg-spoiler", "pre", "blockquote"}
_ALONE = {"pre", "code"}  # contain no other entity
_STYLES = {"b", "i", "u", "s", "tg-spoiler"}


class BadMarkup(Exception):
    """The text is not Telegram's HTML."""


@dataclass
class Shown:
    """What a source shows."""

    text: str = ""
    entities: list[str] = field(default_factory=list)


def read(source: str) -> Shown:
    """Return the text and entities of a source; raises BadMarkup."""
    shown, opened = Shown(), list[str]()
    for found in _TOKEN.finditer(source):
        token = found[0]
        if token in "<>":
            raise BadMarkup(f"can't parse entities: stray {token} at {found.start()}")
        if not token.startswith("<"):
            shown.text += _unescaped(token)
        elif token.startswith("</"):
            if not opened or opened.pop() != token[2:-1]:
                raise BadMarkup(f"can't parse entities: unexpected end tag at byte offset {found.start()}")
        else:
            opened.append(_opened(token[1:-1], opened))
            shown.entities.append(token)
    if opened:
        raise BadMarkup(f"can't parse entities: can't find end tag corresponding to {opened[-1]}")
    return shown


def _opened(inside: str, opened: list[str]) -> str:
    name = re.match(r"[a-z-]*", inside)[0]  # type: ignore[index]
    rest = inside[len(name) :]
    if name in _PLAIN:
        is_right = not rest
    else:
        is_right = name in _ATTRIBUTES and bool(_ATTRIBUTES[name].fullmatch(rest))
        _unescaped(rest)
    if not is_right:
        raise BadMarkup(f'can\'t parse entities: unsupported start tag "{inside}"')
    around = opened[-1] if opened else ""
    is_language = name == "code" and around == "pre" and bool(rest)
    is_alone = name in _ALONE and bool(_STYLES & set(opened) or "a" in opened)
    if (around in _ALONE and not is_language) or name in opened or is_alone:
        raise BadMarkup(f"can't parse entities: {name} within {opened}")
    return name


def _unescaped(text: str) -> str:
    if "&" in _ENTITY.sub("", text):
        raise BadMarkup(f"can't parse entities: bare & in {text[:40]!r}")
    return html.unescape(text)


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2
