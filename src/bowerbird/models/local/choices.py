"""Which steps are allowed next: the offered tools, the facts so far, and the rules that help a small model.

Here: the decision, purely. Not here: how the grammar is written (`grammar.py`), the words of the
prompt (`prompt.py`).

The rules, each measured to help a model of this size:

1. A turn does not begin with an answer, nor does an answer follow a call that failed. A turn begins with the
   command or the files that the task names, and nothing else is done or answered before a file was looked at.
2. The last step allowed is the answer.
3. Paths are chosen from those that exist; a file already in sight is not read again.
4. A call that was just made is not made again, a search not repeated within a turn.
5. Code is no field of a step: `run_python_code`, `write_file` and `edit_file` only say what follows.
6. `edit_file` chooses the lines to replace from the file's own, near the numbers that the task names.
7. Once there are results, a step begins by saying what they show.
8. An answer does not follow the beginning of a file of data while code could look at all of it; what is to be
   counted, summed or compared in such a file is computed by code, and so are sums of any other file.
9. A question changes no file. A task that asks for a change is done with the file tools: code and
   answer wait until they have changed something, or have been tried often enough.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from bowerbird.core.requests import ToolSpec
from bowerbird.models.local.calls import is_data, telling_words, words_of_search
from bowerbird.models.local.grammar import Field, Free, Input, OneOf, Option, StepGrammar
from bowerbird.models.local.situation import MAX_PATHS, Known, Situation

FINAL = "final_answer"
OFFERED = ("read_file", "list_files", "search_files", "write_file", "edit_file", "run_python_code", "bash")
"""With `final_answer` the eight tools of MO-39."""

MAX_CALLS = 14
"""Calls in one turn after which only an answer is allowed."""

MAX_CALLS_SUMMED = 3
"""The same once the turn was summed up: else it looks for the same again, is summed up again, and so on."""

ANSWER_CHARS = 1_200
_DOING = frozenset({"write_file", "run_python_code", "bash"})
_CALLS_TO_CHANGE = 8
_CODE = frozenset({"run_python_code", "bash"})
_CHANGING = frozenset({"write_file", "edit_file"})
_SEARCH_CHARS, _PATTERN_CHARS, _PATH_CHARS, _COMMAND_CHARS = 60, 80, 120, 300
_NUMBER = re.compile(r"\d+(?:[.:,]\d+)*")
_COMPUTED = re.compile(
    r"\b(?:how (?:many|much|often)|total|sum|average|mean|median|most|least|fewest|highest|lowest|"
    r"largest|smallest|longest|shortest|biggest|greatest|in all|altogether|together|percent|per|each|"
    r"count|add (?:\w+ ){0,3}up|(?:more|less|\w{2,}er) than|at least|over (?:all|both)|overall|across)\b",
    re.IGNORECASE,
)
_SUMMED = re.compile(
    r"\b(?:total|sum|average|mean|median|in all|altogether|together|combined|over all|overall|across|"
    r"how (?:many|much) of the|"
    r"add (?:\w+ ){0,3}up)\b",
    re.IGNORECASE,
)
_PRICED = re.compile(
    r"\b(?:pay|pays|paid|cost|costs|price|worth|due|owes?|charged?|how long)\b", re.IGNORECASE
)
_FEW_NUMBERS = 3
_PATH_SIGNS = "A-Za-z0-9_./-"
_EDIT_LINES = 400
_REWRITTEN_LINES = 12
_LINE_CHARS = 240


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


def next_steps(situation: Situation, tools: Sequence[ToolSpec], choice: str = "auto") -> StepGrammar:
    """Return what the next step may be.

    Args:
        situation: the facts of the request.
        tools: what `offered_tools` returned; at least one.
        choice: `auto`, `required`, or a tool's name.

    Example:
        >>> read = ToolSpec("read_file", "", {})
        >>> next_steps(Situation(files=("a.py",)), (read,)).tools
        ('read_file',)
    """
    answer = Option(FINAL, (("answer", Free(ANSWER_CHARS)),))
    free_choice = choice == "auto"
    noted = bool(situation.calls)
    if free_choice and len(situation.calls) >= (MAX_CALLS_SUMMED if situation.summed else MAX_CALLS):
        return StepGrammar((answer,), noted)
    options = [option for tool in tools for option in _options(tool, situation)]
    if free_choice and situation.task.rstrip().endswith("?") and not situation.wants_change:
        options = [option for option in options if option.tool not in _CHANGING] or options
    if free_choice and not situation.calls:
        options = _named_first(options, situation.task) or options
    if free_choice and not _has_looked(situation):
        options = [option for option in options if option.tool not in _DOING] or options
    owed = _owed_by_hand(situation, options) or _owed_by_code(situation, options) if free_choice else []
    options = owed or options
    partial = _saw_some_data(situation) and any(option.tool == "run_python_code" for option in options)
    if not options or (free_choice and not owed and not partial and _may_answer(situation)):
        options.append(answer)
    return StepGrammar(tuple(options), noted)


def _has_looked(situation: Situation) -> bool:
    """Whether a file is in sight or something else was tried: lines that a search found are not enough."""
    if not situation.files or situation.known:
        return True
    return any(done.call.name != "search_files" and not done.failed for done in situation.calls)


def _owed_by_hand(situation: Situation, options: Sequence[Option]) -> list[Option]:
    """Return the options without code while a change that was asked for is still to be made by file tools."""
    changed = any(done.call.name in _CHANGING and not done.failed for done in situation.calls)
    if changed or not situation.wants_change or len(situation.calls) >= _CALLS_TO_CHANGE:
        return []
    by_hand = [option for option in options if option.tool not in _CODE]
    return by_hand if any(option.tool in _CHANGING for option in by_hand) else []


def _owed_by_code(situation: Situation, options: Sequence[Option]) -> list[Option]:
    """Return the writing of code once a file is in sight of which something is to be computed.

    Of a file of data that is all that is counted or compared; of any other with several numbers, their sum,
    and what follows from a number of the question that no file has: what 130 minutes cost, say.
    """
    last, coded = situation.last, any(done.call.name in _CODE for done in situation.calls)
    if last is None or last.failed or last.call.name != "read_file" or coded:
        return []
    known = situation.known.get(last.path)
    has_numbers = (
        known is not None and sum(bool(_NUMBER.search(line)) for line in known.lines) >= _FEW_NUMBERS
    )
    computed = _COMPUTED if is_data(last.path) else _SUMMED if has_numbers else None
    if not (computed and computed.search(situation.task)) and not (has_numbers and _is_a_case(situation)):
        return []
    return [option for option in options if option.tool == "run_python_code"]


def _is_a_case(situation: Situation) -> bool:
    """Whether a question gives a number that no file has, and asks what follows from it."""
    task = situation.task
    if not (_COMPUTED.search(task) or _PRICED.search(task)):
        return False
    seen = {number for known in situation.known.values() for number in _NUMBER.findall(known.text)}
    return any(number not in seen for number in _NUMBER.findall(task))


def is_computed(task: str) -> bool:
    """Whether a question asks for what is counted, summed or compared."""
    return _COMPUTED.search(task) is not None


def _saw_some_data(situation: Situation) -> bool:
    last = situation.last
    if last is None or last.call.name != "read_file" or not is_data(last.path):
        return False
    known = situation.known.get(last.path)
    return known is not None and known.next_offset is not None


def _may_answer(situation: Situation) -> bool:
    last = situation.last
    return last is not None and not last.failed and _has_looked(situation)


def _named_first(options: Sequence[Option], task: str) -> list[Option]:
    """Return the reading of the files that the task names, if it names some that exist."""
    for option in options:
        for _, kind in option.fields:
            if option.tool == "read_file" and isinstance(kind, OneOf):
                named = tuple(path for path in kind.values if path in task)
                return [Option("read_file", (("path", OneOf(named)),))] if named else []
    return []


def editable(known: Known) -> dict[str, str]:
    """Return what `edit_file` may replace: the text shown to the model → the file's own text.

    A line that occurs once is shown without its indentation; one that occurs several times
    together with the line above it, if that makes it unique.
    """
    lines = known.lines[:_EDIT_LINES]
    stripped = [line.strip() for line in lines]
    single = _once(stripped)
    pairs = [f"{above}\n{line}" for above, line in pairwise(stripped)]
    paired = _once(pairs)
    found: dict[str, str] = {}
    for n, text in enumerate(stripped):
        if not text or len(text) > _LINE_CHARS:
            continue
        if text in single:
            found[text] = lines[n]
        elif n and stripped[n - 1] and pairs[n - 1] in paired:
            found[pairs[n - 1]] = f"{lines[n - 1]}\n{lines[n]}"
    whole = known.text
    return {shown: own for shown, own in found.items() if whole.count(own) == 1}


def lines_near(lines: Mapping[str, str], task: str) -> dict[str, str]:
    """Return the lines an edit is probably about, when the task names a number that stands in some.

    Those are the lines with such a number, and those with the most of the task's words. Without such a
    number every line may be meant.

    Example:
        >>> list(lines_near({"FEE = 4": "FEE = 4", "FREE = 60": "FREE = 60"}, "free from 50, not 60"))
        ['FREE = 60']
    """
    numbers = set(_NUMBER.findall(task))
    named = {line for line in lines if numbers.intersection(_NUMBER.findall(line))}
    if not named:
        return dict(lines)
    words = telling_words(task.lower())
    score = {line: sum(word in line.lower() for word in words) for line in lines}
    best = max(score.values())
    return {line: own for line, own in lines.items() if line in named or score[line] == best}


def _once(texts: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for text in texts:
        (twice if text in seen else seen).add(text)
    return seen - twice


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
    # A file that was not looked at is not overwritten; a long one is edited, since much of it would get lost.
    known = situation.known
    kept = (p for p in situation.files if p not in known or len(known[p].lines) > _REWRITTEN_LINES)
    taken = (*_just(situation, "write_file", "path"), *kept)
    return [Option("write_file", (("path", Free(_PATH_CHARS, taken, _PATH_SIGNS)),))]


def _edit(situation: Situation) -> list[Option]:
    options: list[Option] = []
    for path, known in situation.known.items():
        last = situation.last
        lines = lines_near(editable(known), situation.task)
        if last is not None and last.failed and last.call.name == "edit_file" and last.path == path:
            tried = last.call.input.get("old")
            lines = {shown: own for shown, own in editable(known).items() if own != tried}
        if lines:
            fields: tuple[tuple[str, Field], ...] = (("path", OneOf((path,))), ("old", OneOf(tuple(lines))))
            options.append(Option("edit_file", fields))
    return options


def _python(situation: Situation) -> list[Option]:
    del situation  # that the same code is not run again is seen to where the code is written
    return [Option("run_python_code")]


def _bash(situation: Situation) -> list[Option]:
    return [Option("bash", (("command", Free(_COMMAND_CHARS, _just(situation, "bash", "command"))),))]


_MAKERS = {
    "read_file": _read,
    "list_files": _list,
    "search_files": _search,
    "write_file": _write,
    "edit_file": _edit,
    "run_python_code": _python,
    "bash": _bash,
}


def _asked(situation: Situation, tool: str, key: str) -> tuple[str, ...]:
    return tuple(str(d.call.input.get(key, "")) for d in situation.calls if d.call.name == tool)


def _just(situation: Situation, tool: str, key: str) -> tuple[str, ...]:
    last = situation.last
    return (str(last.call.input.get(key, "")),) if last is not None and last.call.name == tool else ()
