"""Text within a block: emphasis, code, links, spoilers (AS-16). Pure.

Here: inline tokens to runs, which addresses may be links. Not here: blocks (`formatting.py`).
"""

import re
from collections.abc import Sequence
from html import escape

from markdown_it.token import Token

from bowerbird.channels.telegram.markup import Run, units

SCHEMES = ("http:", "https:", "mailto:", "tg:")
LONGEST_LINK = 2_000  # an address is part of the message's source, which has a limit

_STYLES = {"strong": "b", "em": "i", "s": "s"}
_ORDER = ("b", "i", "s", "tg-spoiler")
_BARS = re.compile(r"\|\|")


def inline_runs(tokens: Sequence[Token], base: tuple[str, ...]) -> list[Run]:
    """Return the runs of a block's text.

    Args:
        base: tags around all of it.
    """
    line = _Line(base)
    spoilers = _spoiler_places(tokens)
    for at, token in enumerate(tokens):
        if token.type == "text":
            line.text(token.content, spoilers.get(at, []))
        elif token.type == "text_special":
            line.put(token.content)
        elif token.type == "code_inline":
            line.code(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            line.put("\n")
        elif token.type == "link_open":
            line.link(str(token.attrGet("href") or ""))
        elif token.type == "link_close":
            line.link_end()
        elif token.type == "image":
            line.image(token)
        else:
            line.style(token)
    return line.runs


def is_link(url: str) -> bool:
    """Whether an address may be a link in a message."""
    return url.lower().startswith(SCHEMES) and units(escape(url)) <= LONGEST_LINK


class _Line:
    def __init__(self, base: tuple[str, ...]) -> None:
        self.runs: list[Run] = []
        self._open = dict.fromkeys(base, 1)
        self._is_hidden = False
        self._link = self._address = ""
        self._link_begin = 0

    def put(self, text: str) -> None:
        if text:
            self.runs.append(Run(text, self._tags()))

    def text(self, text: str, bars: Sequence[int]) -> None:
        begin = 0
        for bar in bars:
            self.put(text[begin:bar])
            self._is_hidden = not self._is_hidden
            begin = bar + 2
        self.put(text[begin:])

    def code(self, text: str) -> None:
        # Telegram shows no code within a link or emphasis: the link matters more, emphasis less.
        self.runs.append(Run(text, self._tags() if self._link else ("code",)))

    def link(self, url: str) -> None:
        self._address, self._link_begin = url, len(self.runs)
        self._link = f'a href="{escape(url)}"' if is_link(url) else ""

    def link_end(self) -> None:
        label = "".join(run.text for run in self.runs[self._link_begin :])
        is_shown, self._link = bool(self._link), ""
        if is_shown and not label.strip():
            del self.runs[self._link_begin :]
            self.put(self._address)
        elif not is_shown and self._address not in ("", label):
            self.put(f" ({self._address})")

    def image(self, token: Token) -> None:
        url = str(token.attrGet("src") or "")
        label = token.content or url
        if self._link or not is_link(url):
            self.put(label if self._link or url in ("", label) else f"{label} ({url})")
        else:
            self.runs.append(Run(label, (f'a href="{escape(url)}"', *self._tags())))

    def style(self, token: Token) -> None:
        name = _STYLES.get(token.type.rpartition("_")[0])
        if name is not None:
            self._open[name] = self._open.get(name, 0) + token.nesting

    def _tags(self) -> tuple[str, ...]:
        styles = [name for name in _ORDER[:3] if self._open.get(name)]
        hidden = _ORDER[3:] if self._is_hidden else ()
        return (*((self._link,) if self._link else ()), *styles, *hidden)


def _spoiler_places(tokens: Sequence[Token]) -> dict[int, list[int]]:
    """Return where in which token a spoiler begins or ends: `||` beside text, always in pairs."""
    found: list[tuple[int, int]] = []
    opened: tuple[int, int] | None = None
    for at, token in enumerate(tokens):
        if token.type != "text":
            continue
        for bars in _BARS.finditer(token.content):
            after, before = token.content[bars.end() : bars.end() + 1], _before(token.content, bars.start())
            place = (at, bars.start())
            if opened is not None and before not in (" ", "|", "\n"):
                found += (opened, place)
                opened = None
            elif opened is None and after not in (" ", "|", "\n"):
                opened = place
    places: dict[int, list[int]] = {}
    for at, bar in found:
        places.setdefault(at, []).append(bar)
    return places


def _before(text: str, at: int) -> str:
    return text[at - 1] if at else ""
