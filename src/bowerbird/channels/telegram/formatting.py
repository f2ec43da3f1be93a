"""Markdown as Telegram can show it (AS-16). Pure.

Here: blocks of Markdown to runs. Not here: text within a block (`inline.py`), tables (`tables.py`), cutting
(`splitting.py`), HTML (`markup.py`).

Nothing that a reader would miss is lost: what Telegram has no form for is shown as it was written. Link
definitions (`[1]: …`) and HTML are therefore text.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bowerbird.channels.telegram.inline import inline_runs
from bowerbird.channels.telegram.markup import Run, to_html
from bowerbird.channels.telegram.tables import Align, table_lines

RULE = "──────────"
BULLETS = "•◦▪"
DEEPEST = 60

_NOT_SHOWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}", re.ASCII)


def format_markdown(text: str) -> str:
    """Return Markdown as Telegram's HTML, of any length.

    Example:
        >>> format_markdown("# Hi\\n**a** < ||b||")
        '<b>Hi</b>\\n\\n<b>a</b> &lt; <tg-spoiler>b</tg-spoiler>'
    """
    return to_html(markdown_runs(text))


def markdown_runs(text: str) -> list[Run]:
    """Return Markdown as runs; what is nested too deeply to be read, as it stands."""
    text = clean(text)
    tokens = _parser().parse(text)
    if any(token.level >= DEEPEST - 2 for token in tokens):
        return [Run(text)]
    page = _Page()
    for at, token in enumerate(tokens):
        _BLOCKS.get(token.type, _Page.nothing)(page, token)
        if token.type == "table_open":
            page.table(tokens, at + 1)
    # Text without anything to show, say an empty fence, is shown as it was written.
    return page.runs if any(not run.text.isspace() for run in page.runs) else [Run(text)]


def clean(text: str) -> str:
    """Return a text without characters that are not shown or cannot be sent."""
    return _SURROGATE.sub("\ufffd", _NOT_SHOWN.sub("", text.replace("\r\n", "\n")))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    return parser.enable(["table", "strikethrough"]).disable(["text_join", "reference"])


class _Page:
    """Runs as they are written, and the place in lists, quotes and tables."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._gap = 0  # newlines due before what comes next
        self._quotes = 0
        self._quote = self._last_quote = 0  # number of the outermost quote, 0 = none
        self._lists: list[int | None] = []  # next number of each open list, None = bullets
        self._indent: list[str] = []
        self._mark = ""
        self._is_head = False
        self._in_table = False

    def nothing(self, _: Token) -> None:
        """A token that shows nothing."""

    def quote_open(self, _: Token) -> None:
        self._quotes += 1
        if self._quotes == 1:
            self._quote = self._last_quote + 1

    def quote_close(self, _: Token) -> None:
        self._quotes -= 1
        if not self._quotes:
            self._quote = 0
        self._end_block()

    def list_open(self, token: Token) -> None:
        start = token.attrGet("start")
        self._lists.append(None if token.type.startswith("bullet") else int(1 if start is None else start))
        self._gap = min(self._gap, 1) if self._indent else self._gap

    def list_close(self, _: Token) -> None:
        self._lists.pop()
        self._gap = 1 if self._lists else 2

    def item_open(self, _: Token) -> None:
        number = self._lists[-1]
        if number is None:
            mark = BULLETS[min(len(self._lists), len(BULLETS)) - 1] + " "
        else:
            mark = f"{number}. "
            self._lists[-1] = number + 1
        self._write_mark()  # of an item that holds nothing but this list
        self._mark = mark
        self._indent.append(" " * min(len(mark), 4))

    def item_close(self, _: Token) -> None:
        self._write_mark()
        self._indent.pop()
        self._gap = 1

    def head_open(self, _: Token) -> None:
        self._is_head = True

    def head_close(self, _: Token) -> None:
        self._is_head = False
        self._end_block()

    def paragraph_close(self, token: Token) -> None:
        self._end_block()
        if token.hidden:
            self._gap = min(self._gap, 1)

    def text(self, token: Token) -> None:
        if self._in_table:
            return
        base = ("b",) if self._is_head else ()
        for text, tags in inline_runs(token.children or [], base):
            self._write(text.replace("\n", "\n" + "".join(self._indent)), tags)

    def code(self, token: Token) -> None:
        found = _LANGUAGE.match(token.info.strip()) if token.type == "fence" else None
        tags = ("pre", f'code class="language-{found[0]}"') if found else ("pre",)
        self._write_mark()
        self._write(token.content.removesuffix("\n"), tags)
        self._end_block()

    def rule(self, _: Token) -> None:
        self._write(RULE, ())
        self._end_block()

    def table(self, tokens: Sequence[Token], begin: int) -> None:
        """Write the table whose tokens begin there."""
        rows: list[list[str]] = []
        aligns: list[Align] = []
        for at in range(begin, len(tokens)):
            token = tokens[at]
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                runs = inline_runs(tokens[at + 1].children or [], ())
                rows[-1].append("".join(run.text for run in runs).replace("\n", " "))
                if token.type == "th_open":
                    style = str(token.attrGet("style") or "")
                    aligns.append(cast("Align", style.removeprefix("text-align:") or "left"))
        self._in_table = True
        self._write(table_lines(rows, aligns), ("pre",))

    def table_close(self, _: Token) -> None:
        self._in_table = False
        self._end_block()

    def _end_block(self) -> None:
        self._gap = 2

    def _write_mark(self) -> None:
        if self._mark:
            self._write("", ())

    def _write(self, text: str, tags: tuple[str, ...]) -> None:
        if not text and not self._mark:
            return
        outer = ("blockquote",) if self._quote else ()
        if self.runs and self._gap:
            is_inside = self._quote and self._quote == self._last_quote
            self.runs.append(Run("\n" * self._gap, outer if is_inside else ()))
        begin = ""
        # Code keeps its own columns; only a mark stands before it.
        if (self._gap or not self.runs) and (self._mark or "pre" not in tags):
            begin = "".join(self._indent[:-1] if self._mark else self._indent)
        self._gap = 0
        if begin + self._mark:
            self.runs.append(Run(begin + self._mark, outer))
        if self._mark and "pre" in tags:
            self.runs.append(Run("\n", outer))
        self._mark = ""
        self._last_quote = self._quote or self._last_quote
        if text:
            self.runs.append(Run(text, outer + tags))


_BLOCKS = {
    "blockquote_open": _Page.quote_open,
    "blockquote_close": _Page.quote_close,
    "bullet_list_open": _Page.list_open,
    "ordered_list_open": _Page.list_open,
    "bullet_list_close": _Page.list_close,
    "ordered_list_close": _Page.list_close,
    "list_item_open": _Page.item_open,
    "list_item_close": _Page.item_close,
    "heading_open": _Page.head_open,
    "heading_close": _Page.head_close,
    "paragraph_close": _Page.paragraph_close,
    "inline": _Page.text,
    "fence": _Page.code,
    "code_block": _Page.code,
    "hr": _Page.rule,
    "table_close": _Page.table_close,
}
