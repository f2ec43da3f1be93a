"""Whether lines that a small model wrote anew may stand, and what it did in passing.

Here: faults and doubts told by the difference, the task's words and the parsers, and the undoing of what
was done in passing; pure. Not here: another try (`exchange.py`).
"""

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from bowerbird.models.local.rewrite import Rewrite, around, blocks
from bowerbird.models.local.task_words import names_in, words_of

_REMOVES = re.compile(r"\b(?:remove|delete|drop)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“']([^\"“”']{2,60})[\"”']")
_Part = tuple[int, int, int, int]


def fault(wanted: Rewrite, new: Sequence[str]) -> str | None:
    """Return why a rewriting may not stand, None when it may.

    Example:
        >>> fault(Rewrite("Set A to 2.", "a.py", (), ("A = 1",), ()), ["A = 1"])
        'it changes nothing'
    """
    if list(new) == list(wanted.lines):
        return "it changes nothing"
    parts = blocks(wanted.lines, new)
    gone = sum(b - a for a, b, _, _ in parts)
    come = sum(d - c for _, _, c, d in parts)
    if max(gone, come) > max(12, len(wanted.lines) // 2):
        return "it changes far more than the task names"
    removes = _REMOVES.search(wanted.task)
    if not removes and gone > come + 1:
        return "lines are lost"
    if removes and re.search(r"\bthe (?:\w+ )?line\b", wanted.task) and gone != come + 1:
        return "not one line is removed"
    return _elsewhere(wanted, parts, bool(removes)) or parse_fault(wanted, new)


def doubt(wanted: Rewrite, new: Sequence[str]) -> str | None:
    """Return what the task gives and the new lines lack: reason for another try, not for none of them.

    Minutes may have become seconds.

    Example:
        >>> doubt(Rewrite("Set the port to 90.", "a.py", (), ("PORT = 80",), ()), ["PORT = 8080"])
        'it does not hold 90'
    """
    if _REMOVES.search(wanted.task):
        return None
    text, before = "\n".join(new), "\n".join((wanted.path, *wanted.lines))
    given = [*_QUOTED.findall(wanted.task), *_NUMBER.findall(_QUOTED.sub("", wanted.task))]
    lacks = [value for value in given if value not in text and value not in before]
    return f"it does not hold {lacks[0]}" if lacks else None


def repaired(wanted: Rewrite, new: Sequence[str]) -> list[str]:
    """Return the new lines without what was done in passing: space, lost lines, numbers of other things.

    Example:
        >>> repaired(Rewrite("Set B to 3.", "a.py", (), ("X = 1", "A = 1", "B = 2"), ()), ["A = 1", "B = 3"])
        ['X = 1', 'A = 1', 'B = 3']
    """
    old, parts = wanted.lines, [line for part in blocks(wanted.lines, new) for line in _lines_of(part)]
    words = words_of(wanted.task)
    kept = [part for part in parts if not _in_passing(wanted, new, part, words)]
    if not kept or len(kept) == len(parts):
        return list(new)
    lines: list[str] = []
    at = 0
    for a, b, c, d in kept:
        lines += [*old[at:a], *new[c:d]]
        at = b
    return [*lines, *old[at:]]


def _lines_of(part: _Part) -> list[_Part]:
    """Return a part by lines where each has its new one: neighbours are changed in passing most of all."""
    a, b, c, d = part
    return [(a + n, a + n + 1, c + n, c + n + 1) for n in range(b - a)] if b - a == d - c else [part]


def _in_passing(wanted: Rewrite, new: Sequence[str], part: _Part, words: Sequence[str]) -> bool:
    a, b, c, d = part
    gone, come = wanted.lines[a:b], tuple(new[c:d])
    if _bare(gone) == _bare(come):
        return True
    named = any(word in line.lower() for line in (*gone, *come) for word in words)
    if named:
        return False
    if not _bare(come) and not _REMOVES.search(wanted.task):
        elsewhere = Counter(_bare(new)) - Counter(_bare(wanted.lines))
        return not any(line in elsewhere for line in _bare(gone))  # else it was moved
    return [_NUMBER.sub("", line) for line in gone] == [_NUMBER.sub("", line) for line in come]


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _elsewhere(wanted: Rewrite, parts: Sequence[tuple[int, int, int, int]], removes: bool) -> str | None:
    """Return what the task names and nothing near it changes, None when all is well."""
    lines = wanted.lines
    for word in names_in(wanted.task):
        near = [around(lines, n) for n, line in enumerate(lines) if word in line]
        if near and not any(begin <= b and a <= end for a, b, _, _ in parts for begin, end in near):
            return f"it changes nothing near {word}"
    gone = " ".join(line for a, b, _, _ in parts for line in lines[a:b]).lower()
    words = [word for word in words_of(wanted.task) if any(word in line.lower() for line in lines)]
    if removes and words and not any(word in gone for word in words):
        return f"it removes nothing with {words[0]}"
    return None


def parse_fault(wanted: Rewrite, new: Sequence[str]) -> str | None:
    """Return how a file that parsed does not parse with the new lines, None when it does."""
    parse = _PARSERS.get(wanted.path.rpartition(".")[2].lower())
    if parse is None:
        return None
    old_text = "\n".join((*wanted.before, *wanted.lines, *wanted.after)) + "\n"
    new_text = "\n".join((*wanted.before, *new, *wanted.after)) + "\n"
    try:
        parse(old_text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None  # a part of a file, or one that was wrong before
    try:
        parse(new_text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        said = " ".join(str(error).split())
        return f"it does not parse ({said[:80]})"
    return None


def _brackets(text: str) -> None:
    """Raise ValueError when brackets do not pair by their number."""
    for opening, closing in ("()", "[]", "{}"):
        if text.count(opening) != text.count(closing):
            raise ValueError(f"{opening} and {closing} do not pair")


def _yaml(text: str) -> None:
    from ruamel.yaml import YAML, YAMLError  # 50 ms, which no other turn waits for

    reader: Any = YAML(typ="safe", pure=True)
    try:
        reader.load(text)
    except (YAMLError, TypeError) as error:  # a key that cannot be one, as `[0, []]: x`
        raise ValueError(str(error)) from error


_IN_BRACKETS = "c cc cpp cs css go h hpp java js jsx kt less mjs php rs scss swift ts tsx"
_PARSERS: dict[str, Callable[[str], Any]] = {
    "py": ast.parse, "json": json.loads, "toml": tomllib.loads, "yaml": _yaml, "yml": _yaml,
    **dict.fromkeys(_IN_BRACKETS.split(), _brackets),
}  # fmt: skip
