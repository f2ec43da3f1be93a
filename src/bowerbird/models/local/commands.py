"""A command that the task names: run at once, and what came of it said from its exit code.

Here: which move that is, purely. Not here: commands that the model writes itself (`choices.py`).
"""

import re

from bowerbird.models.local.changing import Call, Say
from bowerbird.models.local.situation import Done, Situation

# At the beginning of the task: later on it may be what must not be run, or what is asked about.
COMMAND = re.compile(
    r"\s*(?:please |now |can you |could you )?run [^`\n]{0,60}`([^`\n]{1,300})`", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|n't|without|unless|only if|before)\b", re.IGNORECASE)
_ONLY = re.compile(
    r"\s*(?:please )?run [^`\n]{0,60}`[^`\n]{1,300}`"
    r"(?:,?(?: and| then| and then)? (?:say|tell me|tell|report|check|see) (?:whether|if) (?:\w+ ){1,4}"
    r"(?:pass|passes|passed|succeeds?|succeeded|works?|worked|fails?|failed))?\s*[.!]?\s*",
    re.IGNORECASE,
)
_END_LINES, _END_CHARS = 2, 200


def command_move(situation: Situation, offered: frozenset[str]) -> Call | Say | None:
    """Return the call of the command that the task names, then what is said of it; None for other turns.

    Example:
        >>> command_move(Situation(task="Run `make test`."), frozenset({"bash"}))
        Call(tool='bash', input={'command': 'make test'})
    """
    named = COMMAND.match(situation.task)
    if named is None or _NOT.search(situation.task) or "bash" not in offered or situation.wants_change:
        return None
    last = situation.last
    if last is None:
        return Call("bash", {"command": named[1]})
    alone = len(situation.calls) == 1 and _ONLY.fullmatch(situation.task)
    return _said(last, named[1]) if alone else None


def _said(done: Done, command: str) -> Say | None:
    if done.failed:
        return Say(
            f"I could not run `{command}`: {done.text.strip().partition(chr(10))[0] or 'the tool failed'}"
        )
    code, output = done.data.get("exit_code"), done.data.get("output")
    if not isinstance(code, int) or done.data.get("timed_out"):
        return None
    lines = [line.strip() for line in str(output or "").split("\n") if line.strip()][-_END_LINES:]
    end = f": {', '.join(lines)[:_END_CHARS]}" if lines else ""
    return Say(f"`{command}` {'succeeded' if code == 0 else f'failed with exit code {code}'}{end}")
