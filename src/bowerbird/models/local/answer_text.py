"""The answer of a step, decoded while its JSON still arrives.

Here: one small incremental reader. Not here: any other field, validation (`grammar.py`).
"""

import json

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "/": "/", "b": "\b", "f": "\f"}


class AnswerText:
    """Reads `{"tool": "<tool>", "answer": "…"}` piece by piece.

    Args:
        tool: the name of the answering tool.

    Example:
        >>> reader = AnswerText("final_answer")
        >>> reader.feed('{"tool": "final_answer", "ans'), reader.feed('wer": "7 lo'), reader.feed('aves"}')
        ('', '7 lo', 'aves')
    """

    def __init__(self, tool: str) -> None:
        self._before = f'{{"tool": {json.dumps(tool)}, "answer": "'
        self._rest = ""
        self._is_other = False
        self.begun = False
        self.ended = False
        self.text = ""

    def feed(self, piece: str) -> str:
        """Return what `piece` adds to the answer."""
        if self._is_other or self.ended:
            return ""
        self._rest += piece
        if not self.begun:
            if not self._rest.startswith(self._before[: len(self._rest)]):
                self._is_other = True
                return ""
            if len(self._rest) < len(self._before):
                return ""
            self.begun, self._rest = True, self._rest[len(self._before) :]
        told = self._decode()
        self.text += told
        return told

    def _decode(self) -> str:
        told: list[str] = []
        at = 0
        while at < len(self._rest):
            char = self._rest[at]
            if char == '"':
                self.ended = True
                break
            if char == "\\":
                if at + 1 == len(self._rest):
                    break  # the second half of the escape is still to come
                told.append(_ESCAPES.get(self._rest[at + 1], self._rest[at + 1]))
                at += 2
                continue
            told.append(char)
            at += 1
        self._rest = self._rest[at:]
        return "".join(told)
