"""JSON in text, found by a fixed order of attempts (PR-34).

Here: the whole text, its fences, then the first complete value in prose. Not here: what the values mean.

Asking a decoder at every bracket would take quadratic time: an answer that was cut has thousands of brackets
that open and never close. `_Brackets` reads each one once and remembers whether it closes.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bowerbird.providers.parsing.code_blocks import parse_code_blocks

MOST_NESTED = 200  # levels; the decoder itself gives up at some hundreds
_MOST_TRIES = 8  # values that look complete and cannot be decoded: numbers without end
_STEPS = 100_000  # brackets read, and a tenth of the text's length more: a text of brackets is given up

_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_SCALAR = rf"(?:{_STRING}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)"
_W = r"[ \t\r\n]*+"
_KEY = rf"{_STRING}{_W}:{_W}"
# Possessive throughout: what was read is never read again in another way.
_FLAT_ARRAY = rf"\[{_W}(?:\]|{_SCALAR}{_W}(?:,{_W}{_SCALAR}{_W})*+\])"
_FLAT_OBJECT = rf"\{{{_W}(?:\}}|{_KEY}{_SCALAR}{_W}(?:,{_W}{_KEY}{_SCALAR}{_W})*+\}})"
_FLAT = rf"(?:{_FLAT_ARRAY}|{_FLAT_OBJECT})"
_ITEM = rf"(?:{_SCALAR}|{_FLAT})"
_CANDIDATE = re.compile(
    rf"(?P<flat>{_FLAT})|\[{_W}(?:[\[{{]|{_SCALAR}{_W},)|\{{{_W}{_KEY}(?:[\[{{]|{_SCALAR}{_W},)"
)
_IN_ARRAY = re.compile(rf"{_W}(?:{_ITEM}{_W},{_W})*+(?:{_ITEM}{_W}(?P<last>\])|(?P<open>[\[{{]))")
_IN_OBJECT = re.compile(
    rf"{_W}(?:{_KEY}{_ITEM}{_W},{_W})*+{_KEY}(?:{_ITEM}{_W}(?P<last>\}})|(?P<open>[\[{{]))"
)
_AFTER = re.compile(rf"{_W}(?P<mark>[,\]}}])")


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """What was found; true where it is something.

    Attributes:
        data: the value. Without one: the stripped text, or None where strictness was asked for.
        error: None where a value was found.
    """

    success: bool
    data: Any
    error: str | None
    raw_text: str

    def __bool__(self) -> bool:
        return self.success


def parse_json(text: str, strict: bool = False) -> ParsedJson:
    """Return the first JSON value of `text`: all of it, a fence's (json-tagged ones first), one in prose.

    Example:
        >>> parse_json('It is {"a": 1} and {"b": 2}.').data
        {'a': 1}
    """
    stripped = text.strip()
    if not stripped:
        return ParsedJson(False, None if strict else "", "Empty input", text)
    fences = sorted(parse_code_blocks(text), key=lambda block: block.language.lower() != "json")
    for candidate in (stripped, *(block.code for block in fences)):
        found = _decoded(candidate)
        if found is not _NONE:
            return ParsedJson(True, found, None, text)
    for data in _values_in_prose(text):
        return ParsedJson(True, data, None, text)
    if strict:
        return ParsedJson(False, None, "No valid JSON found", text)
    return ParsedJson(False, stripped, "No JSON found", text)


def parse_json_all(text: str) -> list[Any]:
    """Return every JSON value: the whole text, else all objects and lists in it that hold each other not."""
    whole = _decoded(text.strip())
    return [whole] if whole is not _NONE else list(_values_in_prose(text))


_NONE = object()


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("the number is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)
_BEGINNINGS = frozenset('{["-0123456789tfn')


def _decoded(text: str) -> Any:
    """Return the value that is all of `text`, `_NONE` where it is none."""
    stripped = text.strip()
    if stripped[:1] not in _BEGINNINGS:
        return _NONE
    try:
        return _DECODER.decode(stripped)
    except (ValueError, RecursionError):
        return _NONE


def _values_in_prose(text: str) -> Iterator[Any]:
    """Yield the objects and lists that are complete, from the left; those within one that was yielded not."""
    brackets = _Brackets(text)
    tries = at = 0
    while (match := _CANDIDATE.search(text, at)) is not None and brackets.steps > 0:
        start = match.start()
        end = match.end() if match["flat"] is not None else brackets.end_of(start)
        at = start + 1
        if end is None:
            continue
        try:
            found, at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            if (tries := tries + 1) >= _MOST_TRIES:
                return
            continue
        yield found


class _Brackets:
    """Where the objects and lists of a text end; each opening bracket is read once.

    Attributes:
        steps: how much may still be read; brackets that lead nowhere are not followed for ever.
    """

    def __init__(self, text: str) -> None:
        self.steps = _STEPS + len(text) // 10
        self._text = text
        self._ends: dict[int, tuple[int, int]] = {}  # start → end and levels of those that close
        self._dead: set[int] = set()  # those that do not

    def end_of(self, start: int) -> int | None:
        """Return where the value at `start` ends; None where it is none, or nested too deep."""
        self.steps -= 1
        if start not in self._ends and start not in self._dead:
            self._read(start)
        end, levels = self._ends.get(start, (None, 0))
        return end if levels <= MOST_NESTED else None

    def _read(self, start: int) -> None:
        text, ends, stack, levels = self._text, self._ends, [start], [1]
        at = start + 1
        while stack and self.steps > 0:
            self.steps -= 1
            match = (_IN_ARRAY if text[stack[-1]] == "[" else _IN_OBJECT).match(text, at)
            if match is None:
                break
            inner = match.end() - 1
            if match["open"] is None:
                at = self._close(stack, levels, match.end())
            elif inner in ends:
                at = ends[inner][0]
                levels[-1] = max(levels[-1], 1 + ends[inner][1])
            elif inner in self._dead:
                break
            else:
                stack.append(inner)
                levels.append(1)
                at = inner + 1
                continue
            behind = self._after(at, stack, levels)
            if behind is None:
                break
            at = behind
        self._dead.update(stack)

    def _close(self, stack: list[int], levels: list[int], end: int) -> int:
        start, depth = stack.pop(), levels.pop()
        self._ends[start] = (end, depth)
        if levels:
            levels[-1] = max(levels[-1], 1 + depth)
        return end

    def _after(self, at: int, stack: list[int], levels: list[int]) -> int | None:
        """Go on behind a value: past a comma, or out of all that ends here; None where neither stands."""
        while stack:
            match = _AFTER.match(self._text, at)
            if match is None:
                return None
            if match["mark"] == ",":
                return match.end()
            if (match["mark"] == "]") != (self._text[stack[-1]] == "["):
                return None
            at = self._close(stack, levels, match.end())
        return at
