"""Structured answers: schemas and types, validation, and the calls that get one (AG-7, AG-37).

Here: a type's JSON Schema and conversion, reading an answer, the tries. Not here: constrained decoding
(adapters), the prompt's own wording of a schema (`inputs`).
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast, is_typeddict

import msgspec

from bowerbird.agent.turn import OutputSpec
from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.model_call import call_model
from bowerbird.agent.turn_loop.model_step import Ask
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.events import Injected
from bowerbird.core.forms import convert
from bowerbird.core.messages import user_text

MORE_TRIES = 2
MOST_PROBLEMS = 8
_FENCE = re.compile(r"```[A-Za-z0-9]*\s*\n(.*?)\n?```", re.DOTALL)
_FINAL = (
    "Give the final answer now as one JSON value that satisfies this JSON Schema, and nothing else:\n{schema}"
)
_WRONG = (
    "That answer does not satisfy the schema:\n{problems}\n\n"
    "Give the whole corrected JSON value, and nothing else."
)


class Checked(msgspec.Struct, frozen=True):
    """A text read as an answer: its value, or what is wrong with it as `path: reason`."""

    value: Any = None
    problems: tuple[str, ...] = ()


def check_answer(text: str, spec: OutputSpec) -> Checked:
    """Return the value that `text` holds, validated and converted.

    The text is JSON, or JSON in the only code fence.
    """
    try:
        value = json.loads(_bare(text))
    except ValueError as error:
        return Checked(problems=(f"the answer: not JSON ({error})",))
    problems = schema_problems(spec.schema, value)
    if problems:
        return Checked(problems=tuple(problems))
    if spec.convert is None:
        return Checked(value)
    try:
        return Checked(spec.convert(value))
    except (ValueError, TypeError) as error:  # pydantic and msgspec failures are ValueErrors
        return Checked(problems=(f"the answer: {error}",))


def schema_problems(schema: Mapping[str, Any], value: object) -> list[str]:
    """Return `path: reason` of what in `value` does not fit `schema`, at most 8; [] when it fits."""
    import jsonschema_rs

    errors = jsonschema_rs.validator_for(dict(schema)).iter_errors(value)
    return [
        f"{'/'.join(str(p) for p in error.instance_path) or 'the answer'}: {error.message}"
        for error in islice(errors, MOST_PROBLEMS)
    ]


async def structured_answer(turn: Turn, spec: OutputSpec, text: str) -> Flow:
    """End the run with an output: `text` if it fits, else what up to three calls without tools give."""
    checked = check_answer(text, spec)
    ask = Ask(tools=False, system=spec.system, output_schema=spec.schema)
    asking = _FINAL.format(schema=json.dumps(spec.schema, ensure_ascii=False))
    for _ in range(1 + MORE_TRIES):
        if not checked.problems:
            break
        yield Injected("runtime", user_text(asking))
        yield call_model(turn, ask)
        if turn.reply is None:
            if turn.done is None:
                continue  # room was made; ask again
            return
        text = turn.reply.message.text
        checked = check_answer(text, spec)
        asking = _WRONG.format(problems="\n".join(checked.problems))
    if checked.problems:
        turn.finish("output_invalid", text)
    else:
        turn.finish("completed", text, output=checked.value)


def output_spec(schema: Mapping[str, Any] | None, data_model: Any) -> OutputSpec | None:
    """Return what `schema` or `data_model` asks for, None when neither is given.

    Raises:
        InvalidArgument: both are given, the schema is no JSON Schema, or the type has none.
    """
    if schema is not None and data_model is not None:
        raise InvalidArgument("schema and data_model are both given; give one of them")
    if schema is not None:
        return OutputSpec(_checked_schema(schema))
    if data_model is None:
        return None
    pydantic_schema = getattr(data_model, "model_json_schema", None)
    if callable(pydantic_schema):
        found = cast("dict[str, Any]", pydantic_schema())
        return OutputSpec(_checked_schema(found), data_model.model_validate)
    if not _is_record(data_model):
        raise InvalidArgument(
            f"data_model is {data_model!r}; use a pydantic model, msgspec.Struct, dataclass or TypedDict"
        )
    try:
        found = msgspec.json.schema(data_model)
    except TypeError as error:
        raise InvalidArgument(f"data_model {data_model.__name__} has no JSON Schema: {error}") from error
    return OutputSpec(_checked_schema(found), lambda value: convert(value, data_model))


def _is_record(kind: Any) -> bool:
    if not isinstance(kind, type):
        return False
    known = cast("type[Any]", kind)
    return issubclass(known, msgspec.Struct) or dataclasses.is_dataclass(known) or is_typeddict(known)


def _checked_schema(schema: Any) -> dict[str, Any]:
    import jsonschema_rs

    if not isinstance(schema, Mapping):
        raise InvalidArgument(f"schema is {schema!r}; use a JSON Schema object")
    plain = dict(cast("Mapping[str, Any]", schema))
    try:
        jsonschema_rs.meta.validate(plain)
        jsonschema_rs.validator_for(plain)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise InvalidArgument(f"schema is not a valid JSON Schema: {error}") from error
    return plain


def _bare(text: str) -> str:
    stripped = text.strip()
    fences = _FENCE.findall(stripped)
    return fences[0] if len(fences) == 1 and not stripped.startswith(("{", "[")) else stripped
