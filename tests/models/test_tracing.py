"""Traces and redaction (MO-34, MO-35, acceptance 8)."""

import asyncio
import base64
import json
from contextlib import aclosing
from itertools import count
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.model_settings import HELLO, KEY

from bowerbird.core.errors import ModelError
from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, user_text
from bowerbird.core.requests import TextDelta, Thinking, ToolSpec
from bowerbird.models import Redactor, TracingModel, complete

PATH = "/home/someone/projects/bowerbird/src/models/very/long/path/file_01.py"
HASH = "a3f5c9d2e1b4a7f6c8d9e0b1a2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c1"


def traced(model, **options):
    records = []
    return records, TracingModel(model, records.append, count(1).__next__, **options)


async def test_a_call_leaves_a_request_and_a_response_with_the_specified_keys(fake, open_fake, wire):
    fake.script(
        {"text": "hi", "tools": [{"name": "f", "raw": '{"a": True}'}], "usage": {"input": 5, "output": 2}}
    )
    records, model = traced(open_fake(wire), agent="explore")
    tool = ToolSpec("f", "Does.", {"type": "object"})
    await complete(
        model, replace(HELLO, system=("S",), tools=(tool,), temperature=0.5, thinking=Thinking(True))
    )
    request, response = records
    assert request.pop("type") == "llm_request" and response.pop("type") == "llm_response"
    assert set(request) == {
        "seq", "model", "messages", "tools", "max_tokens", "system", "temperature", "thinking_enabled",
        "thinking_effort", "message_count", "tool_count", "agent", "purpose",
    }  # fmt: skip
    assert set(response) - {"repairs"} == {
        "seq", "content", "tool_calls", "done", "usage", "ms", "error", "stop_reason", "first_token_ms",
    }  # fmt: skip
    assert (request["agent"], request["thinking_effort"], request["message_count"]) == ("explore", "high", 1)
    assert response["done"] and response["content"] == "hi" and response["stop_reason"] == "tool_use"
    assert response["tool_calls"][0]["input"] == {"a": True} and response["usage"]["input_tokens"] == 5
    assert any("Python literals" in repair for repair in response["repairs"])  # MO-25
    json.dumps(records)


async def test_failed_and_cancelled_calls_leave_their_response_too(fake, open_fake, wire):
    records, model = traced(open_fake(wire))
    fake.script({"status": 400})
    with pytest.raises(ModelError):
        await complete(model, HELLO)
    fake.script({"deltas": 5, "hang_after": 2})
    async with aclosing(model.stream(HELLO)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    fake.script({"hang": True})
    call = asyncio.create_task(complete(model, HELLO))
    await fake.wait_requests(3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    responses = [r for r in records if r["type"] == "llm_response"]
    assert [r["seq"] for r in records] == [1, 1, 2, 2, 3, 3]
    assert "HTTP 400" in responses[0]["error"] and not responses[0]["done"]
    assert (responses[1]["error"], responses[1]["content"]) == ("cancelled", "word0 ")
    assert responses[2]["error"] == "cancelled"


async def test_a_cut_answer_is_traced_with_what_it_used(fake, open_fake, wire):
    """MO-14."""
    records, model = traced(open_fake(wire))
    fake.script({"deltas": 5, "cut_after": 3})
    with pytest.raises(ModelError):
        await complete(model, HELLO)
    assert records[-1]["content"] == "word0 word1 word2 " and records[-1]["usage"]["input_tokens"] > 0


async def test_seq_goes_on_over_agents_and_restarts(open_fake):
    """The counter belongs to the session; a restart begins it where it stood."""
    records, numbers = [], count(41)
    model = open_fake("openai")
    for agent in ("main", "explore", "main"):
        await complete(TracingModel(model, records.append, numbers.__next__, agent=agent), HELLO)
    assert [r["seq"] for r in records if r["type"] == "llm_request"] == [41, 42, 43]


async def test_planted_keys_are_in_no_trace_but_in_the_request(fake, open_fake, wire):
    """Acceptance 8."""
    secret = "correct horse/battery+staple"
    written = f"{secret} {KEY} {PATH} {HASH} ghp_{'a' * 36}"
    result = Message("user", (ToolResultBlock("c", written, data={"k": secret}),))
    call = Message("assistant", (ToolUseBlock("c", "f", {}),))
    fake.script({"text": written, "tools": [{"name": "f", "input": {"x": secret}}]})
    records, model = traced(open_fake(wire), redactor=Redactor([secret, KEY]))
    await complete(model, replace(HELLO, messages=(user_text(written), call, result), system=(secret,)))
    text = json.dumps(records)
    for planted in (secret, KEY, "ghp_aaaa"):
        assert planted not in text
    assert PATH in text and HASH in text
    assert secret in json.dumps(fake.requests[0])  # the request to the provider is not redacted


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("key sk-proj-abcdefghijklmnop0123", "key"),
        ("id AKIAIOSFODNN7EXAMPLE", "aws"),
        ("token ghp_" + "x" * 36, "github"),
        ("bot xoxb-1234567890-abcdefghij", "slack"),
        ("Authorization: Bearer abcdef0123456789", "bearer"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "jwt"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----", "pem"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow cut", "pem"),
    ],
)
def test_the_formats_of_common_keys_are_recognised(text, kind):
    redacted = Redactor().text(f"before {text} after")
    assert f"[redacted:{kind}]" in redacted and redacted.startswith("before ")
    assert "MIIE" not in redacted and "abcdefghijklmnop0123" not in redacted


@pytest.mark.parametrize("key", ["sk-proj-abcdefghijklmnop0123", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "x" * 36])
def test_a_key_after_a_line_break_that_json_has_written_out_is_recognised(key):
    """A log line in JSON, or the repr of a request: there the break is a backslash and an n."""
    assert key not in Redactor().text(json.dumps({"message": f"first line\n{key}\nlast line"}))


@pytest.mark.parametrize(
    "text", [PATH, HASH, "msg_01m7vv0pknrkwqbdsxe0capnra", "task-1", "the bearer of news", "disk-usage"]
)
def test_ordinary_paths_hashes_and_identifiers_stay(text):
    assert Redactor(["swordfish-77"]).text(text) == text


def test_short_plain_words_are_no_secrets_and_other_short_ones_are_whole_words():
    """Reliability 12, server 18: a database's user masked half of our own name, a key `ollama` every mention."""
    redactor = Redactor(["bower", "ollama", "pw42!"])
    assert redactor.text("bowerbird.sessions of ollama; apw42!b") == "bowerbird.sessions of ollama; apw42!b"
    assert redactor.text("password pw42! it is") == "password [redacted:secret] it is"


@given(st.text(min_size=8, max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_a_secret_disappears_in_all_its_forms(secret, before, after):
    redactor = Redactor([secret])
    raw = secret.encode("utf-8", "surrogatepass")
    for form in (
        secret,
        quote(raw, safe=""),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
    ):
        assert form not in redactor.text(f"{before} {form} {after}")


@given(st.binary(min_size=9, max_size=30), st.binary(max_size=7), st.binary(max_size=7))
def test_a_secret_inside_longer_base64_is_found_at_any_offset(raw, before, after):
    secret = base64.b32encode(raw).decode()
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    assert "[redacted:secret]" in Redactor([secret]).text(encoded)


def test_keys_and_nested_values_of_data_are_redacted():
    data = {"a": ["x swordfish-77"], "swordfish-77": {"b": ("swordfish-77", 1, None)}}
    assert "swordfish" not in json.dumps(Redactor(["swordfish-77"]).data(data))
