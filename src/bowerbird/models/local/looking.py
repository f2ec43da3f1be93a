"""Where a small model looks first when it is asked something: where the words of the question stand.

Here: the calls that need no model, purely. Not here: what it does with what they show (`choices.py`), turns
that change files (`changing.py`).

A step that the model chooses costs it seconds, and its first ones were mostly a search for the words of
the question and the reading of what was found: these are made at once. Whatever is less clear it chooses.
"""

import re

from bowerbird.models.local.calls import HEAD_LINES, is_data
from bowerbird.models.local.changing import Call, any_of, matches_of, path_of
from bowerbird.models.local.situation import Situation
from bowerbird.models.local.task_words import forms_of, named_files, parts_of, words_of

NEEDS = frozenset({"search_files", "read_file"})
LOOK_LINES = 80
_MATCHES = 200
# They stand everywhere, and say little of where to look.
_GENERAL = frozenset(
    "app are big class code does file function get give go have kind large line long method name number "
    "program project small thing type use used using value variable way".split()
)
_HELD, _CLEARLY = 4, 2


def first_look(situation: Situation, offered: frozenset[str]) -> Call | None:
    """Return the first calls of a turn that asks for an answer; None where the model chooses.

    Args:
        situation: the facts of the request.
        offered: names of the tools that may be called.

    Example:
        >>> first_look(Situation(task="Which port is used?", files=("a.py",)), NEEDS).input["pattern"]
        'port'
    """
    if not offered >= NEEDS or situation.wants_change or not situation.files or len(situation.calls) > 1:
        return None
    last = situation.last
    if last is None:
        named = named_files(situation.task, situation.files)
        if len(named) == 1:
            return _reading(named[0], 1)
        return _search(_telling(situation.task))
    if last.call.name != "search_files" or last.failed:
        return None
    return _best(situation)


def _telling(task: str) -> list[str]:
    words = words_of(task)
    return [word for word in words if word not in _GENERAL] or words


def _search(words: list[str]) -> Call | None:
    """Return the search for the words; without the lines around, which would fill the window."""
    if not words:
        return None
    return Call("search_files", {"pattern": any_of(words), "case_sensitive": False, "limit": _MATCHES})


def _best(situation: Situation) -> Call | None:
    """Return the reading of the file whose line holds clearly more of the question than any other file's."""
    words = [re.compile(forms_of(word)) for word in _telling(situation.task)]
    best: dict[str, tuple[int, int]] = {}
    for row in matches_of(situation):
        path, text = path_of(row), parts_of(str(row.get("text", "")))
        held = sum(2 * bool(word.search(text)) + bool(word.search(parts_of(path))) for word in words)
        if path not in best or held > best[path][0]:
            best[path] = (held, int(row["line"]))
    ranked = sorted(best.items(), key=lambda found: found[1][0], reverse=True)
    if not ranked:
        return None
    path, (held, line) = ranked[0]
    alone = len(ranked) == 1 or held >= ranked[1][1][0] + _CLEARLY
    return _reading(path, line) if held >= _HELD and alone else None


def _reading(path: str, line: int) -> Call:
    lines = HEAD_LINES if is_data(path) else LOOK_LINES
    offset = 1 if is_data(path) or line <= LOOK_LINES else line - LOOK_LINES // 2
    return Call("read_file", {"path": path, "offset": offset, "limit": lines})
