"""A test that fails: run, the function that it is about mended, run again, and what did not help taken back.

Here: what comes next in such a turn, what is run, what it said; pure. Not here: asking the model
(`exchange.py`), projects without tests in Python, which go the common way (`changing.py`).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from bowerbird.core.forms import decode
from bowerbird.models.local.changing import Call, Say, said_of
from bowerbird.models.local.faults.mending import function_part
from bowerbird.models.local.rewrite import Rewrite
from bowerbird.models.local.situation import Done, Situation, shown_part
from bowerbird.models.local.task_words import is_test, words_of

MOST_ROUNDS = 3
_MOST_FILES, _READ_LINES = 12, 2_000
_NEEDS = frozenset({"bash", "read_file", "edit_file"})
_TOLD = re.compile(
    r"\btests?\b.*\b(?:fail\w*|red|broken|breaks?|(?:do|does)(?:n['’]t| not) (?:pass|work)|green|wrong)\b|"
    r"\b(?:fail\w*|broken|red)\b.*\btests?\b",
    re.IGNORECASE | re.DOTALL,
)
_PROGRAM = Path(__file__).with_name("running.py")
_BEGIN = "# The project's tests\npython3 - <<'END'\n"
_ROUND = ("bash", "read_file", "edit_file", "bash")


@dataclass(frozen=True, slots=True)
class Failed:
    """A test that failed: its name, what it got, path and name of the function it called, "" if unknown."""

    name: str
    said: str
    path: str
    function: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a run said: how many tests passed, which failed."""

    passed: int
    failed: tuple[Failed, ...]


def checking_move(situation: Situation, offered: frozenset[str]) -> Call | Say | Rewrite | None:
    """Return what comes next in a turn about a test that fails; None where the common way is better.

    A round is a run, the reading of the file, an edit, a run; an edit that did not help is taken back.

    Example:
        >>> now = Situation(task="The test of f fails, fix it.", files=("a.py", "test_a.py"))
        >>> checking_move(now, frozenset({"bash", "read_file", "edit_file"})).tool
        'bash'
    """
    paths = [path for path in situation.files if path.endswith(".py") and is_test(path)][:_MOST_FILES]
    if not paths or not offered >= _NEEDS or not situation.wants_change or not _TOLD.search(situation.task):
        return None
    rounds = _rounds(situation.calls)
    now = rounds[-1]
    names = tuple(done.call.name for done in now)
    if not now:
        return Call("bash", {"command": _command(paths)})
    # The run after an edit may fail: the new code may never end. Then the edit is taken back, too.
    if (
        any(done.failed for done in now[: len(_ROUND) - 1])
        or names != _ROUND[: len(now)]
        or not _is_run(now[0])
    ):
        return None
    if len(now) == len(_ROUND):
        return _judged(now[2], now[3])
    report = report_of(now[0])
    wrong = _meant(report, situation.task)
    if wrong is None:
        return None
    if len(now) == 1 and len(rounds) > MOST_ROUNDS:
        return Say(
            f"I changed nothing: {MOST_ROUNDS} changes of {wrong.function} did not help. {wrong.said}."
        )
    if len(now) == 1:
        return Call("read_file", {"path": wrong.path, "offset": 1, "limit": _READ_LINES})
    if len(now) == 3:
        return Call("bash", {"command": _command(paths, (wrong.name, report))})
    lines, told = shown_part(now[1]).lines, (f"    {wrong.said}",)
    whole = Rewrite(situation.task, wrong.path, (), lines, (), (), told, len(rounds) - 1)
    return function_part(whole, wrong.function)


def _rounds(calls: Sequence[Done]) -> list[list[Done]]:
    """Return the calls of a turn, a new list after each edit that takes another back."""
    rounds, edit = [list[Done]()], None
    for done in calls:
        given = done.call.input
        back = edit is not None and (given.get("old"), given.get("new")) == (edit["new"], edit["old"])
        rounds[-1].append(done)
        edit = given if done.call.name == "edit_file" and not back else edit
        if back:
            rounds.append([])
    return rounds


def without_test_runs(situation: Situation) -> Situation:
    """Return a situation as it is for the common way: a run that settled nothing was no act of the turn."""
    return replace(situation, calls=tuple(done for done in situation.calls if not _is_run(done)))


def report_of(done: Done) -> Report:
    """Return what a run of the tests said; nothing failed where it says nothing."""
    text = str(done.data.get("output") or done.text)
    failed: list[Failed] = []
    for line in re.findall(r"^FAILED (\[.*\])$", text, re.MULTILINE):
        try:
            name, said, where = decode(line, tuple[str, str, list[tuple[str, str]]])
        except msgspec.MsgspecError:  # a test printed something like it
            continue
        path, function = where[0] if where else ("", "")
        failed.append(Failed(name, said, path, function))
    passed = re.search(r"^PASSED (\d+)$", text, re.MULTILINE)
    return Report(int(passed[1]) if passed else 0, tuple(failed))


def _is_run(done: Done) -> bool:
    return done.call.name == "bash" and str(done.call.input.get("command", "")).startswith(_BEGIN)


@cache
def _program() -> str:
    return _PROGRAM.read_text(encoding="utf-8")


def _command(paths: Sequence[str], before: tuple[str, Report] | None = None) -> str:
    """Return the run of these tests; with what an earlier one said, which is out of sight when it counts."""
    told = ""
    if before is not None:
        name, report = before
        told = f"# before: {json.dumps([name, [failed.name for failed in report.failed], report.passed])}\n"
    return f"{_BEGIN}{_program()}\n\nrun({json.dumps(list(paths))})\n{told}END"


def _meant(report: Report, task: str) -> Failed | None:
    """Return the failed test that a task is most likely about, of those that call the project's functions."""
    words = words_of(task)

    def held(failed: Failed) -> int:
        return sum(word in f"{failed.name} {failed.function}".lower() for word in words)

    known = [failed for failed in report.failed if failed.path]
    return max(known, key=held) if known else None


def _judged(edit: Done, run: Done) -> Call | Say:
    """Return what is said of a change that the tests confirm, else its undoing."""
    before = re.search(r"^# before: (.*)$", str(run.call.input.get("command")), re.MULTILINE)
    name, old, passed = decode(before[1] if before else '["", [], 0]', tuple[str, list[str], int])
    after = report_of(run)
    left = [failed.name for failed in after.failed]
    if name not in left and set(old).issuperset(left) and after.passed > passed:
        rest = f" Still failing: {', '.join(left[:3])}." if left else " The tests pass now."
        return Say(said_of(edit) + rest)
    given = edit.call.input
    return Call("edit_file", {"path": edit.path, "old": given["new"], "new": given["old"]})
