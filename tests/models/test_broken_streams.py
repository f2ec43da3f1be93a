"""Streams that end inside an event, hold bytes that are no text, or are no streams at all."""

import json
from contextlib import aclosing

import pytest
from support.model_settings import HELLO

from bowerbird import Agent
from bowerbird.core.errors import ModelError
from bowerbird.models import complete

STREAM = {"content-type": "text/event-stream"}
BEGINS = {
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ],
    "openai": [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}],
}
ENDS = {
    "anthropic": [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ],
    "openai": [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}],
}


def piece(wire, text):
    if wire == "anthropic":
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def sent(*payloads):
    return b"".join(b"data: %s\n\n" % json.dumps(payload).encode() for payload in payloads)


def whole_stream(wire, *texts):
    end = b"data: [DONE]\n\n" if wire == "openai" else b""
    return sent(*BEGINS[wire], *(piece(wire, text) for text in texts), *ENDS[wire]) + end


@pytest.mark.parametrize("cut", [3, 12, 25], ids=["in the quotes", "in the text", "in the name"])
async def test_an_answer_that_ends_inside_an_event_is_asked_for_again(fake, open_fake, wire, cut):
    """D-13: what is cut is a broken connection, not an answer that nobody can read."""
    broken = sent(*BEGINS[wire], piece(wire, "some words of it"))[: -2 - cut]
    whole = whole_stream(wire, "whole")
    fake.script({"body": broken, "headers": STREAM}, {"body": whole, "headers": STREAM})
    assert (await complete(open_fake(wire), HELLO)).message.text == "whole"
    assert fake.request_count == 2


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no end of line", "no blank line"])
async def test_a_last_event_without_its_blank_line_counts(fake, open_fake, wire, end):
    fake.script({"body": whole_stream(wire, "whole").rstrip(b"\n") + end, "headers": STREAM})
    assert (await complete(open_fake(wire), HELLO)).message.text == "whole"
    assert fake.request_count == 1


@pytest.mark.parametrize("many", [1, 100], ids=["alone", "in a burst"])
async def test_bytes_that_are_no_text_are_shown_as_such_and_stop_nothing(fake, open_fake, wire, many):
    """A server that cuts its tokens inside a character sends halves of it, as bytes or as escapes."""
    raw = whole_stream(wire, *["a"] * many, "XX", "YY", "ZZ")
    raw = raw.replace(b"XX", b"\xf0\x9f").replace(b"YY", b"\\ud83d").replace(b"ZZ", b"\\ude00 \\ud83d\\ude00")
    fake.script({"body": raw, "headers": STREAM})
    text = (await complete(open_fake(wire), HELLO)).message.text
    assert text == "a" * many + "\ufffd" * 3 + " 😀"
    assert fake.request_count == 1


async def test_a_page_in_place_of_an_answer_names_itself_and_is_not_asked_for_again(fake, open_fake, wire):
    page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>"
    fake.script({"body": page, "headers": {"content-type": "text/html; charset=utf-8"}})
    with pytest.raises(ModelError, match=r"text/html.*base URL") as caught:
        async with aclosing(open_fake(wire).stream(HELLO)) as events:
            _ = [event async for event in events]
    assert not caught.value.retryable and fake.request_count == 1
    stream = {"content-type": "text/html; charset=utf-8"}  # what PHP says of everything
    fake.script({"body": whole_stream(wire, "whole"), "headers": stream})
    assert (await complete(open_fake(wire), HELLO)).message.text == "whole"


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


