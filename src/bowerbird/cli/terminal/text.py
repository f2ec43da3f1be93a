"""Text for terminals: escapes, widths, numbers. Pure.

Here: what makes foreign text harmless and figures short. Not here: colours, drawing.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from bowerbird.core.events import LandingProgress
from bowerbird.core.usage import Usage

# C0 and C1 controls but tab and newline, lone surrogates, and marks that reorder what is read.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""Return `text` with every control character written out.

    Example:
        >>> harmless("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return _UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def json_text(data: Any, indent: int | None = None) -> str:
    r"""Return data as JSON that moves no terminal and hides nothing: JSON's own escapes for the rest of them.

    Example:
        >>> json_text(["é", "\x9b2J", "\u202e"])
        '["é", "\\u009b2J", "\\u202e"]'
    """
    return harmless_json(json.dumps(data, ensure_ascii=False, indent=indent))


def harmless_json(text: str) -> str:
    """Return JSON text with C1 controls, DEL, bidi marks and lone surrogates as its escapes."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def harmless_path(path: str) -> str:
    r"""Return a path harmless and on one line: a line break in a name must not look like a row of its own.

    Example:
        >>> harmless_path("a\nM  b")
        'a\\nM  b'
    """
    return harmless(path.replace("\r\n", "\r\\n")).replace("\n", "\\n").replace("\t", "\\t")


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x0D:
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, limit: int = 200) -> str:
    """Return `text` harmless, on one line, at most `limit` cells wide.

    Example:
        >>> one_line("a\\n  b")
        'a b'
    """
    return cut(" ".join(harmless(text[: limit * 4]).split()), limit)


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def width_of(text: str) -> int:
    """Return the number of terminal cells `text` takes.

    Example:
        >>> width_of("日本")
        4
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, with `…` where it was cut.

    Example:
        >>> cut("日本語", 5)
        '日本…'
    """
    if width_of(text) <= width:
        return text
    kept: list[str] = []
    used = 0
    for char in text:
        used += _char_width(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def cut_path(path: str, width: int) -> str:
    """Return `path` in at most `width` cells; its middle is left out, so that both ends can be told apart.

    Example:
        >>> cut_path("src/a/very/long/way/to/main.py", 15)
        'src/a/…/main.py'
    """
    if width_of(path) <= width:
        return path
    if width < len("a…z"):
        return cut(path, width)
    behind = cut(path[::-1], (width + 1) // 2 + 1)[:-1][::-1]
    return cut(path, width - width_of(behind)) + behind


def echoed(prompt: str, text: str, *, width: int, most: int) -> tuple[list[str], str]:
    """Return the lines that repeat what was typed at `prompt`, and what says how much was left out.

    Args:
        most: rows of `width` cells that it may take, about.

    Example:
        >>> echoed("> ", "one\\ntwo", width=80, most=20), echoed("> ", "x" * 9, width=4, most=1)
        ((['> one', '… two'], ''), (['> xxxx'], '… 5 more characters'))
    """
    first, *more = harmless(text).expandtabs(4).split("\n")
    indent = " " * (width_of(prompt) - 2)
    lines: list[str] = []
    for number, line in enumerate((first, *more)):
        if number > most:
            return lines, f"{indent}… {plural(len(more) - most, 'more line')}"
        shown = line[: width * most]
        lines.append(f"{indent}… {shown}" if number else prompt + shown)
        if shown != line or (number and sum(map(len, lines)) > width * most):
            left = len(line) - len(shown) + sum(len(each) + 1 for each in more[number:])
            return lines, f"{indent}… {plural(left, 'more character')}" if left else ""
    return lines, ""


def above_and_before(prompt: str, width: int) -> tuple[list[str], str]:
    """Return what of `prompt` stands above the typed line and what before it, with room to type left.

    Example:
        >>> above_and_before("Land it? [y/N] ", 80), above_and_before("Land it? [y/N] ", 12)
        (([], 'Land it? [y/N] '), (['Land it?', '[y/N]'], '> '))
    """
    if width_of(prompt) <= max(width - 12, width // 2):
        return [], prompt
    return wrapped(prompt.rstrip(), width), "> "


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` cells, broken between parts (` · `), else between words.

    Later lines are indented as the first; a word that is too long for a line is broken.

    Example:
        >>> wrapped("  one two", 6), wrapped("a b · c d", 7)
        (['  one', '  two'], ['a b', 'c d'])
    """
    if width_of(text) <= width:
        return [text]
    body = text.lstrip(" ")
    indent = " " * min(len(text) - len(body), width // 2)
    between = " · " if " · " in body else " "
    lines: list[str] = []
    line = ""
    for part in body.split(between):
        longer = line + between + part if line else part
        if width_of(indent + longer) <= width:
            line = longer
            continue
        if line:
            lines.append(indent + line)
        *whole, line = _pieces(part, width - len(indent), by_word=between != " ")
        lines += [indent + piece for piece in whole]
    return [*lines, indent + line] if line else lines


def _pieces(part: str, width: int, *, by_word: bool) -> list[str]:
    """Return `part`, which may be too long for a line, in pieces that are not; at least one."""
    if by_word:
        return wrapped(part, width)
    pieces: list[str] = []
    while width_of(part) > width > 1:
        kept = cut(part, width + 1)[:-1] or part[0]
        pieces.append(kept)
        part = part[len(kept) :]
    return [*pieces, part]


def short_path(path: str, home: str) -> str:
    """Return a path as people write it, with `~` for their home.

    Example:
        >>> short_path("/home/ada/x", "/home/ada")
        '~/x'
    """
    inside = path.removeprefix(home.rstrip("/") + "/")
    return "~/" + inside if len(home) > 1 and inside != path else path


def count(number: int) -> str:
    """Return a short count: 843, 12.4k, 1.2M.

    Example:
        >>> count(12_400)
        '12.4k'
    """
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            short = f"{number / limit:.1f}".removesuffix(".0")
            return f"{short}{unit}" if short != "1000" else "1M"
    return str(number)


def size(number: float) -> str:
    """Return a short size: 512 B, 1.5 MiB.

    Example:
        >>> size(1536 * 1024)
        '1.5 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def duration(seconds: float) -> str:
    """Return a short time: 4s, 2m05s, 1h02m.

    Example:
        >>> duration(125)
        '2m05s'
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def plural(number: int, noun: str) -> str:
    """Return `1 file`, `2 files`, `2 branches`."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"


def how_far(progress: LandingProgress) -> str:
    """Return the words for how far a landing or an undo is.

    Example:
        >>> how_far(LandingProgress("land", "writing", 1200, 100_000))
        'landing: writing 1,200 of 100,000 files'
    """
    what = "landing" if progress.kind == "land" else "undo"
    doing = progress.phase.replace("_", " ")
    return f"{what}: {doing} {progress.done:,} of {progress.total:,} files"


def money(cost: float | None) -> str:
    """Return a cost in USD, `unpriced` when a price is unknown."""
    if cost is None:
        return "unpriced"
    return f"${cost:.3f}" if cost < 100 else f"${cost:,.2f}"


def cost_line(usage: Usage, *, context: int, window: int, changed: int) -> str:
    """Return the line after a turn.

    Args:
        usage: of the turn. context: tokens of the last call's context. window: its size.
        changed: files the branch differs in.

    Example:
        >>> cost_line(Usage(input_tokens=12_400, output_tokens=1_100, cost=0.043),
        ...           context=36_000, window=200_000, changed=3)
        '12.4k in · 1.1k out · $0.043 · 18% ctx · 3 files changed'
    """
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    parts = [f"{count(read)} in", f"{count(usage.output_tokens)} out", money(usage.cost)]
    if window > 0:
        parts.append(f"{round(100 * context / window)}% ctx")
    parts.append(f"{plural(changed, 'file')} changed")
    return " · ".join(parts)


def age(seconds: float) -> str:
    """Return how long ago something was: `now`, `5m`, `3h`, `2d`."""
    for limit, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= limit:
            return f"{int(seconds // limit)}{unit}"
    return "now"


def table(rows: Sequence[Sequence[str]], *, width: int) -> list[str]:
    """Return rows as aligned lines; the last column is cut to the terminal's width."""
    if not rows:
        return []
    columns = max(len(row) for row in rows)
    widths = [max(width_of(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    lines: list[str] = []
    for row in rows:
        cells = [cell + " " * (widths[i] - width_of(cell)) for i, cell in enumerate(row)]
        lines.append(cut("  ".join(cells).rstrip(), width))
    return lines
