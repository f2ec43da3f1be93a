"""Lines as every tool for files counts them: they end at `\\n` and nowhere else (WS-26).

Here: splitting text, finding lines among lines. `str.splitlines` also splits at form feeds, carriage returns,
U+2028 and others, so that what a stranger wrote into a file could pass for lines of ours.
"""

import difflib
from collections.abc import Sequence

from bowerbird.core.errors import LimitExceeded

MOST_COMPARED = 2_000_000
"""Lines that are compared to find a place, about a second."""
MOST_PLACES = 1_000
_SHOWN_LINES = 8
_MOST_ASKED = 60
_MOST_LIKENED = 3000  # lines of a file that are compared letter by letter, the first of each
_LONG = 160


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text without their ends; a last empty one is left out.

    >>> lines_of("a\x0cb\n\nc")
    ['a\x0cb', '', 'c']
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def whole_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends.

    >>> whole_lines("a\u2028b\nc")
    ['a\u2028b\n', 'c']
    """
    *whole, last = text.split("\n")
    lines = [line + "\n" for line in whole]
    return [*lines, last] if last else lines


def places(lines: Sequence[str], wanted: Sequence[str], most: int = MOST_PLACES) -> list[int]:
    """Return where `wanted` stands in `lines`, counted from 0, at most so many places.

    >>> places(["a", "b", "a", "b"], ["a", "b"])
    [0, 2]
    """
    if not wanted or len(wanted) > len(lines):
        return []
    # Looked for by its rarest line: what is said again and again would be compared everywhere.
    rows = {line: list[int]() for line in wanted}
    for at, line in enumerate(lines):
        if line in rows:
            rows[line].append(at)
    offset = min(range(len(wanted)), key=lambda n: len(rows[wanted[n]]))
    found: list[int] = []
    left = MOST_COMPARED
    for row in rows[wanted[offset]]:
        at = row - offset
        if not 0 <= at <= len(lines) - len(wanted):
            continue
        same = 0
        while same < len(wanted) and lines[at + same] == wanted[same]:
            same += 1
        left -= same + 1
        if left < 0:
            raise LimitExceeded("too many lines look alike to find the place among them")
        if same == len(wanted):
            found.append(at)
            if len(found) == most:
                break
    return found


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where most of what is rare in `wanted` stands in `lines`, but for indentation; None without any.

    >>> nearest(["x", "def f():", "    return 1", "y"], ["def f():", "    return 2"])
    1
    """
    asked = [(offset, line.strip()) for offset, line in enumerate(wanted[:_MOST_ASKED])]
    asked = [(offset, line) for offset, line in asked if line]
    rows = {line: list[int]() for _, line in asked}
    stripped = [line.strip() for line in lines]
    for at, line in enumerate(stripped):
        if line in rows:
            rows[line].append(at)
    votes: dict[int, float] = {}
    for offset, line in asked:
        for at in rows[line] if len(rows[line]) <= _MOST_ASKED else ():
            votes[at - offset] = votes.get(at - offset, 0) + 1 / len(rows[line])
    if not votes and asked:
        offset, line = max(asked, key=lambda one: len(one[1]))
        some = {line[:_LONG]: at for at, line in enumerate(stripped[:_MOST_LIKENED])}
        for close in difflib.get_close_matches(line[:_LONG], list(some), 1):
            votes[some[close] - offset] = 1
    return max(0, max(votes, key=lambda at: votes[at])) if votes else None


def unlike(lines: Sequence[str], wanted: Sequence[str]) -> str:
    r"""Return what to say of lines that a file has not: the nearest, their numbers, where they differ.

    >>> print(unlike(["x", "def f():", "    return 1"], ["def f():", "    return 2"]))
    line 3 is not '    return 2'. The nearest lines:
         2	def f():
         3	    return 1
    Read the file again
    """
    at = nearest(lines, wanted)
    if at is None:
        return "nothing in it is like these lines. Read the file again"
    here = [line.rstrip() for line in lines[at : at + len(wanted)]]
    first = next((n for n, line in enumerate(here) if line != wanted[n].rstrip()), len(here))
    top = max(0, first + 2 - _SHOWN_LINES)
    shown = [f"{at + n + 1:6d}\t{line[:_LONG]}" for n, line in enumerate(here)][top : top + _SHOWN_LINES]
    asked = repr(wanted[first][:_LONG]) if first < len(wanted) else ""
    if first == len(here):
        said = f"the file ends before {asked}" if asked else "blanks at the ends of lines differ"
    elif here[first].split() == wanted[first].split():
        said = f"line {at + first + 1} differs only in whitespace from {asked}"
    else:
        said = f"line {at + first + 1} is not {asked}"
    return "\n".join([f"{said}. The nearest lines:", *shown, "Read the file again"])
