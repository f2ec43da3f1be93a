"""The table of what providers refuse: each rule broken on purpose is refused, and the page tells them all."""

import base64
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.provider_rules import CHAT, MESSAGES, OLLAMA, RESPONSES, RULES, Rule, page, refusal

from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, user_text
from bowerbird.core.model_presets import PRESETS
from bowerbird.core.requests import ModelRequest
from bowerbird.models.catalog import traits_of
from bowerbird.models.providers.openai_model import build_request

ROOT = Path(__file__).parents[2]
PATHS = {
    MESSAGES: "/v1/messages",
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    OLLAMA: "/api/chat",
}
EMPTY = {"type": "object", "properties": {}}
HI: dict[str, Any] = {"role": "user", "content": "hi"}
BROKEN_PNG = base64.b64encode(b"no picture").decode()
URL = {"url": f"data:image/png;base64,{BROKEN_PNG}"}
BAD_CALL = {"id": "c", "type": "function", "function": {"name": "a b", "arguments": "{}"}}
GOOD_CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "a", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "abcdefghi", "content": "x", "tool_name": "a"}
ASKED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [GOOD_CALL]}
USE = {"type": "tool_use", "id": "c", "name": "a", "input": {}}


def tool(wire: str, name: str = "a", schema: Any = EMPTY) -> dict[str, Any]:
    """A tool as a wire offers it."""
    if wire == MESSAGES:
        return {"name": name, "description": "d", "input_schema": schema}
    function = {"name": name, "description": "d", "parameters": schema}
    return (
        {"type": "function", **function} if wire == RESPONSES else {"type": "function", "function": function}
    )


