"""Arguments checked against a schema that a stranger wrote: within a deadline, off the event loop (TO-52).

Here: which schemas may be evaluated in this process, and the process for the others. Not here: the
conversions and the check themselves (`fitting`), which schemas are refused at once
(`protocols/mcp_client/schemas.py`).

What a schema costs is not seen by looking at it: references multiply, patterns backtrack, and a
recursive schema does both as deep as its value goes. So all but the plainest run where they can be killed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from bowerbird.core.processes.bounded_child import answer_of_child
from bowerbird.models.answers import fitting
from bowerbird.models.answers.fitting import Fitted, fit_to_schema, violations

DEADLINE_S = 2.0
MEMORY_BYTES = 1 << 30
_TOO_LATE = f"could not be checked against the schema within {DEADLINE_S:g} s"
_LARGEST_PLAIN = 8_192  # characters of a value, and of a schema, that are checked in this process
_MOST_BRANCHES = 16
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "$schema"))
_LEAF = _ANNOTATIONS | {
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required",
}  # fmt: skip
_ONE_OF_MANY = frozenset(("anyOf", "oneOf"))


async def fit_within(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Fitted:
    """Return what `fit_to_schema` returns; a check that takes too long is a problem of its own.

    Args:
        value: decoded arguments, aliases already resolved.
        schema: of another program's tool.
    """
    text = json.dumps(value)
    if len(text) <= _LARGEST_PLAIN and is_plain(schema):
        return fit_to_schema(value, schema)
    answer = await _in_child(f"[{text},{json.dumps(schema)},true]")
    if answer is None:
        return Fitted(dict(value), problems=(f"the arguments {_TOO_LATE}",))
    fitted, repairs, problems = answer
    return Fitted(fitted, tuple(repairs), tuple(problems))


async def violations_within(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why `value` does not fit `schema`, () when it does; a check that takes too long is a reason."""
    text = json.dumps(value)
    if len(text) <= _LARGEST_PLAIN and is_plain(schema):
        return tuple(violations(value, schema))
    answer = await _in_child(f"[{text},{json.dumps(schema)},false]")
    return (_TOO_LATE,) if answer is None else tuple(answer[2])


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether each part of a value is looked at by a handful of small parts of `schema`, at most.

    Example:
        >>> is_plain({"type": "object", "properties": {"n": {"type": "integer"}}})
        True
    """
    return len(json.dumps(schema)) <= _LARGEST_PLAIN and _is_plain(schema)


def _is_plain(schema: object) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping):
        return False
    for key, inner in cast("Mapping[str, Any]", schema).items():
        if key in _LEAF:
            continue
        if key == "properties" and isinstance(inner, Mapping):
            if not all(map(_is_plain, cast("Mapping[str, Any]", inner).values())):
                return False
        elif key in ("items", "additionalProperties"):
            if not _is_plain(inner):
                return False
        elif key not in _ONE_OF_MANY or not _are_leaves(inner):
            return False
    return True


def _are_leaves(branches: object) -> bool:
    if not isinstance(branches, list) or len(cast("list[Any]", branches)) > _MOST_BRANCHES:
        return False
    return all(isinstance(b, Mapping) and cast("Mapping[str, Any]", b).keys() <= _LEAF for b in branches)  # pyright: ignore[reportUnknownVariableType] - a list of anything


async def _in_child(job: str) -> tuple[dict[str, Any], list[str], list[str]] | None:
    """Return the answer of a process that fits; None when it was killed, or died of its limits."""
    try:
        said = await answer_of_child(
            [str(Path(fitting.__file__))], job.encode(), deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES
        )
    except TimeoutError:
        return None
    return None if said is None else cast("tuple[dict[str, Any], list[str], list[str]]", json.loads(said))
