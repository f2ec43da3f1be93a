"""`<think>…</think>` at the start of a text, told apart however its tags are cut (MO-24).

Here: pieces of text in, pieces of reasoning and of text out. Not here: which servers write tags.
"""

from typing import Literal, NamedTuple

_OPEN, _CLOSE = "<think>", "</think>"


class Piece(NamedTuple):
    """A piece of reasoning or of text."""

    kind: Literal["thinking", "text"]
    text: str


class ThinkTags:
    """Divides one answer's text; `done` says that all further text is plain.

    Example:
        >>> tags = ThinkTags()
        >>> [*tags.feed("<thi"), *tags.feed("nk>why</think>"), *tags.feed("so")]
        [Piece(kind='thinking', text='why'), Piece(kind='text', text='so')]
    """

    __slots__ = ("_held", "_state", "done")

    def __init__(self) -> None:
        self._held = ""
        self._state: Literal["start", "inside", "after"] = "start"
        self.done = False

    def feed(self, text: str) -> list[Piece]:
        """Return what `text` makes certain."""
        if self.done:
            return [Piece("text", text)] if text else []
        held = self._held + text
        self._held = ""
        pieces: list[Piece] = []
        if self._state == "start":
            begun = held.lstrip()
            if begun.startswith(_OPEN):
                self._state, held = "inside", begun[len(_OPEN) :]
            elif _OPEN.startswith(begun):  # also nothing but white space so far
                self._held = held
                return pieces
            else:
                return self._finish_with(held)
        if self._state == "inside":
            thought, closed, rest = held.partition(_CLOSE)
            if not closed:
                keep = _overlap(held)
                self._held = held[len(held) - keep :]
                thought = held[: len(held) - keep]
            if thought:
                pieces.append(Piece("thinking", thought))
            if not closed:
                return pieces
            self._state, held = "after", rest
        # Blank lines between the reasoning and the answer belong to neither.
        answer = held.lstrip()
        return pieces + self._finish_with(answer) if answer else pieces

    def finish(self) -> list[Piece]:
        """Return what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [Piece("thinking" if self._state == "inside" else "text", held)]

    def _finish_with(self, text: str) -> list[Piece]:
        self.done = True
        return [Piece("text", text)] if text else []


def _overlap(text: str) -> int:
    """Return how many characters at the end of `text` may begin the closing tag."""
    longest = min(len(text), len(_CLOSE) - 1)
    return next((n for n in range(longest, 0, -1) if _CLOSE.startswith(text[-n:])), 0)
