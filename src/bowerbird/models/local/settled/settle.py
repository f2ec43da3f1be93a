"""All rules by which code changes a file as a task says: the first that knows how does.

Here: their order, and which of several files is meant; pure. Not here: the rules themselves.
"""

import re
from collections.abc import Mapping, Sequence

from bowerbird.models.local.guards import parse_fault
from bowerbird.models.local.rewrite import Rewrite
from bowerbird.models.local.settled.elements import element_asked_for, with_element
from bowerbird.models.local.settled.headings import heading_asked_for, with_heading
from bowerbird.models.local.settled.records import with_field
from bowerbird.models.local.settled.removals import is_print_removal, without_line
from bowerbird.models.local.settled.rows import adds_row, with_row
from bowerbird.models.local.settled.styles import wanted_style, with_style
from bowerbird.models.local.settled.takeouts import entry_asked_for, without_entry
from bowerbird.models.local.settled.texts import is_replacement, with_text
from bowerbird.models.local.settled.values import value_set, wanted_value

_SURE = 4.0
"""How sure a rule is that compares nothing, on the scale of `value_set`."""

_CLEARLY = 0.5
_LONGEST_LINE = 1_000


def settled_lines(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines changed as the task says, where its words leave nothing to choose; else None.

    Example:
        >>> settled_lines("Set the port to 90.", "a.ini", ["port = 80"])
        ['port = 90']
    """
    found = _settled(task, path, lines)
    return found[1] if found else None


def may_be_settled(task: str) -> bool:
    """Whether a task is of a kind that a rule knows, so that looking through files may settle it."""
    return bool(
        wanted_value(task)
        or element_asked_for(task)
        or heading_asked_for(task)
        or (adds_row(task) and re.search(r"\b(?:table|row|record|line)\b", task, re.IGNORECASE))
        or is_print_removal(task)
        or entry_asked_for(task)
        or wanted_style(task)
        or is_replacement(task)
    )


def settled_file(task: str, files: Mapping[str, Sequence[str]]) -> str | None:
    """Return the only file whose lines are settled, or the one that holds clearly more of the task.

    Example:
        >>> settled_file("Set the port to 90.", {"a.ini": ["port = 80"], "b.ini": ["host = x"]})
        'a.ini'
    """
    ranks = sorted(
        ((found[0], path) for path, lines in files.items() if (found := _settled(task, path, lines))),
        reverse=True,
    )
    clear = len(ranks) == 1 or (len(ranks) > 1 and ranks[0][0] >= ranks[1][0] + _CLEARLY)
    return ranks[0][1] if clear else None


def _settled(task: str, path: str, lines: Sequence[str]) -> tuple[float, list[str]] | None:
    if any(len(line) > _LONGEST_LINE for line in lines):
        return None  # a line that no person wrote: expressions that look for names would take minutes over it
    new = (
        with_row(task, path, lines)
        or with_element(task, path, lines)
        or with_heading(task, path, lines)
        or without_line(task, lines)
        or without_entry(task, path, lines)
    )
    found = (_SURE, new) if new else value_set(task, lines)
    if found is None:
        new = with_field(task, path, lines) or with_style(task, path, lines) or with_text(task, path, lines)
        found = (_SURE, new) if new else None
    known = Rewrite(task, path, (), tuple(lines), ())
    return found if found is not None and parse_fault(known, found[1]) is None else None
