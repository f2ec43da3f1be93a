"""Would a model's provider take this schema? (PT-19) Pure.

Here: the one check, with the strictest provider in mind. Not here: checking arguments against a schema
(`agent/arguments.py`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

LARGEST_SCHEMA = 65_536  # characters of JSON
DEEPEST = 64
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
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
    return _invalid(schema)


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the dialect that only validators care for."""
    return {key: value for key, value in schema.items() if key != "$schema"}


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


def _invalid(schema: Mapping[str, Any]) -> str | None:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(plain_schema(schema))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        lines = str(error).strip().splitlines()
        return f"it is no JSON Schema: {lines[0][:200] if lines else type(error).__name__}"
    return None
