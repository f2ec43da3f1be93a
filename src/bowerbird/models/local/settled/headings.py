"""A heading or a title that a task words anew: found by its place in the file, not by its old words.

Here: whether a task is that, which file it is about, the line with the new words; pure. Not here: other
texts, which a model rewrites (`rewrite.py`).
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from bowerbird.models.local.task_words import forms_of, named_files, parts_of, words_of

_ASKED = re.compile(
    r"\b(?P<what>heading|headline|title)\b(?P<of>.{0,80}?)"
    r"\s(?:to(?: read| say| be)?|(?:should|must|shall) (?:read|say|be)|"
    r"(?:reads?|says?))\s+[\"“'`]?(?P<new>[^\"“”'`\n]{1,80}?)[\"”'`]?\s*[.!]?$",
    re.IGNORECASE | re.DOTALL,
)
_NOT = re.compile(
    r"\b(?:add|append|insert|remove|delete|function|field|column|key|variable)\b", re.IGNORECASE
)
_ONE_OF = re.compile(
    r"\b(?:an?|one|second|third|last|this|that) (?:heading|headline)\b|\btypo\b", re.IGNORECASE
)
_MISSPELT = re.compile(r"\b(?:typo|misspel\w+|spelling|spelt|spelled)\b", re.IGNORECASE)
_ALIKE = 0.75
_PAGES = (".html", ".htm", ".md", ".markdown")
_PLACES = {
    "heading": re.compile(
        r"^(?P<before>\s*<h(?P<n>[1-6])\b[^>]*>)(?P<text>[^<]+)(?P<after></h(?P=n)>\s*)$", re.I
    ),
    "title": re.compile(r"^(?P<before>\s*<title>)(?P<text>[^<]+)(?P<after></title>\s*)$", re.IGNORECASE),
    "md": re.compile(r"^(?P<before>#{1,6} +)(?P<text>.+?)(?P<after>\s*)$"),
}

_Row = tuple[int, re.Match[str]]


def page_of(task: str, files: Sequence[str]) -> str | None:
    """Return the file whose heading or title a task words anew; None where it is none, or open which.

    Example:
        >>> page_of("Change the heading of the board to Boats.", ("web/board.html", "README.md"))
        'web/board.html'
    """
    if heading_asked_for(task) is None:
        return None
    named = [path for path in named_files(task, files) if path.lower().endswith(_PAGES)]
    pages = [path for path in files if path.lower().endswith(_PAGES)]
    if len(named) != 1 and re.search(r"\bpage\b", task, re.IGNORECASE):
        named = [path for path in pages if path.lower().endswith((".html", ".htm"))]
    if len(named) != 1:
        words = words_of(task)
        named = [
            path
            for path in pages
            if any(re.search(forms_of(word), parts_of(path.rpartition("/")[2])) for word in words)
        ]
    named = named if named else pages
    return named[0] if len(named) == 1 else None


def with_heading(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a page's lines with the heading or title that a task words anew; None where it is open which.

    Example:
        >>> with_heading("Change the heading to Boats.", "a.html", ["<h1>Old</h1>"])
        ['<h1>Boats</h1>']
    """
    asked = heading_asked_for(task)
    if asked is None or not path.lower().endswith(_PAGES):
        return None
    what = "title" if asked["what"].lower() == "title" else "heading"
    form = _PLACES[what if path.lower().endswith((".html", ".htm")) else "md"]
    found = [(n, match) for n, line in enumerate(lines) if (match := form.match(line))]
    said = [row for row in found if row[1]["text"].strip().lower() in asked["of"].lower()]
    alike = _spelt_alike(found, asked["new"])
    chosen = said or alike or ([] if _MISSPELT.search(task) else _first(found, task))
    if len(chosen) != 1:
        return None
    n, match = chosen[0]
    new = f"{match['before']}{asked['new'].strip()}{match['after']}"
    return [*lines[:n], new, *lines[n + 1 :]] if new != lines[n] else None


def _spelt_alike(found: Sequence[_Row], new: str) -> list[_Row]:
    """Return the headings that the new words correct."""
    return [
        row for row in found if SequenceMatcher(None, row[1]["text"].lower(), new.lower()).ratio() > _ALIKE
    ]


def _first(found: Sequence[_Row], task: str) -> list[_Row]:
    """Return the heading of the whole page, where the task means that: not "a heading" of several."""
    if len(found) > 1 and _ONE_OF.search(task):
        return []
    return [row for row in found if row[1]["before"].lstrip().lower().startswith(("<h1", "<title", "# "))]


def heading_asked_for(task: str) -> re.Match[str] | None:
    """Return what a task words anew, and how; None for other tasks."""
    return None if len(task) > 400 or _NOT.search(task) else _ASKED.search(task.strip())
