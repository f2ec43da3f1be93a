"""What a task wants taken out of a list, a table or a page: found by its name, removed with its comma.

Here: what is taken out of what, the lines without it; pure. Not here: elements of a list in one line
(`elements.py`), lines that print (`removals.py`), code, which a model rewrites (`rewrite.py`).
"""

import re
from collections.abc import Iterator, Sequence

from bowerbird.models.local.task_words import forms_of, parts_of, words_of

_ASKED = re.compile(
    r"\b(?:remove|delete|drop|take|leave|strike|cross) (?:the )?(?P<what>[^.,;:]{2,60}?)"
    r"(?: (?:out of|from|off) (?:the |our )?(?P<where>[^,;:]{2,60}?)| out)[.!]?$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"^(?:it|him|her|them|that|this)$", re.IGNORECASE)
_PROPER = re.compile(
    r"(?<![\w.])(?!(?:The|We|I|On|In|At|A|An|It|Our|Please)\b)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*"
)
_NOT = re.compile(
    r"\b(?:function|method|class|test|tests|line|lines|import|comment|comments|column|all|every|each|both|and|"
    r"code|print\w*|log\w*|call\w*|rule|if|when|unless)\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"^(?:entry|item|element|value|word|name|row|record|dependency|package|setting|option|key|link)s? "
    r"(?:(?:on|for|of|called|named) )?(?:the )?",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?P<depth>\s*)(?:[-*+]|\d+[.)]) +(?P<text>.+)$")
_ITEM = re.compile(r"^\s*(?:\{.*\}|\[.*\]|\(.*\)|\"[^\"]*\"|'[^']*'),?\s*$")
_PAIR = re.compile(r"^\s*(?P<quote>[\"']?)(?P<key>[\w.@/-]+)(?P=quote)\s*[:=]\s*\S.*?(?P<comma>,?)\s*$")
_TAG = re.compile(r"^\s*<(?P<tag>li|option|tr)\b.*</(?P=tag)>\s*$", re.IGNORECASE)
_TABLES, _PROSE = (".csv", ".tsv"), (".md", ".markdown", ".txt", ".rst")
_YAML = (".yaml", ".yml")
_SETTINGS = (*_YAML, ".json", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env")
_MOST_TASK, _MOST_LINES = 300, 2_000


def without_entry(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines without the one entry that a task wants out; None where it is open which.

    Example:
        >>> without_entry("Take the figs off the list.", "list.md", ["# List", "- figs", "- plums"])
        ['# List', '- plums']
    """
    asked = entry_asked_for(task)
    if asked is None or len(lines) > _MOST_LINES:
        return None
    what, where = asked
    entries = [entry for entry in _entries(path, lines) if _is_named(what, "\n".join(lines[slice(*entry)]))]
    entries = entries or list(_keys(path, lines, what))
    if len(entries) != 1 or not _is_there(where, path, lines, entries[0][0]):
        return None
    begin, end = entries[0]
    kept = [*lines[:begin], *lines[end:]]
    closes = kept[begin].strip()[:1] in ("]", "}", ")") if begin < len(kept) else False
    if closes and begin and not lines[end - 1].rstrip().endswith(","):  # the one before is the last now
        kept[begin - 1] = kept[begin - 1].rstrip().removesuffix(",")
    return kept


def _keys(path: str, lines: Sequence[str], what: str) -> Iterator[tuple[int, int]]:
    """Give the lines of a file of settings that give a key of that name its value."""
    if path.lower().endswith(_SETTINGS):
        named = ((n, _PAIR.match(line)) for n, line in enumerate(lines))
        yield from ((n, n + 1) for n, pair in named if pair and pair["key"].lower() == what.lower())


def entry_asked_for(task: str) -> tuple[str, str] | None:
    """Return what is to be taken out of what; None where a task asks for something else."""
    said = task.strip()
    if len(said) > _MOST_TASK or _NOT.search(said) or said.endswith("?"):
        return None
    found = _ASKED.search(said)
    if found is None:
        return None
    what, where = _KIND.sub("", found["what"].strip()), found["where"] or ""
    if _PRONOUN.match(what):
        names = _PROPER.findall(said[: found.start()])
        what = names[0] if len(names) == 1 else ""
    what = what.strip("\"'`“”")
    return (what, where) if what else None


def _is_named(what: str, text: str) -> bool:
    """Whether an entry holds what is named: those words, in this order, in any of their forms."""
    words = [word for word in re.findall(r"\w[\w.+#'-]*", what.lower()) if word not in ("the", "a", "an")]
    form = r"\W+".join(
        forms_of(word) + r"\w*" if len(word) > 3 else rf"(?<!\w){re.escape(word)}(?!\w)" for word in words
    )
    return bool(words) and re.search(form, text.lower()) is not None


def _is_there(where: str, path: str, lines: Sequence[str], at: int) -> bool:
    """Whether an entry stands in what a task names: by the file's path, or by a name or heading above it."""
    words = [word for word in words_of(where) if word not in ("list", "file", "table", "page")]
    if not words:
        return True
    depth = len(lines[at]) - len(lines[at].lstrip())
    above = [
        line for line in lines[:at] if line.lstrip().startswith("#") or len(line) - len(line.lstrip()) < depth
    ]
    text = parts_of(" ".join((path, *above)).replace("_", " "))
    return any(re.search(forms_of(word), text) for word in words)


def _entries(path: str, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Give the first line of each entry and the line behind it."""
    name = path.lower()
    if name.endswith(_TABLES):
        yield from ((n, n + 1) for n, line in enumerate(lines) if n and line.strip() and '"' not in line)
        return
    bullets = name.endswith((*_PROSE, *_YAML))
    for n, line in enumerate(lines):
        bullet = _BULLET.match(line) if bullets else None
        if bullet is not None:
            end = n + 1
            while end < len(lines) and lines[end].strip() and _depth(lines[end]) > len(bullet["depth"]):
                end += 1
            yield n, end
        elif _ITEM.match(line) or _TAG.match(line):
            yield n, n + 1
        elif line.strip() == "{" and line != "{":
            end = f"{line.rstrip()[:-1]}}}"
            close = next((m for m in range(n, len(lines)) if lines[m].rstrip(" ,") == end), n)
            yield n, close + 1


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
