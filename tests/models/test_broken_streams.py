"""Streams that end inside an event, hold bytes that are no text, or are no streams at all."""

import json
from contextlib import aclosing

import pytest
from support.model_settings import HELLO

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
