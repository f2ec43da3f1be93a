"""No part of a key in what people read (PR-9): vendors like to quote a key's end when they refuse it.

Here: a text without any piece of a secret. Not here: which secrets there are, the redaction of whole ones in
logs and traces (`models/redact`).
"""

from collections.abc import Iterable

PIECE = 4  # characters of a key in a row that nobody may read
_SHORTEST = 8  # of a key; a shorter one is a word, whose pieces are everywhere


class Masker:
    """Blots out every run of characters that stands in a secret.

    Example:
        >>> Masker(["sk-SECRET-123456"]).text("wrong key: sk-S…3456!")
        'wrong key: ***…***!'
    """

    def __init__(self, secrets: Iterable[str | None]) -> None:
        self._pieces = frozenset(
            secret[at : at + PIECE]
            for secret in secrets
            if secret and len(secret) >= _SHORTEST
            for at in range(len(secret) - PIECE + 1)
        )

    def text(self, text: str) -> str:
        """Return `text` with `***` where a piece of a secret of four characters or more stood."""
        if not self._pieces:
            return text
        kept: list[str] = []
        hidden_to = 0
        for at in range(len(text)):
            if text[at : at + PIECE] in self._pieces:
                if at >= hidden_to:
                    kept.append("***")
                hidden_to = at + PIECE
            if at >= hidden_to:
                kept.append(text[at])
        return "".join(kept)
