"""An element that a task adds to a list or takes out of it: done by code where it holds only texts.

Here: what is added to which list, the lines with it; pure. Not here: elements of several parts, which a
model writes (`rewrite.py`).
"""

import re
from collections.abc import Sequence

from bowerbird.models.local.task_words import forms_of, parts_of, words_of

_ASKED = re.compile(
    r"^(?:please )?(?:(?P<add>add|append)|(?P<out>remove|delete|drop|take)) "
    r"(?:the (?:entry|item|element|value|word|name|text) )?"
    r"[\"“'`]?(?P<what>[\w.#+-]+(?: [\w.#+-]+){0,2}?)[\"”'`]? "
    r"(?:as \w+ )?(?(add)(?:to|into)|(?:from|out of)) (?:the )?(?P<where>[^,;:]{2,80}?)[.!]?$",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:function|method|class|test|line|row|target|dependency|file|import|"
    r"comment|column)\b",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"\b(?:a|an|and|as|at|by|for|from|in|of|one|or|the|this|to|two|with)\b", re.IGNORECASE)
_ITEM = r"(?:\"[^\"\\]*\"|'[^'\\]*')"
_LINE = re.compile(
    rf"^(?P<before>\s*(?:[a-z]+ )*[\"']?(?P<name>[A-Za-z_][\w.-]*)[\"']?[^=:\[({{]*"
    rf"(?:=|:)\s*[^\[({{\"']*(?P<open>[\[({{]))"
    rf"(?P<items>\s*{_ITEM}(?:\s*,\s*{_ITEM})*)(?P<after>\s*,?\s*(?P<close>[\])}}])[\s,;)]*)$"
)
_OPENS = re.compile(
    r"^\s*(?:[a-z]+ )*[\"']?(?P<name>[A-Za-z_][\w.-]*)[\"']?[^=:\[({]*(?:[=:][^\[({\"']*)?"
    r"(?P<open>[\[({])\s*$"
)
_OWN_LINE = re.compile(r"^(?P<depth>\s+)(?P<item>\"[^\"\\]*\"|'[^'\\]*'|[A-Z]\w*)(?P<comma>,?)\s*$")
_YAML_NAME = re.compile(r"^(?P<depth>\s*)(?P<name>[A-Za-z_][\w-]*):\s*$")
_YAML_ITEM = re.compile(r"^(?P<depth>\s*)- (?P<quote>[\"']?)(?P<text>[\w.#+-][\w .#+-]*)(?P=quote)\s*$")


def with_element(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines with the element in or out of the one list that a task names; else None.

    Example:
        >>> with_element("Add plum to the fruits.", "a.py", ["FRUITS = ['fig']"])
        ["FRUITS = ['fig', 'plum']"]
    """
    asked = element_asked_for(task)
    if asked is None:
        return None
    words, what = words_of(asked["where"]), asked["what"]
    if _PHRASE.search(what):
        return None
    found = [
        new for n in range(len(lines)) if (new := _changed(lines, n, words, what, bool(asked["add"]), path))
    ]
    return found[0] if len(found) == 1 else None


def element_asked_for(task: str) -> re.Match[str] | None:
    """Return what is to be put into a list or taken out of it, `what` and `where`; None for other tasks."""
    return None if len(task) > 200 or _NOT.search(task) else _ASKED.match(task.strip())


def _changed(
    lines: Sequence[str], at: int, words: Sequence[str], what: str, adds: bool, path: str
) -> list[str] | None:
    line = _LINE.match(lines[at])
    if line is not None and _is_meant(line["name"], words):
        items = re.findall(_ITEM, line["items"])
        held = [item for item in items if item[1:-1].lower() == what.lower()]
        if adds == bool(held) or line["open"] + line["close"] not in ("[]", "()", "{}"):
            return None
        quote = items[0][0]
        kept = [*items, f"{quote}{what}{quote}"] if adds else [item for item in items if item not in held]
        space = re.match(r"\s*", line["items"])
        if line["open"] == "(" and len(kept) == 1 and "," not in line["after"]:
            return None  # without a comma it is no tuple any more
        new = f"{line['before']}{space[0] if space else ''}{', '.join(kept)}{line['after']}"
        return [*lines[:at], new, *lines[at + 1 :]] if kept else None
    opens = _OPENS.match(lines[at])
    if opens is not None and _is_meant(opens["name"], words):
        return _in_lines(lines, at, what, adds)
    name = _YAML_NAME.match(lines[at]) if path.lower().endswith((".yaml", ".yml")) else None
    if name is None or not _is_meant(name["name"], words):
        return None
    return _in_block(lines, at, what, adds)


def _in_block(lines: Sequence[str], at: int, what: str, adds: bool) -> list[str] | None:
    """Return lines with an element in or out of the block of dashes below a name."""
    end = at + 1
    items: list[re.Match[str]] = []
    while end < len(lines) and (item := _YAML_ITEM.match(lines[end])) is not None:
        items.append(item)
        end += 1
    held = [n for n, item in enumerate(items, at + 1) if item["text"].strip().lower() == what.lower()]
    goes_on = end < len(lines) and lines[end].lstrip().startswith("- ")
    if not items or goes_on or adds == bool(held) or (not adds and len(items) == 1):
        return None
    if not adds:
        return [*lines[: held[0]], *lines[held[0] + 1 :]]
    last = items[-1]
    return [*lines[:end], f"{last['depth']}- {last['quote']}{what}{last['quote']}", *lines[end:]]


def _in_lines(lines: Sequence[str], at: int, what: str, adds: bool) -> list[str] | None:
    """Return lines with an element in or out of a list that has a line for each, as an `enum` has."""
    end = at + 1
    items: list[re.Match[str]] = []
    while end < len(lines) and (item := _OWN_LINE.match(lines[end])) is not None:
        items.append(item)
        end += 1
    closes = end < len(lines) and re.match(r"\s*[\])}]", lines[end]) is not None
    names = [item["item"].strip("\"'").lower() for item in items]
    form = {item["item"][0] if item["item"][0] in "\"'" else "" for item in items}
    if not closes or len(form) != 1 or len(items) < 2 or adds == (what.lower() in names):
        return None
    quote, last = form.pop(), items[-1]
    if not adds:
        gone = at + 1 + names.index(what.lower())
        kept = [*lines[:gone], *lines[gone + 1 :]]
        if gone == end - 1 and not last["comma"]:
            kept[gone - 1] = kept[gone - 1].rstrip().removesuffix(",")
        return kept
    if not quote and re.fullmatch(r"[A-Z]\w*", what) is None:
        return None
    new = f"{last['depth']}{quote}{what}{quote}{last['comma']}"
    before = lines[end - 1] if last["comma"] else f"{lines[end - 1].rstrip()},"
    return [*lines[: end - 1], before, new, *lines[end:]]


def _is_meant(name: str, words: Sequence[str]) -> bool:
    text = parts_of(name.replace("_", " "))
    return any(re.search(forms_of(word), text) for word in words if word not in ("list", "file"))
