"""What all readers share: one line as JSON, fields of whatever type came, and text that has no form.

Here: those helpers, the protocol of a reader, plain text, and one JSON value as a whole. Not here: vendors.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol, cast

from bowerbird.core.json_text import whole_escapes
from bowerbird.providers.contract.types import AgentEvent
from bowerbird.providers.programs.outcome import Outcome

Object = dict[str, Any]
_LINK = re.compile(r"https://[^\s\"'<>)\]]+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Reader(Protocol):
    """Reads the output of one run, line by line."""

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """Take a line without its end; return what happened."""
        ...

    def outcome(self) -> Outcome:
        """Return what it all comes to; called once, after the last line."""
        ...


def value_of(text: str) -> Any:
    """Return the JSON value of a text, None for what is none."""
    try:
        return json.loads(whole_escapes(text))
    except (ValueError, RecursionError):
        return None


def object_of(line: str) -> Object:
    """Return the JSON object of a line; an empty one for anything else."""
    return as_object(value_of(line)) if line.lstrip().startswith("{") else {}


def as_object(value: Any) -> Object:
    """Return a value if it is an object, else an empty one."""
    return cast("Object", value) if isinstance(value, dict) else {}


def sub(value: Any, *names: str) -> Object:
    """Return the object below `names`; an empty one where there is none."""
    found = as_object(value)
    for name in names:
        found = as_object(found.get(name))
    return found


def items(value: Any) -> list[Object]:
    """Return the objects of a list; none for anything else."""
    return [cast("Object", each) for each in as_list(value) if isinstance(each, dict)]


def as_list(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def int_of(value: Any) -> int | None:
    """Return a count, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 1e15 else None


def cost_of(value: Any) -> float | None:
    """Return an amount in US dollars, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None


def total(*values: int | None) -> int | None:
    """Return the sum of counts that are known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def said(value: Any) -> str:
    """Return what an error field says: text, or the message of an object."""
    record, depth = as_object(value), 0
    if not record:
        return text_of(value).strip()
    while depth < 5:
        named = [record.get(name) for name in ("message", "error", "detail", "data")]
        if text := next((text.strip() for text in map(text_of, named) if text.strip()), ""):
            return text
        inner = next((found for found in map(as_object, named) if found), None)
        if inner is None:
            break
        record, depth = inner, depth + 1
    return json.dumps(value, ensure_ascii=False)[:500]


class PlainText:
    """Output without a form: all of it is the answer, and some of it is the end marker (PR-19)."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        line = _ESCAPES.sub("", line)
        self._lines.append(line)
        return (AgentEvent("text", line + "\n"),) if line.strip() else ()

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        text = "\n".join(self._lines).strip()
        return Outcome(text=text, ended=bool(text))


class TaskLink(PlainText):
    """Text about a task that goes on elsewhere, with its link (Jules)."""

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        found = super().outcome()
        links = _LINK.findall(found.text)
        return Outcome(text=found.text, ended=found.ended, link=links[-1] if links else None)


class Whole:
    """Output that is one JSON value over any number of lines, perhaps with other text before it."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        self._lines.append(line)
        return ()

    def value(self) -> Any:
        """Return the value: of the whole, or from the first line that begins one."""
        if (found := value_of("\n".join(self._lines))) is not None:
            return found
        tries = 0
        for at, line in enumerate(self._lines):
            if line[:1] in ("{", "["):
                tries += 1
                if tries > 20:
                    return None
                if (found := value_of("\n".join(self._lines[at:]))) is not None:
                    return found
        return None

    @property
    def text(self) -> str:
        """The output as it came."""
        return "\n".join(self._lines).strip()
