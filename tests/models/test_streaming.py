"""Both adapters against a real server: events, endings, cuts, closing, timeouts (MO-9 … MO-14, MO-31)."""

import asyncio
import json
import time
from contextlib import aclosing

import pytest
from support.model_settings import HELLO, KEY, settings_for
from support.patience import patience

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.messages import TextBlock, ThinkingBlock, ToolUseBlock, user_text
from bowerbird.core.requests import End, ModelRequest, Retrying, Start, TextDelta, ToolCallDelta, ToolSpec
from bowerbird.models import ModelSettings, ProviderSettings, Timeouts, complete, open_model

TOOL = ToolSpec(
    "add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
)


async def events_of(model, request=HELLO):
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def test_an_answer_streams_its_pieces_and_ends_once_with_all_of_them(fake, open_fake, wire):
    """MO-11."""
    fake.script(
        {
            "thinking": "because",
            "text": "hello there",
            "deltas": 4,
            "tools": [{"name": "add", "input": {"a": 1}}, {"name": "add", "input": {"a": 2}}],
            "usage": {"input": 12, "output": 7},
        }
    )
    events = await events_of(open_fake(wire))
    assert isinstance(events[0], Start)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "hello there"
    assert [isinstance(e, End) for e in events].count(True) == 1
    end = events[-1]
    assert isinstance(end, End)
    thinking, text, first, second = end.message.content
    assert isinstance(thinking, ThinkingBlock) and thinking.thinking == "because"
    assert text == TextBlock("hello there")
    assert isinstance(first, ToolUseBlock) and isinstance(second, ToolUseBlock)
    assert (first.input, second.input) == ({"a": 1}, {"a": 2}) and first.id != second.id
    pieces = [e for e in events if isinstance(e, ToolCallDelta)]
    assert "".join(p.json for p in pieces if p.id == second.id) == '{"a": 2}'
    assert (end.stop_reason, end.usage.input_tokens, end.usage.output_tokens) == ("tool_use", 12, 7)
    assert end.usage.model_calls == 1 and end.usage.cost is None and not end.usage.estimated


@pytest.mark.parametrize("step", [{"cut_after": 10}, {"end_after": 10}], ids=["reset", "clean-close"])
async def test_a_stream_without_its_final_marker_is_never_a_short_success(fake, open_fake, wire, step):
    """MO-11, D-13, acceptance 2: it is asked for again, and fails when every answer breaks off."""
    fake.script({"deltas": 20, **step})
    shown = 0
    with pytest.raises(ModelError) as caught:
        async with aclosing(open_fake(wire).stream(HELLO)) as events:
            async for event in events:
                shown += isinstance(event, TextDelta)
                if isinstance(event, Retrying):
                    assert event.restarts and shown == 10
                    shown = 0
    assert caught.value.kind == "stream_cut" and caught.value.usage is not None
    assert shown == 10 and fake.request_count == 4


async def test_a_call_cut_in_its_arguments_reaches_nobody(fake, open_fake, wire):
    """Acceptance 2: the stream fails, so there is no message that could hold the call."""
    fake.script({"tools": [{"name": "add", "input": {"a": 12345}}], "cut_after": 2})
    with pytest.raises(ModelError, match="cut"):
        await events_of(open_fake(wire), ModelRequest(HELLO.messages, tools=(TOOL,)))
    assert fake.request_count == 4


async def test_a_call_cut_by_the_output_limit_is_marked_invalid(fake, open_fake, wire):
    """MO-12: `max_tokens` stays, and empty arguments there are not `{}`."""
    fake.script({"tools": [{"name": "add", "raw": ""}], "stop": "max_tokens"})
    end = await complete(open_fake(wire), ModelRequest(HELLO.messages, tools=(TOOL,)))
    (call,) = end.message.tool_uses
    assert end.stop_reason == "max_tokens" and call.id in end.invalid_calls
    assert "a (integer, required)" in end.invalid_calls[call.id]


async def test_complete_calls_are_tool_use_whatever_the_provider_said(fake, open_fake, wire):
    """MO-12."""
    fake.script({"tools": [{"name": "add", "input": {"a": 1}}], "stop": "end_turn"})
    assert (await complete(open_fake(wire), HELLO)).stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("said", "meant"),
    [("end_turn", "end_turn"), ("max_tokens", "max_tokens"), ("refusal", "refusal"), ("something", "other")],
)
async def test_stop_reasons_are_translated(fake, open_fake, wire, said, meant):
    fake.script({"text": "x", "stop": said})
    assert (await complete(open_fake(wire), HELLO)).stop_reason == meant


