"""What a request is, and which steps are allowed next: the offered tools and the facts so far.

Here: how the model is asked what a request is, and the forms that its next step may have; pure. Not here: how
the grammar is written (`grammar.py`), the words of the prompt (`prompt.py`), changes (`changing.py`).

The rules of a step, each measured to help a model of this size; none looks at the words of the request:

1. A turn does not begin with an answer, nor does an answer follow a call that failed, nor one before a file
   was looked at. What is sorted as a computation is answered once Python has computed something.
2. The last step allowed is the answer.
3. Paths are chosen from those that exist; a file already in sight is not read again.
4. A call that was just made is not made again, a search not repeated within a turn.
5. Code is no field of a step: `run_python_code` and `write_file` only say what follows.
6. Once there is a result that is more than a search, a step begins by saying what it shows.
7. An answer does not follow the beginning of a file of data while code could look at all of it.
8. A question or computation changes no file and runs no command.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bowerbird.core.requests import ToolSpec
from bowerbird.models.local.calls import is_data, words_of_search
from bowerbird.models.local.grammar import Free, Input, OneOf, Option, StepGrammar
from bowerbird.models.local.situation import MAX_PATHS, Situation, only_searched

FINAL = "final_answer"
OFFERED = ("read_file", "list_files", "search_files", "write_file", "edit_file", "run_python_code", "bash")
"""With `final_answer` the eight tools that a small model is told of."""

MAX_CALLS = 14
"""Calls in one turn after which only an answer is allowed."""

MAX_CALLS_SUMMED = 3
"""The same once the turn was summed up: else it looks for the same again, is summed up again, and so on."""

ANSWER_CHARS = 1_200
QUESTION, COMPUTATION, CHANGE, COMMAND = KINDS = ("question", "computation", "change", "command")
"""What a request is sorted as."""

EXISTING, NEW = CHANGED = ("change a file that exists", "create a new file")
"""What a change does."""

ACTING = frozenset({"write_file", "edit_file", "bash"})
_SEARCH_CHARS, _PATTERN_CHARS, _PATH_CHARS, _COMMAND_CHARS = 60, 80, 120, 300
_PATH_SIGNS = "A-Za-z0-9_./-"


def offered_tools(tools: Iterable[ToolSpec], choice: str, all_tools: bool) -> tuple[ToolSpec, ...]:
    """Return the tools a step may call.

    Args:
        tools: what the request offers.
        choice: its `tool_choice`.
        all_tools: True offers every tool, not only `OFFERED`.
    """
    if choice == "none":
        return ()
    allowed = [tool for tool in tools if all_tools or tool.name in OFFERED]
    named = [tool for tool in allowed if tool.name == choice]
    return tuple(named or allowed)


def next_steps(
    situation: Situation, tools: Sequence[ToolSpec], choice: str = "auto", kind: str = ""
) -> StepGrammar:
    """Return what the next step may be.

    Args:
        situation: the facts of the request.
        tools: what `offered_tools` returned; at least one.
        choice: `auto`, `required`, or a tool's name.
        kind: one of `KINDS`, "" where the model was not asked.

    Example:
        >>> read = ToolSpec("read_file", "", {})
        >>> next_steps(Situation(files=("a.py",)), (read,)).tools
        ('read_file',)
    """
    answer = Option(FINAL, (("answer", Free(ANSWER_CHARS)),))
    is_free = choice == "auto"
    noted = not all(map(only_searched, situation.calls))
    if is_free and len(situation.calls) >= (MAX_CALLS_SUMMED if situation.summed else MAX_CALLS):
        return StepGrammar((answer,), noted)
    options = [option for tool in tools for option in _options(tool, situation)]
    if kind in (QUESTION, COMPUTATION):
        options = [option for option in options if option.tool not in ACTING] or options
    if is_free and not has_looked(situation):
        options = [option for option in options if option.tool not in (*ACTING, "run_python_code")] or options
    by_code = [option for option in options if option.tool == "run_python_code"]
    if is_free and by_code and kind == COMPUTATION and _owes_code(situation):
        return StepGrammar(tuple(by_code), noted)
    partial = _saw_some_data(situation) and bool(by_code)
    if not options or (is_free and not partial and _may_answer(situation)):
        options.append(answer)
    return StepGrammar(tuple(options), noted)


def new_file_step(situation: Situation) -> StepGrammar:
    """Return the form in which the model says which file is created."""
    free = Free(_PATH_CHARS, situation.files, _PATH_SIGNS)
    return StepGrammar((Option("file", (("path", free),)),))


def command_steps(*, tests: bool) -> StepGrammar:
    """Return the forms in which the model names a command; `tests`: those of the project are offered."""
    free = Option("bash", (("command", Free(_COMMAND_CHARS)),))
    return StepGrammar((Option("run_tests"), free) if tests else (free,))


def has_looked(situation: Situation) -> bool:
    """Whether a file is in sight or something else was tried: lines that a search found are not enough."""
    if not situation.files or situation.known:
        return True
    return any(done.call.name != "search_files" and not done.failed for done in situation.calls)


def _owes_code(situation: Situation) -> bool:
    """Whether a file was just read, and nothing was computed in this turn."""
    last, coded = situation.last, any(done.call.name == "run_python_code" for done in situation.calls)
    return last is not None and not last.failed and last.call.name == "read_file" and not coded


def _saw_some_data(situation: Situation) -> bool:
    last = situation.last
    if last is None or last.call.name != "read_file" or not is_data(last.path):
        return False
    known = situation.known.get(last.path)
    return known is not None and known.next_offset is not None


def _may_answer(situation: Situation) -> bool:
    last = situation.last
    return last is not None and not last.failed and has_looked(situation)


def _options(tool: ToolSpec, situation: Situation) -> list[Option]:
    maker = _MAKERS.get(tool.name)
    if maker is not None:
        return maker(situation)
    return [Option(tool.name, (("input", Input(tool.input_schema)),))]


def _read(situation: Situation) -> list[Option]:
    known = situation.known
    twice = {path for path, times in situation.reads.items() if times > 1}
    unread = [
        path
        for path in situation.files
        if (known[path].next_offset is not None if path in known else path not in twice)
    ]
    last = situation.last
    if last is not None and last.call.name == "read_file" and last.failed:
        unread = [path for path in unread if path != last.path]
    options = [Option("read_file", (("path", OneOf(tuple(unread[-MAX_PATHS:]))),))] if unread else []
    if situation.more_files or not situation.files:
        taken = (*known, *((last.path,) if last else ()))
        options.append(Option("read_file", (("path", Free(_PATH_CHARS, taken)),)))
    return options


def _list(situation: Situation) -> list[Option]:
    asked = _asked(situation, "list_files", "pattern")
    return [Option("list_files", (("pattern", Free(_PATTERN_CHARS, asked)),))]


def _search(situation: Situation) -> list[Option]:
    before = [done for done in situation.calls[-2:] if done.call.name == "search_files"]
    if before and before[-1] is situation.last and (before[-1].found or len(before) == 2):
        return []  # something was found, or nothing twice: look at a file
    asked = tuple(words_of_search(text) for text in _asked(situation, "search_files", "pattern"))
    return [Option("search_files", (("pattern", Free(_SEARCH_CHARS, asked)),))]


def _write(situation: Situation) -> list[Option]:
    taken = (*_just(situation, "write_file", "path"), *situation.files)  # what exists is not overwritten
    return [Option("write_file", (("path", Free(_PATH_CHARS, taken, _PATH_SIGNS)),))]


def _python(situation: Situation) -> list[Option]:
    del situation  # that the same code is not run again is seen to where the code is written
    return [Option("run_python_code")]


def _bash(situation: Situation) -> list[Option]:
    return [Option("bash", (("command", Free(_COMMAND_CHARS, _just(situation, "bash", "command"))),))]


_MAKERS: Mapping[str, Any] = {
    "read_file": _read,
    "list_files": _list,
    "search_files": _search,
    "write_file": _write,
    "run_python_code": _python,
    "bash": _bash,
}


def _asked(situation: Situation, tool: str, key: str) -> tuple[str, ...]:
    return tuple(str(d.call.input.get(key, "")) for d in situation.calls if d.call.name == tool)


def _just(situation: Situation, tool: str, key: str) -> tuple[str, ...]:
    last = situation.last
    return (str(last.call.input.get(key, "")),) if last is not None and last.call.name == tool else ()
