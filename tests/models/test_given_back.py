"""What a provider gives with an answer and wants back goes back to it, and to nobody else."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib._parse._transform import transform_schema
from support.fake_models import FakeModels
from support.model_settings import KEY, QUICK
from support.provider_rules import refusal

from bowerbird import Agent
from bowerbird.core.messages import (
    Message,
    RedactedThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from bowerbird.core.requests import ModelRequest
from bowerbird.models import Model, ModelSettings, ProviderSettings, complete, open_model

Opener = Callable[[str], Model]
LOOK = {"tools": [{"name": "list_files", "input": {}}, {"name": "read_file", "input": {"path": "a"}}]}


@pytest.fixture
async def opened(fake: FakeModels) -> AsyncIterator[Opener]:
    made: list[Model] = []

    def open_one(name: str) -> Model:
        at = {name.partition(":")[0]: ProviderSettings(KEY, fake.openai_url)}
        made.append(open_model(name, ModelSettings(providers=at, retry=QUICK)))
        return made[-1]

    yield open_one
    for model in made:
        await model.aclose()


def calls(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for message in body["messages"] for call in message.get("tool_calls") or []]


async def test_signed_calls_go_back_signed_over_steps_turns_and_a_change_of_models(
    opened: Opener, fake: FakeModels, tmp_path: Path
) -> None:
    fake.script(LOOK, LOOK, {"text": "done"}, LOOK, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=opened("google-genai:gemini-3.8-flash")) as agent:
        first = await agent.run("go")
        then = await agent.run([*first.messages, {"role": "user", "content": "on"}])
    sent = calls(fake.requests[-1])
    assert [call.get("extra_content") for call in sent[::2]] == [
        {"google": {"thought_signature": f"of-{call['id']}"}} for call in sent[::2]
    ]
    assert not any("extra_content" in call for call in sent[1::2])
    fake.script({"text": "other"})
    with Agent(workdir=tmp_path, language_model=opened("openai:gpt-test")) as agent:
        await agent.run([*then.messages, {"role": "user", "content": "and you?"}])
    assert "thought_signature" not in json.dumps(fake.requests[-1])
    with Agent(workdir=tmp_path, language_model=opened("google-genai:gemini-3.9-pro")) as agent:
        await agent.run([*then.messages, {"role": "user", "content": "and you?"}])
    assert fake.refused == [] and len(calls(fake.requests[-1])) == 6


async def test_a_call_whose_id_was_used_before_goes_back_as_it_was_signed(
    opened: Opener, fake: FakeModels
) -> None:
    """Before the summary of what is sent, say: the session knows it, and the call gets another."""
    name = "google-genai:gemini-3.8-flash"
    kept = json.dumps({"call": "call_0", "extra_content": {"google": {"thought_signature": "of-it"}}})
    said = (ToolUseBlock("call_1", "list_files", {}), RedactedThinkingBlock(kept, name))
    result = Message("user", (ToolResultBlock("call_1", "none"),))
    await complete(opened(name), ModelRequest((user_text("go"), Message("assistant", said), result)))
    assert fake.refused == []
    assert calls(fake.requests[-1])[0]["extra_content"] == {"google": {"thought_signature": "of-it"}}


async def test_parts_of_a_reasoning_go_back_whole(opened: Opener, fake: FakeModels, tmp_path: Path) -> None:
    def chunk(**delta: Any) -> str:
        return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n"

    text = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    body = chunk(reasoning="I ", reasoning_details=[{**text, "text": "I "}])
    body += chunk(reasoning="look", reasoning_details=[{**text, "text": "look"}])
    body += chunk(reasoning_details=[{**text, "signature": "sig"}])
    body += chunk(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "xyz", "id": "r1"}])
    call = {"index": 0, "id": "c1", "function": {"name": "list_files", "arguments": "{}"}}
    body += chunk(tool_calls=[call])
    body += 'data: {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'
    fake.script({"body": body, "headers": {"content-type": "text/event-stream"}}, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=opened("openrouter:anthropic/claude-x")) as agent:
        first = await agent.run("go")
    (asked,) = [message for message in fake.requests[-1]["messages"] if message.get("tool_calls")]
    assert asked["reasoning_details"] == [
        {**text, "text": "I look", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz", "id": "r1"},
    ]
    fake.script({"text": "other"})
    with Agent(workdir=tmp_path, language_model=opened("openrouter:google/gemini-x")) as agent:
        await agent.run([*first.messages, {"role": "user", "content": "and you?"}])
    assert "reasoning_details" not in json.dumps(fake.requests[-1]) and first.text == "done"


async def test_a_model_that_wants_all_reasoning_back_gets_it_or_an_empty_one(
    opened: Opener, fake: FakeModels, tmp_path: Path
) -> None:
    fake.script(LOOK, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=opened("openai:gpt-test")) as agent:
        first = await agent.run("go")
    fake.script({"thinking": "I look", **LOOK}, LOOK, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=opened("deepseek:deepseek-v4-pro")) as agent:
        await agent.run([*first.messages, {"role": "user", "content": "and you?"}])
    said = [message for message in fake.requests[-1]["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in said] == ["", "", "I look", ""]
    assert fake.refused == []


async def test_claude_behind_a_gateway_is_cached_as_the_gateway_wants_it(
    opened: Opener, fake: FakeModels
) -> None:
    for name in ("anthropic/claude-sonnet-5", "openai/gpt-5.2"):
        await complete(opened(f"openrouter:{name}"), ModelRequest((user_text("x"),)))
    assert [body.get("cache_control") for body in fake.requests] == [{"type": "ephemeral"}, None]


@pytest.mark.parametrize("place", ["chunk", "choice"])
async def test_reasoning_that_only_the_total_counts_is_counted(
    opened: Opener, fake: FakeModels, place: str
) -> None:
    used = {"prompt_tokens": 100.0, "completion_tokens": 5, "total_tokens": 155.4}
    choice = {"delta": {"content": "a"}, "finish_reason": "stop"}
    last = (
        {"choices": [{**choice, "usage": used}]}
        if place == "choice"
        else {"choices": [choice], "usage": used}
    )
    lines = [{"choices": [{"delta": {"role": "assistant"}}]}, last]
    body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
    fake.script({"body": body, "headers": {"content-type": "text/event-stream"}})
    end = await complete(opened("openai:gpt-test"), ModelRequest((user_text("x"),)))
    assert (end.usage.input_tokens, end.usage.output_tokens) == (100, 55)


FORM = {
    "type": "object", "description": "A verdict.", "required": ["score"],
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10},
        "why": {"type": ["string", "null"], "maxLength": 80},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^a"}, "minItems": 2, "default": []},
        "place": {"$ref": "#/$defs/Place"},
    },
    "$defs": {"Place": {"type": "object", "properties": {"at": {"type": "string", "format": "date"}}}},
}  # fmt: skip


async def test_a_form_of_answers_is_closed_and_has_no_limits(
    fake: FakeModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    sent = {**raw, "output_config": {"format": {"type": "json_schema", "schema": FORM}}}
    assert "additionalProperties" in (refusal("/v1/messages", sent, {}) or "")
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{fake.port}")
    vendor = {"anthropic": ProviderSettings(KEY, "http://api.anthropic.com")}
    model = open_model("anthropic:claude-sonnet-5", ModelSettings(providers=vendor, retry=QUICK))
    try:
        await complete(model, ModelRequest((user_text("x"),), output_schema=FORM))
        free = {"type": "object", "properties": {"any": {"type": "object"}}}
        await complete(model, ModelRequest((user_text("x"),), output_schema=free))
    finally:
        await model.aclose()
    made = fake.requests[0]["output_config"]["format"]["schema"]
    assert transform_schema(made) == made, "the vendor's own SDK finds nothing to mend"
    assert made["properties"]["score"]["description"] == "{minimum: 1, maximum: 10}"
    assert fake.refused == [] and "format" not in fake.requests[1].get("output_config", {})