async def test_closing_the_iterator_closes_the_http_stream_within_100_ms(fake, open_fake, wire):
    """MO-9."""
    fake.script({"deltas": 5, "hang_after": 2})
    stream = open_fake(wire).stream(HELLO)
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    began = time.monotonic()
    await stream.aclose()
    await fake.wait_closed(1)
    assert fake.closed_times[0] - began < patience(2)


@pytest.mark.parametrize(
    "step", [{"hang": True}, {"deltas": 5, "hang_after": 2}], ids=["opening", "streaming"]
)
async def test_cancelling_the_reader_closes_the_http_stream_within_100_ms(fake, open_fake, wire, step):
    model = open_fake(wire)
    await complete(model, HELLO)  # the client is made; only the call is timed
    fake.script(step)
    call = asyncio.create_task(complete(model, HELLO))
    await fake.wait_requests(2)
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < patience(2)
    await fake.wait_closed(1)
    assert fake.closed_times[0] - began < patience(2)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        pytest.param({"hang": True}, "no first event", id="first-event"),
        pytest.param({"deltas": 5, "hang_after": 2}, "sent nothing for", id="silence"),
    ],
)
async def test_a_silent_server_is_a_timeout_and_its_stream_is_closed(fake, wire, step, said):
    """MO-31."""
    fake.script(step)
    url = fake.anthropic_url if wire == "anthropic" else fake.openai_url
    timeouts = Timeouts(first_event_s=0.2, silence_s=0.2)
    settings = settings_for(fake, providers={wire: ProviderSettings(KEY, url, timeouts=timeouts)})
    model = open_model(f"{wire}:m", settings)
    with pytest.raises(ModelError, match=said) as caught:
        await complete(model, HELLO)
    await model.aclose()
    assert caught.value.kind == "timeout" and caught.value.retryable
    await fake.wait_closed(1)
    assert fake.request_count == 4  # asked again, also after content (MO-30, D-13)


async def test_a_deadline_ends_the_call_and_no_retry_outlives_it(fake, open_fake, wire):
    """MO-10."""
    fake.script({"hang": True})
    began = time.monotonic()
    with pytest.raises(ModelError, match="time left"):
        await complete(open_fake(wire), ModelRequest(HELLO.messages, deadline_s=0.5))
    assert time.monotonic() - began < patience(2) and fake.request_count == 1


async def test_usage_that_cannot_be_is_bounded(fake, open_fake, wire):
    """MO-14: numbers that no database holds, and negative ones, end no turn and give no money back."""
    fake.script({"text": "hi", "usage": {"input": 10**30, "output": -(10**30)}})
    usage = (await complete(open_fake(wire), HELLO)).usage
    assert (usage.input_tokens, usage.output_tokens) == (1_000_000_000, 0)


async def test_usage_that_nobody_reports_is_estimated(fake, open_fake, wire):
    """MO-14."""
    fake.script({"text": "some words of an answer", "usage": None})
    usage = (await complete(open_fake(wire), HELLO)).usage
    assert usage.estimated and usage.input_tokens > 0 and usage.output_tokens >= 4


async def test_cached_input_is_counted_apart(fake, open_fake, wire):
    """MO-14, MO-15: the OpenAI prompt count minus its cached part is the input."""
    fake.script({"text": "x", "usage": {"input": 10, "cache_read": 90, "output": 3}})
    usage = (await complete(open_fake(wire), HELLO)).usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.context_tokens) == (10, 90, 100)


async def test_an_error_event_inside_a_stream_is_raised_with_its_kind(fake, open_fake):
    events = (
        'event: message_start\ndata: {"type":"message_start","message":{"model":"m"}}\n\n'
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"later"}}\n\n'
    )
    fake.script({"body": events, "headers": {"content-type": "text/event-stream"}})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake("anthropic"), HELLO)
    assert caught.value.kind == "overloaded" and fake.request_count == 4
    fake.reset()
    chunk = 'data: {"error":{"message":"no credit","code":"insufficient_quota"}}\n\n'
    fake.script({"body": chunk, "headers": {"content-type": "text/event-stream"}})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake("openai"), HELLO)
    assert caught.value.kind == "quota" and fake.request_count == 1


