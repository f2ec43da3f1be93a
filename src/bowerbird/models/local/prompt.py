"""What the small model is told: a constant beginning, the files, the conversation so far.

Here: texts and their order, purely. The beginning depends on the offered tools only, so that it is
evaluated once and reused by every step and session (MO-40); what was said is rendered the same way
each time. Not here: what may be done next (`choices.py`), results of tools (`results.py`).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from bowerbird.core.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock, day_of
from bowerbird.core.requests import ModelRequest
from bowerbird.models.local.calls import FollowUp, follow_up, step_of_call
from bowerbird.models.local.choices import CHANGE, COMMAND, COMPUTATION, FINAL, QUESTION
from bowerbird.models.local.grammar import as_step, noted_step
from bowerbird.models.local.results import named_cells, tell
from bowerbird.models.local.situation import Done, asked_in, only_searched, paired, without_files

SYSTEM_CHARS = 500
"""What is kept of each system block, whole paragraphs if they fit: long instructions make a model of
this size lose the task."""

TASK_CHARS = 400
_PLACE, _HIDDEN = "Workspace: ", "Hidden from you"  # how the agent begins these lines
_OWN = (
    "You are an agent that does a job with tools.",
    "Agent: ",
    "Skills (",
    "You can delegate with ",
)  # what it says to any model, of tools that are not offered here
NEXT = "Say which tool is next."
AGAIN = 'Write in "seen" what the results show about the task, then the tool: final_answer if that is enough.'

_INTRO = (
    "You are a careful assistant that works on a project of files. "
    "Each answer is what the last message asks for, in its form."
)
_KINDS = (
    "Kinds of requests. question: it asks what the files say. computation: it asks for a number that must be "
    "counted or summed over the rows of a file. change: a file must be edited or created for it; also a wish "
    "how things should be, or a fault to repair. command: it asks to run a program, and to edit nothing."
)
_SORTED = (
    ("Which port does the server use?", QUESTION),
    ("Let a session last 45 minutes instead of 30.", CHANGE),
    ("How many orders of data/orders.csv came from Oslo?", COMPUTATION),
    ("Run the tests and say whether they pass.", COMMAND),
    ("When is a parcel heavy, and what does it cost then?", QUESTION),
    ("The test of mean fails, fix it.", CHANGE),
    ("What must I run to start it?", QUESTION),
    ("Which customer paid the most in total?", COMPUTATION),
    ("Create notes.txt with a list of the functions.", CHANGE),
    ("The border is too thin, I would like it thicker.", CHANGE),
)
KIND = "Which kind of request is it?"
_STEPS = (
    "To answer a question you write one JSON object a step: the tool to use next. Then you see its result. "
    "Never guess; compute with Python, never in your head. When the results show the answer, use "
    "final_answer: one sentence with the exact names and numbers that you saw."
)

_TOOL_LINES = {
    "read_file": "show a file",
    "list_files": "list the files that match a pattern",
    "search_files": "find the lines that contain a word",
    "write_file": "create a file; its content follows in a fenced block",
    "edit_file": "replace text of a file",
    "run_python_code": "run Python to compute from files; the code follows in a fenced block",
    "bash": "run a shell command, for example the tests",
    FINAL: "tell the user the answer, or what you changed",
}

_EXAMPLES = (
    (
        ("search_files", "read_file"),
        "When is a parcel called heavy?",
        as_step("search_files", pattern="heavy parcel"),
        'Nothing found for "heavy parcel". Read a file that may say it, or search for one shorter word.',
        as_step("read_file", path="shop/parcels.py"),
        "shop/parcels.py, 2 lines:\nHEAVY_KG = 25\ndef fee(kg): return 9 if kg > HEAVY_KG else 4",
        noted_step(
            "Heavy is over 25 kg.",
            FINAL,
            answer="A parcel over 25 kg is heavy (HEAVY_KG in shop/parcels.py).",
        ),
    ),
    (
        ("run_python_code",),
        "How much rain fell in Bergen in total, by data/rain.csv?",
        as_step("read_file", path="data/rain.csv"),
        "data/rain.csv, lines 1 to 3 of 900:\nday,city,mm\n2024-05-01,Oslo,3.5\n2024-05-01,Bergen,12.0",
        noted_step("Column mm is the rain, city the place.", "run_python_code"),
        "```python\nimport csv\n\ntotal = 0.0\nwith open('data/rain.csv') as file:\n"
        "    for row in csv.DictReader(file):\n        if row['city'] == 'Bergen':\n"
        "            total += float(row['mm'])\nprint(round(total, 2))\n```",
        "Output:\n1843.5",
        noted_step("The sum is 1843.5.", FINAL, answer="In total 1843.5 mm of rain fell in Bergen."),
    ),
)

_REWRITING = (
    "To change a file you write all the lines that you are shown as they are after the change, in one fenced "
    "block. Change only what the task names; everything else stays exactly as it is."
)
REWRITE = "Write these lines after the change."
_REWRITTEN = (
    (
        "Task: Let a session last 45 minutes instead of 30.\nFile app/login.py:\n"
        "```\nRETRIES = 30\nSESSION_MINUTES = 30\n\n\n"
        "def expired(age):\n    return age > SESSION_MINUTES\n```",
        "```\nRETRIES = 30\nSESSION_MINUTES = 45\n\n\n"
        "def expired(age):\n    return age > SESSION_MINUTES\n```",
    ),
    (
        'Task: Add green to the colours.\nFile palette.json:\n```\n{\n  "name": "spring",\n'
        '  "colours": ["red", "blue"]\n}\n```',
        '```\n{\n  "name": "spring",\n  "colours": ["red", "blue", "green"]\n}\n```',
    ),
    (
        "Task: Remove the line that prints the total.\nFile sum.py:\n```\ndef total(rows):\n"
        "    found = sum(rows)\n    print(found)\n    return found\n```",
        "```\ndef total(rows):\n    found = sum(rows)\n    return found\n```",
    ),
)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message of the engine's chat."""

    role: Literal["system", "user", "assistant"]
    text: str


