"""OpenAI's Responses wire: tools, reasoning that goes back, and which models are asked by it."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from support.fake_models import FakeModels
from support.model_settings import HELLO, KEY
from support.provider_rules import refusal

from bowerbird import Agent
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from bowerbird.core.requests import ModelRequest, Thinking, ToolSpec
from bowerbird.models import Model, ModelSettings, ProviderSettings, RetryPolicy, complete, open_model

Opener = Callable[[str], Model]
URL = "http://api.openai.com/v1"
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
BLOB = "sha256:" + "0" * 64
STEPS: tuple[dict[str, Any], ...] = (
    {"thinking": "I look first", "text": "I look.", "tools": [{"name": "list_files", "input": {}}]},
    {"thinking": "now I write", "tools": [
        {"name": "write_file", "input": {"path": "a.txt", "content": "a"}},
        {"name": "read_file", "input": {"path": "a.txt"}}]},
    {"thinking": "done", "text": "Written."},
)  # fmt: skip


@pytest.fixture
def vendor(fake: FakeModels, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModels]:
    """The scripted server stands where the vendor's host does."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{fake.port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield fake


@pytest.fixture
async def opened(vendor: FakeModels) -> AsyncIterator[Opener]:
    """Opens models of the vendor, and closes them after the test."""
    made: list[Model] = []

    def open_one(name: str) -> Model:
        settings = ModelSettings(
            providers={"openai": ProviderSettings(KEY, URL)}, retry=RetryPolicy(retries=0)
        )
        made.append(open_model(f"openai:{name}", settings, blobs={BLOB: b"\x89PNG..."}.__getitem__))
        return made[-1]

    yield open_one
    for model in made:
        await model.aclose()


def kinds(body: dict[str, Any]) -> list[str]:
    return [item.get("type") or item["role"] for item in body["input"]]


@pytest.mark.parametrize(
    ("url", "model", "path"),
    [
        ("http://mine.openai.azure.com/openai/v1", "gpt-5.5", "/openai/v1/responses"),
        ("http://mine.openai.azure.com/openai/v1/", "gpt-5.2", "/openai/v1/chat/completions"),
        ("http://mine.openai.azure.com/openai/deployments/mine?api-version=2024-10-21", "gpt-5.2",
         "/openai/deployments/mine/chat/completions?api-version=2024-10-21"),
    ],
)  # fmt: skip
async def test_azure_is_asked_as_the_vendor_is_and_proves_itself_as_azure_wants_it(
    vendor: FakeModels, url: str, model: str, path: str
) -> None:
    providers = {"openai": ProviderSettings(KEY, url)}
    opened = open_model(f"openai:{model}", ModelSettings(providers=providers, retry=RetryPolicy(retries=0)))
    wish = ModelRequest((user_text("x"),), tools=(ADD,), thinking=Thinking(enabled=True, effort="high"))
    await complete(opened, wish)
    await opened.aclose()
    (body,), (headers,) = vendor.requests, vendor.headers
    assert vendor.refused == [] and vendor.paths[0].endswith(path)
    assert headers["api-key"] == KEY and "authorization" not in headers
    assert "thinking" not in body and (body.get("reasoning_effort") or body["reasoning"]["effort"]) == "high"


