"""JSON Schema of a function's parameters, and arguments turned back into its types.

Here: TO-1 and TO-2: what a function must say to become a tool. Not here: tools, the
runtime's context (a parameter hinted `ToolContext` is found by that name, so that this
module need not know the class), repair of a model's arguments (`models/answers/repair.py`).

msgspec describes plain types; hints that mention pydantic are described and checked by
pydantic, which is imported only then.
"""

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec

from bowerbird.core.docstrings import parse_docstring
from bowerbird.core.errors import ToolDefinitionError
from bowerbird.core.forms import convert

INJECTED_TYPE = "ToolContext"
_REF = "#/$defs/{name}"
_NO_DEFAULT = inspect.Parameter.empty


class FunctionSchema(NamedTuple):
    """What a function tells a model: text, JSON Schema, and the parameters hidden from it."""

    description: str
    schema: dict[str, Any]
    injected: frozenset[str]


def parameters_schema(fn: Callable[..., Any]) -> FunctionSchema:
    """Return the description, the schema of the parameters and the injected names of `fn`.

    Raises:
        ToolDefinitionError: no docstring, a parameter without type hint or docstring
            line, `*args` or `**kwargs`, or a hint that has no JSON form; the function
            and parameter are named.

    Example:
        >>> async def add(a: int, b: int = 2) -> int:
        ...     '''Add two numbers.
        ...
        ...     Args:
        ...         a: First.
        ...         b: Second.
        ...     '''
        ...     return a + b
        >>> parameters_schema(add).schema["required"]
        ['a']
    """
    name = getattr(fn, "__name__", repr(fn))
    doc = parse_docstring(fn.__doc__)
    if not doc.description:
        raise ToolDefinitionError(
            f"{name} has no docstring; its first paragraph tells the model what it does"
        )
    hints, injected = _hints(fn, name)
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    required: list[str] = []
    for parameter in _parameters(fn, name):
        if parameter.name in injected:
            continue
        if parameter.name not in doc.parameters:
            raise ToolDefinitionError(
                f"{name}: parameter {parameter.name!r} has no line in the docstring; add it under 'Args:'"
            )
        schema = _hint_schema(hints[parameter.name], definitions, f"{name}: parameter {parameter.name!r}")
        schema["description"] = doc.parameters[parameter.name]
        if parameter.default is _NO_DEFAULT:
            required.append(parameter.name)
        else:
            _set_default(schema, parameter.default)
        properties[parameter.name] = schema
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    whole["additionalProperties"] = False
    if definitions:
        whole["$defs"] = definitions
    return FunctionSchema(doc.description, whole, injected)


class ArgumentBinder:
    """Turns a call's JSON arguments into what a function takes.

    Args:
        fn: A function that `parameters_schema` accepts.

    Example:
        >>> async def double(a: int) -> int: ...
        >>> ArgumentBinder(double).bind({"a": 2})
        ([], {'a': 2})
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._name = getattr(fn, "__name__", repr(fn))
        self._hints, injected = _hints(fn, self._name)
        self._parameters = {p.name: p for p in _parameters(fn, self._name) if p.name not in injected}

    def bind(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `(args, kwargs)` without the injected parameters.

        Raises:
            ValueError: a value does not fit its hint; the parameter is named.
            TypeError: a parameter is missing or unknown.
        """
        unknown = sorted(set(arguments) - set(self._parameters))
        if unknown:
            known = ", ".join(self._parameters) or "none"
            raise TypeError(f"{self._name} has no parameter {unknown[0]!r}; it has {known}")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for key, parameter in self._parameters.items():
            if key in arguments:
                value = _convert(arguments[key], self._hints[key], key)
            elif parameter.default is _NO_DEFAULT:
                raise TypeError(f"{self._name} needs the argument {key!r}")
            else:
                continue
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[key] = value
        return positional, named


def _parameters(fn: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(fn).parameters.values())
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ToolDefinitionError(
                f"{name}: *{parameter.name} cannot be offered to a model; name every parameter"
            )
    return parameters


def _hints(fn: Callable[..., Any], name: str) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the resolved hints of `fn`'s parameters, and the names of the injected ones."""
    raw = inspect.get_annotations(inspect.unwrap(cast("Any", fn)))
    injected: set[str] = set()
    wanted: dict[str, Any] = {}
    for parameter in _parameters(fn, name):
        if parameter.name not in raw:
            raise ToolDefinitionError(f"{name}: parameter {parameter.name!r} has no type hint")
        hint = raw[parameter.name]
        if _is_injected(hint):
            injected.add(parameter.name)
        else:
            wanted[parameter.name] = hint
    return _resolve(fn, wanted, name), frozenset(injected)


