"""Would a model's provider take this schema? (PT-19) Pure.

Here: the one check, with the strictest provider in mind. Not here: its patterns, which can take long to read
(`patterns.py`), checking arguments against a schema (`agent/turn_loop/arguments.py`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from bowerbird.tools.processes.terminal_text import plain

LARGEST_SCHEMA = 65_536  # characters of JSON
DEEPEST = 64
MOST_PARTS = 10_000  # with references written out
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SAME_VALUE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas"))
_NO_SCHEMAS = frozenset(("$defs", "definitions", "enum", "const", "default", "examples", "required", "type"))
_COMBINED = ("oneOf", "anyOf", "allOf", "not", "enum")
_KNOWN_DIALECT = re.compile(r"https?://json-schema\.org/(draft-0[4-7]|draft/20(19-09|20-12))/schema#?")


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why a provider would refuse `schema` as the parameters of a tool; None when it would not.

    A reference to another document counts as a problem: nothing is fetched because a schema says so.

    Example:
        >>> schema_problem({"type": "object", "properties": {"a b": {}}})
        "the parameter name 'a b' is not allowed"
    """
    if schema.get("type") != "object":
        return "it is not of type object"
    combined = next((key for key in _COMBINED if key in schema), None)
    if combined is not None:
        return f"it has {combined} at its top"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "its properties are no mapping"
    for name in cast("Mapping[str, Any]", properties):
        if not _PROPERTY.fullmatch(name):
            return f"the parameter name {name[:80]!r} is not allowed"
    try:
        if len(json.dumps(schema)) > LARGEST_SCHEMA:
            return f"it is over {LARGEST_SCHEMA:,} characters"
        reference = next(_outside(schema, 0), None)
    except (RecursionError, ValueError, TypeError):
        return "it is nested too deep"
    if reference is not None:
        return f"it refers to another document ({reference[:80]})"
    return _Parts(schema).problem() or _invalid(schema)


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the dialect that only validators care for, its texts without control codes."""
    shown = cast("dict[str, Any]", _shown(schema))
    return {key: value for key, value in shown.items() if key != "$schema"}


def _without_patterns(value: Any) -> Any:
    """Return a schema without its regular expressions; a parameter that is called `pattern` stays."""
    if isinstance(value, Mapping):
        nothing: dict[str, Any] = {}
        return {
            key: nothing if key == "patternProperties" else _without_patterns(inner)
            for key, inner in cast("Mapping[str, Any]", value).items()
            if key != "pattern" or not isinstance(inner, str)
        }
    return (
        [_without_patterns(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value
    )


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: plain(inner) if key in ("description", "title") and isinstance(inner, str) else _shown(inner)
            for key, inner in cast("Mapping[str, Any]", value).items()
        }
    return [_shown(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _outside(value: Any, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(inner, str):
                if not inner.startswith("#"):
                    yield inner
            elif key == "$schema" and isinstance(inner, str) and not _KNOWN_DIALECT.fullmatch(inner):
                yield inner
            else:
                yield from _outside(inner, depth + 1)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _outside(inner, depth + 1)


class _Parts:
    """How many parts a schema has when each reference is replaced by what it refers to.

    A kilobyte of references, each to a part that refers to the next one twice, is 2^n parts.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._counts: dict[int, int] = {}
        self._open: dict[int, bool] = {}  # being counted; whether it was entered for the same value

    def problem(self) -> str | None:
        try:
            count = self._count(self._root, same_value=False)
        except _Endless:
            return "it refers to itself without an end"
        return f"its references make it larger than {MOST_PARTS:,} parts" if count > MOST_PARTS else None

    def _count(self, schema: Any, *, same_value: bool) -> int:
        """Return the parts of `schema`; what refers back to a part around it counts once."""
        if not isinstance(schema, Mapping):
            return 1
        table = cast("Mapping[str, Any]", schema)
        key = id(table)
        if key in self._open:
            # Only a smaller value may come back here, or nothing would end the evaluation.
            inner = list(self._open)
            if same_value and all(self._open[k] for k in inner[inner.index(key) + 1 :]):
                raise _Endless
            return 1
        if key not in self._counts:
            self._open[key] = same_value
            inside = sum(self._count(part, same_value=same) for part, same in self._inside(table))
            del self._open[key]
            self._counts[key] = min(1 + inside, MOST_PARTS + 1)
        return self._counts[key]

    def _inside(self, table: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
        """Yield the schemas that `table` applies, and whether to the same value as itself."""
        for key, value in table.items():
            if key == "$ref" and isinstance(value, str):
                yield self._target(value), True
            elif key in _NO_SCHEMAS:
                continue
            elif isinstance(value, list):
                yield from ((part, key in _SAME_VALUE) for part in cast("list[Any]", value))
            elif isinstance(value, Mapping):
                parts = cast("Mapping[str, Any]", value)
                named = parts.values() if key in _NAMED else (parts,)
                yield from ((part, key in _SAME_VALUE) for part in named)

    def _target(self, reference: str) -> Any:
        target: Any = self._root
        for part in reference[2:].split("/") if reference != "#" else ():
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            target = cast("Mapping[str, Any]", target).get(name) if isinstance(target, Mapping) else None
        return target


class _Endless(Exception):
    """A part applies itself to the value it is applied to."""


def _invalid(schema: Mapping[str, Any]) -> str | None:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(_without_patterns(plain_schema(schema)))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        lines = str(error).strip().splitlines()
        return f"it is not a JSON Schema: {lines[0][:200] if lines else type(error).__name__}"
    return None
