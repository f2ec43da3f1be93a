"""Requests of both wires, built without I/O (MO-7, MO-8, MO-16 … MO-24, MO-53, MO-54)."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    message_from_data,
    user_text,
)
from bowerbird.core.model_presets import PRESETS
from bowerbird.core.requests import ModelRequest, Thinking, ToolSpec
from bowerbird.models import parse_effort
from bowerbird.models.catalog import Traits, traits_of
from bowerbird.models.names import preset_of
from bowerbird.models.providers import anthropic_model, openai_model
from bowerbird.models.providers.encoding import encode_body
from bowerbird.models.settings import ModelOverride

PNG = b"\x89PNG....bytes"
BLOB = f"sha256:{hashlib.sha256(PNG).hexdigest()}"
TOOLS = tuple(ToolSpec(name, f"Does {name}.", {"type": "object", "properties": {}}) for name in ("b", "a"))


def traits(provider: str, model: str = "m", own_host: bool = False, **override: object) -> Traits:
    return traits_of(preset_of(provider), model, own_host=own_host, override=ModelOverride(**override))


def anthropic_body(request: ModelRequest, model: str = "m", own_host: bool = False, **override: object):
    return anthropic_model.build_request(
        request, traits("anthropic", model, own_host, **override), {BLOB: PNG}
    )[0]


def openai_body(request: ModelRequest, provider="openai", model="m", own_host=False, without=(), **override):
    known = traits(provider, model, own_host, **override)
    return openai_model.build_request(request, known, preset_of(provider), {BLOB: PNG}, frozenset(without))[0]


def build(wire: str, request: ModelRequest, **options: object) -> dict:
    return (anthropic_body if wire == "anthropic" else openai_body)(request, **options)


def conversation(origin: str = "anthropic:m") -> tuple[Message, ...]:
    calls = (ToolUseBlock("call_1", "a", {"z": 1, "a": 2}), ToolUseBlock("call_2", "b", {}))
    thinking = (ThinkingBlock("because", "sig", origin), RedactedThinkingBlock("xx", origin))
    image = ImageBlock("image/png", BlobSource(BLOB))
    results = (
        ToolResultBlock("call_1", [TextBlock("see"), image], data={"secret": 1}),
        ToolResultBlock("call_2", "boom", is_error=True),
    )
    return (
        user_text("start"),
        Message("assistant", (*thinking, TextBlock("I look."), *calls)),
        Message("user", results),
        assistant_text("done"),
        user_text("more"),
    )


# ---------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    "provider", ["openai", "ollama", "vllm", "groq", "deepseek", "mistral", "openai-compatible"]
)
def test_effort_max_at_a_custom_base_url_has_both_fields_on_the_openai_wire(provider):
    """MO-20, acceptance 4."""
    on = openai_body(ModelRequest((user_text("x"),), thinking=Thinking(True, "max")), provider)
    assert (on["thinking"], on["reasoning_effort"]) == ({"type": "enabled"}, "max")
    off = openai_body(ModelRequest((user_text("x"),), thinking=Thinking(False)), provider)
    assert off["thinking"] == {"type": "disabled"} and "reasoning_effort" not in off


def test_effort_max_at_a_custom_base_url_has_both_fields_on_the_anthropic_wire():
    """MO-20, acceptance 4."""
    on = anthropic_body(ModelRequest((user_text("x"),), thinking=Thinking(True, "max")))
    assert (on["thinking"], on["output_config"]) == ({"type": "enabled"}, {"effort": "max"})
    off = anthropic_body(ModelRequest((user_text("x"),), thinking=Thinking(False)))
    assert off["thinking"] == {"type": "disabled"} and "output_config" not in off
    silent = anthropic_body(ModelRequest((user_text("x"),)))
    assert "thinking" not in silent


_DISABLED = {"thinking": {"type": "disabled"}}


@pytest.mark.parametrize(
    ("wire", "model", "sent", "off"),
    [
        (
            "anthropic",
            "claude-sonnet-4-5-20250929",
            {"thinking": {"type": "enabled", "budget_tokens": 15_360}},
            _DISABLED,
        ),
        (
            "anthropic",
            "claude-opus-4-6",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "max"},
            },
            _DISABLED,
        ),
        ("anthropic", "claude-3-5-haiku-20241022", {}, {}),
        ("openai", "o3", {"reasoning_effort": "high"}, {"reasoning_effort": "low"}),
        ("openai", "gpt-5-mini", {"reasoning_effort": "high"}, {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.2", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "none"}),
        ("openai", "gpt-4o", {}, {}),
    ],
)
def test_the_vendors_own_host_gets_the_vendors_form_and_off_is_said(wire, model, sent, off):
    request = ModelRequest((user_text("x"),), thinking=Thinking(True, "max"), max_tokens=16_384)
    fields = {"thinking", "output_config", "reasoning_effort"}
    for wish, expected in ((Thinking(True, "max"), sent), (Thinking(False), off), (None, {})):
        asked = msgspec.structs.replace(request, thinking=wish)
        body = build(wire, asked, model=model, own_host=True)
        assert {k: v for k, v in body.items() if k in fields} == expected


def test_where_thinking_is_off_what_was_thought_is_not_sent():
    thought = ThinkingBlock("hm", "signed", "anthropic:claude-sonnet-5-5")
    said = Message("assistant", (thought, TextBlock("hello")))
    for wish, sent in ((None, ["thinking", "text"]), (Thinking(False), ["text"])):
        request = ModelRequest((user_text("x"), said, user_text("y")), thinking=wish)
        body = build("anthropic", request, model="claude-sonnet-5-5", own_host=True)
        assert [block["type"] for block in body["messages"][1]["content"]] == sent


def test_a_model_that_always_thinks_is_not_told_to_stop_and_that_is_said():
    request = ModelRequest((user_text("x"),), thinking=Thinking(False))
    known = traits("anthropic", "claude-opus-5-5", own_host=True)
    body, notes = anthropic_model.build_request(request, known, {})
    assert body["thinking"]["type"] == "adaptive"
    assert notes == ("thinking: this model cannot go without it",)


def test_an_effort_the_model_does_not_know_becomes_the_nearest_lower_one_and_is_said():
    """MO-22."""
    request = ModelRequest((user_text("x"),), thinking=Thinking(True, "max"))
    known = traits("openai", "o3", own_host=True)
    _, notes = openai_model.build_request(request, known, PRESETS["openai"], {})
    assert notes == ("effort max: not known, sent high",)


def test_efforts_are_parsed_per_audience():
    """MO-22."""
    assert parse_effort("xhigh") == "max" and parse_effort("low") == "low"
    with pytest.raises(InvalidArgument, match="low, medium, high, max"):
        parse_effort("extreme")


def test_a_setting_per_model_overrides_the_form():
    """MO-21."""
    request = ModelRequest((user_text("x"),), thinking=Thinking(True, "high"))
    body = openai_body(request, "openai", "m", True, thinking_form="effort")
    assert body["thinking"] == {"type": "enabled"}
    assert "thinking" not in anthropic_body(request, thinking_form="none")


# ---------------------------------------------------------------- messages


def test_anthropic_messages_are_as_stored_without_origin_and_data():
    """MO-18, MO-23: signed reasoning of the same model goes back unchanged and in place."""
    body = anthropic_body(ModelRequest(conversation(), system=("S",), tools=TOOLS))
    assistant, results = body["messages"][1]["content"], body["messages"][2]["content"]
    assert assistant[0] == {"type": "thinking", "thinking": "because", "signature": "sig"}
    assert assistant[1] == {"type": "redacted_thinking", "data": "xx"}
    assert assistant[3] == {"type": "tool_use", "id": "call_1", "name": "a", "input": {"z": 1, "a": 2}}
    assert set(results[0]) == {"type", "tool_use_id", "content"}
    assert results[0]["content"][1]["source"]["type"] == "base64" and results[1]["is_error"] is True
    assert body["tools"][0]["name"] == "b" and set(body["tools"][0]) == {
        "name",
        "description",
        "input_schema",
    }


def test_reasoning_of_another_origin_is_left_out_of_both_wires():
    """MO-23, acceptance 3."""
    for wire in ("anthropic", "openai"):
        text = json.dumps(build(wire, ModelRequest(conversation("other:model"))))
        assert "because" not in text and "sig" not in text and "origin" not in text


def test_unsigned_reasoning_goes_back_only_as_reasoning_content_of_presets_that_take_it():
    """MO-23."""
    thought = Message("assistant", (ThinkingBlock("why", None, "deepseek:m"), TextBlock("so")))
    request = ModelRequest((user_text("x"), thought, user_text("y")))
    assert openai_body(request, "deepseek")["messages"][1]["reasoning_content"] == "why"
    assert "reasoning_content" not in openai_body(request, "groq")["messages"][1]
    assert "reasoning_content" not in openai_body(request, "vllm")["messages"][1]  # another origin
    assert (
        "reasoning_content"
        not in openai_body(request, "deepseek", without=["reasoning_content"])["messages"][1]
    )


def test_openai_results_stand_directly_after_their_calls_and_images_follow():
    """MO-19."""
    messages = openai_body(ModelRequest(conversation(), system=("S", "T")))["messages"]
    assert [m["role"] for m in messages] == [
        "system", "user", "assistant", "tool", "tool", "user", "assistant", "user",
    ]  # fmt: skip
    assert messages[0]["content"] == "S\n\nT"
    call = messages[2]["tool_calls"][0]
    assert call["function"] == {"name": "a", "arguments": '{"a":2,"z":1}'}
    assert [m["tool_call_id"] for m in messages[3:5]] == ["call_1", "call_2"]
    assert messages[4]["content"] == "Error: boom"
    assert messages[5]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "secret" not in json.dumps(messages)


def test_a_model_without_image_input_gets_a_line_with_type_and_size():
    """MO-7."""
    image = Message("user", (TextBlock("look"), ImageBlock("image/png", BlobSource(BLOB))))
    for wire in ("anthropic", "openai"):
        text = json.dumps(build(wire, ModelRequest((image,)), images=False))
        assert f"[image: image/png, {len(PNG)} bytes]" in text and "base64" not in text


def test_unknown_blocks_are_kept_in_the_journal_and_not_sent():
    """MO-8, acceptance 3."""
    stored = message_from_data(
        {
            "role": "user",
            "content": [
                {"type": "hologram", "beam": 1},
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": None},
            ],
        }
    )
    for wire in ("anthropic", "openai"):
        text = json.dumps(build(wire, ModelRequest((stored, assistant_text("x"), user_text("y")))))
        assert "hologram" not in text and "citations" not in text


def test_ids_of_other_providers_become_valid_and_stay_paired():
    calls = (ToolUseBlock("functions.f:0", "f", {}),)
    history = (
        user_text("x"),
        Message("assistant", calls),
        Message("user", (ToolResultBlock("functions.f:0", "r"),)),
    )
    body = anthropic_body(ModelRequest(history))
    sent = body["messages"][1]["content"][0]["id"]
    assert sent == body["messages"][2]["content"][0]["tool_use_id"] and ":" not in sent and "." not in sent
    mistral = openai_body(ModelRequest(history), "mistral")["messages"]
    assert mistral[1]["tool_calls"][0]["id"] == mistral[2]["tool_call_id"]
    assert len(mistral[2]["tool_call_id"]) == 9


# ---------------------------------------------------------------- fields


def test_every_call_carries_model_limit_and_temperature_where_the_model_takes_one():
    """MO-17."""
    request = ModelRequest((user_text("x"),), max_tokens=700, temperature=0.5)
    assert {"model": "m", "max_tokens": 700, "temperature": 0.5}.items() <= anthropic_body(request).items()
    body = openai_body(request)
    assert {
        "model": "m",
        "max_completion_tokens": 700,
        "temperature": 0.5,
        "stream": True,
    }.items() <= body.items()
    assert body["stream_options"] == {"include_usage": True}
    assert openai_body(request, "ollama")["max_tokens"] == 700
    assert "temperature" not in openai_body(request, model="o3-mini")
    assert "temperature" not in anthropic_body(request, temperature=False)


def test_a_refused_output_limit_is_sent_under_its_other_name():
    """MO-19."""
    request = ModelRequest((user_text("x"),), max_tokens=700)
    body = openai_body(request, without=["max_completion_tokens"])
    assert body["max_tokens"] == 700 and "max_completion_tokens" not in body


@pytest.mark.parametrize(
    ("choice", "anthropic", "openai"),
    [
        ("auto", None, None),
        ("none", {"type": "none"}, "none"),
        ("required", {"type": "any"}, "required"),
        ("a", {"type": "tool", "name": "a"}, {"type": "function", "function": {"name": "a"}}),
    ],
)
def test_tool_choice_is_translated(choice, anthropic, openai):
    request = ModelRequest((user_text("x"),), tools=TOOLS, tool_choice=choice)
    assert anthropic_body(request).get("tool_choice") == anthropic
    assert openai_body(request).get("tool_choice") == openai


def test_output_schemas_are_sent_where_the_provider_constrains():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    request = ModelRequest((user_text("x"),), output_schema=schema)
    own = anthropic_body(request, "claude-sonnet-4-5", own_host=True)
    assert own["output_config"]["format"] == {"type": "json_schema", "schema": schema}
    assert openai_body(request)["response_format"]["json_schema"]["schema"] == schema
    assert "response_format" not in openai_body(request, "openai-compatible")


def test_the_cache_key_is_the_session_on_the_vendors_host_only():
    """MO-54."""
    request = ModelRequest((user_text("x"),), session="t1")
    assert openai_body(request, own_host=True)["prompt_cache_key"] == "t1"
    assert "prompt_cache_key" not in openai_body(request)


# ---------------------------------------------------------------- cache


def marks(body: dict) -> list[str]:
    found = [f"tool {t['name']}" for t in body.get("tools", []) if "cache_control" in t]
    found += [f"system {b['text']}" for b in body.get("system", []) if "cache_control" in b]
    for i, message in enumerate(body["messages"]):
        found += [f"message {i} {b['type']}" for b in message["content"] if "cache_control" in b]
    return found


def test_cache_marks_stand_after_tools_system_the_asked_message_and_the_newest():
    """MO-54; the last system block may change per turn (MO-46), so it stands after the mark."""
    request = ModelRequest(
        conversation(), system=("S", "model: m"), tools=TOOLS, cache_marks=(0, 1, 2), dated=True
    )
    body = anthropic_body(request)
    assert marks(body) == ["tool a", "system S", "message 2 tool_result", "message 4 text"]
    day = f"Date: {request.messages[-1].ts[:10]}"
    assert [block["text"] for block in body["messages"][-1]["content"]] == ["more", day]
    assert day not in json.dumps(body["messages"][2])  # nothing stands between calls and what follows
    assert marks(anthropic_body(ModelRequest((user_text("x"),), system=("S",)))) == [
        "system S",
        "message 0 text",
    ]


def test_a_mark_never_stands_on_reasoning():
    thought = Message("assistant", (TextBlock("x"), ThinkingBlock("t", "s", "anthropic:m")))
    body = anthropic_body(ModelRequest((user_text("q"), thought)))
    assert marks(body) == ["message 1 text"]


def strip(value: object) -> object:
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k != "cache_control"}
    return [strip(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_twenty_steps_each_begin_with_the_bytes_of_the_one_before(wire):
    """Marks are no part of the prefix; the day of a message is, and stays."""
    messages: list[Message] = [user_text("begin")]
    before = b""
    for step in range(20):
        request = ModelRequest(tuple(messages), system=("S", "model"), tools=TOOLS, dated=True)
        sent = encode_body(strip(build(wire, request)))
        assert sent.startswith(before)
        assert encode_body(strip(build(wire, request))) == sent
        body = strip(build(wire, request))
        cached = {key: body[key] for key in ("tools", "system", "messages") if key in body}
        before = encode_body(cached).removesuffix(b"]}")
        call = ToolUseBlock(f"call_{step}", "a", {"step": step})
        messages += [Message("assistant", (call,)), Message("user", (ToolResultBlock(call.id, f"r{step}"),))]


@given(st.dictionaries(st.text(max_size=4), st.integers(), max_size=5))
def test_identical_state_gives_identical_bytes_whatever_the_order_of_keys(arguments):
    """MO-53."""
    turned = dict(reversed(arguments.items()))
    for wire in ("anthropic", "openai"):
        calls = [Message("assistant", (ToolUseBlock("c", "a", value),)) for value in (arguments, turned)]
        bodies = [encode_body(build(wire, ModelRequest((user_text("x"), call)))) for call in calls]
        assert bodies[0] == bodies[1]


def test_text_that_is_no_unicode_does_not_stop_a_request():
    body = anthropic_body(ModelRequest((user_text("file \udcff.txt"),)))
    assert json.loads(encode_body(body))["messages"][0]["content"][0]["text"] == "file ?.txt"


def test_an_empty_assistant_message_is_not_sent():
    """A message of foreign reasoning only would be refused as empty."""
    thought = Message("assistant", (ThinkingBlock("t", "s", "other:m"),))
    for wire in ("anthropic", "openai"):
        body = build(wire, ModelRequest((user_text("a"), thought, user_text("b"))))
        assert [m["role"] for m in body["messages"]] in (["user"], ["user", "user"])


def test_traits_can_be_overridden_one_by_one():
    info = traits("anthropic", "claude-x", context_window=5_000, images=False).info
    assert (info.context_window, info.images, info.name) == (5_000, False, "anthropic:claude-x")
    assert msgspec.structs.replace(traits("openai"), own_host=True).own_host
