"""Words of a text that a task replaces by others: "Mondays, not Sundays", "use 3 onions".

Here: what stands instead of what, the lines with it; pure. Not here: headings (`headings.py`), values that
have a name (`values.py`), sentences that a model words anew (`rewrite.py`).
"""

import re
from collections.abc import Sequence

from bowerbird.models.local.settled.values import is_unit, wanted_value
from bowerbird.models.local.task_words import is_prose

_REPLACES = re.compile(
    r"\b(?:replace|change|turn|swap|correct|reword)\b[^\"“`']*"
    r"(?:\"(?P<a>[^\"]+)\"|“(?P<b>[^”]+)”|`(?P<c>[^`]+)`|'(?P<d>[^']+)')\s*,? "
    r"(?:with|by|to|into|for)\s+"
    r"(?:\"(?P<e>[^\"]+)\"|“(?P<f>[^”]+)”|`(?P<g>[^`]+)`|'(?P<h>[^']+)')[.!]?$",
    re.IGNORECASE,
)
_PROPER = r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)?"
_NOT_OLD = re.compile(
    rf"\b(?P<new>{_PROPER}),? (?:and )?(?:not|instead of|rather than|no longer) "
    rf"(?:(?:on|in|at|by|from|to|as|with|for) )?(?:the )?(?P<old>{_PROPER})(?=[\s.!,]|$)"
)
_OTHER_WORK = re.compile(
    r"\b(?:add|remove|delete|rename|all|every|everywhere|function|class|test)\b", re.IGNORECASE
)
_COUNTED = re.compile(r"(?<![\w.,:-])(\d+(?:\.\d+)?) (?:[a-z]+ )??([a-z]{3,})\b")
_PAGES = (".html", ".htm")
_MOST_TASK = 300


def with_text(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines with the words that a task puts instead of others; None where it is open which.

    Example:
        >>> with_text("Closed on Mondays, not on Sundays.", "a.md", ["Closed on Sundays."])
        ['Closed on Mondays.']
    """
    if not is_replacement(task) and wanted_value(task) is None:
        return None
    page = is_prose(path) or path.lower().endswith(_PAGES)
    return _replaced(task, lines, page) or (_counted(task, lines) if page else None)


def is_replacement(task: str) -> bool:
    """Whether a task names words and what is to stand instead of them."""
    if len(task) > _MOST_TASK or task.rstrip().endswith("?"):
        return False
    return bool(_REPLACES.search(task.strip()) or (not _OTHER_WORK.search(task) and _NOT_OLD.search(task)))


def _replaced(task: str, lines: Sequence[str], page: bool) -> list[str] | None:
    found = _REPLACES.search(task.strip())
    if found is not None:
        old, new = (next(filter(None, map(found.group, names))) for names in ("abcd", "efgh"))
    elif page and not _OTHER_WORK.search(task) and (named := _NOT_OLD.findall(task)) and len(named) == 1:
        new, old = named[0]
    else:
        return None
    form = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    held = [n for n, line in enumerate(lines) for _ in form.finditer(line)]
    if len(held) != 1 or old == new:
        return None
    at = held[0]
    return [*lines[:at], form.sub(lambda _: new, lines[at]), *lines[at + 1 :]]


def _counted(task: str, lines: Sequence[str]) -> list[str] | None:
    """Return a text's lines with another number of what is counted: "3 onions" where it says "5 onions"."""
    wanted = wanted_value(task)
    if wanted is None or not wanted.is_number:
        return None
    nouns = [m[2] for m in _COUNTED.finditer(task) if m[1] == wanted.new and not is_unit(m[2])]
    if len(nouns) != 1:
        return None
    stem = re.escape(nouns[0].removesuffix("s"))
    form = re.compile(rf"(?<![\w.,:-])(?P<n>\d+(?:\.\d+)?)(?= (?:[a-z]+ )?{stem}s?\b)")
    held = [(n, match) for n, line in enumerate(lines) for match in form.finditer(line)]
    if len(held) != 1 or held[0][1]["n"] == wanted.new or (wanted.old and held[0][1]["n"] != wanted.old):
        return None
    at, match = held[0]
    return [*lines[:at], lines[at][: match.start()] + wanted.new + lines[at][match.end() :], *lines[at + 1 :]]
