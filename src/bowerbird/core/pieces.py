"""A text put together from pieces that say where they begin (D-28). Pure.

Here: the fold. Not here: where pieces come from, who shows the text.
"""


class Pieces:
    """One text that grows; cut, repeated, late and early pieces of it give the same.

    Attributes:
        length: characters (code points) that are there, without a gap, from the beginning.

    Example:
        >>> text = Pieces()
        >>> text.take("lo", 3), text.take("Hel", 0), text.take("ello", 1), str(text)
        ('', 'Hello', '', 'Hello')
    """

    __slots__ = ("_early", "_parts", "length")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._early: dict[int, str] = {}
        self.length = 0

    def __str__(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def take(self, content: str, offset: int) -> str:
        """Put a piece in its place; return what the text gained at its end.

        Args:
            offset: characters of the text before the piece.
        """
        if offset > self.length:  # what comes before it is on its way
            if len(content) > len(self._early.get(offset, "")):
                self._early[offset] = content
            return ""
        gained = [self._add(content, offset)]
        while self._early:
            first = min(self._early)
            if first > self.length:
                break
            gained.append(self._add(self._early.pop(first), first))
        return "".join(gained)

    def _add(self, content: str, offset: int) -> str:
        fresh = content[self.length - offset :]
        if fresh:
            self._parts.append(fresh)
            self.length += len(fresh)
        return fresh
