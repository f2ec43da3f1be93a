"""Questions of a turn put to a person at a terminal (UI-56).

Here: what is asked and how answers are read. Not here: when; who is asked where nobody sits.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bowerbird.cli.terminal.drawing import diff_lines, key_parameter
from bowerbird.cli.terminal.text import harmless
from bowerbird.cli.turn.answer import Answer
from bowerbird.core.events import ApprovalRequest

COMMAND_LINES = 12
CHANGED_LINES = 24
EDITS = ("edit_file", "apply_patch", "write_file")
"""Tools whose change is shown before it is made."""
UNSEEN = "    no preview: it does not fit the file, or the file is too large; d shows all"
_HELP = {
    "plan": "y approve · n reject · any other text is your feedback",
    "effect": "y it happened · n it did not · r run it again",
    "budget": "an amount in USD to raise the limit by · n stop",
}
_SCOPES = {
    "": "workspace", "w": "workspace", "workspace": "workspace", "here": "workspace",
    "s": "session", "session": "session", "e": "everywhere", "everywhere": "everywhere",
}  # fmt: skip
_EFFECTS = {"y": "happened", "n": "did_not_happen", "r": "run_again"}


def question_lines(request: ApprovalRequest) -> list[str]:
    """Return what is shown before the question."""
    return [text for text, _ in styled_question(request)]


def styled_question(request: ApprovalRequest, width: int = 100) -> list[tuple[str, str]]:
    """Return what is shown before the question, each line with its style: a change with what it changes."""
    if request.kind != "approval":
        return [(line, "yellow") for line in _other_lines(request)]
    lines = [("The agent asks to run:", "yellow")]
    for at, tool in enumerate(request.tools, start=1):
        number = f"{at}" if len(request.tools) > 1 else ""
        lines += [(line, "yellow") for line in _call_lines(tool, number)]
        if (diff := _diff_of(tool)) is not None:
            lines += diff_lines(diff, width=width, rest="d shows all", limit=CHANGED_LINES)
    return [*lines, (_approval_help(request), "yellow")]


def always_text(request: ApprovalRequest) -> str:
    """Return the rules that "always" would keep for an approval, as one line; "" where none can be made."""
    lists = [cast("Sequence[object]", tool.get("rules") or ()) for tool in request.tools]
    return harmless(", ".join(dict.fromkeys(str(rule) for rules in lists for rule in rules)))


def _approval_help(request: ApprovalRequest) -> str:
    rules = always_text(request)
    always = [f"a always {rules}"] if rules else []
    edit = ["e edit the command"] if _has_command(request) else []
    each = ["1 y, 2 n … each by itself"] if len(request.tools) > 1 else []
    words = [
        "y once",
        "n deny (n REASON)",
        *edit,
        *each,
        *always,
        "all everything in this session",
        "d details",
    ]
    return " · ".join([*words, "?"])


def _has_command(request: ApprovalRequest) -> bool:
    inputs = [cast("Mapping[str, Any]", tool.get("input") or {}) for tool in request.tools]
    return any(isinstance(arguments.get("command"), str) for arguments in inputs)


def more_help(request: ApprovalRequest) -> list[str]:
    """Return what each answer to an approval means, for `?`."""
    rules = always_text(request)
    always = [
        f"a       always {rules}, in this directory",
        "a s     the same, in this session only",
        "a e     the same, in every directory",
        "        `bowerbird permissions` lists what is always allowed, and takes it back",
    ]
    edit = ["e       edit the command; the edited one is run, and the agent is told"]
    each = [
        "1 y     the first call; 2 n REASON: not the second; 3 e: the third, edited",
        "        then y or n for those that are left",
    ]
    return [
        "y       once",
        "n       deny; what follows the n is told to the agent",
        *(edit if _has_command(request) else []),
        *(each if len(request.tools) > 1 else []),
        *(always if rules else []),
        "all     everything for the rest of this session",
        "d       the calls with all their arguments",
    ]


def _diff_of(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    diff: object = tool.get("diff")
    return cast("Mapping[str, Any]", diff) if isinstance(diff, Mapping) else None


def _other_lines(request: ApprovalRequest) -> list[str]:
    if request.kind == "plan":
        lines = ["Plan:", *(f"  {line}" for line in harmless(request.text).splitlines())]
    else:
        lines = [harmless(request.text) or "The agent asks."]
    if request.kind in _HELP:
        lines.append(_HELP[request.kind])
    return lines


def pending_lines(request: ApprovalRequest) -> list[str]:
    """Return a question as one reads it who only watches: with the commands that answer it."""
    has_help = request.kind == "approval" or request.kind in _HELP
    lines = question_lines(request)[:-1] if has_help else question_lines(request)
    words = ' --feedback "…"' if request.kind == "user" else ""
    return [*lines, f"answer with: bowerbird approve {request.id}{words} · bowerbird deny {request.id}"]


def question_first(request_id: str) -> str:
    """Return what somebody is told whose message waits behind an open question."""
    return (
        f"a question is open, and the message waits for its answer: bowerbird approve {request_id} · "
        f"bowerbird deny {request_id}"
    )


def _call_lines(tool: Mapping[str, Any], number: str) -> list[str]:
    """Return one call; a command is shown whole, because what is cut off is what would be missed."""
    name, arguments = harmless(str(tool.get("name"))), cast("dict[str, Any]", tool.get("input") or {})
    command = arguments.get("command")
    if not isinstance(command, str):
        diff = _diff_of(tool)
        count = "" if diff is None else f"  +{diff.get('added', 0)} -{diff.get('removed', 0)}"
        unseen = [UNSEEN] if diff is None and name in EDITS else []
        return [f"{number:<2}{name} {key_parameter(arguments)}{count}", *unseen]
    first, *more = harmless(command).expandtabs(4).split("\n")
    left_out = (
        [f"    … {len(more) - COMMAND_LINES} more lines: d shows all"] if len(more) > COMMAND_LINES else []
    )
    return [f"{number:<2}{name} {first}", *(f"    {line}" for line in more[:COMMAND_LINES]), *left_out]


def details(request: ApprovalRequest) -> list[str]:
    """Return the calls with all their arguments; texts of several lines as lines."""
    lines: list[str] = []
    for tool in request.tools:
        lines.append(harmless(str(tool.get("name"))))
        for name, value in cast("dict[str, Any]", tool.get("input") or {}).items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            first, *more = harmless(text).expandtabs(4).rstrip("\n").split("\n")
            shown = [f"  {harmless(name)}: {first}"] if not more else [f"  {harmless(name)}:", f"    {first}"]
            lines += shown + [f"    {line}" for line in more]
    return lines


def read_answer(kind: str, line: str) -> Answer | None:
    """Return the decision that `line` is, None when it is none. Pure.

    Example:
        >>> read_answer("approval", "n too risky").feedback
        'too risky'
    """
    text = line.strip()
    word, _, rest = text.partition(" ")
    if kind == "approval":
        return _approval_answer(text)
    if kind == "plan":
        if text.lower() in ("y", "yes", "approve"):
            return Answer("approve")
        if word.lower() in ("n", "no", "reject"):
            return Answer("reject", rest.strip() or None)
        return Answer("reject", text) if text else None
    if kind == "effect":
        return Answer(_EFFECTS[text.lower()]) if text.lower() in _EFFECTS else None
    if kind == "budget":
        return _budget_answer(text)
    return Answer(text) if text else None


def _approval_answer(text: str) -> Answer | None:
    word, _, rest = text.partition(" ")
    if text.lower() in ("y", "yes"):
        return Answer("approve")
    if text.lower() == "all":
        return Answer("auto_approve")
    if word.lower() in ("n", "no"):
        return Answer("deny", rest.strip() or None)
    scope = _SCOPES.get(rest.strip().lower()) if word.lower() in ("a", "always") else None
    return None if scope is None else Answer(f"always_{scope}")


def read_reply(request: ApprovalRequest, line: str) -> Answer | list[str]:
    """Return the decision that `line` is, or what to show instead when it is none."""
    text = line.strip().lower()
    if request.kind == "approval" and text in ("d", "details"):
        return details(request)
    if request.kind == "approval" and text in ("?", "h", "help"):
        return more_help(request)
    answer = read_answer(request.kind, line)
    if answer is not None and answer.decision.startswith("always_") and not always_text(request):
        return ["This call cannot be allowed for good.", _approval_help(request)]
    if answer is not None:
        return answer
    if request.kind == "approval":
        return [_approval_help(request)]
    return [_HELP.get(request.kind, "Type an answer.")]


def is_early_answer(text: str) -> bool:
    """Return whether `text`, typed while a plan is still being written, is meant for its question. Pure.

    Example:
        >>> is_early_answer("y"), is_early_answer("no, with sqlite")
        (True, False)
    """
    return text.strip().lower() in ("y", "yes", "approve", "n", "no", "reject")


def _budget_answer(text: str) -> Answer | None:
    if text.lower() in ("n", "no", "stop"):
        return Answer("stop")
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        return None
    return Answer("raise", f"{amount:g}") if 0 < amount < 1e9 else None


async def approve_within_policy(request: ApprovalRequest) -> Answer | None:
    """Answer for `--yes`: what policy would have a person asked about is approved.

    What policy denies is never asked, so it stays denied; money, effects and questions are no
    matter of yes.
    """
    return Answer("approve") if request.kind in ("approval", "plan") else None
