"""A server's question as a person reads it, and their words as the server reads them (PT-23). Pure.

Here: the two translations. Not here: who is asked and how long is waited (`agent/`).
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

YES, NO = "yes", "no"
_YES = frozenset({"yes", "y", "true", "1", "on", "ok", "done"})
_NO = frozenset({"no", "n", "false", "0", "off"})
_DECLINED = frozenset({"decline", "declined", "cancel", "deny"})
_LONGEST = 4_000

Field = Mapping[str, Any]


def question_text(server: str, params: ElicitRequestParams) -> tuple[str, tuple[str, ...]]:
    """Return what the person is shown, and answers to choose from."""
    said = params.message[:_LONGEST]
    if not isinstance(params, ElicitRequestFormParams):
        text = f"The MCP server {server} asks you to open {params.url}\n{said}\nAnswer yes when it is done."
        return text, (YES, NO)
    fields = _fields(params)
    head = f"The MCP server {server} asks: {said}"
    if not fields:
        return head, (YES, NO)
    if len(fields) == 1:
        ((name, field),) = fields.items()
        about = str(field.get("description") or field.get("title") or name)
        return (f"{head}\n{about}" if about != said else head), _choices(field)
    lines = [f"- {_described(name, field, name in _required(params))}" for name, field in fields.items()]
    return "\n".join([head, "Answer with one line `name: value` for each of:", *lines]), ()


def answer_of(params: ElicitRequestParams, said: str | None) -> ElicitResult:
    """Return what the server is told for the person's words; None or "decline" = declined."""
    if said is None or said.strip().lower() in _DECLINED:
        return ElicitResult(action="decline")
    if not isinstance(params, ElicitRequestFormParams):
        return ElicitResult(action="accept" if said.strip().lower() in _YES else "decline")
    fields = _fields(params)
    if not fields:
        return ElicitResult(action="accept" if said.strip().lower() in _YES else "decline", content={})
    given = _given(fields, said.strip())
    content: dict[str, Any] = {}
    for name, field in fields.items():
        value = _value(field, given[name]) if name in given else field.get("default")
        if value is not None:
            content[name] = value
        elif name in given or name in _required(params):
            return ElicitResult(action="decline")  # an answer that does not fit is no answer
    return ElicitResult(action="accept", content=content)


def _fields(params: ElicitRequestFormParams) -> dict[str, Field]:
    properties = params.requested_schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    table = cast("Mapping[str, Any]", properties)
    return {name: cast("Field", field) for name, field in table.items() if isinstance(field, Mapping)}


def _required(params: ElicitRequestFormParams) -> list[str]:
    required = params.requested_schema.get("required")
    return cast("list[str]", required) if isinstance(required, list) else []


def _described(name: str, field: Field, required: bool) -> str:
    about = str(field.get("description") or field.get("title") or field.get("type") or "text")
    choices = _choices(field)
    of = f", one of {', '.join(choices)}" if choices else ""
    return f"{name}: {about}{of}{'' if required else ' (may be left out)'}"


def _choices(field: Field) -> tuple[str, ...]:
    if field.get("type") == "boolean":
        return (YES, NO)
    return tuple(shown for _, shown in _named_values(field))


def _named_values(field: Field) -> list[tuple[Any, str]]:
    """Return the values a field may have, each with the words it is shown by."""
    titled = field.get("oneOf") or field.get("anyOf")
    if isinstance(titled, list):
        entries = [cast("Field", e) for e in cast("list[Any]", titled) if isinstance(e, Mapping)]
        return [(e["const"], str(e.get("title") or e["const"])) for e in entries if "const" in e]
    values = field.get("enum")
    if not isinstance(values, list):
        return []
    listed = cast("list[Any]", values)
    names = field.get("enumNames")
    shown = cast("list[Any]", names) if isinstance(names, list) and len(names) == len(listed) else listed  # pyright: ignore[reportUnknownArgumentType] - a list of anything
    return [(value, str(name)) for value, name in zip(listed, shown, strict=True)]


def _given(fields: Mapping[str, Field], said: str) -> dict[str, Any]:
    try:
        data = json.loads(said)
    except ValueError:
        data = None
    if isinstance(data, dict) and set(cast("dict[str, Any]", data)) <= set(fields):
        return cast("dict[str, Any]", data)
    if len(fields) == 1:
        return {next(iter(fields)): said}
    pairs = (line.partition(":") for line in said.splitlines())
    return {name.strip(" -"): value.strip() for name, _, value in pairs if name.strip(" -") in fields}


def _value(field: Field, given: Any) -> Any:
    """Return `given` as the field wants it; None when it does not fit."""
    kind = field.get("type")
    if kind == "array":
        items = field.get("items")
        inner: Field = cast("Field", items) if isinstance(items, Mapping) else {}
        parts = cast("list[Any]", given) if isinstance(given, list) else str(given).split(",")
        values = [_value(inner, part.strip() if isinstance(part, str) else part) for part in parts]
        return None if None in values else values
    named = _named_values(field)
    if named:
        wanted = str(given).strip().lower()
        return next((v for v, shown in named if wanted in (str(v).lower(), shown.lower())), None)
    if kind == "boolean":
        word = str(given).strip().lower()
        return True if word in _YES else False if word in _NO else None
    if kind in ("integer", "number"):
        return _number(kind, given)
    return given if isinstance(given, str) else json.dumps(given)


def _number(kind: str, given: Any) -> int | float | None:
    try:
        number = float(given)
    except (TypeError, ValueError):
        return None
    if kind == "number":
        return number
    return int(number) if number.is_integer() else None
