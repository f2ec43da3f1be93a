"""How a small model changes a file: found by search, chosen by the model, rewritten whole, checked.

Here: what comes next in such a turn, what is rewritten, whether that may stand, what is said of it. Not
here: asking the model (`exchange.py`), guards (`guards.py`), turns that ask for no change (`choices.py`).

Measured (design of the embedded model, *Edits*): tools chosen step by step got 5 of 12 small edits right, a
whole file rewritten in a fenced block 12 of 12. A file over `WHOLE_LINES` is rewritten around what was found.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bowerbird.models.local.calls import (
    READ_LINES,
    SEARCH_CONTEXT,
    SEARCH_LIMIT,
    is_data,
    telling_words,
)
from bowerbird.models.local.grammar import Free, OneOf, Option, StepGrammar
from bowerbird.models.local.renaming import renaming_step
from bowerbird.models.local.results import tell
from bowerbird.models.local.rewrite import Rewrite, around, best_line, blocks, edit_of, trimmed
from bowerbird.models.local.settled.headings import page_of
from bowerbird.models.local.settled.lines import defines
from bowerbird.models.local.settled.rows import TABLES, adds_row
from bowerbird.models.local.settled.settle import may_be_settled, settled_file, settled_lines
from bowerbird.models.local.settled.styles import SHEETS, wanted_style
from bowerbird.models.local.situation import Done, Situation, shown_part
from bowerbird.models.local.sorting import CHANGE_WORDS
from bowerbird.models.local.task_words import (
    WORD,
    changed_files,
    forms_of,
    is_prose,
    named_files,
    names_in,
    new_path,
    parts_of,
    style_sheet,
    words_of,
)

NEEDS = frozenset({"search_files", "read_file", "edit_file", "write_file"})
WHOLE_LINES = 60
TRIES = 3
_MOST_WORDS = 8
MOST_CALLS, MOST_CALLS_SUMMED = 10, 3
"""Calls without a change after which none will come; the same once the turn was summed up."""

MOST_SCOUTED, SCOUTED_LINES = 4, 600

_SAID = 90
_HITS = 12
_CLEARLY, _WEAK, _TARGET = 2, 4, 6
# "Add mango to the list of fruits": what is added to, and the lines where such a thing begins.
_ADDED_TO = re.compile(
    r"\b(?:add|append|put|insert)\b.*?\b(?:to|into)\b(?P<where>.+)", re.IGNORECASE | re.DOTALL
)
_COLLECTION = re.compile(
    r"(?:CREATE TABLE |(?:[a-z]+ )*)[\"']?(?P<name>[A-Za-z_][\w.-]*)[\"']?"
    r"(?:[\w\s:<>\[\]]*?(?:=|:)\s*(?:[\[({].*)?$|(?<=[a-z]) \($)"
)
_SETTING = re.compile(r"[^()]{0,40}[\w\"']\s*(?:=|:=|:)\s*\D{0,30}\d")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that needs no model."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Calls:
    """Several calls of one step."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Choose:
    """A file that the model chooses to be read and changed; `asked` is all that it is told.

    `likeliest` is read where it chooses none.
    """

    asked: str
    paths: tuple[str, ...]
    likeliest: str


@dataclass(frozen=True, slots=True)
class Say:
    """The answer."""

    text: str


Move = Call | Calls | Choose | Say | Rewrite | StepGrammar


def next_move(situation: Situation, offered: frozenset[str]) -> Move | None:
    """Return what comes next in a turn that asks for a change; None where the common way is better.

    Args:
        situation: the facts of the request.
        offered: names of the tools that may be called.

    Example:
        >>> next_move(Situation(task="Set the port to 90.", files=("a.py",)), NEEDS).tool
        'search_files'
    """
    task = situation.task
    if not offered >= NEEDS or not situation.wants_change or not situation.files:
        return None
    renaming = renaming_step(situation)
    if renaming is not None:
        return Say(renaming) if isinstance(renaming, str) else Call(*renaming)
    done = [d for d in situation.calls if d.call.name in ("edit_file", "write_file")]
    if done:
        return Say(said_of(done[-1]))
    most = MOST_CALLS_SUMMED if situation.summed else MOST_CALLS
    if len(situation.calls) >= most and not situation.acted:
        return Say("I changed nothing: I did not find what is to be changed.")
    new = new_path(task, situation.files)
    if new is not None:
        field = OneOf((new,)) if new else Free(80, situation.files, "A-Za-z0-9_./-")
        return StepGrammar((Option("write_file", (("path", field),)),), bool(situation.calls))
    last = situation.last
    if last is None:
        named = named_files(task, situation.files)
        path = named[0] if len(named) == 1 else page_of(task, situation.files)
        return Call("read_file", {"path": path, "offset": 1}) if path else _search(task)
    if last.failed:
        return None
    if last.call.name == "read_file":
        return _after_reading(situation, last)
    return _after_search(situation) if last.call.name == "search_files" else None


