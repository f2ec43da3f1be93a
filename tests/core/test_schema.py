"""JSON Schema from signatures: TO-1, TO-2."""

import dataclasses
import enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import jsonschema_rs
import msgspec
import pydantic
import pytest

from bowerbird.core.docstrings import parse_docstring
from bowerbird.core.errors import ToolDefinitionError
from bowerbird.core.schema import ArgumentBinder, parameters_schema


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Opts(TypedDict, total=False):
    deep: bool


class Row(msgspec.Struct):
    name: str
    at: Point


class Person(pydantic.BaseModel):
    name: str
    age: Annotated[int, pydantic.Field(ge=0)]
    boss: "Person | None" = None


@dataclasses.dataclass
class Team:
    lead: Person


async def everything(
    a: int,
    b: Literal["x", "y"],
    c: Colour,
    d: Point,
    e: Opts,
    f: Row,
    g: Person,
    h: Team,
    i: list[str],
    j: dict[str, float],
    k: tuple[int, str],
    l: Annotated[int, msgspec.Meta(ge=1, le=3)] = 2,  # noqa: E741
    m: Optional[str] = None,  # noqa: UP045
    n: Union[int, str] = 1,  # noqa: UP007
    o: Annotated[int, pydantic.Field(le=9)] = 3,
    p: None = None,
) -> None:
    """Take one of each.

    And say so at length.

    Args:
        a: an a
        b: a b
        c (Colour): a c
            over two lines
        d: a d
        e: an e
        f: an f
        g: a g
        h: an h
        i: an i
        j: a j
        k: a k
        l: an l
        m: an m
        n: an n
        o: an o
        p: a p

    Returns:
        nothing: at all
    """


GOOD: dict[str, Any] = {
    "a": 1, "b": "x", "c": "red", "d": {"x": 1}, "e": {"deep": True}, "f": {"name": "n", "at": {"x": 1}},
    "g": {"name": "Ada", "age": 3}, "h": {"lead": {"name": "Bo", "age": 1}}, "i": ["s"], "j": {"k": 1.5},
    "k": [1, "one"],
}  # fmt: skip


def test_every_accepted_hint_has_a_schema_that_validates_its_values() -> None:
    """TO-2."""
    description, schema, injected = parameters_schema(everything)
    assert description == "Take one of each.\n\nAnd say so at length."
    assert injected == frozenset()
    assert schema["additionalProperties"] is False
    assert schema["required"] == list("abcdefghijk")
    assert schema["properties"]["c"]["description"] == "a c over two lines"
    assert schema["properties"]["l"] == {
        "type": "integer", "minimum": 1, "maximum": 3, "description": "an l", "default": 2,
    }  # fmt: skip
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid(GOOD)
    for wrong in ({"a": "1"}, {"b": "z"}, {"c": "green"}, {"d": {}}, {"o": 10}, {"unknown": 1}, {"l": 4}):
        assert not validator.is_valid({**GOOD, **wrong}), wrong


def test_arguments_become_the_hinted_types() -> None:
    positional, named = ArgumentBinder(everything).bind(GOOD)
    assert positional == []
    assert named["c"] is Colour.RED
    assert named["d"] == Point(1, 0)
    assert named["f"] == Row("n", Point(1))
    assert named["g"] == Person(name="Ada", age=3)
    assert named["h"] == Team(Person(name="Bo", age=1))
    assert named["k"] == (1, "one")
    assert "m" not in named


@pytest.mark.parametrize(
    ("change", "told"),
    [({"g": {"name": "x", "age": -1}}, "g: .*greater than or equal to 0"), ({"d": {"x": "no"}}, "d: ")],
)
def test_a_value_that_does_not_fit_names_its_parameter(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ArgumentBinder(everything).bind({**GOOD, **change})


def test_an_unknown_or_missing_argument_is_named() -> None:
    async def one(a: int) -> None:
        """One.

        Args:
            a: A.
        """

    with pytest.raises(TypeError, match="no parameter 'b'; it has a"):
        ArgumentBinder(one).bind({"a": 1, "b": 2})
    with pytest.raises(TypeError, match="needs the argument 'a'"):
        ArgumentBinder(one).bind({})


def test_positional_only_parameters_are_passed_by_position() -> None:
    async def one(a: int, /, b: int) -> None:
        """One.

        Args:
            a: A.
            b: B.
        """

    assert ArgumentBinder(one).bind({"a": 1, "b": 2}) == ([1], {"b": 2})


class ToolContext:
    """Stands for the tools' own: it is found by this name."""


async def injected_by_class(a: int, context: ToolContext) -> None:
    """Do.

    Args:
        a: A.
    """


async def injected_by_text(a: int, context: "bowerbird.tools.ToolContext | None" = None) -> None:  # noqa: F821
    """Do.

    Args:
        a: A.
    """


@pytest.mark.parametrize("fn", [injected_by_class, injected_by_text])
def test_a_tool_context_is_injected_and_hidden(fn: Any) -> None:
    """TO-2."""
    found = parameters_schema(fn)
    assert found.injected == {"context"}
    assert list(found.schema["properties"]) == ["a"]


def no_docstring(a: int) -> None: ...
def no_hint(a) -> None:  # type: ignore[no-untyped-def]
    """Do.

    Args:
        a: A.
    """


def no_line(a: int, second: int) -> None:
    """Do.

    Args:
        a: A.
    """


def only_args(a: int) -> None:
    """Args:
    a: A.
    """


def star(*items: int) -> None:
    """Do.

    Args:
        items: I.
    """


def stars(**named: int) -> None:
    """Do.

    Args:
        named: N.
    """


def odd(a: object) -> None:
    """Do.

    Args:
        a: A.
    """


def unresolved(a: "NoSuchType") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Do.

    Args:
        a: A.
    """


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (no_docstring, "no_docstring has no docstring"),
        (no_hint, "no_hint: parameter 'a' has no type hint"),
        (no_line, "no_line: parameter 'second' has no line"),
        (only_args, "only_args has no docstring"),
        (star, r"star: \*items"),
        (stars, r"stars: \*named"),
        (odd, "odd: parameter 'a' has a type hint without a JSON form"),
        (unresolved, "unresolved: a type hint cannot be resolved.*NoSuchType"),
    ],
)
def test_what_a_model_could_not_understand_is_refused_by_name(fn: Any, told: str) -> None:
    """TO-1."""
    with pytest.raises(ToolDefinitionError, match=told):
        parameters_schema(fn)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "Do it.\n\nArgs:\n  a: first\n  b (int): second\n    more\n\nReturns:\n  c: no", id="google"
        ),
        pytest.param(
            "Do it.\n\nParameters\n----------\na : int\n    first\n"
            "b : int, optional\n    second\n    more\n\n"
            "Returns\n-------\nc : no",
            id="numpy",
        ),
        pytest.param("Do it.\n\n:param a: first\n:param int b: second\n   more\n:returns: c", id="sphinx"),
    ],
)
def test_the_three_docstring_styles_read_the_same(text: str) -> None:
    """TO-1."""
    assert parse_docstring(text) == ("Do it.", {"a": "first", "b": "second more"})


def test_a_colon_inside_a_description_does_not_start_a_parameter() -> None:
    found = parse_docstring("Do.\n\nArgs:\n    a: one of\n        x: the first\n    b: two")
    assert found.parameters == {"a": "one of x: the first", "b": "two"}
