"""What a request says about the work so far: the calls of this turn, the files, their known text.

Here: reading `ModelRequest` into plain facts, purely. Not here: how they are told to the model
(`prompt.py`), what it may do next (`choices.py`).

The adapter sees no branch. It knows the files from a system block that begins with `FILES_BLOCK`
and holds one path a line (the agent adds it for small models), and a file's text from the results
of `read_file`, with later edits of the same conversation applied.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, result_text
from bowerbird.core.requests import ModelRequest

FILES_BLOCK = "Files:"
"""First line of the system block whose further lines are the paths that exist, at most `MAX_PATHS`."""

MAX_PATHS = 200
REPLACED = "[Previous: used "
"""How the agent's sent view begins a result whose text it left out."""

VERBATIM = "## The user's last message, verbatim\n"
"""Heading behind which the agent's summary of a long conversation ends with what is to be done."""

_PATH_KEYS = ("path", "file_path")
_MATCH_LINE = re.compile(r"^([^\s:][^:\n]*):\d+:", re.MULTILINE)
_MORE = re.compile(r"\boffset\D{0,3}(\d+)")


@dataclass(frozen=True, slots=True)
class Known:
    """The beginning of a file as the model has seen it; `next_offset` is a line number, None at the end."""

    lines: tuple[str, ...]
    next_offset: int | None = None

    @property
    def text(self) -> str:
        """The lines joined."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Done:
    """A call and its result; `result` is None while there is none."""

    call: ToolUseBlock
    result: ToolResultBlock | None = None

    @property
    def text(self) -> str:
        """The result's text."""
        return result_text(self.result) if self.result else ""

    @property
    def failed(self) -> bool:
        """Whether the tool said that it did not work."""
        return self.result is not None and self.result.is_error

    @property
    def forgotten(self) -> bool:
        """Whether the result's text is no longer sent."""
        return self.text.startswith(REPLACED)

    @property
    def found(self) -> bool:
        """Whether a search found something."""
        return bool(_MATCH_LINE.search(self.text))

    @property
    def path(self) -> str:
        """The path the call is about, without a leading slash; empty if there is none."""
        found = next((self.call.input[key] for key in _PATH_KEYS if key in self.call.input), "")
        return str(found).removeprefix("./").lstrip("/")

    @property
    def data(self) -> Mapping[str, Any]:
        """The result for programs, or nothing."""
        return (self.result.data if self.result else None) or {}


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything the next step is decided from.

    Attributes:
        calls: of the present turn, in order.
        task: the user's words that began it.
        files: paths that exist, as far as they were told.
        more_files: there are more than were told.
        known: text by path, of files whose result is still in sight.
        summed: the turn was so long that its beginning was summed up: its first calls are not among `calls`.
    """

    calls: tuple[Done, ...] = ()
    task: str = ""
    files: tuple[str, ...] = ()
    more_files: bool = False
    known: Mapping[str, Known] = field(default_factory=dict[str, Known])
    summed: bool = False

    @property
    def last(self) -> Done | None:
        """The newest call of this turn."""
        return self.calls[-1] if self.calls else None

    @property
    def reads(self) -> Counter[str]:
        """How often each file was read from its beginning in this turn; results may be forgotten since."""
        reads = (d for d in self.calls if d.call.name == "read_file" and d.call.input.get("offset", 1) == 1)
        return Counter(done.path for done in reads)

    def is_repeat(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call is the last one again, or one of this turn that failed or only looks around."""
        for done in self.calls:
            if done.call.name == name and _adds_nothing(name, arguments, done.call.input):
                looks = name in ("search_files", "list_files")
                if looks or done.failed or done is self.last:
                    return True
        return False


def only_searched(done: Done) -> bool:
    """Whether a result only tells where to look: the step after it says no more than the tool."""
    return done.call.name == "search_files" and not done.failed


