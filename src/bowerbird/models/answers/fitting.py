"""Decoded arguments brought to a tool's schema, by a closed list of conversions (MO-27).

Here: values and schema in, values and problems out. Not here: reading the text of arguments
(`repair`), a tool's aliases (`tools`), running the tool.

It needs the standard library only: `bounded_fitting` also runs it as a program of its own, for schemas
that a stranger wrote.

Converted: number strings to numbers, `"true"`/`"false"` to booleans, a JSON string to the array or
object it holds, a scalar to a one-element array where only an array fits, whole floats to integers.
An unknown parameter is a problem that names the known ones.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

import msgspec

Schema = Mapping[str, Any]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_REF_DEPTH = 20
MOST_PROBLEMS = 20
LONGEST_PROBLEM = 500  # characters; a message quotes the value it is about
_NOTHING = object()


class Fitted(msgspec.Struct, frozen=True):
    """Arguments as a tool gets them.

    Attributes:
        value: the arguments, converted where a conversion of the list applied.
        repairs: what was converted, as `path: what`.
        problems: why the call must not run, as `path: reason`; empty when it may.
    """

    value: dict[str, Any]
    repairs: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def fit_to_schema(value: Mapping[str, Any], schema: Schema) -> Fitted:
    """Convert `value` to `schema` where the list allows it, and check the result.

    Args:
        value: decoded arguments, aliases already resolved.
        schema: the tool's input schema, an object schema.

    Example:
        >>> fit_to_schema({"n": "3"}, {"type": "object", "properties": {"n": {"type": "integer"}}}).value
        {'n': 3}
    """
    fitter = _Fitter(schema)
    unknown = _unknown_parameters(value, schema)
    fitted = cast("dict[str, Any]", fitter.fit(dict(value), schema, ""))
    problems = unknown or violations(fitted, schema)
    return Fitted(fitted, tuple(fitter.repairs), tuple(problems))


def expected_parameters(schema: Schema) -> str:
    """Return one line that tells a model the parameters: `path (string, required), limit (integer)`."""
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = set(cast("list[str]", schema.get("required") or []))
    if not properties:
        return "no parameters"
    parts: list[str] = []
    for name, described in properties.items():
        types = sorted(_types(described, schema)) if isinstance(described, Mapping) else []
        kind = "any" if not types or len(types) == len(_ALL_TYPES) else " or ".join(types)
        parts.append(f"{name} ({kind}, required)" if name in required else f"{name} ({kind})")
    return ", ".join(parts)


def _unknown_parameters(value: Mapping[str, Any], schema: Schema) -> list[str]:
    if schema.get("additionalProperties") not in (None, False) or schema.get("patternProperties"):
        return []
    if any(key in schema for key in ("anyOf", "oneOf", "allOf", "$ref")):
        return []  # parameters may be declared there; the schema's own check decides
    known = cast("Mapping[str, Any]", schema.get("properties") or {})
    names = ", ".join(known) or "none"
    return [f"{name}: unknown parameter; known parameters: {names}" for name in value if name not in known]


def violations(value: Any, schema: Schema) -> list[str]:
    """Return `path: reason` of what in `value` does not fit, at most 20; [] also for a broken schema."""
    import jsonschema_rs

    try:
        # offline: a schema from elsewhere must not make us fetch what it names.
        validator = jsonschema_rs.validator_for(dict(schema), offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return []  # a broken schema is said where the tool is defined; its tool checks for itself
    found = islice(validator.iter_errors(value), MOST_PROBLEMS)
    return [f"{_dotted(list(error.instance_path))}: {error.message}"[:LONGEST_PROBLEM] for error in found]


def _dotted(path: list[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "arguments"


def _resolve(schema: Any, root: Schema) -> Schema:
    """Follow local references; anything else is a schema that says nothing."""
    for _ in range(_REF_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        table = cast("Schema", schema)
        reference = table.get("$ref")
        if not isinstance(reference, str):
            return table
        if reference != "#" and not reference.startswith("#/"):
            return {}
        target: Any = root
        for part in reference[2:].split("/") if reference != "#" else ():
            key = part.replace("~1", "/").replace("~0", "~")
            target = cast("Schema", target).get(key) if isinstance(target, Mapping) else None
        schema = target
    return {}


def _branches(schema: Schema) -> list[Any]:
    return [*cast("list[Any]", schema.get("anyOf") or []), *cast("list[Any]", schema.get("oneOf") or [])]


def _types(schema: Any, root: Schema, above: frozenset[int] = frozenset()) -> frozenset[str]:
    """Return the JSON types that `schema` admits; all of them when it does not say."""
    table = _resolve(schema, root)
    if id(table) in above:  # a schema that refers to itself without saying more
        return _ALL_TYPES
    above |= {id(table)}
    types = _ALL_TYPES
    named = table.get("type")
    if isinstance(named, str):
        types = frozenset({named})
    elif isinstance(named, list):
        types = frozenset(cast("list[str]", named))
    elif "enum" in table or "const" in table:
        values = cast("list[Any]", table.get("enum") or [table.get("const")])
        types = frozenset(json_type(value) for value in values)
    if "number" in types:
        types |= {"integer"}
    branches = _branches(table)
    if branches:
        types &= frozenset[str]().union(*(_types(branch, root, above) for branch in branches))
    for part in cast("list[Any]", table.get("allOf") or []):
        types &= _types(part, root, above)
    return types


def json_type(value: object) -> str:
    """Return the JSON type of plain data; a whole number is `integer`."""
    if value is None:
        return "null"
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


class _Fitter:
    """One pass over one value; collects what it converted."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.repairs: list[str] = []

    def fit(self, value: Any, schema: Any, path: str) -> Any:
        table = _resolve(schema, self._root)
        types = _types(table, self._root)
        if json_type(value) not in types:
            value = self._converted(value, types, path)
        if isinstance(value, dict):
            return self._fit_object(cast("dict[str, Any]", value), self._branch(table, "object", value), path)
        if isinstance(value, list):
            items = self._branch(table, "array", value).get("items")
            listed = cast("list[Any]", value)
            return (
                [self.fit(item, items, f"{path}[{i}]") for i, item in enumerate(listed)] if items else listed
            )
        return value

    def _fit_object(self, value: dict[str, Any], table: Schema, path: str) -> dict[str, Any]:
        properties = cast("Mapping[str, Any]", table.get("properties") or {})
        extra = table.get("additionalProperties")
        fitted: dict[str, Any] = {}
        for key, item in value.items():
            described = properties.get(key, extra if isinstance(extra, Mapping) else None)
            fitted[key] = (
                item if described is None else self.fit(item, described, f"{path}.{key}" if path else key)
            )
        return fitted

    def _branch(self, table: Schema, kind: str, value: Any) -> Schema:
        """Return the part of `table` that describes values of `kind`: itself, or the only branch that may."""
        branches = [_resolve(b, self._root) for b in _branches(table)]
        fitting = [branch for branch in branches if kind in _types(branch, self._root)]
        if len(fitting) > 1 and isinstance(value, dict):
            keys = cast("dict[str, Any]", value).keys()
            fitting = [b for b in fitting if set(cast("list[str]", b.get("required") or [])) <= keys]
        # With several candidates nothing below is converted: choosing would be guessing.
        return fitting[0] if len(fitting) == 1 else table

    def _converted(self, value: Any, types: frozenset[str], path: str) -> Any:
        converted: Any = _NOTHING
        what = ""
        if isinstance(value, str):
            converted, what = _from_string(value, types)
        elif isinstance(value, float) and "integer" in types and value.is_integer():
            converted, what = int(value), "whole float to integer"
        only_array = types - {"null"} == frozenset({"array"})
        if converted is _NOTHING and only_array and json_type(value) not in ("object", "null"):
            converted, what = [value], "scalar to one-element array"
        if converted is _NOTHING:
            return value
        self.repairs.append(f"{path or 'arguments'}: {what}")
        return converted