def _scouts(situation: Situation) -> list[Call]:
    """Return the reading of the files that a search found the most in, where one may settle the task."""
    if not may_be_settled(situation.task):
        return []
    files = changed_files(situation.task, situation.files)
    endings = SHEETS if wanted_style(situation.task) else TABLES if adds_row(situation.task) else ()
    sheets = [path for path in files if path.lower().endswith(endings)] if endings else []
    found = [path for _, (path, _, _) in _found(situation) if path in files]
    paths = dict.fromkeys((*sheets[: MOST_SCOUTED - 1], *found))
    return [
        Call("read_file", {"path": path, "offset": 1, "limit": SCOUTED_LINES})
        for path in list(paths)[:MOST_SCOUTED]
    ]


def _after_search(situation: Situation) -> Call | Calls | Choose:
    """Return what is read: the likeliest files at once, or the one that is meant if those settled nothing."""
    scouts = _scouts(situation) if len(_searches(situation)) == 1 else []
    if not scouts:
        return _file_to_read(situation)
    return Calls(tuple(scouts)) if len(scouts) > 1 else scouts[0]


def _after_reading(situation: Situation, last: Done) -> Call | Rewrite | None:
    """Return the edit or rewriting of a file; the search again where the likeliest files settled nothing."""
    searches = _searches(situation)
    if len(searches) != 1 or not may_be_settled(situation.task):
        return None if last.forgotten else _rewrite(situation, last)
    reads = [done for done in situation.calls if done.call.name == "read_file" and not done.failed]
    parts = {done.path: shown_part(done) for done in reads if not done.forgotten}
    whole = {path: part.lines for path, part in parts.items() if part.next_offset is None}
    meant = settled_file(situation.task, whole)
    if meant is not None:
        return _rewrite(situation, next(done for done in reads if done.path == meant))
    return Call("search_files", searches[0].call.input)  # what it found is no longer in sight


def _searches(situation: Situation) -> list[Done]:
    return [done for done in situation.calls if done.call.name == "search_files"]


def _file_to_read(situation: Situation) -> Call | Choose:
    """Return the reading of the file that is clearly meant, else the question which file it is."""
    files = changed_files(situation.task, situation.files)
    picked = _clearly_best(situation, files)
    if picked is not None:
        return Call("read_file", reading_of(picked, situation))
    return _which(situation, files)


def _clearly_best(situation: Situation, files: Sequence[str]) -> str | None:
    """Return the file with a line that holds clearly more of the task than any line of another file."""
    best: dict[str, int] = {}
    for score, (path, _, _) in _found(situation):
        if path in files:
            best.setdefault(path, score)
    first, second = [*best, "", ""][:2]
    sheet = style_sheet(situation.task, files)
    if sheet is not None and best.get(first, 0) < _WEAK:
        return sheet
    clear = len(best) == 1 or (best and best[first] >= best[second] + _CLEARLY)
    return first if clear else None


def other_file(situation: Situation, tried: str) -> Choose | None:
    """Return which file is asked for once a rewriting of `tried` failed; None where that is settled."""
    rest = tuple(path for path in situation.files if path != tried)
    at = max((n for n, done in enumerate(situation.calls) if done.call.name == "search_files"), default=-1)
    first = sum(done.call.name == "read_file" for done in situation.calls[at + 1 :]) == 1
    return _which(situation, rest) if first and rest and matches_of(situation) else None


def _which(situation: Situation, files: tuple[str, ...]) -> Choose:
    found = [row for _, row in _found(situation) if row[0] in files]
    lines = [f"{path}:{line}: {text}" for path, line, text in found[:_HITS]]
    asked = f"Task: {situation.task}\nWhich line is meant, and which file is to be changed?"
    text = "\n".join(("Files:", *files, "Lines:", *lines, asked))
    return Choose(text, files, found[0][0] if found else files[0])


def _found(situation: Situation) -> list[tuple[int, tuple[str, int, str]]]:
    """Return path, number and text of the lines that the search found, most of the task's words first."""
    words = [re.compile(forms_of(word)) for word in words_of(situation.task)]
    made = re.findall(r"\bmake ([a-z][\w-]*)", situation.task)
    numbers = re.search(r"\d", situation.task) is not None
    added = _ADDED_TO.search(situation.task)
    target = [re.compile(forms_of(word)) for word in words_of(added["where"])] if added else []
    names = names_in(situation.task)
    rows = [
        (path_of(row), row["line"], str(row.get("text", "")).strip()[:_SAID]) for row in matches_of(situation)
    ]

    def score(row: tuple[str, int, str]) -> int:
        path, text = parts_of(row[0]), parts_of(row[2])
        held = sum(2 * bool(word.search(text)) + bool(word.search(path)) for word in words)
        if path.endswith("makefile") and text.partition(":")[0] in made:
            held += _TARGET
        sets = numbers and _SETTING.match(text) is not None
        begun = _COLLECTION.match(row[2])
        if begun and any(word.search(parts_of(begun["name"].replace("_", " "))) for word in target):
            held += _TARGET
        if not row[2].endswith(";") and any(defines(row[2], name) for name in names):
            held += _TARGET
        return held + 2 * sets - 2 * (is_data(path) or is_prose(path))

    return sorted(((score(row), row) for row in rows), key=lambda pair: pair[0], reverse=True)