def request(wire: str, *said: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request that nobody refuses, but for what is given."""
    name = "input" if wire == RESPONSES else "messages"
    return {
        "model": "m",
        "max_tokens" if wire == MESSAGES else "stream": 50,
        name: [*(said or (HI,))],
        **more,
    }


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks]}


def broken(rule: Rule, wire: str) -> dict[str, Any]:
    """A request of `wire` that breaks `rule` alone."""
    shown: dict[str, Any] = {
        MESSAGES: {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": BROKEN_PNG},
        },
        RESPONSES: {"type": "input_image", "image_url": URL["url"]},
    }.get(wire, {"type": "image_url", "image_url": URL})
    said: dict[str, Any] = {
        MESSAGES: [
            HI,
            answer({**USE, "name": "a b"}),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
        ],
        CHAT: [HI, {**ASKED, "tool_calls": [BAD_CALL]}, {**RESULT, "tool_call_id": "c"}],
        RESPONSES: [
            HI,
            {"type": "function_call", "call_id": "c", "name": "a b", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ],
    }.get(wire, [HI])
    unanswered: dict[str, Any] = {
        MESSAGES: answer(USE), CHAT: ASKED,
        RESPONSES: {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"},
    }  # fmt: skip
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    wide = {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}
    error = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": [shown]}
    past = [HI, answer({**thought, "signature": "bound-nothing"}, {"type": "text", "text": "a"}), HI]
    bodies: dict[str, Any] = {
        "names of tools": request(wire, tools=[tool(wire, "a b")]),
        "names of calls": request(wire, *said),
        "schemas are objects": request(wire, tools=[tool(wire, schema={"anyOf": [EMPTY], **EMPTY})]),
        "arrays have items": request(wire, tools=[tool(wire, schema={**EMPTY, "properties": {"x": {"type": "array"}}})]),
        "calls have results": request(wire, HI, unanswered.get(wire, HI), HI),
        "newer models by Responses": request(wire, model="gpt-6-sol", tools=[tool(wire)]),
        "no empty text": request(wire, HI, {"role": "assistant", "content": ""}, HI),
        "cache marks": request(wire, tools=[{**tool(wire, f"t{n}"), "cache_control": {}} for n in range(5)]),
        "errors are text": request(wire, HI, answer(USE), {"role": "user", "content": [error]}),
        "pictures": request(wire, {"role": "user", "content": [shown]}),
        "thoughts": request(wire, HI, answer(thought), HI),
        "no temperature": request(wire, temperature=1),
        "closed forms of answers": request(wire, output_config=wide),
        "reasoning goes back": request(wire, HI, {"role": "assistant", "content": "a"}, HI, model="deepseek-v4-pro", tools=[tool(wire)]),
        "fits the context": request(wire, {"role": "user", "content": "word " * 9_000}),
        "signed calls": request(wire, HI, ASKED, RESULT, model="gemini-3.8-flash"),
        "a user begins": request(wire, answer({"type": "text", "text": "a"}), HI),
        "known parameters": request(wire, colour="blue"),
        "reasoning models": request(wire, model="gpt-5.2", temperature=1),
        "forms of thinking": request(wire, model="claude-opus-5", thinking={"type": "enabled", "budget_tokens": 1_024}),
        "no prefill": request(wire, HI, answer({"type": "text", "text": "a"}), model="claude-opus-4-6"),
        "nothing before reasoning changes": request(wire, *past, model="claude-sonnet-5-5"),
        "order of messages": request(wire, HI, ASKED, RESULT, HI),
        "calls follow a turn": request(wire, HI, {"role": "assistant", "content": "a"}, ASKED, RESULT),
        "text only": request(wire, {"role": "user", "content": [shown]}),
    }  # fmt: skip
    return bodies[rule.name]


def host_of(rule: Rule, wire: str) -> str:
    vendors = {MESSAGES: "api.anthropic.com", CHAT: "api.openai.com", RESPONSES: "api.openai.com"}
    return rule.hosts[0] if rule.hosts else vendors.get(wire, "127.0.0.1")


@pytest.mark.parametrize(
    ("rule", "wire"), [(rule, wire) for rule in RULES for wire in rule.wires], ids=lambda each: str(getattr(each, "name", each))
)  # fmt: skip
def test_each_rule_broken_on_purpose_is_refused_by_the_server(
    rule: Rule, wire: str, fake: FakeModels
) -> None:
    body, host = broken(rule, wire), host_of(rule, wire)
    version = {"anthropic-version": "2026-10-21"}
    said = next(rule.find(wire, body, {"host": host, **version}), None)
    assert said is not None
    url = f"http://127.0.0.1:{fake.port}{PATHS[wire]}"
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Host": host, **version})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked)
    assert refused.value.code == 400 and fake.refused == [
        json.loads(refused.value.read())["error"]["message"]
    ]


@pytest.mark.parametrize("wire", PATHS)
def test_a_plain_request_is_refused_nowhere(wire: str) -> None:
    hosts = {MESSAGES: ("api.anthropic.com",), RESPONSES: ("api.openai.com",), OLLAMA: ()}
    chat = ("api.openai.com", "api.mistral.ai", "api.deepseek.com", "generativelanguage.googleapis.com")
    for host in (*hosts.get(wire, chat), "127.0.0.1"):
        body = request(wire, tools=[tool(wire)])
        assert refusal(PATHS[wire], body, {"host": host}) is None


def test_the_page_is_current_and_its_tests_exist() -> None:
    """`python scripts/design_pages.py` writes it."""
    assert (ROOT / "docs/design/refusals.md").read_text() == page()
    for rule in RULES:
        file, _, name = rule.held_by.partition("::")
        assert re.search(rf"def {name}\b", (ROOT / "tests" / file).read_text()), rule.held_by


@pytest.mark.parametrize(
    ("provider", "model"), [("mistral", "mistral-large-2512"), ("openrouter", "mistralai/devstral-2512"), ("vllm", "Devstral-Small-2")]
)  # fmt: skip
def test_mistral_hears_a_person_only_after_an_answer(provider: str, model: str) -> None:
    """However long the conversation, and where its beginning was kept as JSON."""
    history: list[Message] = []
    for number in range(40):
        call = f"call{number:05}"
        history += [user_text("go"), Message("assistant", (ToolUseBlock(call, "a", {}),))]
        history.append(Message("user", (ToolResultBlock(call, "x"),)))
    traits = traits_of(PRESETS[provider], model, own_host=True)
    for end in range(1, len(history) + 1):
        whole = ModelRequest((*history[:end], *([] if end % 2 else [user_text("and?")])))
        body, _ = build_request(whole, traits, PRESETS[provider], {})
        sent = json.loads(encode(body))["messages"]
        roles = [message["role"] for message in sent]
        assert not [at for at in range(1, len(roles)) if roles[at - 1 : at + 1] == ["tool", "user"]]


def encode(body: dict[str, Any]) -> bytes:
    from bowerbird.models.providers.encoding import encode_body

    return encode_body(body)
