"""A turn that changes a file or runs a command: what comes next, and what is said of it.

Here: the order of such a turn (the lines that share words with the task, the file that the model chooses, its
rewriting, the project's tests before and after), the sentences, made from the edit and from exit codes; pure.
Not here: asking the model (`exchange.py`), the rewriting and its guards (`rewriting.py`), turns that ask for
an answer (`choices.py`).
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bowerbird.models.local.calls import READ_LINES, telling_words
from bowerbird.models.local.results import tell
from bowerbird.models.local.rewriting import Rewrite, blocks, excerpt
from bowerbird.models.local.situation import Done, Situation, matches_of, shown_part

NEEDS = frozenset({"search_files", "read_file", "edit_file", "write_file"})
LOOKUP_LIMIT = 100
"""Lines of a look-up, with none around them: a result that fills the window is summed up at once."""

TRIES = 3
"""Rewritings until one may stand; the first at the request's temperature, the others at 0.7."""

ROUNDS = 2
"""Changes after which the tests may fail; each is taken back."""

# pytest where the project has it, else what Python brings; neither leaves anything beside the files.
TESTS = (
    "export PYTHONDONTWRITEBYTECODE=1; if python3 -c 'import pytest' 2>/dev/null; "
    "then python3 -m pytest -q -p no:cacheprovider; else python3 -m unittest; fi"
)
_BEFORE = "  # before: "
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_RAN = re.compile(r"\bRan [1-9]\d* tests?\b|\b\d+ (?:passed|failed|errors?)\b")
_FAILURES = re.compile(r"\b(?:failures|errors)=(\d+)|\b(\d+) (?:failed|errors?)\b")
_SAID, _END_LINES, _END_CHARS, _FAILURE_LINES, _FAILURE_CHARS = 90, 3, 240, 16, 900
_HINTS, _MOST_WORDS = 10, 10

