"""Code that is wrong: the one function that is meant, what a small model is told of it, what it says.

Here: whether a task tells of a fault, which lines are mended, the question; pure. Not here: asking the model
(`exchange.py`), whether the new lines may stand (`guards.py`).

A model of this size that writes a whole file anew copies the fault with it. Told of the one function, and
made to say first which line is wrong, it mends about two of three where it copied half before.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from bowerbird.models.local.grammar import read_noted_fence
from bowerbird.models.local.guards import repaired
from bowerbird.models.local.rewrite import Rewrite, around, best_line, blocks, trimmed
from bowerbird.models.local.settled.lines import defines
from bowerbird.models.local.task_words import names_in

NOTE_CHARS = 200
MOST_LINES = 40
_MOST_TESTS = 6
_FAULT = re.compile(
    r"\b(?:fix|repair|mend|correct|wrong|wrongly|fails?|failing|crash\w*|bugs?|broken|red|never|"
    r"too (?:many|few|much|large|small|long|short|high|low)|other way (?:round|around)|upside down|"
    r"instead of|should (?:be|return|give|stop|raise|round|skip)|must (?:be|become|return|give|not|cost)|"
    r"goes on|gives?|returns?|forgets?|ignores?|rounds?)\b|\bdon['’]t let\b",
    re.IGNORECASE,
)
_OTHER_WORK = re.compile(
    r"^(?:please |now |could you |can you |would you |i (?:need|want) )*"
    r"(?:add|append|insert|create|rename|remove|delete|write|a new)\b|\bcolou?r\b|\btypo\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"\.(?:c|cc|cpp|cs|go|h|hpp|java|js|jsx|kt|mjs|php|py|rb|rs|sh|bash|swift|ts|tsx)$")
_SHOULD_BE = re.compile(r"`(?P<old>[^`]+)` (?:should|must|has to) be `(?P<new>[^`]+)`")
_CODE_SAID = re.compile(r"`([^`]+)`")
_STATEMENT = re.compile(r"^\s*(?:return|if|for|while|else|await|assert|print|#|//|\*|\"|')")
_METHOD = re.compile(r"^\s*[\w\[\]<>*&, ]*\b\w+\([^()]*\)\s*\{?\s*$")
_NAME = re.compile(r"[A-Za-z_]\w+")


def mended_part(wanted: Rewrite) -> Rewrite | None:
    """Return the lines of a file in which a task's fault is, one function; None where it tells of no fault.

    Example:
        >>> lines = ("A = 1", "", "def total(x):", "    return 0")
        >>> mended_part(Rewrite("total() is wrong.", "a.py", (), lines, ())).lines
        ('def total(x):', '    return 0')
    """
    task = wanted.task
    tells = bool(wanted.tests) or (_FAULT.search(task) is not None and not _OTHER_WORK.search(task))
    if not tells or not _CODE.search(wanted.path):
        return None
    lines = wanted.lines
    at = _named_line(lines, task)
    begin, end = around(lines, best_line(lines, task) if at is None else at)
    if at is None and len(lines) <= MOST_LINES:
        begin, end = 0, len(lines)
    return _part(wanted, begin, end)


def function_part(wanted: Rewrite, name: str) -> Rewrite | None:
    """Return the lines of one function of a file; None where it is not there, or too long."""
    at = _definition(wanted.lines, name)
    return _part(wanted, *around(wanted.lines, at)) if at is not None else None


def _part(wanted: Rewrite, begin: int, end: int) -> Rewrite | None:
    lines = wanted.lines
    begin, end = trimmed(lines, begin, end)
    if not 0 < end - begin <= MOST_LINES or any(line.startswith("`") for line in lines[begin:end]):
        return None
    before, after = (*wanted.before, *lines[:begin]), (*lines[end:], *wanted.after)
    return replace(wanted, before=before, lines=lines[begin:end], after=after)


def mend_question(part: Rewrite) -> str:
    """Return what the model is asked: the task, the tests that tell of it, the function."""
    tests = "".join(f"{line}\n" for line in part.tests[:_MOST_TESTS])
    told = f"Tests:\n{tests}" if tests else ""
    code = "\n".join(part.lines)
    return f"Task: {part.task}\n{told}Code of {part.path}:\n{part.fence}\n{code}\n{part.fence}"


def mended_lines(part: Rewrite, said: str) -> list[str] | None:
    """Return the new lines of what the model said, less what it did in passing; None if it did not end."""
    body = read_noted_fence(said, part.fence)
    return (
        repaired(part, as_noted(part, said.partition("\n")[0], body.split("\n")))
        if body is not None
        else None
    )


def as_noted(part: Rewrite, note: str, new: Sequence[str]) -> list[str]:
    """Return new lines less what a model changed beside what its note names.

    Example:
        >>> part = Rewrite("", "a.py", (), ("x = a / b", "y = a / b + 1"), ())
        >>> as_noted(part, "`a / b + 1` should be `b / a + 1`.", ["x = b / a", "y = b / a + 1"])
        ['x = a / b', 'y = b / a + 1']
    """
    text = "\n".join(part.lines)
    said = _SHOULD_BE.search(note)
    if said is not None and text.count(said["old"]) == 1 and said["old"] != said["new"]:
        return text.replace(said["old"], said["new"]).split("\n")
    named = _CODE_SAID.search(note)
    at = [n for n, line in enumerate(part.lines) if named and named[1] in line]
    parts = blocks(part.lines, new)
    kept = [block for block in parts if len(at) == 1 and block[0] <= at[0] + 1 and at[0] <= block[1]]
    if not kept or len(kept) == len(parts):
        return list(new)
    lines, end = list[str](), 0
    for a, b, c, d in kept:
        lines += [*part.lines[end:a], *new[c:d]]
        end = b
    return [*lines, *part.lines[end:]]


def named_function(lines: Sequence[str], task: str) -> str:
    """Return the name of the function of these lines that a task names, "" for none."""
    names = [*names_in(task), *_NAME.findall(task)]
    return next((name for name in dict.fromkeys(names) if _definition(lines, name) is not None), "")


def _named_line(lines: Sequence[str], task: str) -> int | None:
    name = named_function(lines, task)
    return _definition(lines, name) if name else None


def _definition(lines: Sequence[str], name: str) -> int | None:
    """Return the line that begins a function or method of that name."""
    called = rf"(?<![\w.]){re.escape(name)}\s*(?:=\s*(?:async\s*)?)?\("
    call = re.compile(rf"{called}|\bfunction {re.escape(name)}\b")
    found = (n for n, line in enumerate(lines) if call.search(line) and _begins(line, name))
    return next(found, None)


def _begins(line: str, name: str) -> bool:
    if _STATEMENT.match(line) or not line.rstrip().endswith(("{", ":", ")", "=>")):
        return False
    return defines(line, name) or _METHOD.match(line) is not None
