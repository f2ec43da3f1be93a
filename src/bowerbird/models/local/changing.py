"""How a small model changes a file: found by search, chosen by the model, rewritten whole, checked.

Here: what comes next in such a turn, what is rewritten, whether that may stand, what is said of it. Not
here: asking the model (`exchange.py`), turns that ask for no change (`choices.py`).

Measured (design of the embedded model, *Edits*): tools chosen step by step got 5 of 12 small edits right, a
whole file rewritten in a fenced block 12 of 12. A file over `WHOLE_LINES` is rewritten around what was found.
"""

import ast
import json
import re
import tomllib
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, cast

import msgspec

from bowerbird.models.local.calls import READ_LINES, SEARCH_CONTEXT, SEARCH_LIMIT, telling_words
from bowerbird.models.local.grammar import Free, OneOf, Option, StepGrammar
from bowerbird.models.local.results import tell
from bowerbird.models.local.situation import Done, Situation, shown_part
from bowerbird.models.local.sorting import CHANGE_WORDS

NEEDS = frozenset({"search_files", "read_file", "edit_file", "write_file"})
WHOLE_LINES = 60
TRIES = 3
_EXCERPT_LINES = 40
_MOST_WORDS = 8
_PATH = re.compile(r"(?<![\w./-])(?:[\w-]+/)*[\w-]*\.?[\w-]*[A-Za-z][\w-]*\.[A-Za-z]\w{0,7}(?![\w/])")
_NEW_FILE = re.compile(r"\b(?:new|create|add|write|make)\b[^.]{0,20}\bfile\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]\w{2,}|\d+(?:\.\d+)?")
_SAID = 90
_HITS = 12


class Call(msgspec.Struct, frozen=True):
    """A call that needs no model."""

    tool: str
    input: dict[str, Any]


class Choose(msgspec.Struct, frozen=True):
    """A file that the model chooses to be read and changed; `asked` is all that it is told."""

    asked: str
    paths: tuple[str, ...]


class Say(msgspec.Struct, frozen=True):
    """The answer."""

    text: str


class Rewrite(msgspec.Struct, frozen=True):
    """Lines that the model writes anew, all of a file or a part of it.

    Attributes:
        task: what is asked for.
        path: of the file.
        lines: as they are; with `before` and `after` they are the lines that are known.
        hints: lines of other files that share words with the task.
    """

    task: str
    path: str
    before: tuple[str, ...]
    lines: tuple[str, ...]
    after: tuple[str, ...]
    hints: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether these are all lines that are known."""
        return not self.before and not self.after

    @property
    def fence(self) -> str:
        """What opens and closes the block; longer where the lines hold one."""
        return "````" if any("```" in line for line in self.lines) else "```"


Move = Call | Choose | Say | Rewrite | StepGrammar


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
    done = [d for d in situation.calls if d.call.name in ("edit_file", "write_file")]
    if done:
        return _after(done[-1])
    new = _new_path(task, situation.files)
    if new is not None:
        field = OneOf((new,)) if new else Free(80, situation.files, "A-Za-z0-9_./-")
        return StepGrammar((Option("write_file", (("path", field),)),), bool(situation.calls))
    last = situation.last
    if last is None:
        named = [path for path in situation.files if _stands_in(path, task)]
        return Call("read_file", {"path": named[0], "offset": 1}) if len(named) == 1 else _search(task)
    if last.failed:
        return None
    if last.call.name == "read_file" and not last.forgotten:
        return _rewrite(situation, last)
    return _file_to_read(situation) if last.call.name == "search_files" else None


def _file_to_read(situation: Situation) -> Call | Choose:
    """Return the reading of the only file with what the task names, else the question which file it is."""
    found = {_path_of(match) for match in _matches(situation)}.intersection(situation.files)
    if len(found) == 1:
        return Call("read_file", reading_of(found.pop(), situation))
    return _which(situation, situation.files)


def other_file(situation: Situation, tried: str) -> Choose | None:
    """Return which file is asked for once a rewriting of `tried` failed; None where that is settled."""
    read = [done for done in situation.calls if done.call.name == "read_file"]
    rest = tuple(path for path in situation.files if path != tried)
    return _which(situation, rest) if len(read) == 1 and rest and _matches(situation) else None


def _which(situation: Situation, files: tuple[str, ...]) -> Choose:
    lines = [f"{path}:{line}: {text}" for path, line, text in _found(situation) if path in files][:_HITS]
    asked = f"Task: {situation.task}\nWhich line is meant, and which file is to be changed?"
    return Choose("\n".join(("Files:", *files, "Lines:", *lines, asked)), files)


def _found(situation: Situation) -> list[tuple[str, int, str]]:
    """Return path, number and text of the lines that the search found, most of the task's words first."""
    words = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![0-9])") for word in _words_of(situation.task)]
    rows = [
        (_path_of(row), row["line"], str(row.get("text", "")).strip()[:_SAID]) for row in _matches(situation)
    ]

    def score(row: tuple[str, int, str]) -> int:
        text, path = row[2].lower(), row[0].lower()
        return sum(2 * bool(word.search(text)) + bool(word.search(path)) for word in words)

    return sorted(rows, key=score, reverse=True)


