"""Counting tokens in what a vendor's API answers, streamed or not. Pure.

Here: the figures of the wires of Anthropic, OpenAI (both) and Google. Not here: passing answers on, prices.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

_LONGEST_LINE = 1 << 20
_LONGEST_BODY = 8 << 20
_INPUT = (
    "input_tokens", "prompt_tokens", "promptTokenCount", "cache_creation_input_tokens",
    "cache_read_input_tokens",
)  # fmt: skip
_OUTPUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "thoughtsTokenCount")


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of one answer.

    Attributes:
        input_tokens: all of them; `cache_read`, `cache_write` are those that a vendor counts apart.
        model: who answered, as the vendor says; "" where it does not.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    model: str = ""


class TokenCount:
    """Counts in one answer as its bytes pass; what is no usage figure is passed over.

    Args:
        streamed: whether it is a stream of events, not one JSON value.
    """

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self._rest = bytearray()
        self._dropping = False
        self._figures: dict[str, int] = {}
        self._model = ""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if not self._streamed:
            if len(self._rest) + len(chunk) <= _LONGEST_BODY:
                self._rest += chunk
            return
        *lines, last = chunk.split(b"\n")
        for line in lines:
            if not self._dropping and len(self._rest) + len(line) <= _LONGEST_LINE:
                self._line(bytes(self._rest) + line)
            self._rest.clear()
            self._dropping = False
        if len(self._rest) + len(last) > _LONGEST_LINE:
            self._dropping = True
            self._rest.clear()
        elif not self._dropping:
            self._rest += last

    def counted(self) -> Counted:
        """Return the figures, once all bytes passed."""
        if self._rest:
            if self._streamed:
                self._line(bytes(self._rest))
            else:
                self._take(bytes(self._rest))
            self._rest.clear()
        found = self._figures
        return Counted(
            sum(found.get(name, 0) for name in _INPUT),
            sum(found.get(name, 0) for name in _OUTPUT),
            found.get("cache_read_input_tokens", 0),
            found.get("cache_creation_input_tokens", 0),
            self._model,
        )

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:") and (b"sage" in line):
            self._take(line[5:])

    def _take(self, text: bytes) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            self._model = _model_of(each) or self._model
            for holder in _holders(each):
                for name in (*_INPUT, *_OUTPUT):
                    figure = holder.get(name)
                    if isinstance(figure, int) and not isinstance(figure, bool) and figure >= 0:
                        # Later figures of a stream include the earlier ones.
                        self._figures[name] = max(figure, self._figures.get(name, 0))


def _holders(value: Any) -> list[dict[str, Any]]:
    """Return the objects with usage figures: of the value, and of the message or answer in it."""
    top = _object(value)
    within = [top, _object(top.get("message")), _object(top.get("response"))]
    return [_object(each.get(name)) for each in within for name in ("usage", "usageMetadata")]


def _model_of(value: Any) -> str:
    top = _object(value)
    for each in (top, _object(top.get("message")), _object(top.get("response"))):
        for name in ("model", "modelVersion"):
            if isinstance(each.get(name), str):
                return str(each[name])[:200]
    return ""


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
