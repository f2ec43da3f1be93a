"""The parts of an answer as the outbox keeps them between cutting and sending (AS-17, AS-19). Pure.

Here: the form of a part as one string. Not here: cutting (`splitting.py`), sending (`sending.py`).

A part is HTML that cannot be made of Markdown again, so it says what it is in control characters, which no
formatted text contains.
"""

from dataclasses import dataclass

from bowerbird.channels.telegram.formatting import clean
from bowerbird.channels.telegram.markup import Run, to_text
from bowerbird.channels.telegram.splitting import LONGEST, MAX_PARTS, first_part, split_markdown, split_runs

ANSWER_FILE = "answer.md"
_HTML = "\x02html\x03"
_FILE = "\x02file\x03"


@dataclass(frozen=True, slots=True)
class Piece:
    """What is sent at once: one message, or a text as a file."""

    text: str = ""
    is_html: bool = True
    file: str | None = None


def html_piece(source: str) -> str:
    """Return HTML of one message as a part."""
    return _HTML + source


def pieces_of(text: str) -> list[str]:
    """Return an answer in Markdown as parts; a long one is its beginning and a file with all of it."""
    parts = split_markdown(text)
    if parts is None:
        return [html_piece(first_part(text)), _FILE + text]
    return [html_piece(part) for part in parts]


def read_pieces(text: str, *, is_plain: bool = False) -> list[Piece]:
    """Return what a text is that should be sent: a part as it was cut, or Markdown.

    Args:
        is_plain: without formatting; a text that is no part is shown as it stands.
    """
    if text.startswith(_FILE):
        return [Piece(file=text.removeprefix(_FILE))]
    if text.startswith(_HTML):
        source = text.removeprefix(_HTML)
        return [Piece(to_text(source), is_html=False) if is_plain else Piece(source)]
    if not is_plain:
        return [piece for part in pieces_of(text) for piece in read_pieces(part)]
    shown = clean(text[:LONGEST])
    parts = [Piece(to_text(part), is_html=False) for part in split_runs([Run(shown)], MAX_PARTS + 1)]
    return parts if len(parts) <= MAX_PARTS else [parts[0], Piece(file=text)]
