"""The readable parts of a step, decoded while its JSON still arrives: the note and the answer.

Here: one small incremental reader. Not here: other fields, validation (`grammar.py`).
"""

import json
from dataclasses import dataclass

from bowerbird.models.local.grammar import SEEN

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(slots=True)
class _Quoted:
    """A JSON string after `before`, as far as it has come."""

    before: str
    begun: bool = False
    ended: bool = False
    text: str = ""


class StepText:
    """Reads `{"seen": "…", "tool": "<tool>", "answer": "…"}` piece by piece; the note may be missing.

    Args:
        tool: the name of the answering tool.
        noted: whether the step begins with a note.

    Example:
        >>> reader = StepText("final_answer", noted=False)
        >>> reader.feed('{"tool": "final_answer", "answer": "7 lo'), reader.feed('aves"}')
        ('7 lo', 'aves')
    """

    def __init__(self, tool: str, *, noted: bool) -> None:
        begin = f'"tool": {json.dumps(tool)}, "answer": "'
        self._note = _Quoted(f'{{"{SEEN}": "', ended=not noted)
        self._answer = _Quoted(f", {begin}" if noted else f"{{{begin}")
        self._rest = ""
        self._other = False

    @property
    def note(self) -> str:
        """What the step said it saw."""
        return self._note.text

    @property
    def answer(self) -> str | None:
        """The answer so far; None when this is another tool's step."""
        return self._answer.text if self._answer.begun else None

    def feed(self, piece: str) -> str:
        """Return what `piece` adds to the answer; `note` is whole when an answer begins."""
        self._rest += piece
        if not self._note.ended:
            self._take(self._note)
        return self._take(self._answer) if self._note.ended and not self._answer.ended else ""

    def _take(self, part: _Quoted) -> str:
        if self._other:
            return ""
        if not part.begun:
            if not part.before.startswith(self._rest[: len(part.before)]):
                self._other = True
                return ""
            if len(self._rest) < len(part.before):
                return ""
            part.begun, self._rest = True, self._rest[len(part.before) :]
        told, used, part.ended = _decoded(self._rest)
        self._rest = self._rest[used:]
        part.text += told
        return told


def _decoded(text: str) -> tuple[str, int, bool]:
    """Return the string up to its quote, how much of `text` it took, and whether the quote came."""
    told: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            return "".join(told), at + 1, True
        if char == "\\":
            if at + 1 == len(text):
                break  # the second half of the escape is still to come
            told.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
            continue
        told.append(char)
        at += 1
    return "".join(told), at, False