def _from_string(text: str, types: frozenset[str]) -> tuple[object, str]:
    trimmed = text.strip()
    if types & {"integer", "number"} and _NUMBER.fullmatch(trimmed):
        number = float(trimmed) if re.search(r"[.eE]", trimmed) else int(trimmed)
        if isinstance(number, float) and number.is_integer() and "number" not in types:
            number = int(number)
        fits = json_type(number) in types and not (isinstance(number, float) and math.isinf(number))
        if fits:
            return number, "string to number"
    if "boolean" in types and trimmed in ("true", "false"):
        return trimmed == "true", "string to boolean"
    if types & {"array", "object"} and trimmed[:1] in ("[", "{"):
        try:
            value = cast("object", json.loads(trimmed))
        except (ValueError, RecursionError):
            return _NOTHING, ""
        kind = json_type(value)
        if kind in types:
            return value, f"JSON string to {kind}"
    return _NOTHING, ""


def main() -> None:
    """Do the job on stdin: `[value, schema, whether to convert]`; print the three parts of a `Fitted`."""
    value, schema, converts = json.load(sys.stdin)
    fitted = fit_to_schema(value, schema) if converts else Fitted(value, (), tuple(violations(value, schema)))
    json.dump([fitted.value, fitted.repairs, fitted.problems], sys.stdout)


if __name__ == "__main__":
    main()