def beginning(tools: Sequence[str]) -> tuple[ChatTurn, ...]:
    """Return what every request begins with for these offered tools.

    Example:
        >>> "bash" in beginning(["read_file"])[0].text
        False
    """
    have = {*tools, FINAL}
    lines = [f"{name}: {text}" for name, text in _TOOL_LINES.items() if name in have]
    extra = [f"{name}: a tool with the fields of its input" for name in tools if name not in _TOOL_LINES]
    shown = [example for needs, *example in _EXAMPLES if have.issuperset(needs)]
    kinds = "\n".join((_KINDS, *(f"{asked} {kind}" for asked, kind in _SORTED)))
    parts = [_INTRO, kinds, _STEPS + "\nTools:\n" + "\n".join([*lines, *extra])]
    for number, (task, *talk) in enumerate(shown, 1):
        parts.append(f"Example {number}. Task: {task}\n" + "\n".join(talk))
    parts.append(_REWRITING)
    turns = [ChatTurn("system", "\n\n".join(parts))]
    for asked, answer in _REWRITTEN:
        turns += [ChatTurn("user", f"{asked}\n{REWRITE}"), ChatTurn("assistant", answer)]
    return tuple(turns)


def project(system: Iterable[str], files: Sequence[str]) -> str:
    """Return what is told of the project, "" for nothing: what its people ask for, and its files."""
    told = map(_of_any_host, without_files(system))
    blocks = [_beginning(block.strip(), SYSTEM_CHARS) for block in told if block.strip()]
    return "\n\n".join((*blocks, *(("Files of this project:\n" + "\n".join(files),) if files else ())))


def chat(request: ModelRequest, tools: Sequence[str], files: Sequence[str]) -> tuple[ChatTurn, ...]:
    """Return the whole conversation as the engine gets it.

    Args:
        request: what is asked.
        tools: names of the offered tools; empty for an answer in plain text.
        files: paths to name before the task.
    """
    told = project(request.system, files)
    turns = [*beginning(tools)] if tools else []
    turns += [ChatTurn("user" if tools else "system", told)] if told else []
    results = {done.call.id: done for done in paired(request.messages)}
    task, looked = "", False
    gone = {id_ for id_, done in results.items() if done.forgotten}
    for message in _without(request.messages, gone):
        looked = looked or any(
            r.tool_use_id in results and not only_searched(results[r.tool_use_id])
            for r in message.tool_results
        )
        turns += _turns_of(message, results, task, (AGAIN if looked else NEXT) if tools else "")
        # The task is said again after each result, always alike: a small model forgets it otherwise.
        if message.role == "user" and not message.tool_results:
            task, looked = _cut(asked_in(message).strip(), TASK_CHARS), False
    if request.dated and request.messages and not request.messages[-1].tool_results:
        # At the end of every result it would be evaluated anew in every step, and distract.
        turns.append(ChatTurn("user", day_of(request.messages[-1])))
    return _merged(turns)


