"""The official SDKs as judges: our requests beside theirs, our reading of answers beside theirs (D-14).

The running program has neither; here both ask the same scripted server, also as the vendor's own host, which
a proxy of the environment stands in for.
"""

import asyncio
import hashlib
import inspect
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from support.fake_models import FakeModels
from support.model_settings import HELLO, KEY

from bowerbird.core.errors import ModelError
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
from bowerbird.core.requests import End, ModelRequest, Thinking, ToolSpec
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy, Timeouts, complete, open_model

VENDORS = {"anthropic": "http://api.anthropic.com", "openai": "http://api.openai.com/v1"}
MODELS = {"anthropic": "claude-opus-4-6", "openai": "gpt-5.2"}
PNG = b"\x89PNG....bytes"
BLOB = f"sha256:{hashlib.sha256(PNG).hexdigest()}"
ADD = ToolSpec(
    "add",
    "Adds.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]},
)
# Sent only to who asks for it by a setting; this vendor's newest SDK has no name for it any more.
LEFT_BEHIND: dict[str, set[str]] = {"anthropic": {"temperature"}, "openai": set()}
COMPARED_HEADERS = ("accept", "content-type", "authorization", "anthropic-version", "accept-encoding", "host")


def talk(origin: str) -> tuple[Message, ...]:
    """A conversation with everything that is sent: reasoning, calls, results, failures, images."""
    return (
        user_text("Grüße, 世界 \U0001f426"),
        Message(
            "assistant",
            (
                ThinkingBlock("because", "sig", origin),
                TextBlock("I look."),
                ToolUseBlock("call_1", "add", {"b": 2, "a": "ä\n"}),
                ToolUseBlock("call_2", "add", {}),
            ),
        ),
        Message(
            "user",
            (
                ToolResultBlock("call_1", [TextBlock("3"), ImageBlock("image/png", BlobSource(BLOB))]),
                ToolResultBlock("call_2", "a is missing", is_error=True),
                ImageBlock("image/png", BlobSource(BLOB)),
            ),
        ),
    )


def requests(wire: str) -> dict[str, ModelRequest]:
    """Requests of every form that is used."""
    whole = talk(f"{wire}:{MODELS[wire]}")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    return {
        "plain": HELLO,
        "system": ModelRequest((user_text("x"),), system=("Be brief.", "Today."), temperature=0.5),
        "tools": ModelRequest(whole, system=("Add.",), tools=(ADD,), cache_marks=(0,), session="s1"),
        "forced": ModelRequest((user_text("x"),), tools=(ADD,), tool_choice="add"),
        "required": ModelRequest((user_text("x"),), tools=(ADD,), tool_choice="required"),
        "none": ModelRequest((user_text("x"),), tools=(ADD,), tool_choice="none"),
        "thinking": ModelRequest((user_text("x"),), thinking=Thinking(True, "high"), max_tokens=20_000),
        "schema": ModelRequest((user_text("x"),), output_schema=schema, dated=True),
    }


@pytest.fixture
def vendor(fake: FakeModels, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModels]:
    """The scripted server stands where the vendors' hosts do."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{fake.port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield fake


def client_of(wire: str, url: str, **options: Any) -> Any:
    sdk = anthropic.AsyncAnthropic if wire == "anthropic" else openai.AsyncOpenAI
    return sdk(api_key=KEY, base_url=url, max_retries=0, **options)


async def ours(wire: str, url: str, request: ModelRequest, **provider: Any) -> End:
    settings = ModelSettings(
        providers={wire: ProviderSettings(KEY, url, **provider)}, retry=RetryPolicy(retries=0)
    )
    model = open_model(f"{wire}:{MODELS[wire]}", settings, blobs={BLOB: PNG}.__getitem__)
    try:
        return await complete(model, request)
    finally:
        await model.aclose()


def create_of(wire: str, client: Any) -> Any:
    return client.messages.create if wire == "anthropic" else client.chat.completions.create


@pytest.mark.parametrize("form", list(requests("openai")))
async def test_the_vendors_sdk_sends_the_same_request(vendor: FakeModels, wire: str, form: str) -> None:
    """D-14: same path, headers that matter, body; and the SDK knows each field of it by name."""
    vendor.without.add("no temperature")  # who sets one gets it sent
    await ours(wire, VENDORS[wire], requests(wire)[form])
    body = vendor.requests[-1]
    async with client_of(wire, VENDORS[wire]) as client:
        create = create_of(wire, client)
        named = set(inspect.signature(create).parameters)
        extra = {name: value for name, value in body.items() if name not in named}
        assert set(extra) <= LEFT_BEHIND[wire]
        known = {name: value for name, value in body.items() if name in named}
        async with await create(**known, extra_body=extra or None) as stream:
            async for _ in stream:
                pass
    assert vendor.requests[-1] == body
    assert vendor.paths[-1] == vendor.paths[-2]
    seen = [{name: headers.get(name) for name in COMPARED_HEADERS} for headers in vendor.headers[-2:]]
    assert seen[0] == {**seen[1], "accept-encoding": seen[0]["accept-encoding"]}
    assert seen[0]["authorization"] == f"Bearer {KEY}"


ANSWERS = {
    "text": {"text": "Grüße, 世界 \U0001f426", "deltas": 5, "usage": {"input": 12, "output": 7}},
    "cached": {"text": "x", "usage": {"input": 3, "output": 4, "cache_read": 100, "cache_write": 20}},
    "calls": {
        "text": "I add.",
        "tools": [{"name": "add", "id": "c1", "input": {"a": 1}}, {"name": "add", "id": "c2", "raw": "{}"}],
        "usage": {"input": 1, "output": 1},
    },
    "thought": {"thinking": "because", "text": "so", "usage": {"input": 5, "output": 6, "reasoning": 2}},
    "cut": {"text": "half", "stop": "max_tokens", "usage": {"input": 1, "output": 500}},
}


@pytest.mark.parametrize("answer", list(ANSWERS))
async def test_the_sdk_reads_the_same_answer(fake: FakeModels, wire: str, answer: str) -> None:
    """D-14: texts, reasoning, calls with their ids and arguments, the end's reason, every count."""
    fake.script(ANSWERS[answer])
    url = fake.anthropic_url if wire == "anthropic" else fake.openai_url
    end = await ours(wire, url, ModelRequest(HELLO.messages, tools=(ADD,), max_tokens=500))
    async with client_of(wire, url) as client:
        read = await (read_anthropic if wire == "anthropic" else read_openai)(client, fake.requests[-1])
    assert {
        "text": "".join(b.text for b in end.message.content if isinstance(b, TextBlock)),
        "thinking": "".join(b.thinking for b in end.message.content if isinstance(b, ThinkingBlock)),
        "calls": [(b.id, b.name, b.input) for b in end.message.content if isinstance(b, ToolUseBlock)],
        "stop": end.stop_reason,
        "input": end.usage.input_tokens + end.usage.cache_read_tokens + end.usage.cache_write_tokens,
        "cached": end.usage.cache_read_tokens,
        "output": end.usage.output_tokens,
    } == read