def test_the_table_refuses_newer_models_and_broken_histories() -> None:
    """The other side of the tests below."""
    said, host = {"role": "user", "content": "x"}, {"host": "api.openai.com"}
    tool = {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": {}}}}
    chat = {"model": "gpt-6-sol", "messages": [said], "tools": [tool]}
    assert "Use /v1/responses" in (refusal("/v1/chat/completions", chat, host) or "")
    call = {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"}
    assert "No tool output" in (refusal("/v1/responses", {"input": [said, call]}, host) or "")
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    assert "following item" in (refusal("/v1/responses", {"input": [thought, said]}, host) or "")


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-6.1-sol", "gpt-5.4-mini", "gpt-5-codex"])
async def test_newer_models_work_with_all_tools_and_get_their_reasoning_back(
    vendor: FakeModels, opened: Opener, tmp_path: Path, model: str
) -> None:
    vendor.script(*STEPS, {"thinking": "again", "text": "Hello again."})
    with Agent(workdir=tmp_path, language_model=opened(model), max_subagent_depth=1) as agent:
        first = await agent.run("write a.txt")
        second = await agent.run([*first.messages, {"role": "user", "content": "and now?"}])
    assert (vendor.refused, first.text, second.text) == ([], "Written.", "Hello again.")
    assert first.changes.written == ("/a.txt",)
    assert set(vendor.paths) == {f"{URL}/responses"} and vendor.requests[0]["store"] is False
    last = vendor.requests[-1]
    assert kinds(last) == [
        "user", "reasoning", "assistant", "function_call", "function_call_output", "reasoning",
        "function_call", "function_call", "function_call_output", "function_call_output", "reasoning",
        "assistant", "user",
    ]  # fmt: skip
    assert {item["encrypted_content"] for item in last["input"] if item.get("type") == "reasoning"} == {
        "encrypted-fakesig"
    }
    assert [item["phase"] for item in last["input"] if item.get("role") == "assistant"] == [
        "commentary", "final_answer",
    ]  # fmt: skip
    earlier = [json.dumps(item, sort_keys=True) for item in vendor.requests[1]["input"]]
    assert [json.dumps(item, sort_keys=True) for item in last["input"]][: len(earlier)] == earlier


async def test_reasoning_of_one_model_is_not_sent_to_another(
    vendor: FakeModels, opened: Opener, tmp_path: Path
) -> None:
    vendor.script(*STEPS)
    with Agent(workdir=tmp_path, language_model=opened("gpt-5.5")) as agent:
        first = await agent.run("write a.txt")
    for other in ("gpt-6.1-sol", "gpt-5.2"):
        with Agent(workdir=tmp_path, language_model=opened(other)) as agent:
            await agent.run([*first.messages, {"role": "user", "content": "and now?"}])
        assert "encrypted" not in json.dumps(vendor.requests[-1].get("input", vendor.requests[-1]))
    assert vendor.refused == [] and vendor.paths[-1] == f"{URL}/chat/completions"


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_is_read_as_the_vendor_s_sdk_reads_it(
    vendor: FakeModels, opened: Opener, streamed: bool
) -> None:
    step = {
        "thinking": "because", "text": "I add.", "deltas": 3,
        "tools": [{"name": "add", "id": "c1", "input": {"a": 1}}, {"name": "add", "id": "c2", "raw": "{}"}],
        "usage": {"input": 10, "cache_read": 90, "output": 20, "reasoning": 5},
    }  # fmt: skip
    vendor.script(step)
    model = opened("gpt-5.5")
    if not streamed:
        model = opened("gpt-5.6-luna")
        vendor.answer(
            lambda body, n: (
                step
                if not body.get("stream")
                else {
                    "status": 400,
                    "body": {"error": {"message": "Unsupported parameter: stream", "param": "stream"}},
                }
            )
        )
        with pytest.raises(Exception, match="left out from now on"):
            await complete(model, HELLO)
    end = await complete(model, ModelRequest(HELLO.messages, tools=(ADD,), max_tokens=500))
    async with openai.AsyncOpenAI(api_key=KEY, base_url=URL, max_retries=0) as client:
        body = {key: value for key, value in vendor.requests[-1].items() if key != "stream"}
        vendor.script(step)
        async with client.responses.stream(**body) as stream:
            theirs = await stream.get_final_response()
    calls = [item for item in theirs.output if item.type == "function_call"]
    assert [(use.id, use.name, use.input) for use in end.message.tool_uses] == [
        (call.call_id, call.name, json.loads(call.arguments)) for call in calls
    ]
    assert end.message.text == theirs.output_text and end.stop_reason == "tool_use"
    thoughts = [block.thinking for block in end.message.content if isinstance(block, ThinkingBlock)]
    assert thoughts == ["because"]
    assert theirs.usage is not None
    assert end.usage.input_tokens + end.usage.cache_read_tokens == theirs.usage.input_tokens
    assert (end.usage.output_tokens, end.usage.reasoning_tokens) == (20, 5)


FORMS = {
    "plain": HELLO,
    "forced": ModelRequest((user_text("x"),), system=("Be brief.",), tools=(ADD,), tool_choice="add"),
    "none": ModelRequest((user_text("x"),), tools=(ADD,), tool_choice="none", session="s1", dated=True),
    "hard": ModelRequest((user_text("x"),), thinking=Thinking(True, "max")),
    "off": ModelRequest((user_text("x"),), thinking=Thinking(False)),
    "schema": ModelRequest((user_text("x"),), output_schema={"type": "object", "properties": {}}),
    "pictures": ModelRequest((
        Message("user", (TextBlock("see"), ImageBlock("image/png", BlobSource(BLOB)))),
        Message("assistant", (TextBlock("I look."), ToolUseBlock("call_1", "add", {"a": "ä\n"}))),
        Message("user", (ToolResultBlock("call_1", [TextBlock("3"), ImageBlock("image/png", BlobSource(BLOB))]),)),
    ), tools=(ADD,)),
}  # fmt: skip


@pytest.mark.parametrize("form", list(FORMS))
async def test_the_vendor_s_sdk_sends_the_same_request(vendor: FakeModels, opened: Opener, form: str) -> None:
    vendor.script({"text": "ok"})
    await complete(opened("gpt-5.5"), FORMS[form])
    body = vendor.requests[-1]
    async with openai.AsyncOpenAI(api_key=KEY, base_url=URL, max_retries=0) as client:
        async for _ in await client.responses.create(**body):
            pass
    assert vendor.requests[-1] == body and vendor.paths[-1] == vendor.paths[-2]
    assert vendor.refused == []