def _of_any_host(block: str) -> str:
    """Leave out where the project lies, how commands are kept in, and what is said to every large model.

    It works with relative paths; the name of a directory turned its answers (one job in `examples/`).
    """
    if block.startswith(_OWN):
        return ""
    if not block.startswith(_PLACE):
        return block
    return "\n".join(line for line in block.split("\n") if line.startswith(_HIDDEN))


def put(tools: Sequence[str], told: str, asked: str) -> tuple[ChatTurn, ...]:
    """Return the conversation that asks one thing, whatever was said before.

    Args:
        tools: names of the offered tools.
        told: what is said of the project (`project`), if that matters.
        asked: what is asked.
    """
    return (*beginning(tools), ChatTurn("user", f"{told}\n\n{asked}".lstrip()))


def openings_of(
    turns: Sequence[ChatTurn], tools: Sequence[str], told: str
) -> tuple[tuple[ChatTurn, ...], ...]:
    """Return what `turns` share with others, the shortest first: anywhere, in this project."""
    constant = beginning(tools)
    if not tools or tuple(turns[: len(constant)]) != constant:
        return ()
    return (constant, (*constant, ChatTurn("user", told))) if told else (constant,)


def asking(turns: Sequence[ChatTurn], step: str, follow: FollowUp) -> tuple[ChatTurn, ...]:
    """Return the conversation that asks for the second pass of `step`."""
    return (*turns, ChatTurn("assistant", step), ChatTurn("user", follow.question))


def _without(messages: Iterable[Message], gone: Set[str]) -> list[Message]:
    """Return `messages` without the calls whose results are no longer sent, and without those results.

    Leaving them out whole, not in part, lets the engine reuse everything that follows.
    """
    kept: list[Message] = []
    for message in messages:
        blocks = tuple(
            block
            for block in message.content
            if not (isinstance(block, ToolUseBlock) and block.id in gone)
            and not (isinstance(block, ToolResultBlock) and block.tool_use_id in gone)
        )
        if blocks:
            kept.append(Message(message.role, blocks, message.id, message.ts))
    return kept


def _turns_of(message: Message, results: Mapping[str, Done], task: str, again: str) -> list[ChatTurn]:
    if message.role == "user":
        texts = [b.text for b in message.content if isinstance(b, TextBlock)]
        shown = [b.tool_use_id for b in message.content if isinstance(b, ToolResultBlock)]
        told: list[str] = []
        for id_ in shown:
            if id_ in results:
                before = takewhile(lambda done, id_=id_: done.call.id != id_, results.values())
                told += [
                    tell(results[id_]),
                    named_cells(results[id_], task, before),
                ]
        ending = [f"Task: {task}\n{again}".rstrip()] if told and task else []
        return [ChatTurn("user", text) for text in (*told, *texts, *ending) if text.strip()]
    if not message.tool_uses:
        text = as_step(FINAL, answer=message.text)
        return [ChatTurn("assistant", text)] if message.text.strip() else []
    turns: list[ChatTurn] = []
    for call in message.tool_uses:
        turns.append(ChatTurn("assistant", step_of_call(call)))
        given = call.input
        follow = follow_up(call.name, str(given.get("path", "")))
        if follow is not None:
            body = given.get("code") or given.get("content") or ""
            fence = "`" * follow.opening.count("`")
            turns.append(ChatTurn("user", follow.question))
            turns.append(ChatTurn("assistant", f"{follow.opening}\n{body}\n{fence}"))
    return turns


def _merged(turns: Iterable[ChatTurn]) -> tuple[ChatTurn, ...]:
    """Join neighbours of one role: chat templates want user and assistant by turns."""
    merged: list[ChatTurn] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role != "system":
            merged[-1] = ChatTurn(turn.role, f"{merged[-1].text}\n\n{turn.text}")
        else:
            merged.append(turn)
    return tuple(merged)


def _beginning(text: str, limit: int) -> str:
    kept, *more = text.split("\n\n")
    for paragraph in more:
        if len(kept) + len(paragraph) + 2 > limit:
            break
        kept += "\n\n" + paragraph
    return _cut(kept, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rsplit(maxsplit=1)[0] + " …"