Outcome = Literal["pass", "fail", "none"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is made next."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Calls:
    """Several calls of one step."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Say:
    """The answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Pick:
    """The model says which file is changed or created."""


@dataclass(frozen=True, slots=True)
class Command:
    """The model names the command; `said` is what an earlier one of the turn came to."""

    said: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    """The model writes the file `path`; `tried` as in `Rewrite`."""

    path: str
    tried: int = 0


@dataclass(frozen=True, slots=True)
class Judge:
    """The model says whether failing tests had to pass: `stands` if not, else `taken_back`."""

    stands: Say
    taken_back: Call


Move = Call | Calls | Say | Pick | Rewrite | Create | Judge


def change_move(situation: Situation, offered: frozenset[str]) -> Move:
    """Return what comes next in a turn that changes a file.

    Example:
        >>> change_move(Situation(task="Set the port to 90.", files=("a.py",)), NEEDS).tool
        'search_files'
    """
    last, changes = situation.last, _changes(situation.calls)
    if last is None:
        return lookup(situation.task)
    if last in changes and last.failed:
        return Say(f"I changed nothing: {last.path} could not be changed: {_first_line(last)}.")
    if last in changes:
        before = _baseline(situation.calls)
        return tests_call(before) if before and _checked(situation, last.path, offered) else Say(_told(last))
    if _is_test_run(last) and changes and not _is_back(situation.calls, changes[-1]):
        return _judged(changes[-1], last)
    if changes:  # the last of them was taken back
        if len(changes) >= ROUNDS or last.failed:
            return Say(_nothing(situation, len(changes)))
        if last.call.name != "read_file" and changes[-1].call.name == "edit_file":
            return Call("read_file", reading_of(changes[-1].path, situation))
        if changes[-1].call.name == "write_file":
            return Create(changes[-1].path, len(changes))
    read = _read(situation.calls)
    if read is None:
        return Pick()
    if read.failed or read.forgotten:
        return Say(f"I changed nothing: I could not read {read.path}.")
    return _rewriting(situation, read, len(changes))


def picked_move(situation: Situation, path: str, *, is_new: bool, offered: frozenset[str]) -> Move:
    """Return what comes next once the model chose a file; before code changes, the tests run once."""
    checked = _checked(situation, path, offered) and not _baseline(situation.calls)
    if is_new:
        return tests_call("") if checked else Create(path)
    read = Call("read_file", reading_of(path, situation))
    return Calls((read, tests_call(""))) if checked else read


def lookup(task: str) -> Call:
    """Return the search for lines that share words with a task: what the model is shown."""
    words = telling_words(" ".join(re.findall(r"[A-Za-z_]\w{2,}|\d+(?:\.\d+)?", task)))[:_MOST_WORDS]
    more = {"case_sensitive": False, "limit": LOOKUP_LIMIT, "context": 0}
    return Call("search_files", {"pattern": "|".join(map(re.escape, words)) or ".", **more})


def reading_of(path: str, situation: Situation) -> dict[str, Any]:
    """Return the arguments of a file's reading, of a long one the part where something was found."""
    lines = [line for at, line, _ in matches_of(situation) if at == path]
    first = max(1, lines[0] - READ_LINES // 2) if lines and lines[0] > READ_LINES // 2 else 1
    return {"path": path, "offset": first, "limit": READ_LINES}


def _rewriting(situation: Situation, read: Done, tried: int) -> Move:
    lines = shown_part(read).lines
    if not any(line.strip() for line in lines):
        return Create(read.path, tried)
    found = [f"{path}:{line}: {text}" for path, line, text in matches_of(situation) if path != read.path]
    run = next((done for done in reversed(situation.calls) if _is_test_run(done)), None)
    failure = failure_of(run) if run is not None and outcome(run) == "fail" else ""
    wanted = excerpt(situation.task, read.path, lines, found[:_HINTS], failure, tried)
    if any(line.startswith("````") for line in wanted.lines):  # it would close the block
        return Say(f"I changed nothing: the lines of {read.path} cannot be written in a fenced block.")
    return wanted


# ---------------------------------------------------------------- the project's tests


def has_tests(files: Sequence[str]) -> bool:
    """Whether there are tests that `TESTS` may run."""
    return any(_TEST_FILE.search(path) for path in files)


def tests_call(before: str) -> Call:
    """Return the run of the tests, with what the run before the change said (it is out of sight by then)."""
    return Call("bash", {"command": f"{TESTS}{_BEFORE}{before}" if before else TESTS})


def _checked(situation: Situation, path: str, offered: frozenset[str]) -> bool:
    return path.endswith(".py") and "bash" in offered and has_tests(situation.files)


def _is_test_run(done: Done) -> bool:
    return done.call.name == "bash" and str(done.call.input.get("command", "")).startswith(TESTS)


def outcome(done: Done) -> Outcome:
    """Return how the tests came out by exit code and count: `none` where no test ran."""
    code, text = done.data.get("exit_code"), _output(done)
    if done.data.get("timed_out"):
        return "fail"
    if done.failed or code is None or not _RAN.search(text):
        return "none"
    return "pass" if code == 0 else "fail"


def _baseline(calls: Sequence[Done]) -> str:
    """Return how the tests came out before the change, and how many failed; "" where they did not run."""
    for done in reversed(calls):
        if _is_test_run(done):
            _, _, told = str(done.call.input["command"]).partition(_BEFORE)
            return told or f"{outcome(done)} {_failures(done)}"
    return ""


def _failures(done: Done) -> int:
    return sum(int(one or other) for one, other in _FAILURES.findall(_output(done)))


def failure_of(done: Done) -> str:
    """Return the end of what failing tests said."""
    lines = [line for line in _output(done).split("\n") if line.strip()]
    return "\n".join(lines[-_FAILURE_LINES:])[-_FAILURE_CHARS:]


def _judged(change: Done, run: Done) -> Move:
    """Return what is said of a change that the tests let stand, else what takes it back."""
    told = str(run.call.input["command"]).partition(_BEFORE)[2].split() or ["none", "0"]
    before, now, said = told[0], outcome(run), _told(change)
    if run.failed:
        return Say(f"{said} I did not run the project's tests: {_first_line(run)}")
    if now == "pass":
        return Say(f"{said} The project's tests pass: {_end(run)}")
    if now == "none" and before == "none":
        return Say(f"{said} The project's tests did not run: {_end(run)}")
    back = _taking_back(change)
    if now == before == "fail" and not run.data.get("timed_out") and _failures(run) <= int(told[1]):
        return Judge(Say(f"{said} The project's tests failed before, and still fail: {_end(run)}"), back)
    return back


def _taking_back(change: Done) -> Call:
    given = change.call.input
    if change.call.name == "write_file":
        return Call("bash", {"command": f"rm -f -- {shlex.quote(change.path)}"})
    return Call("edit_file", {"path": change.path, "old": given["new"], "new": given["old"]})


def _changes(calls: Sequence[Done]) -> list[Done]:
    """Return the changes of a turn, without what took one back."""
    found: list[Done] = []
    for done in calls:
        if done.call.name in ("edit_file", "write_file"):
            back = found and _taking_back(found[-1]).input == done.call.input
            found += [] if back else [done]
    return found


def _is_back(calls: Sequence[Done], change: Done) -> bool:
    return any(d.call.input == _taking_back(change).input for d in calls[calls.index(change) + 1 :])


def _nothing(situation: Situation, tries: int) -> str:
    back = situation.last
    if back is not None and back.failed:
        path = _changes(situation.calls)[-1].path
        return (
            f"My change of {path} failed the project's tests, and I could not take it back: look at the diff."
        )
    run = next(done for done in reversed(situation.calls) if _is_test_run(done))
    return f"I changed nothing: after each of {tries} tries the project's tests failed: {_end(run)}"


def _read(calls: Sequence[Done]) -> Done | None:
    return next((done for done in reversed(calls) if done.call.name == "read_file"), None)


# ---------------------------------------------------------------- commands


def command_move(situation: Situation) -> Say | Command:
    """Return what comes next for a command: the model names it, its exit code says how it ended."""
    ran = [done for done in situation.calls if done.call.name == "bash"]
    if not ran:
        return Command()
    last = ran[-1]
    named = "the project's tests" if _is_test_run(last) else f"`{last.call.input.get('command', '')}`"
    code = last.data.get("exit_code")
    if last.failed:
        return Say(f"I did not run {named}: {_first_line(last)}")
    if code is None:
        return Say(f"I started {named}, but saw no exit code: {_end(last)}")
    if code in (126, 127) and len(ran) < ROUNDS:
        return Command(f"{named} ended with exit code {code}: {_end(last)}")
    said = f"I ran {named}: exit code {code}"
    if _is_test_run(last):
        said += {"pass": ", they pass", "fail": ", they do not pass", "none": ", no test ran"}[outcome(last)]
    return Say(f"{said}. {_end(last)}")


# ---------------------------------------------------------------- sentences


def _told(done: Done) -> str:
    """Return what is said of a change: made from what was written, so it claims nothing else."""
    path, given = done.path, done.call.input
    if done.call.name == "write_file":
        count = len(str(given.get("content", "")).splitlines())
        return f"I wrote {path}, {count} line{'' if count == 1 else 's'}."
    old, new = str(given.get("old", "")).split("\n"), str(given.get("new", "")).split("\n")
    said = [_difference(old[a:b], new[c:d]) for a, b, c, d in blocks(old, new)]
    rest = f", and changed {len(said) - 3} more places" if len(said) > 3 else ""
    return f"In {path} I {'; '.join(said[:3])}{rest}."


def _difference(old: Sequence[str], new: Sequence[str]) -> str:
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


def _first_line(done: Done) -> str:
    return done.text.strip().partition("\n")[0] or "the tool failed"


def _output(done: Done) -> str:
    return str(done.data.get("output") or done.text)


def _end(done: Done) -> str:
    """Return the last lines that a command wrote; that it was killed, where it was."""
    lines = [" ".join(line.split()) for line in _output(done).split("\n") if line.strip()]
    killed = ["(it did not end in time and was killed)"] if done.data.get("timed_out") else []
    return " / ".join((lines[-_END_LINES:] or ["(no output)"]) + killed)[-_END_CHARS:]


def hits_of(situation: Situation) -> str:
    """Return the lines that the look-up found, as the model is told them before it chooses; "" for none."""
    searches = [d for d in situation.calls if d.call.name == "search_files" and not d.failed]
    lines = tell(searches[-1]) if searches and searches[-1].found else ""
    return f"Lines that share words with the task:\n{lines}\n\n" if lines else ""
