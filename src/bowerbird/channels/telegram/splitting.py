"""An answer as messages that Telegram takes (AS-17). Pure.

Here: where a text is cut, how many parts are too many. Not here: what the text looks like (`formatting.py`).

A part ends behind the last paragraph that fits, else behind the last line, space or character.
"""

import bisect
from collections.abc import Sequence

from bowerbird.channels.telegram.formatting import markdown_runs
from bowerbird.channels.telegram.markup import Run, between, cost, shared, to_html

LIMIT = 4_096  # UTF-16 units of source
MAX_ENTITIES = 100
MAX_PARTS = 10

LONGEST = LIMIT * MAX_PARTS + LIMIT * 2
"""Characters of Markdown that are still cut; what is longer would hardly ever be ten parts."""

_BEGINNING = LIMIT * 3


def split_markdown(text: str) -> list[str] | None:
    """Return Markdown as parts of HTML, None when there would be more than ten.

    Example:
        >>> split_markdown("**Hi**")
        ['<b>Hi</b>']
    """
    if not text.strip():
        return []
    if len(text) > LONGEST:
        return None
    parts = split_runs(markdown_runs(text), MAX_PARTS + 1)
    return None if len(parts) > MAX_PARTS else parts


def first_part(text: str) -> str:
    """Return the first part of a text of any length."""
    return split_runs(markdown_runs(text[:_BEGINNING]), 1)[0]


def split_runs(runs: Sequence[Run], most: int, limit: int = LIMIT) -> list[str]:
    """Return the HTML of runs in at most `most` parts; parts without anything to see are left out.

    Args:
        limit: UTF-16 units of each part's source; the tags of one run must fit twice.
    """
    text = "".join(run.text for run in runs)
    begins = [0]
    for run in runs:
        begins.append(begins[-1] + len(run.text))
    parts: list[str] = []
    at = 0
    while at < len(text) and len(parts) < most:
        end = _reach(runs, begins, at, limit)
        if end < len(text):
            end = _cut(text, at, end)
        if not text[at:end].isspace():
            parts.append(to_html(_between(runs, begins, at, end)))
        at = end
    return parts


def _reach(runs: Sequence[Run], begins: Sequence[int], at: int, limit: int) -> int:
    """Return how far a part that begins at `at` could go."""
    number = bisect.bisect_right(begins, at) - 1
    tags: tuple[str, ...] = ()
    length = entities = 0
    while number < len(runs):
        run = runs[number]
        length += len(between(tags, run.tags))
        entities += len(run.tags) - shared(tags, run.tags)
        tags = run.tags
        closing = len(between(tags, ()))
        if at > begins[number] or entities <= MAX_ENTITIES:
            for place in range(max(at, begins[number]), begins[number + 1]):
                length += cost(run.text[place - begins[number]])
                if length + closing > limit:
                    return place
        else:
            return begins[number]
        number += 1
    return begins[-1]


def _cut(text: str, at: int, end: int) -> int:
    for boundary in ("\n\n", "\n", " "):
        found = text.rfind(boundary, at, end)
        if found >= 0:
            return found + len(boundary)
    return end


def _between(runs: Sequence[Run], begins: Sequence[int], at: int, end: int) -> list[Run]:
    first = bisect.bisect_right(begins, at) - 1
    last = bisect.bisect_left(begins, end)
    return [
        Run(text, run.tags)
        for number, run in enumerate(runs[first:last], first)
        if (text := run.text[max(0, at - begins[number]) : end - begins[number]])
    ]