def _adds_nothing(name: str, arguments: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a call is an earlier one again; a search is too where it has none but words of that one."""
    if name != "search_files":
        return arguments == before
    words, had = (set(str(given.get("pattern", "")).casefold().split("|")) for given in (arguments, before))
    return words <= had


def read_situation(request: ModelRequest) -> Situation:
    """Return the facts of a request.

    Example:
        >>> read_situation(ModelRequest(messages=(), system=("Files:\\na.py",))).files
        ('a.py',)
    """
    calls = paired(request.messages)
    files, more = _listed(request.system)
    known = _known(calls)
    seen = dict.fromkeys(path for done in calls if not done.failed for path in _paths_shown(done))
    return Situation(
        calls=calls[_turn_begin(request.messages) :],
        task=_task(request.messages),
        files=tuple(dict.fromkeys((*files, *seen))),
        more_files=more,
        known=known,
        summed=_is_summed(request.messages),
    )


def paired(messages: Iterable[Message]) -> tuple[Done, ...]:
    """Return every call of `messages` with its result, in call order."""
    found: dict[str, Done] = {}
    for message in messages:
        for call in message.tool_uses:
            found[call.id] = Done(call)
        for result in message.tool_results:
            if result.tool_use_id in found:
                found[result.tool_use_id] = replace(found[result.tool_use_id], result=result)
    return tuple(found.values())


def matches_of(situation: Situation) -> list[tuple[str, int, str]]:
    """Return path, line and text of what the newest search of the turn found."""
    found = [d.data.get("matches") for d in situation.calls if d.call.name == "search_files" and not d.failed]
    rows = cast("list[Mapping[str, Any]]", found[-1] if found and isinstance(found[-1], list) else [])
    return [
        (str(row.get("path", "")).lstrip("/"), int(row["line"]), str(row.get("text", "")).strip())
        for row in rows
        if isinstance(row.get("line"), int)
    ]


def without_files(system: Iterable[str]) -> tuple[str, ...]:
    """Return the system blocks that are not the list of files."""
    return tuple(block for block in system if not _is_files(block))


def _is_files(block: str) -> bool:
    return block.split("\n", 1)[0].strip() == FILES_BLOCK


def _listed(system: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    told = [line for block in system if _is_files(block) for line in block.split("\n")[1:] if line.strip()]
    lines = list(dict.fromkeys(told))
    paths = tuple(line for line in lines if not line.startswith(("…", "...")))
    return paths[:MAX_PATHS], len(paths) > MAX_PATHS or len(paths) < len(lines)


def _turn_begin(messages: Iterable[Message]) -> int:
    """Return how many calls belong to earlier turns: those before the last answer without calls."""
    count = begin = 0
    for message in messages:
        count += len(message.tool_uses)
        if message.role == "assistant" and not message.tool_uses:
            begin = count
    return begin


def _task(messages: Iterable[Message]) -> str:
    """Return the text that opened the turn: the first words of the user after the last answer."""
    task = ""
    for message in messages:
        if message.role == "assistant" and not message.tool_uses:
            task = ""
        elif message.role == "user" and not task:
            task = asked_in(message)
    return task


def _is_summed(messages: Iterable[Message]) -> bool:
    """Whether the present turn begins with a summary of itself."""
    summed = False
    for message in messages:
        if message.role == "assistant" and not message.tool_uses:
            summed = False
        elif message.role == "user" and VERBATIM in message.text:
            summed = True
    return summed


def asked_in(message: Message) -> str:
    """Return what a message of the user asks for: of a summary its end, else all of it."""
    return message.text.rpartition(VERBATIM)[2]


def _paths_shown(done: Done) -> tuple[str, ...]:
    if done.call.name == "search_files":
        return tuple(_MATCH_LINE.findall(done.text))
    if done.call.name in ("read_file", "write_file", "edit_file") and done.path and done.result:
        return (done.path,)
    return ()


def _known(calls: Iterable[Done]) -> dict[str, Known]:
    known: dict[str, Known] = {}
    for done in calls:
        if done.result is None or done.failed or not done.path:
            continue
        if done.call.name == "read_file":
            _learn(known, done)
        elif done.call.name == "write_file":
            known[done.path] = Known(tuple(str(done.call.input.get("content", "")).split("\n")))
        elif done.call.name == "edit_file" and done.path in known:
            old, new = str(done.call.input.get("old", "")), str(done.call.input.get("new", ""))
            before = known[done.path]
            times = -1 if done.call.input.get("replace_all") else 1
            known[done.path] = replace(before, lines=tuple(before.text.replace(old, new, times).split("\n")))
        else:
            known.pop(done.path, None)
    return known


def _learn(known: dict[str, Known], done: Done) -> None:
    offset = done.call.input.get("offset", 1)
    if done.forgotten or not isinstance(offset, int):
        known.pop(done.path, None)
        return
    piece = shown_part(done)
    before = known.get(done.path)
    if offset <= 1:
        known[done.path] = piece
    elif before is not None and before.next_offset == offset:
        known[done.path] = Known((*before.lines, *piece.lines), piece.next_offset)


def shown_part(done: Done) -> Known:
    """Return the lines that a `read_file` result holds, and where to go on."""
    content, following = done.data.get("content"), done.data.get("next_offset")
    if isinstance(content, str) and (following is None or isinstance(following, int)):
        return Known(tuple(content.rstrip("\n").split("\n")), following)
    lines = done.text.rstrip("\n").split("\n")
    marker = _MORE.search(lines[-1]) if lines[-1].startswith(("[", "…", "(")) else None
    if marker is None:
        return Known(tuple(lines))
    return Known(tuple(lines[:-1]), int(marker[1]))
