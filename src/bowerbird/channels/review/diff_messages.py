"""A patch as messages of a chat, and replies to them as comments on their lines (AS-27).

Here: cutting a patch so that each message knows its lines, and what a reply is about. Not here: making the
patch (`review_cards.py`), the form of a comment (`sessions/inbox/comments.py`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from bowerbird.channels.contract import IncomingMessage
from bowerbird.core.errors import NotFound
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.cards import CardRow, card_at

KIND = "diff"
DIFF_CHARS = 12_000
MESSAGE_CHARS = 3_000
MOST_PLACES = 10  # of one message: what a reply quotes for the agent
MATCH_CHARS = 200  # of a line, when the line that a person marked is looked for

Side = Literal["old", "new"]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Line:
    """One changed or kept line: its number in the version `side`, its text without the sign."""

    path: str
    side: Side
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class DiffMessage:
    """One message: Markdown, and the lines that it shows."""

    text: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Neighbouring lines of one file; the form of a `Remark`."""

    path: str
    side: Side
    line: int
    end_line: int | None
    text: str = field(default="", repr=False)


def messages_of(patch: str, more: str = "") -> list[DiffMessage]:
    """Return a patch as messages, its beginning where it is long. Pure.

    Args:
        more: said after a patch that was cut.

    Example:
        >>> found = messages_of("--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-old\\n+new\\n")
        >>> [(line.side, line.number, line.text) for line in found[0].lines]
        [('old', 1, 'old'), ('new', 1, 'new')]
    """
    shown = patch[:DIFF_CHARS]
    found: list[DiffMessage] = []
    kept: list[str] = []
    lines: list[Line] = []
    size = 0
    for text, line in _lines_of(shown):
        if kept and size + len(text) + 1 > MESSAGE_CHARS:
            found.append(DiffMessage(_fenced(kept), tuple(lines)))
            kept, lines, size = [], [], 0
        kept.append(text)
        lines += [] if line is None else [line]
        size += len(text) + 1
    found.append(DiffMessage(_fenced(kept), tuple(lines)))
    if len(patch) > len(shown):
        said = f"\nCut after {DIFF_CHARS} of {len(patch)} characters.{more}"
        found[-1] = replace(found[-1], text=found[-1].text + said)
    return found


def places_of(lines: Iterable[Line]) -> list[Place]:
    """Return lines as places, new ones first for each run of lines. Pure.

    Example:
        >>> places_of([Line("a", "new", 3, "x"), Line("a", "new", 4, "y"), Line("b", "old", 1, "z")])
        [Place(path='a', side='new', line=3, end_line=4), Place(path='b', side='old', line=1, end_line=1)]
    """
    found: list[Place] = []
    kept = list(lines)
    # A replaced line is commented on as it is now; only what is gone without a trace is named as it was.
    has_new = {line.path for line in kept if line.side == "new"}
    for line in kept:
        if line.side == "old" and line.path in has_new:
            continue
        last = found[-1] if found else None
        if last is not None and (last.path, last.side, last.end_line) == (
            line.path,
            line.side,
            line.number - 1,
        ):
            found[-1] = replace(last, end_line=line.number)
        else:
            found.append(Place(line.path, line.side, line.number, line.number))
    return found


def marked(lines: Sequence[Line], quote: str) -> Sequence[Line]:
    """Return the lines that a person marked when they replied, all where that cannot be told. Pure."""
    wanted = [text[:MATCH_CHARS].strip() for text in quote.splitlines() if text.strip()]
    if not wanted:
        return lines
    known = [line.text[:MATCH_CHARS].strip() for line in lines]
    for at in range(len(lines)):
        here = known[at : at + len(wanted)]
        if len(here) == len(wanted) and all(_is_part(one, of) for one, of in zip(wanted, here, strict=True)):
            return lines[at : at + len(wanted)]
    return lines


async def as_comment(sessions: SessionService, thread_id: str, message: IncomingMessage, text: str) -> str:
    """Return what a message says to the agent: a comment, where it replies to a shown diff."""
    reply_to = message.reply_to
    if not reply_to or not text:
        return text
    card = await sessions.store.read(lambda c: card_at(c, thread_id, reply_to, KIND))
    if card is None or card.is_over:
        return text
    places = places_of(marked(_kept(card.body), message.quote))[:MOST_PLACES]
    if not places:
        return text
    try:
        return await sessions.review.comment(thread_id, [*places[:-1], replace(places[-1], text=text)])
    except NotFound:
        return text  # it landed or was thrown away: the words are for the agent all the same


def kept_card(card: CardRow, lines: Iterable[Line]) -> CardRow:
    """Return the row that remembers the lines of a message."""

    rows = [[line.path, line.side, line.number, line.text[:MATCH_CHARS]] for line in lines]
    return msgspec.structs.replace(card, body={"lines": rows})


def _kept(body: Mapping[str, Any]) -> list[Line]:
    rows: Sequence[Sequence[Any]] = body.get("lines") or ()
    return [
        Line(str(path), "old" if side == "old" else "new", int(number), str(text))
        for path, side, number, text in rows
    ]


def _lines_of(patch: str) -> Iterator[tuple[str, Line | None]]:
    """Yield each line of a patch, and what it is a line of."""
    path, old, new, is_hunk = "", 0, 0, False
    for text in patch.rstrip("\n").split("\n"):
        line: Line | None = None
        if (hunk := _HUNK.match(text)) is not None:
            old, new, is_hunk = int(hunk[1]), int(hunk[2]), True
        elif not is_hunk or text.startswith("diff "):
            is_hunk = False
            path = _named(text) or path
        elif text.startswith("-"):
            line, old = Line(path, "old", old, text[1:]), old + 1
        elif text.startswith("+"):
            line, new = Line(path, "new", new, text[1:]), new + 1
        elif text.startswith(" ") or not text:
            line, old, new = Line(path, "new", new, text[1:]), old + 1, new + 1
        yield text, line


def _named(text: str) -> str:
    for sign in ("--- a/", "+++ b/"):
        if text.startswith(sign):
            return text.removeprefix(sign).rstrip("\t")
    return ""


def _is_part(one: str, of: str) -> bool:
    """Whether a marked line is a line that is shown, with its sign or without, whole or in part."""
    return one in of or one.lstrip("+-").strip() in of


def _fenced(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}diff\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