ABOUT = {
    "code": 502,
    "message": "Provider disconnected unexpectedly",
    "metadata": {"error_type": "provider_unavailable"},
}
# How an answer fails in its middle. OpenRouter: https://openrouter.ai/docs/api_reference/errors-and-debugging;
# GLM and DeepSeek: reasons of the end in their references; Gemini: "function_call_filter: …" at its
# compatible address.
FAILURES = {
    "openrouter": {"error": ABOUT, **chunk("error", content="")},
    "openrouter-in-the-choice": {"choices": [{"index": 0, "delta": {"content": ""}, "error": ABOUT}]},
    "openrouter-limited": {
        "error": {"code": 429, "message": "Rate limit exceeded"},
        **chunk("error", content=""),
    },
    "openrouter-without-words": chunk("error"),
    "glm": chunk("network_error"),
    "deepseek": chunk("insufficient_system_resource"),
    "gemini": chunk("function_call_filter: MALFORMED_FUNCTION_CALL"),
    "vllm": chunk("abort"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_an_answer_that_fails_in_its_middle_is_asked_for_again(fake, open_fake, failure, streamed):
    if streamed:
        cut = sent(*BEGINS["openai"], piece("openai", "some words"), FAILURES[failure]) + b"data: [DONE]\n\n"
        broken = {"body": cut, "headers": STREAM}
    else:
        said = json.loads(json.dumps(FAILURES[failure]).replace('"delta"', '"message"'))
        said["choices"][0]["message"]["content"] = "some words"
        broken = {"body": said}
    fake.script(broken, {"body": whole_stream("openai", "whole"), "headers": STREAM})
    assert (await complete(open_fake("openai"), HELLO)).message.text == "whole"
    assert fake.request_count == 2


@pytest.mark.parametrize(
    ("payloads", "stop"),
    [
        ((chunk("sensitive"),), "refusal"),  # GLM
        ((chunk("content_filter: PROHIBITED_CONTENT"),), "refusal"),  # Gemini
        ((chunk("model_length"),), "context_overflow"),  # Mistral
        ((chunk("model_context_window_exceeded"),), "context_overflow"),  # GLM
        ((chunk(refusal="I cannot help with that."), chunk("stop")), "refusal"),  # OpenAI
        ((chunk("stop"),), "end_turn"),
    ],
)  # fmt: skip
async def test_the_reason_of_an_end_is_the_provider_s(fake, open_fake, payloads, stop):
    fake.script({"body": sent(*BEGINS["openai"], *payloads) + b"data: [DONE]\n\n", "headers": STREAM})
    assert (await complete(open_fake("openai"), HELLO)).stop_reason == stop


async def test_a_refusal_that_is_cut_is_no_whole_answer(fake, open_fake):
    broken = sent(*BEGINS["openai"], chunk(refusal="I can"))
    fake.script(
        {"body": broken, "headers": STREAM}, {"body": whole_stream("openai", "yes"), "headers": STREAM}
    )
    assert (await complete(open_fake("openai"), HELLO)).message.text == "yes"


ERRORS = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "openai": {"error": {"code": 503, "message": "no provider is available"}},
    "openai-bare": {"code": "1302", "msg": "High concurrency", "success": False},
}


@pytest.mark.parametrize("said", ERRORS)
async def test_an_error_with_the_status_of_success_is_an_error(fake, open_fake, said):
    wire = said.partition("-")[0]
    fake.script({"body": ERRORS[said]}, {"text": "at last"})
    assert (await complete(open_fake(wire), HELLO)).message.text == "at last"
    words = ERRORS[said].get("error", {}).get("message") or ERRORS[said]["msg"]
    fake.script({"body": ERRORS[said]})
    with pytest.raises(ModelError, match=words):
        await complete(open_fake(wire), HELLO)


async def test_a_conversation_that_is_too_long_is_known_within_a_stream(fake, open_fake):
    said = {"message": "The number of tokens to keep is greater than the context length"}  # LM Studio
    fake.script({"body": sent({"error": said}), "headers": STREAM})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake("openai"), HELLO)
    assert (caught.value.kind, fake.request_count) == ("context_overflow", 1)


async def test_a_pause_of_claude_is_gone_on_from(fake, open_fake, tmp_path):
    """However often: a pause is no cut."""
    halves = [{"text": f"part {n}, ", "stop": "pause_turn"} for n in range(5)]
    fake.script(*halves, {"text": "end."})
    with Agent(workdir=tmp_path, language_model=open_fake("anthropic")) as agent:
        result = await agent.run("go")
    assert result.text == "part 0, part 1, part 2, part 3, part 4, end."
    assert (result.stop_reason, fake.request_count, fake.refused) == ("completed", 6, [])
    assert fake.requests[1]["messages"][1]["content"][0]["text"] == "part 0, "
    assert "You paused" in str(fake.requests[1]["messages"][2])
