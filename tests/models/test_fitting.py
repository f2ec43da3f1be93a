"""Arguments fitted to a tool's schema by the listed conversions only (MO-27)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.models.answers.fitting import expected_parameters, fit_to_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "s": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": ["array", "null"], "items": {"type": "integer"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "point": {"$ref": "#/$defs/Point"},
        "mode": {"enum": ["fast", "slow"]},
    },
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


@pytest.mark.parametrize(
    ("given_", "fitted"),
    [
        ({"n": "3"}, {"n": 3}),
        ({"n": "-3.0"}, {"n": -3}),
        ({"n": 3.0}, {"n": 3}),
        ({"x": "2.5e1"}, {"x": 25.0}),
        ({"b": "true"}, {"b": True}),
        ({"b": None}, {"b": None}),
        ({"names": "one"}, {"names": ["one"]}),
        ({"names": '["one", "two"]'}, {"names": ["one", "two"]}),
        ({"numbers": "5"}, {"numbers": [5]}),
        ({"numbers": 5}, {"numbers": [5]}),
        ({"numbers": ["1", 2.0]}, {"numbers": [1, 2]}),
        ({"point": '{"x": "1"}'}, {"point": {"x": 1}}),
        ({"either": "one"}, {"either": "one"}),
        ({"s": "3"}, {"s": "3"}),
        ({"s": "true"}, {"s": "true"}),
    ],
)
def test_listed_conversions_are_made(given_, fitted):
    before = copy.deepcopy(given_)
    result = fit_to_schema(given_, SCHEMA)
    assert result.value == fitted and result.problems == ()
    assert [type(v) for v in result.value.values()] == [type(v) for v in fitted.values()]
    assert bool(result.repairs) == (given_ != fitted or str(given_) != str(fitted)) and given_ == before


@pytest.mark.parametrize(
    ("given_", "path"),
    [
        ({"n": "3.5"}, "n"),
        ({"n": "three"}, "n"),
        ({"n": True}, "n"),
        ({"n": 3.5}, "n"),
        ({"n": "1e999"}, "n"),
        ({"x": "nan"}, "x"),
        ({"b": "True"}, "b"),
        ({"b": "yes"}, "b"),
        ({"s": 3}, "s"),
        ({"names": {"a": 1}}, "names"),
        ({"names": None}, "names"),
        ({"point": '{"x": '}, "point"),
        ({"mode": "medium"}, "mode"),
        ({"numbers": [["1"]]}, "numbers[0]"),
    ],
)
def test_anything_else_is_a_problem_at_its_path(given_, path):
    result = fit_to_schema(given_, SCHEMA)
    assert [problem.partition(":")[0] for problem in result.problems] == [path]


def test_an_unknown_parameter_names_the_known_ones():
    (problem,) = fit_to_schema({"nn": 1}, SCHEMA).problems
    assert problem.startswith("nn: unknown parameter; known parameters: n, x, b, s")
    assert fit_to_schema({"nn": 1}, {"type": "object", "additionalProperties": True}).problems == ()


def test_a_missing_parameter_is_a_problem():
    (problem,) = fit_to_schema({}, {**SCHEMA, "required": ["s"]}).problems
    assert '"s" is a required property' in problem


def test_schemas_that_name_other_hosts_are_not_fetched():
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
    assert fit_to_schema({"a": "1"}, schema).value == {"a": "1"}


def test_recursive_schemas_end():
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert fit_to_schema({"child": {"child": {"n": "1"}}}, tree).value == {"child": {"child": {"n": 1}}}
    itself = {"$ref": "#/$defs/a"}
    loop = {"type": "object", "properties": {"a": itself}, "$defs": {"a": itself}}
    assert fit_to_schema({"a": "1"}, loop).value == {"a": "1"}


def test_expected_parameters_are_one_line():
    schema = {**SCHEMA, "required": ["n"]}
    assert expected_parameters(schema).startswith(
        "n (integer, required), x (integer or number), b (boolean or null)"
    )


@given(st.dictionaries(st.sampled_from(["n", "x", "s", "b", "names"]), st.integers() | st.text() | st.none()))
def test_valid_arguments_are_never_changed(value):
    result = fit_to_schema(value, SCHEMA)
    if not result.repairs:
        assert result.value == value