def reading_of(path: str, situation: Situation) -> dict[str, Any]:
    """Return the arguments of the call that reads the part of a file where the search found the most."""
    lines = [int(match["line"]) for match in matches_of(situation) if path_of(match) == path]
    first = max(1, lines[0] - READ_LINES // 2) if lines and lines[0] > READ_LINES // 2 else 1
    return {"path": path, "offset": first, "limit": READ_LINES}


def said_of(done: Done) -> str:
    """Return what is said of a change: made from what was written, so it claims nothing else."""
    path, given = done.path, done.call.input
    if done.failed:
        said = done.text.strip().partition("\n")[0] or "the tool failed"
        return f"I could not change {path}: {said}"
    if done.call.name == "write_file":
        count = len(str(given.get("content", "")).splitlines())
        return f"I wrote {path}, {count} line{'' if count == 1 else 's'}."
    old, new = str(given.get("old", "")).split("\n"), str(given.get("new", "")).split("\n")
    said = [_told(old[a:b], new[c:d]) for a, b, c, d in blocks(old, new)]
    rest = f", and changed {len(said) - 3} more places" if len(said) > 3 else ""
    return f"In {path} I {'; '.join(said[:3])}{rest}."


def _told(old: Sequence[str], new: Sequence[str]) -> str:
    gone, come = _short(old), _short(new)
    if not gone:
        return f"added {come}"
    return f"changed {gone} to {come}" if come else f"removed {gone}"


def _short(lines: Sequence[str]) -> str:
    filled = [line.strip() for line in lines if line.strip()]
    if not filled:
        return "an empty line" if lines else ""
    first = filled[0] if len(filled[0]) <= _SAID else filled[0][:_SAID] + "…"
    more = len(filled) - 1
    return f"`{first}`" + (f" and {more} more line{'' if more == 1 else 's'}" if more else "")


def _search(task: str) -> Call:
    words = [word for word in telling_words(" ".join(WORD.findall(task))) if word.lower() not in CHANGE_WORDS]
    more = {"case_sensitive": False, "limit": SEARCH_LIMIT, "context": SEARCH_CONTEXT}
    return Call("search_files", {"pattern": any_of(words) or ".", **more})


def any_of(words: Sequence[str]) -> str:
    """Return the pattern of the first few words of a task, plural or not; empty for none."""
    return "|".join(re.sub(r"(?<=\w{4})y$", "(?:y|i)", re.escape(word)) for word in words[:_MOST_WORDS])


def matches_of(situation: Situation) -> list[dict[str, Any]]:
    """Return what the newest search of the turn found: `path`, `line`, `text` of each."""
    found = [d.data.get("matches") for d in situation.calls if d.call.name == "search_files" and not d.failed]
    rows = cast("list[dict[str, Any]]", found[-1] if found and isinstance(found[-1], list) else [])
    return [row for row in rows if isinstance(row.get("line"), int)]


def path_of(match: dict[str, Any]) -> str:
    """Return the path of what a search found, as the model is told it."""
    return str(match.get("path", "")).lstrip("/")


def _rewrite(situation: Situation, read: Done) -> Call | Rewrite | None:
    part = shown_part(read)
    lines = part.lines
    if part.next_offset is None and read.call.input.get("offset", 1) == 1:
        known = Rewrite(situation.task, read.path, (), lines, ())
        new = settled_lines(situation.task, read.path, lines)
        edit = edit_of(known, new) if new is not None else None
        if edit is not None:
            return Call("edit_file", edit)
    searches = [d for d in situation.calls if d.call.name == "search_files" and not d.failed]
    told = tell(searches[-1]).split("\n") if searches else []
    hints = tuple(line for line in told if not line.startswith(f"{read.path}:"))[:10]
    begin, end = 0, len(lines)
    if end > WHOLE_LINES:
        begin, end = around(lines, best_line(lines, situation.task))
    begin, end = trimmed(lines, begin, end)
    if begin == end or any(line.startswith("`") for line in lines[begin:end]):
        return None  # nothing to rewrite, or fences that would close the block
    return Rewrite(situation.task, read.path, lines[:begin], lines[begin:end], lines[end:], hints)
