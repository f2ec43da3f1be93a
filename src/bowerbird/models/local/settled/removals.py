"""A line that a task has taken out, told by what it prints: removed by code where it is the only one.

Here: whether a task is that, which line it is; pure. Not here: other removals, which a model makes
(`rewrite.py`).
"""

import re
from collections.abc import Sequence

_ASKED = re.compile(
    r"^(?:please )?(?:remove|delete|drop)\b.*\b(?:line|print|log|output|statement|call)\w*\b|"
    r"^(?:please )?take\b.*\b(?:print|log|output)\w*\b.*\bout\b|"
    r"\b(?:prints?|logs|echoes|says)\b.*[.;,] (?:please )?(?:[iw]e? )?(?:"
    r"(?:don['’]t|do not|no longer) (?:want|need) (?:it|that|this|to see)|"
    r"(?:it|that|this) should (?:go|stop)|"
    r"(?:stop|drop|silence|remove|delete) (?:it|that|this)|take (?:it|that|this) (?:out|away))",
    re.IGNORECASE | re.DOTALL,
)
_PRINTS = re.compile(
    r"^\s*(?:print|console\.\w+|println!|eprintln!|dbg!|fmt\.Print\w*|log\.\w+|logger\.\w+|logging\.\w+|"
    r"System\.(?:out|err)\.\w+|printf|fprintf|puts|echo|std::c(?:out|err))\b"
)
_SAID = re.compile(
    r"\b(?:print|prints|printed|printing|log|logs|logged|console|echo|echoes|debug|trace|output)\b", re.I
)
_TOLD = re.compile(r"\b[A-Z]{3,}\b|\b[a-z]+\.[a-z]+(?=\W|$)|\"([^\"]+)\"|`([^`]+)`|'([^']+)'")
_DEBUG = re.compile(r"debug|dbg!|\btraces?\b|trace[(!]", re.IGNORECASE)
_NOT = re.compile(r"\b(?:lines|all|(?:every|each)(?! time)|and|also|calls|prints? .* and)\b", re.IGNORECASE)
_PATH = re.compile(r"\b[\w/-]+\.(?:c|cpp|go|java|js|jsx|mjs|php|py|rb|rs|sh|ts|tsx)\b")


def without_line(task: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines without the one that prints and is to be taken out; None where it is open which.

    Example:
        >>> without_line("Remove the line that prints DEBUG.", ["a = 1", "print('DEBUG', a)", "print(a)"])
        ['a = 1', 'print(a)']
    """
    if not is_print_removal(task):
        return None
    said = _PATH.sub(" ", task.strip())
    told = [found[1] or found[2] or found[3] or found[0] for found in _TOLD.finditer(said)]
    prints = [n for n, line in enumerate(lines) if _PRINTS.match(line) and _is_whole(line)]
    held = [n for n in prints if all(some in lines[n] for some in told)]
    if _DEBUG.search(said):  # else it may be what the program is there to say
        held = [n for n in held if _DEBUG.search(lines[n])]
    if len(held) != 1:
        return None
    return [*lines[: held[0]], *lines[held[0] + 1 :]]


def is_print_removal(task: str) -> bool:
    """Whether a task wants a line out that prints something."""
    said = _PATH.sub(" ", task.strip())
    asked = len(task) <= 200 and _ASKED.search(said) is not None and _SAID.search(said) is not None
    return asked and not _NOT.search(said)


def _is_whole(line: str) -> bool:
    """Whether a call ends where its line does."""
    return all(line.count(a) == line.count(b) for a, b in ("()", "[]", "{}"))