async def read_anthropic(client: anthropic.AsyncAnthropic, body: dict[str, Any]) -> dict[str, Any]:
    asked = {name: value for name, value in body.items() if name != "stream"}
    async with client.messages.stream(**asked) as stream:
        message = await stream.get_final_message()
    used = message.usage
    cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    return {
        "text": "".join(b.text for b in message.content if b.type == "text"),
        "thinking": "".join(b.thinking for b in message.content if b.type == "thinking"),
        "calls": [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"],
        "stop": message.stop_reason,
        "input": used.input_tokens + cached + written,
        "cached": cached,
        "output": used.output_tokens,
    }


async def read_openai(client: openai.AsyncOpenAI, body: dict[str, Any]) -> dict[str, Any]:
    # Their accumulator: the one that a user of the SDK gets its messages from.
    state, thoughts = ChatCompletionStreamState(), ""
    async with await client.chat.completions.create(**body) as stream:
        async for chunk in stream:
            for choice in chunk.choices:
                thoughts += getattr(choice.delta, "reasoning_content", None) or ""
            state.handle_chunk(chunk)
    answer = state.current_completion_snapshot
    choice, used = answer.choices[0], answer.usage
    assert used is not None
    details = used.prompt_tokens_details
    calls = choice.message.tool_calls or []
    stops = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
    return {
        "text": choice.message.content or "",
        "thinking": thoughts,
        "calls": [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls],
        "stop": stops[choice.finish_reason],
        "input": used.prompt_tokens,
        "cached": (details.cached_tokens or 0) if details else 0,
        "output": used.completion_tokens,
    }


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 529])
async def test_the_sdk_sees_the_same_failure(fake: FakeModels, wire: str, status: int) -> None:
    """D-14, MO-13: status, request id and the provider's own words."""
    fake.script(
        {
            "status": status,
            "headers": {"request-id": "req_7", "x-request-id": "req_7", "retry-after": "99"},
            "body": {"error": {"type": "x_error", "message": "the provider's words"}},
        }
    )
    url = fake.anthropic_url if wire == "anthropic" else fake.openai_url
    with pytest.raises(ModelError) as caught:
        await ours(wire, url, HELLO)
    sdk = anthropic if wire == "anthropic" else openai
    async with client_of(wire, url) as client:
        with pytest.raises(sdk.APIStatusError) as theirs:
            await create_of(wire, client)(**fake.requests[-1])
    assert (caught.value.status, caught.value.request_id) == (
        theirs.value.status_code,
        theirs.value.request_id,
    )
    assert "the provider's words" in str(caught.value) and "the provider's words" in str(theirs.value)
    assert caught.value.retry_after_s == 99.0


async def test_the_sdk_also_finds_a_broken_connection_broken(fake: FakeModels, wire: str) -> None:
    """MO-29: refused, closed without a word, and no HTTP."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await writer.drain()
        writer.close()

    sdk = anthropic if wire == "anthropic" else openai
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    for kind, said in ((close, "cannot be reached"), (babble, "does not answer in HTTP"), (None, "refused")):
        server = await asyncio.start_server(kind or close, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        if kind is None:
            server.close()
            await server.wait_closed()
        with pytest.raises(ModelError, match=said) as caught:
            await ours(wire, url, HELLO, timeouts=Timeouts(connect_s=5))
        assert (caught.value.kind, caught.value.retryable) == ("network", True)
        async with client_of(wire, url) as client:
            with pytest.raises(sdk.APIConnectionError):
                await create_of(wire, client)(**body)
        server.close()
