"""Markdown as a terminal shows it: rich's own drawing, with what reads badly in a narrow column changed.

Here: which element is drawn how. Not here: when a block is complete (`blocks.py`), escapes (`text.py`).
Imported at the first answer only, because rich costs a tenth of a second.
"""

import re
from io import StringIO
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    ListItem,
    Markdown,
    MarkdownElement,
    TableElement,
)
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.list": "none",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.link": "none",
    }
)
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}

_BLANK_END = re.compile(r"(?:\x1b\[[0-9;]*m|\s)+$")


def _reset(end: re.Match[str]) -> str:
    """Return what stays of a line's blank end: the end of its style, if there was something in it."""
    return "\x1b[0m" if "\x1b[" in end[0] and end.start() else ""


class _Heading(Heading):
    """At the left, where it is read; with its marks where no style can tell it from other text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        if console.no_color:
            text = Text("#" * int(self.tag[1:]) + " ") + text
        yield text


class _Code(CodeBlock):
    """Indented, on the terminal's own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip().expandtabs(4)
        yield Syntax(
            code,
            self.lexer_name,
            theme=self.theme,
            word_wrap=True,
            padding=(0, 2),
            background_color="default",
        )


class _Line(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style=console.get_style("markdown.hr", default="none"))


class _Item(ListItem):
    """Numbers keep their dots."""

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        mark = f"{number}.".rjust(len(str(last_number)) + 2) + " "
        lines = console.render_lines(
            self.elements, options.update(width=options.max_width - len(mark)), style=self.style
        )
        style = console.get_style("markdown.item.number", default="none")
        for n, line in enumerate(lines):
            yield Segment(" " * len(mark) if n else mark, style)
            yield from line
            yield Segment("\n")


class _Table(TableElement):
    """Long words go on in the next line; nothing is left out."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for drawn in super().__rich_console__(console, options):
            if isinstance(drawn, Table):
                for column in drawn.columns:
                    column.overflow = "fold"
            yield drawn


class _Answer(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Line,
        "list_item_open": _Item,
        "table_open": _Table,
    }

    def __init__(self, markup: str, **options: Any) -> None:
        super().__init__(markup, **options)
        # As text: a tag, or what looks like one (`List<str>`), would else vanish from the answer.
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.parsed = parser.parse(markup)
        for token in self.parsed:
            if token.children:
                token.children = _mended(token.children)


def _mended(children: list[Token]) -> list[Token]:
    """Return inline tokens with boxes for tasks, and addresses that are their own text said once."""
    first = children[0]
    if first.type == "text" and first.content[:4] in _BOXES:
        first.content = _BOXES[first.content[:4]] + first.content[4:]
    result: list[Token] = []
    for token in children:
        if token.type == "link_close" and len(result) > 1 and result[-2].type == "link_open":
            text, target = result[-1].content, str(result[-2].attrs.get("href", ""))
            if target in (text, f"mailto:{text}"):
                del result[-2]
                continue
        result.append(token)
    return result


def draw(text: str, *, width: int, colour: bool, code_theme: str) -> str:
    """Return harmless Markdown `text` drawn for `width` columns, without blank lines around it.

    Example:
        >>> draw("# One\\n\\n1. two", width=20, colour=False, code_theme="ansi_dark")
        '# One\\n\\n 1. two\\n'
    """
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        theme=_THEME,
    )
    console.print(_Answer(text, code_theme=code_theme, hyperlinks=False))
    lines = [_BLANK_END.sub(_reset, line) for line in out.getvalue().splitlines()]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        lines.pop()
    return "".join(line + "\n" for line in lines)