def _resolve(fn: Callable[..., Any], wanted: dict[str, Any], name: str) -> dict[str, Any]:
    inner = inspect.unwrap(cast("Any", fn))
    inner = getattr(inner, "__func__", inner)
    scope = dict(getattr(inner, "__globals__", {}))
    for cell_name, cell in zip(
        getattr(getattr(inner, "__code__", None), "co_freevars", ()),
        getattr(inner, "__closure__", None) or (),
        strict=False,
    ):
        try:
            scope[cell_name] = cell.cell_contents
        except ValueError:  # an empty cell: the name is assigned later
            continue
    holder = types.SimpleNamespace(__annotations__=wanted)
    try:
        return typing.get_type_hints(holder, globalns=scope, localns=scope, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ToolDefinitionError(f"{name}: a type hint cannot be resolved: {error}") from error


def _is_injected(hint: Any) -> bool:
    if isinstance(hint, str):
        return INJECTED_TYPE in [part.strip(" '\"").rpartition(".")[2] for part in hint.split("|")]
    if get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_injected(part) for part in get_args(hint))
    return getattr(hint, "__name__", None) == INJECTED_TYPE or (
        isinstance(hint, typing.ForwardRef) and hint.__forward_arg__ == INJECTED_TYPE
    )


def _hint_schema(hint: Any, definitions: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        if _needs_pydantic(hint):
            schema = _pydantic(hint).json_schema(ref_template="#/$defs/{model}")
            found = schema.pop("$defs", {})
        else:
            (schema,), found = msgspec.json.schema_components([hint], ref_template=_REF)
    except (TypeError, NameError, ValueError, RuntimeError) as error:  # pydantic's are of these types
        raise ToolDefinitionError(f"{where} has a type hint without a JSON form: {hint!r}") from error
    _add_definitions(definitions, found, where)
    return dict(schema)


def _add_definitions(known: dict[str, Any], found: Mapping[str, Any], where: str) -> None:
    for name, definition in found.items():
        if known.setdefault(name, definition) != definition:
            raise ToolDefinitionError(f"{where} uses a second, different type named {name!r}; rename one")


def _set_default(schema: dict[str, Any], default: Any) -> None:
    try:
        schema["default"] = _plain(default)
    except TypeError:
        return  # a default without JSON form is the function's own business


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else msgspec.to_builtins(value)


def _convert(value: Any, hint: Any, where: str) -> Any:
    try:
        if _needs_pydantic(hint):
            return _pydantic(hint).validate_python(value)
        return convert(value, hint)
    except (msgspec.ValidationError, ValueError) as error:  # pydantic's error is a ValueError
        text = _first_problem(error)
        raise ValueError(f"{where}: {text}" if where else text) from error


def _first_problem(error: Exception) -> str:
    problems = getattr(error, "errors", None)
    if not callable(problems):
        return str(error)
    first = cast("list[dict[str, Any]]", problems())[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{first['msg']} - at `$.{place}`" if place else str(first["msg"])


def _pydantic(hint: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(hint)


def _needs_pydantic(hint: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether `hint` names a pydantic type or constraint at any depth."""
    if "pydantic" not in sys.modules or id(hint) in seen:
        return False  # a hint made with pydantic cannot exist before pydantic is imported
    seen |= {id(hint)}
    if get_origin(hint) is Annotated:
        extras = [type(extra).__module__.partition(".")[0] for extra in hint.__metadata__]
        if "pydantic" in extras or "annotated_types" in extras:
            return True
        return _needs_pydantic(hint.__origin__, seen)
    if isinstance(hint, type) and not get_args(hint):
        if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__pydantic_fields__"):
            return True
        if dataclasses.is_dataclass(hint) or typing.is_typeddict(cast("Any", hint)):
            return any(_needs_pydantic(part, seen) for part in _field_hints(hint))
    return any(_needs_pydantic(part, seen) for part in get_args(hint))


def _field_hints(record: Any) -> list[Any]:
    try:
        return list(typing.get_type_hints(record, include_extras=True).values())
    except NameError:
        return []  # msgspec meets the same name and says which it is
