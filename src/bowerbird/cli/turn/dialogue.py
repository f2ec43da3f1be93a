"""The answer to a question, line by line: one word for all calls, or one for each (UI-71).

Here: what a line means after those before it. Not here: what one word means (`asking.py`), the screen.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from bowerbird.cli.terminal.text import harmless
from bowerbird.cli.turn.answer import Answer
from bowerbird.cli.turn.asking import read_reply, styled_question
from bowerbird.core.events import ApprovalRequest, CallAnswer

Read = Callable[[str, str], Awaitable[str]]
Say = Callable[[str, str], None]

_LINE = re.compile(r"(?P<number>\d{1,4})?\s*(?P<word>yes|no|edit|y|n|e)(?:\s+(?P<rest>.*))?", re.I | re.S)


class Dialogue:
    """One question put to a person.

    Attributes:
        question: what stands before the next line. text: what that line begins with.

    Example:
        >>> calls = ({"id": "a", "name": "bash", "input": {"command": "rm x"}},)
        >>> asked = Dialogue(ApprovalRequest("r", "approval", ("a",), calls))
        >>> asked.reply("e"), asked.text
        ([], 'rm x')
        >>> asked.reply("rm y").calls["a"].command
        'rm y'
    """

    def __init__(self, request: ApprovalRequest) -> None:
        self._request = request
        self._calls = tuple(str(tool.get("id")) for tool in request.tools)
        self._given: dict[str, CallAnswer] = {}
        self._edited: str | None = None  # the call whose command is being edited
        self.question, self.text = "answer> ", ""

    def reply(self, line: str) -> Answer | Sequence[str]:
        """Return the whole answer, or what to show before the next line."""
        edited, before = self._edited, self.text
        self._edited, self.question, self.text = None, "answer> ", ""
        if edited is not None:
            if not line.strip():
                return ["Nothing was changed; the question stands."]
            command = line if line != before else None
            return self._gave(edited, CallAnswer("approve", command=command))
        found = _LINE.fullmatch(line.strip()) if self._request.kind == "approval" else None
        if found is None:
            return self._of_all(read_reply(self._request, line))
        number, word, rest = found["number"], found["word"].lower()[0], (found["rest"] or "").strip()
        if number is None and word != "e":
            return self._rest(word, rest) if self._given else read_reply(self._request, line)
        chosen = self._chosen(number)
        if not isinstance(chosen, str):
            return chosen
        if word != "e":
            said = CallAnswer("approve" if word == "y" else "deny", (rest or None) if word == "n" else None)
            return self._gave(chosen, said)
        return self._edit(chosen, rest)

    def _of_all(self, said: Answer | Sequence[str]) -> Answer | Sequence[str]:
        """Leave what was said of single calls as it was said."""
        return said._replace(calls=dict(self._given)) if isinstance(said, Answer) else said

    def _chosen(self, number: str | None) -> str | list[str]:
        calls = self._calls
        if number is None:
            left = [call for call in calls if call not in self._given]
            return left[0] if len(left) == 1 else [f"Say which: 1 e … {len(calls)} e"]
        if 1 <= int(number) <= len(calls):
            return calls[int(number) - 1]
        return [f"There are {len(calls)} calls: 1 to {len(calls)}."]

    def _edit(self, call: str, command: str) -> Answer | list[str]:
        present = _command(self._request, call)
        if present is None:
            return ["This call runs no command that could be edited."]
        if command:
            return self._gave(call, CallAnswer("approve", command=command))
        self._edited, self.question, self.text = call, "run instead> ", present
        return []

    def _gave(self, call: str, said: CallAnswer) -> Answer | list[str]:
        self._given[call] = said
        if all(one in self._given for one in self._calls):
            return self._answer()
        rows = [f"{at} {_word(self._given.get(one))}" for at, one in enumerate(self._calls, start=1)]
        return [f"{' · '.join(rows)} · y or n for the rest"]

    def _rest(self, word: str, rest: str) -> Answer:
        said = CallAnswer("approve") if word == "y" else CallAnswer("deny", rest or None)
        self._given = {call: self._given.get(call, said) for call in self._calls}
        return self._answer()

    def _answer(self) -> Answer:
        approved = any(said.decision == "approve" for said in self._given.values())
        if len(self._given) == 1 and (said := next(iter(self._given.values()))).command is None:
            return Answer(said.decision, said.feedback)
        return Answer("approve" if approved else "deny", None, dict(self._given))


async def ask_person(request: ApprovalRequest, say: Say, read: Read, width: int) -> Answer | None:
    """Ask until there is an answer; None when the input ended.

    Args:
        say: shows a line in a style. read: reads a line after a prompt, begun as the second
            argument says; raises EOFError at the end. width: of the terminal.
    """
    for line, style in styled_question(request, width):
        say(line, style)
    dialogue = Dialogue(request)
    while True:
        try:
            line = await read(dialogue.question, dialogue.text)
        except EOFError:
            return None
        reply = dialogue.reply(line)
        if isinstance(reply, Answer):
            return reply
        for text in reply:
            say(text, "")


def _word(said: CallAnswer | None) -> str:
    if said is None:
        return "?"
    if said.decision == "deny":
        return "no"
    return "yes" if said.command is None else f"yes, as {harmless(said.command)[:60]}"


def _command(request: ApprovalRequest, call: str) -> str | None:
    for tool in request.tools:
        if tool.get("id") == call:
            command = cast("Mapping[str, Any]", tool.get("input") or {}).get("command")
            return command if isinstance(command, str) else None
    return None
