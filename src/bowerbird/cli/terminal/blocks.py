"""Streamed Markdown divided into finished blocks (UI-53). Pure.

Here: when a block is complete, so that it is drawn once and never again. Not here: drawing.
"""

import re

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_LIST = re.compile(r" {0,3}([-*+]|[0-9]{1,9}[.)])(\s|$)")
LONGEST_BLOCK = 20_000  # a block without end is drawn in pieces; nothing grows without limit


class Blocks:
    """Takes pieces of text, gives back complete blocks; what it gave, joined, is the text.

    Example:
        >>> blocks = Blocks()
        >>> blocks.feed("One\\n\\nTw"), blocks.feed("o"), blocks.finish()
        (['One\\n\\n'], [], ['Two'])
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._partial = ""
        self._fence: str | None = None

    @property
    def pending(self) -> str:
        """The text of the block that is not complete."""
        return "".join(self._lines) + self._partial

    def feed(self, text: str) -> list[str]:
        """Add `text`; return the blocks it completed."""
        done: list[str] = []
        pieces = (self._partial + text).split("\n")
        self._partial = pieces.pop()
        for piece in pieces:
            done += self._line(piece + "\n")
        if self._partial and self._ends_before(self._partial):
            done += self._flush()
        return done

    def finish(self) -> list[str]:
        """Return what is left; the text has ended."""
        left = self.pending
        self._lines, self._size, self._partial, self._fence = [], 0, "", None
        return [left] if left else []

    def _line(self, line: str) -> list[str]:
        done = self._flush() if self._ends_before(line) else []
        self._lines.append(line)
        self._size += len(line)
        fence = _FENCE.match(line)
        if self._fence is None and fence:
            self._fence = fence["mark"]
        elif self._fence is not None and fence and self._closes(fence):
            self._fence = None
            done += self._flush()
        elif self._size > LONGEST_BLOCK:
            done += self._flush()
        return done

    def _closes(self, fence: re.Match[str]) -> bool:
        opened = self._fence or ""
        return (
            fence["mark"][0] == opened[0] and len(fence["mark"]) >= len(opened) and not fence["rest"].strip()
        )

    def _ends_before(self, line: str) -> bool:
        """Whether the block so far is complete now that `line` (perhaps its beginning) follows."""
        if self._fence is not None or not self._lines or not line.strip():
            return False
        if self._lines[-1].strip():
            return False
        first = next((held for held in self._lines if held.strip()), "")
        if _LIST.match(first):  # a list goes on over blank lines: items and indented text
            if line[:1].isspace():
                return False
            return _may_be_item(line) is False
        return True

    def _flush(self) -> list[str]:
        block = "".join(self._lines)
        self._lines, self._size = [], 0
        return [block] if block else []


def _may_be_item(line: str) -> bool:
    """Whether `line`, perhaps only begun, is or may become a list item."""
    if _LIST.match(line):
        return True
    return re.fullmatch(r" {0,3}([-*+]|[0-9]{1,9}[.)]?)", line) is not None
