"""What goes out is taken by the strictest provider, whatever a model said and whoever described a tool."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from anthropic.resources.messages.messages import DEPRECATED_MODELS
from support.fake_models import FakeModels
from support.model_settings import HELLO
from support.provider_rules import refusal

from bowerbird import Agent
from bowerbird.config.sections.agent import DEFAULT_MODEL
from bowerbird.core.requests import ToolSpec
from bowerbird.models import Model, complete
from bowerbird.models.settings import ModelSettings
from bowerbird.tools.tool import Tool

STRANGE = ["functions.bash", "read file", "", "x" * 140, "größe"]


@dataclass
class Row:
    """A record with a bare list."""

    cells: list


async def fill(
    rows: list,
    pair: tuple,
    named: dict[str, list],
    place: tuple[int, str],
    row: Row,
    more: list | None = None,
) -> str:
    """Fill a table.

    Args:
        rows: lines.
        pair: two.
        named: by name.
        place: where.
        row: one.
        more: others.
    """
    return "filled"


async def handled(args: dict[str, Any]) -> str:
    return "handled"


def given(schema: dict[str, Any]) -> Tool:
    return Tool(name="given", description="Given.", input_schema=schema, handler=handled, effect="read")


def test_the_table_refuses_what_providers_refuse() -> None:
    """The other side of every test below."""
    tool = {"name": "a b", "description": "", "parameters": {"type": "object", "properties": {}}}
    bare = {**tool, "name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}
    said = {"role": "user", "content": "x"}
    for function, words in ((tool, "pattern"), (bare, "missing items")):
        body = {"messages": [said], "tools": [{"type": "function", "function": function}]}
        assert words in (refusal("/v1/chat/completions", body, {}) or "")
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "a"}}]}
    assert "did not have" in (refusal("/v1/chat/completions", {"messages": [said, call]}, {}) or "")


async def test_the_default_tools_are_taken_by_every_provider(
    open_fake: Callable[..., Model], fake: FakeModels, wire: str, tmp_path: Any
) -> None:
    model = open_fake(wire)
    with Agent(workdir=tmp_path, language_model=model, max_subagent_depth=1) as agent:
        result = await agent.run("hello")
    assert (fake.refused, result.stop_reason) == ([], "completed")
    tools = fake.requests[0]["tools"]
    assert "spawn_subagents" in {tool.get("name") or tool["function"]["name"] for tool in tools}


@pytest.mark.parametrize(
    "made",
    [
        lambda: Tool(fill, effect="read"),
        lambda: given({"type": "object"}),
        lambda: given({"anyOf": [{"properties": {"a": {"type": "array"}}}, {"$ref": "#/$defs/B"}],
                       "$defs": {"B": {"properties": {"b": {"type": ["array", "null"]}}}}, "type": "object"}),
        lambda: given({"type": "object", "properties": {"items": {"type": "array"}, "t": {
            "type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}}}),
    ],
    ids=["bare-lists", "no-properties", "alternatives", "tuples"],
)  # fmt: skip
async def test_a_tool_however_described_is_taken_by_every_provider(
    open_fake: Callable[..., Model], fake: FakeModels, wire: str, made: Callable[[], Tool]
) -> None:
    tool = made()
    await complete(open_fake(wire), msgspec.structs.replace(HELLO, tools=(tool.spec,)))
    assert fake.refused == []


async def test_the_parameters_of_alternatives_are_shown_as_the_tool_s_own(
    open_fake: Callable[..., Model], fake: FakeModels
) -> None:
    schema = {
        "type": "object",
        "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}],
    }
    await complete(open_fake("openai"), msgspec.structs.replace(HELLO, tools=(ToolSpec("f", "d", schema),)))
    assert set(fake.requests[0]["tools"][0]["function"]["parameters"]["properties"]) == {"a", "b"}


@pytest.mark.parametrize("name", STRANGE)
async def test_a_session_goes_on_after_a_name_that_no_tool_can_have(
    open_fake: Callable[..., Model], fake: FakeModels, wire: str, tmp_path: Any, name: str
) -> None:
    model = open_fake(wire)
    fake.script({"tools": [{"name": name, "input": {}}]}, {"text": "sorry"}, {"text": "again"})
    with Agent(workdir=tmp_path, language_model=model) as agent:
        first = await agent.run("go")
        second = await agent.run([*first.messages, {"role": "user", "content": "and now?"}])
    assert (fake.refused, first.text, second.text) == ([], "sorry", "again")


async def test_more_tools_than_a_provider_takes_are_left_out_by_name(
    open_fake: Callable[..., Model], fake: FakeModels
) -> None:
    tools = tuple(ToolSpec(f"t{n}", "d", {"type": "object", "properties": {}}) for n in range(130))
    end = await complete(open_fake("openai"), msgspec.structs.replace(HELLO, tools=tools))
    assert fake.refused == [] and len(fake.requests[0]["tools"]) == 128
    assert end.repairs == ("left out, over 128 tools: t128, t129",)


async def test_a_name_that_comes_after_its_id_is_the_call_s(
    open_fake: Callable[..., Model], fake: FakeModels
) -> None:
    def chunk(call: dict[str, Any]) -> str:
        return f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}}]})}\n\n"

    body = chunk({"index": 0, "id": "c1", "function": {"arguments": ""}})
    body += chunk({"index": 0, "function": {"name": "think"}})
    body += chunk({"index": 0, "function": {"arguments": '{"thought": "x"}'}})
    body += 'data: {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'
    fake.script({"body": body, "headers": {"content-type": "text/event-stream"}})
    end = await complete(open_fake("openai"), HELLO)
    (use,) = end.message.tool_uses
    assert (use.id, use.name, use.input) == ("c1", "think", {"thought": "x"})


def test_the_default_model_is_not_about_to_be_retired() -> None:
    assert DEFAULT_MODEL not in DEPRECATED_MODELS
    assert ModelSettings().model == DEFAULT_MODEL


async def test_no_temperature_is_sent_that_nobody_set(
    open_fake: Callable[..., Model], fake: FakeModels, wire: str, tmp_path: Any
) -> None:
    model = open_fake(wire)
    with Agent(workdir=tmp_path, language_model=model) as agent:
        await agent.run("hello")
        await agent.replace(temperature=0.5).run("hello")
    assert "temperature" not in fake.requests[0] and fake.requests[1]["temperature"] == 0.5
