"""Schemas, classes and questions of MCP servers, without a server (PT-19, PT-20, PT-23)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams, ToolAnnotations

from bowerbird.agent.permissions import decide
from bowerbird.agent.policy import Policy
from bowerbird.protocols.mcp_client import ServerSpec
from bowerbird.protocols.mcp_client.elicitation import answer_of, question_text
from bowerbird.protocols.mcp_client.schemas import schema_problem
from bowerbird.protocols.mcp_client.tools import effect_of, needs_approval
from bowerbird.tools import Tool

READ = ToolAnnotations(read_only_hint=True)
IDEMPOTENT = ToolAnnotations(idempotent_hint=True)
BOTH = ToolAnnotations(read_only_hint=True, idempotent_hint=True)


def spec(**options: Any) -> ServerSpec:
    return ServerSpec(name="x", transport="stdio", command="x", **options)


@pytest.mark.parametrize(
    ("annotations", "trusted", "expected"),
    [
        (None, True, ("outside", False)),
        (READ, False, ("outside", False)),
        (IDEMPOTENT, False, ("outside", False)),
        (READ, True, ("read", False)),
        (IDEMPOTENT, True, ("outside", True)),
        (BOTH, True, ("read", False)),
        (ToolAnnotations(destructive_hint=False), True, ("outside", False)),
    ],
)
def test_annotations_count_only_where_the_server_is_trusted(
    annotations: ToolAnnotations | None, trusted: bool, expected: Any
) -> None:
    """PT-20, TO-7."""
    assert effect_of(spec(trusted=trusted), annotations) == expected


async def handler(_arguments: dict[str, Any]) -> str:
    return ""


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("annotations", [None, READ, IDEMPOTENT], ids=["none", "read", "idempotent"])
@pytest.mark.parametrize("approval", ["ask", "allow", {"t": "allow"}, {"t": "ask"}, {"other": "allow"}])
@pytest.mark.parametrize("mode", ["normal", "plan"])
def test_the_decision_for_every_setting(trusted: bool, annotations: Any, approval: Any, mode: Any) -> None:
    """PT-20, acceptance 8: plan mode refuses all but trusted read-only; untrusted ones ask unless allowed."""
    one = spec(trusted=trusted, approval=approval)
    effect, keyed = effect_of(one, annotations)
    tool = Tool(
        name="t", description="d", input_schema={"type": "object"}, handler=handler,
        effect=effect, keyed=keyed, needs_approval=needs_approval(one, "t"),
    )  # fmt: skip
    action = decide(tool, {}, mode, Policy()).action
    reads = trusted and annotations is READ
    if mode == "plan" and not reads:
        assert action == "deny"
    elif approval in ("allow", {"t": "allow"}):
        assert action == "allow"
    elif approval == {"t": "ask"}:
        assert action == "ask"
    else:
        assert action == ("allow" if reads else "ask")
    assert tool.ledger_effect == ("read" if reads else "keyed" if keyed else "external")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param({"type": "object"}, None, id="empty"),
        pytest.param(
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
            None,
            id="local",
        ),
        pytest.param(
            {"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}, None, id="dialect"
        ),
        pytest.param({}, "not of type object", id="none"),
        pytest.param({"type": "array"}, "not of type object", id="array"),
        pytest.param({"type": "object", "anyOf": [{}]}, "anyOf at its top", id="any-of"),
        pytest.param({"type": "object", "properties": {"ä": {}}}, "'ä' is not allowed", id="property"),
        pytest.param({"type": "object", "properties": []}, "no mapping", id="properties"),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "wrong"}}}, "not a JSON Schema", id="invalid"
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}},
            "another document",
            id="far",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "another document", id="file"
        ),
        pytest.param({"type": "object", "$schema": "http://127.0.0.1:1/meta"}, "another document", id="meta"),
        pytest.param({"type": "object", "properties": {"a": {"enum": ["x" * 70_000]}}}, "over", id="large"),
    ],
)
def test_schemas_that_a_provider_would_refuse_are_found(schema: dict[str, Any], problem: str | None) -> None:
    """PT-19; nothing is fetched because a schema says so."""
    found = schema_problem(schema)
    assert found is None if problem is None else problem in str(found)


def test_a_schema_nested_without_end_is_refused_not_followed() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}}
    assert schema_problem(schema) == "it is nested too deep"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "$ref", "anyOf", "required", "items"]), _JSON))
def test_any_schema_gets_an_answer(schema: dict[str, Any]) -> None:
    found = schema_problem(schema)
    assert found is None or isinstance(found, str)


# ---------------------------------------------------------------- questions


def form(**properties: Any) -> ElicitRequestFormParams:
    required = [name for name, field in properties.items() if "default" not in field]
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequestFormParams(message="Who?", requested_schema=schema)


NAME, AGE = {"type": "string", "description": "Your name"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("params", "said", "content"),
    [
        pytest.param(form(name=NAME), "Ann", {"name": "Ann"}, id="one-text"),
        pytest.param(form(age=AGE), "41", {"age": 41}, id="one-number"),
        pytest.param(form(age=AGE), "41.5", None, id="no-integer"),
        pytest.param(form(age=AGE), "old", None, id="no-number"),
        pytest.param(form(ok={"type": "boolean"}), "yes", {"ok": True}, id="yes"),
        pytest.param(form(ok={"type": "boolean"}), "perhaps", None, id="perhaps"),
        pytest.param(form(name=NAME, age=AGE), "name: Ann\nage: 41", {"name": "Ann", "age": 41}, id="lines"),
        pytest.param(
            form(name=NAME, age=AGE), '{"name": "Ann", "age": 41}', {"name": "Ann", "age": 41}, id="json"
        ),
        pytest.param(form(name=NAME, age=AGE), "name: Ann", None, id="one-missing"),
        pytest.param(
            form(name=NAME, age={**AGE, "default": 7}), "name: Ann", {"name": "Ann", "age": 7}, id="default"
        ),
        pytest.param(
            form(c={"enum": ["r", "b"], "enumNames": ["Red", "Blue"]}), "blue", {"c": "b"}, id="named"
        ),
        pytest.param(form(c={"oneOf": [{"const": "r", "title": "Red"}]}), "Red", {"c": "r"}, id="titled"),
        pytest.param(
            form(c={"type": "array", "items": {"enum": ["r", "b"]}}), "r, b", {"c": ["r", "b"]}, id="several"
        ),
        pytest.param(form(name=NAME), "decline", None, id="declined"),
    ],
)
def test_words_become_what_the_server_asked_for_or_nothing(params: Any, said: str, content: Any) -> None:
    """PT-23: an answer that does not fit is no answer."""
    answer = answer_of(params, said)
    assert (answer.action, answer.content) == (("accept", content) if content else ("decline", None))


def test_an_address_is_shown_and_only_agreement_is_told() -> None:
    """PT-23, URL form."""
    params = ElicitRequestURLParams(message="Sign in.", url="https://example.org/x", elicitation_id="e")
    text, options = question_text("tracker", params)
    assert "tracker" in text and "https://example.org/x" in text and options == ("yes", "no")
    assert answer_of(params, "yes").action == "accept" and answer_of(params, "no").action == "decline"


def test_several_fields_are_asked_by_name() -> None:
    text, options = question_text("tracker", form(name=NAME, age={**AGE, "default": 7}))
    assert "- name: Your name" in text and "- age: integer (may be left out)" in text and options == ()