async def test_a_server_that_answers_whole_is_understood(fake, open_fake):
    """Some servers ignore `stream`; the answer is the same."""
    answer = {
        "choices": [
            {
                "message": {
                    "reasoning_content": "why",
                    "content": "so",
                    "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": '{"a": 3}'}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    fake.script({"body": answer})
    end = await complete(open_fake("openai"), HELLO)
    assert [type(b).__name__ for b in end.message.content] == ["ThinkingBlock", "TextBlock", "ToolUseBlock"]
    assert end.message.tool_uses[0].input == {"a": 3} and end.usage.input_tokens == 5
    content = [
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 4}},
    ]
    fake.script({"body": {"content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 6}}})
    end = await complete(open_fake("anthropic"), HELLO)
    assert end.message.text == "so" and end.message.tool_uses[0].input == {"a": 4}


async def test_missing_or_repeated_call_ids_are_replaced(fake, open_fake, wire):
    """MO-8."""
    fake.script({"tools": [{"name": "add", "input": {"a": 1}, "id": i} for i in ("same", "same", "")]})
    ids = [use.id for use in (await complete(open_fake(wire), HELLO)).message.tool_uses]
    assert ids[0] == "same" and len(set(ids)) == 3
    assert all(i.startswith("call_") and len(i) == 21 for i in ids[1:])


async def test_a_missing_key_is_said_at_the_first_call_naming_the_variable(fake):
    """MO-16, CF-16, CF-18: not when the model is named, and not for a loopback OpenAI server."""
    settings = ModelSettings()
    for name, variable in (("claude-x", "ANTHROPIC_API_KEY"), ("openai:gpt-x", "OPENAI_API_KEY")):
        model = open_model(name, settings)
        with pytest.raises(ConfigError, match=variable):
            await complete(model, HELLO)
    loopback = ModelSettings(providers={"openai": ProviderSettings(base_url=fake.openai_url)})
    model = open_model("openai:gpt-x", loopback)
    assert (await complete(model, HELLO)).message.text == "ok"
    await model.aclose()
    assert "authorization" not in fake.headers[-1]


async def test_the_key_goes_to_its_own_host_only(fake, open_fake, wire):
    """CF-49: a redirect to another host is an error, and that host sees nothing."""
    path = "/v1/messages" if wire == "anthropic" else "/v1/chat/completions"
    fake.script({"status": 307, "headers": {"location": f"http://localhost:{fake.port}{path}"}, "body": ""})
    with pytest.raises(ModelError, match="redirects to another host, localhost"):
        await complete(open_fake(wire), HELLO)
    assert fake.request_count == 1


async def test_the_environment_adds_no_header_and_no_host(fake, open_fake, wire, monkeypatch):
    """Settings decide, not the SDKs' own environment variables."""
    for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Leak: yes")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-leak")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    await complete(open_fake(wire), HELLO)
    seen = fake.headers[0]
    assert "x-leak" not in seen and "openai-organization" not in seen
    assert KEY in seen["authorization"]


async def test_a_model_works_in_one_event_loop_after_another(fake):
    """`run_sync` makes a loop for each run."""
    model = open_model("openai:m", settings_for(fake))

    def once() -> str:
        async def ask() -> str:
            end = await complete(model, ModelRequest((user_text("hi"),)))
            await model.aclose()
            return end.message.text

        return asyncio.run(ask())

    assert [await asyncio.to_thread(once), await asyncio.to_thread(once)] == ["ok", "ok"]


async def test_a_burst_of_pieces_comes_as_few_events_and_loses_nothing():
    """MO-11: 200 tokens that arrive in one read need no 200 events, each a message to every viewer."""
    words = [f"word{n} " for n in range(200)]
    chunks = [json.dumps({"choices": [{"index": 0, "delta": {"content": word}}]}) for word in words]
    chunks.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    body = "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + body)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        provider = ProviderSettings(base_url=url, api_key=KEY)
        model = open_model("openai:m", ModelSettings(providers={"openai": provider}))
        texts = [event.text for event in await events_of(model) if isinstance(event, TextDelta)]
        await model.aclose()
    assert "".join(texts) == "".join(words)
    assert len(texts) < 20
