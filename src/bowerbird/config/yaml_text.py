"""YAML 1.2 plain data with the line of every key (CF-9).

Here: bytes in, plain data and lines out, or `YamlProblem` with line and column. Not here:
files, the meaning of any key. The parser's events are read directly, so no tag is ever
resolved and no object constructed.
"""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any, cast

import msgspec

from bowerbird.config.keys import Path

LARGEST_FILE_BYTES = 1 << 20
MOST_VALUES = 100_000  # aliases of aliases multiply; no settings file holds this much
DEEPEST = 50

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class YamlProblem(ValueError):
    """The text is not plain YAML 1.2 data; `line` and `column` count from 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


class Document(msgspec.Struct, frozen=True):
    """A mapping and the line of each of its keys, at every depth."""

    data: dict[str, Any]
    lines: dict[Path, int]


def parse(content: bytes) -> Document:
    """Return the mapping that `content` holds; empty content or null is an empty one.

    Raises YamlProblem for tags, duplicate keys, a root that is no mapping, more than one
    document, more than 1 MiB, invalid UTF-8, and bad syntax.

    Example:
        >>> parse(b"agent: {max_turns: 5}").data
        {'agent': {'max_turns': 5}}
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise YamlProblem(f"the file is larger than 1 MiB ({len(content):,} bytes)", 1, 1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise YamlProblem("invalid UTF-8", before.count(b"\n") + 1, column) from None
    return _Reader(text).document()


class _Reader:
    """Builds plain data from the parser's events."""

    def __init__(self, text: str) -> None:
        self._events = _events(text)
        self._anchors: dict[str, tuple[Any, dict[Path, int], int]] = {}
        self._values = 0

    def document(self) -> Document:
        lines: dict[Path, int] = {}
        data: Any = None
        documents = 0
        for event in self._events:
            if event.kind == "DocumentStart":
                documents += 1
                if documents > 1:
                    raise YamlProblem(
                        "a second document starts here; one is permitted", event.line, event.column
                    )
                start = next(self._events)
                data = self._value(start, (), lines)
                if data is not None and not isinstance(data, dict):
                    raise YamlProblem("the root must be a mapping of keys", start.line, start.column)
        return Document(cast("dict[str, Any]", data or {}), lines)

    def _value(self, event: "_Event", path: Path, lines: dict[Path, int]) -> Any:
        before = self._values
        self._values += 1
        if self._values > MOST_VALUES:
            raise YamlProblem(f"more than {MOST_VALUES:,} values", event.line, event.column)
        if len(path) > DEEPEST:
            raise YamlProblem(f"nested deeper than {DEEPEST} levels", event.line, event.column)
        if event.kind == "Alias":
            return self._alias(event, path, lines)
        if event.tag is not None and event.tag != "!":
            raise YamlProblem(f"tags are not permitted: {event.tag[:60]}", event.line, event.column)
        own: dict[Path, int] = {}
        if event.kind == "Scalar":
            value: Any = _scalar(event)
        elif event.kind == "SequenceStart":
            value = [
                self._value(item, (*path, str(i)), own) for i, item in enumerate(self._until("SequenceEnd"))
            ]
        else:
            value = self._mapping(path, own)
        if event.anchor:
            inner = {p[len(path) :]: line for p, line in own.items()}
            self._anchors[event.anchor] = (value, inner, self._values - before)
        lines.update(own)
        return value

    def _mapping(self, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for event in self._until("MappingEnd"):
            if event.kind != "Scalar" or event.tag not in (None, "!"):
                raise YamlProblem("a key must be plain text", event.line, event.column)
            name = event.text
            if name in result:
                raise YamlProblem(f"the key {name[:60]!r} is there twice", event.line, event.column)
            lines[(*path, name)] = event.line
            result[name] = self._value(next(self._events), (*path, name), lines)
        return result

    def _until(self, end: str) -> Iterator["_Event"]:
        for event in self._events:
            if event.kind == end:
                return
            yield event

    def _alias(self, event: "_Event", path: Path, lines: dict[Path, int]) -> Any:
        if event.anchor not in self._anchors:
            raise YamlProblem(f"unknown alias *{event.anchor}", event.line, event.column)
        value, inner, size = self._anchors[event.anchor]
        self._values += size
        if self._values > MOST_VALUES:
            raise YamlProblem(f"more than {MOST_VALUES:,} values", event.line, event.column)
        lines.update({(*path, *p): line for p, line in inner.items()})
        return value


class _Event(msgspec.Struct, frozen=True):
    kind: str
    line: int
    column: int
    anchor: str = ""
    tag: str | None = None
    text: str = ""
    plain: bool = False


def _events(text: str) -> Iterator[_Event]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        for event in cast("Iterator[Any]", yaml.parse(StringIO(text))):  # pyright: ignore[reportUnknownMemberType] - untyped package
            mark = event.start_mark
            tag = getattr(event, "tag", None)
            yield _Event(
                kind=type(event).__name__.removesuffix("Event"),
                line=mark.line + 1,
                column=mark.column + 1,
                anchor=getattr(event, "anchor", None) or "",
                tag=None if tag is None else str(tag),
                text=getattr(event, "value", None) or "",
                plain=getattr(event, "style", "x") in (None, ""),
            )
    except MarkedYAMLError as error:
        raise _marked(error) from None
    except YAMLError as error:
        raise YamlProblem("a character that YAML does not permit", *_where(text, error)) from None


def _marked(error: Any) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return YamlProblem(str(error.problem or error.context or "not YAML"), line, column)


def _where(text: str, error: Exception) -> tuple[int, int]:
    """Return line and column of a character that the reader refused; it tells the offset only."""
    at = getattr(error, "position", 0)
    before = text[: at if isinstance(at, int) else 0]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _scalar(event: _Event) -> Any:
    text = event.text
    if not event.plain or event.tag == "!":
        return text
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL.fullmatch(text)
    if special:
        return float("nan") if special[3] else float(f"{special[1]}inf")
    return text