def reading_of(path: str, situation: Situation) -> dict[str, Any]:
    """Return the arguments of the call that reads the part of a file where the search found the most."""
    lines = [int(match["line"]) for match in _matches(situation) if _path_of(match) == path]
    first = max(1, lines[0] - READ_LINES // 2) if lines and lines[0] > READ_LINES // 2 else 1
    return {"path": path, "offset": first, "limit": READ_LINES}


def question(wanted: Rewrite) -> str:
    """Return what the model is asked: the task, lines that may help, the lines to rewrite."""
    hints = "\n".join(wanted.hints)
    part = "File" if wanted.whole else "Part of the file"
    return (
        f"Task: {wanted.task}\n"
        + (f"Elsewhere:\n{hints}\n" if hints else "")
        + f"{part} {wanted.path}:\n{wanted.fence}\n" + "\n".join(wanted.lines) + f"\n{wanted.fence}"
    )  # fmt: skip


def fault(wanted: Rewrite, new: Sequence[str]) -> str | None:
    """Return why a rewriting may not stand, None when it may.

    Example:
        >>> fault(Rewrite("Set A to 2.", "a.py", (), ("A = 1",), ()), ["A = 1"])
        'it changes nothing'
    """
    if list(new) == list(wanted.lines):
        return "it changes nothing"
    parts = _blocks(wanted.lines, new)
    gone = sum(b - a for a, b, _, _ in parts)
    come = sum(d - c for _, _, c, d in parts)
    if max(gone, come) > max(12, len(wanted.lines) // 2):
        return "it changes far more than the task names"
    removes = re.search(r"\b(?:remove|delete|drop)\b", wanted.task, re.IGNORECASE)
    if not removes and gone > come + 1:
        return "lines are lost"
    if removes and re.search(r"\bthe (?:\w+ )?line\b", wanted.task) and gone != come + 1:
        return "not one line is removed"
    return _elsewhere(wanted, parts, bool(removes)) or _parse_fault(wanted, new)


def _elsewhere(wanted: Rewrite, parts: Sequence[tuple[int, int, int, int]], removes: bool) -> str | None:
    """Return what the task names and nothing near it changes, None when all is well."""
    lines = wanted.lines
    for word in _names_in(wanted.task):
        near = [_around(lines, n) for n, line in enumerate(lines) if word in line]
        if near and not any(begin <= b and a <= end for a, b, _, _ in parts for begin, end in near):
            return f"it changes nothing near {word}"
    gone = " ".join(line for a, b, _, _ in parts for line in lines[a:b]).lower()
    words = [word for word in _words_of(wanted.task) if any(word in line.lower() for line in lines)]
    if removes and words and not any(word in gone for word in words):
        return f"it removes nothing with {words[0]}"
    return None


def narrowed(wanted: Rewrite) -> Rewrite | None:
    """Return the part that the task is most likely about, None where that is nearly all."""
    lines = wanted.lines
    begin, end = _trimmed(lines, *_around(lines, _best(lines, wanted.task)))
    if end - begin > len(lines) * 2 // 3 or begin == end:
        return None
    before, after = (*wanted.before, *lines[:begin]), (*lines[end:], *wanted.after)
    return Rewrite(wanted.task, wanted.path, before, lines[begin:end], after, wanted.hints)


def edit_of(wanted: Rewrite, new: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of the `edit_file` call that makes the change; None when it cannot be told apart.

    Only the changed lines are replaced, with as many before them as make the place unique: all else stays
    byte for byte.
    """
    old_all = [*wanted.before, *wanted.lines, *wanted.after]
    new_all = [*wanted.before, *new, *wanted.after]
    parts = _blocks(old_all, new_all)
    first, last = parts[0][0], parts[-1][1]
    new_first, new_last = parts[0][2], parts[-1][3]
    text = "\n".join(old_all)
    while True:
        old = "\n".join(old_all[first:last])
        # Lines that go leave their line break too: one line beside them is written again.
        if old and new_last > new_first and text.find(old, text.find(old) + 1) < 0:
            return {"path": wanted.path, "old": old, "new": "\n".join(new_all[new_first:new_last])}
        if first > 0:
            first, new_first = first - 1, new_first - 1
        elif last < len(old_all):
            last, new_last = last + 1, new_last + 1
        else:
            return None


def _after(done: Done) -> Say:
    """Return what is said of a change: made from what was written, so it claims nothing else."""
    path, given = done.path, done.call.input
    if done.failed:
        said = done.text.strip().partition("\n")[0] or "the tool failed"
        return Say(f"I could not change {path}: {said}")
    if done.call.name == "write_file":
        count = len(str(given.get("content", "")).splitlines())
        return Say(f"I wrote {path}, {count} line{'' if count == 1 else 's'}.")
    old, new = str(given.get("old", "")).split("\n"), str(given.get("new", "")).split("\n")
    said = [_told(old[a:b], new[c:d]) for a, b, c, d in _blocks(old, new)]
    rest = f", and changed {len(said) - 3} more places" if len(said) > 3 else ""
    return Say(f"In {path} I {'; '.join(said[:3])}{rest}.")


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


def _new_path(task: str, files: Sequence[str]) -> str | None:
    """Return the path of a file that is to be made, "" when it is not named; None when there is none."""
    named = [path for path in _PATH.findall(task) if path not in files]
    known = {path.rpartition("/")[2] for path in files}
    if not _NEW_FILE.search(task) or any(_stands_in(path, task) for path in files):
        return None
    return next((path for path in named if path not in known), "")


def _stands_in(path: str, task: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", task) is not None


def _words_of(task: str) -> list[str]:
    """Return the words of a task that files may hold, in lower case."""
    words = (word.lower() for word in telling_words(" ".join(_WORD.findall(task))))
    return [word for word in words if word not in CHANGE_WORDS]


def _names_in(task: str) -> list[str]:
    """Return the names of code in a task, told by their form."""
    return re.findall(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b", task)


def _best(lines: Sequence[str], task: str) -> int:
    """Return the line that shares most with a task; of names of code the first, where they are defined."""
    names, words = _names_in(task), _words_of(task)

    def score(n: int) -> tuple[int, int, int]:
        line = lines[n]
        return sum(name in line for name in names), sum(word in line.lower() for word in words), -n

    return max(range(len(lines)), key=score)


def _trimmed(lines: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    """Return the part without empty lines around it: a block neither begins nor ends with one."""
    while begin < end and not lines[begin].strip():
        begin += 1
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return begin, end


def _search(task: str) -> Call:
    words = [
        word for word in telling_words(" ".join(_WORD.findall(task))) if word.lower() not in CHANGE_WORDS
    ]
    pattern = "|".join(re.escape(word) for word in words[:_MOST_WORDS] or ["."])
    more = {"case_sensitive": False, "limit": SEARCH_LIMIT, "context": SEARCH_CONTEXT}
    return Call("search_files", {"pattern": pattern, **more})


def _matches(situation: Situation) -> list[dict[str, Any]]:
    found = [d.data.get("matches") for d in situation.calls if d.call.name == "search_files" and not d.failed]
    rows = cast("list[dict[str, Any]]", found[-1] if found and isinstance(found[-1], list) else [])
    return [row for row in rows if isinstance(row.get("line"), int)]


def _path_of(match: dict[str, Any]) -> str:
    return str(match.get("path", "")).lstrip("/")


def _rewrite(situation: Situation, read: Done) -> Rewrite | None:
    lines = shown_part(read).lines
    searches = [d for d in situation.calls if d.call.name == "search_files" and not d.failed]
    told = tell(searches[-1]).split("\n") if searches else []
    hints = tuple(line for line in told if not line.startswith(f"{read.path}:"))[:10]
    begin, end = 0, len(lines)
    if end > WHOLE_LINES:
        begin, end = _around(lines, _best(lines, situation.task))
    begin, end = _trimmed(lines, begin, end)
    if begin == end or any(line.startswith("`") for line in lines[begin:end]):
        return None  # nothing to rewrite, or fences that would close the block
    return Rewrite(situation.task, read.path, lines[:begin], lines[begin:end], lines[end:], hints)


def _around(lines: Sequence[str], best: int) -> tuple[int, int]:
    """Return the part around a line: its function or section, as far as that is near."""
    begin = max(0, best - _EXCERPT_LINES // 2)
    end = min(len(lines), best + _EXCERPT_LINES // 2)
    tops = [n for n in range(begin, best + 1) if lines[n] and not lines[n][0].isspace()]
    ends = [n for n in range(best + 1, end) if lines[n] and not lines[n][0].isspace()]
    opens = best + 1 < len(lines) and lines[best + 1][:1].isspace()  # the line begins a block itself
    return (tops[-1] if tops and (opens or best - tops[-1]) else begin), (
        ends[0] if opens else ends[-1]
    ) if ends else end


def _blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a, b, c, d) for tag, a, b, c, d in codes if tag != "equal"]


def _parse_fault(wanted: Rewrite, new: Sequence[str]) -> str | None:
    parse = _PARSERS.get(wanted.path.rpartition(".")[2].lower())
    if parse is None:
        return None
    old_text = "\n".join((*wanted.before, *wanted.lines, *wanted.after)) + "\n"
    new_text = "\n".join((*wanted.before, *new, *wanted.after)) + "\n"
    try:
        parse(old_text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None  # a part of a file, or one that was wrong before
    try:
        parse(new_text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return f"it does not parse ({str(error)[:80]})"
    return None


_PARSERS = {"py": ast.parse, "json": json.loads, "toml": tomllib.loads}
