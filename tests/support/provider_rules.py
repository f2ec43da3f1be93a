"""What providers refuse: one table, which every model server of the tests holds its requests against.

Here: rules by wire and host, each with the words of a refusal and where it is known from. Not here: the servers,
their scripts, and what our clients do about it. A rule that is found enters as one row: where it holds, what it
finds wrong, its source, and what we do; `docs/design/refusals.md` is written from the rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Body = dict[str, Any]
Headers = Mapping[str, str]
MESSAGES, CHAT, RESPONSES, OLLAMA = "messages", "chat", "responses", "ollama"
_PATHS = {"/messages": MESSAGES, "/chat/completions": CHAT, "/responses": RESPONSES, "/api/chat": OLLAMA}
_COMBINED = ("oneOf", "anyOf", "allOf", "enum", "not")
_LONGEST_NAME = {MESSAGES: 128, CHAT: 64, RESPONSES: 64, OLLAMA: 64}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NO_TEMPERATURE_SINCE = "2026-10-21"


def wire_of(path: str) -> str | None:
    """Return which wire a request's path belongs to, None for none that has rules."""
    bare = path.split("?", maxsplit=1)[0]
    return next((wire for end, wire in _PATHS.items() if bare.endswith(end)), None)


def refusal(path: str, body: Body, headers: Headers, without: Iterable[str] = ()) -> str | None:
    """Return why the real provider would answer 400, None when it would take the request.

    Args:
        without: names of rules that an older or compatible server does not have.
    """
    wire = wire_of(path)
    host = headers.get("host", "")
    checks = [rule.find for rule in RULES if rule.holds(wire, host) and rule.name not in without]
    return next((said for find in checks for said in find(wire or "", body, headers)), None)


def _tools(wire: str, body: Body) -> list[tuple[str, Any]]:
    """Name and schema of every tool that is offered."""
    tools = body.get("tools") or []
    if wire == MESSAGES:
        return [(tool["name"], tool["input_schema"]) for tool in tools]
    functions = [tool if wire == RESPONSES else tool["function"] for tool in tools]
    return [(function["name"], function.get("parameters")) for function in functions]


def _offered_names(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    names = [name for name, _ in _tools(wire, body)]
    for at, name in enumerate(names):
        if not _fits(wire, name):
            yield f"tools.{at}.name: {name!r} should match pattern '{_pattern(wire)}'"
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    if wire in (CHAT, RESPONSES) and len(names) > 128:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length 128, got {len(names)}."


def _said_names(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    for at, message in enumerate(body.get("messages") or body.get("input") or []):
        for name in _names_said(wire, message):
            if not _fits(wire, name):
                yield f"messages.{at}: the name {name!r} of a call should match pattern '{_pattern(wire)}'"


def _names_said(wire: str, message: Body) -> list[str]:
    if wire == MESSAGES:
        return [block["name"] for block in _blocks(message) if block["type"] == "tool_use"]
    if wire == RESPONSES:
        return [message["name"]] if message.get("type") == "function_call" else []
    return [call["function"]["name"] for call in message.get("tool_calls") or []]


def _fits(wire: str, name: str) -> bool:
    return re.fullmatch(_pattern(wire), name) is not None


def _pattern(wire: str) -> str:
    return f"[a-zA-Z0-9_-]{{1,{_LONGEST_NAME[wire]}}}"


def _schema_tops(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    for name, schema in _tools(wire, body):
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"Invalid schema for function '{name}': schema must be of type 'object'"
        elif combined := next((key for key in _COMBINED if key in schema), None):
            yield f"Invalid schema for function '{name}': it must not have '{combined}' at the top level"
        elif wire != MESSAGES and not isinstance(schema.get("properties"), dict):
            yield f"Invalid schema for function '{name}': object schema missing properties"


def _schema_arrays(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    for name, schema in _tools(wire, body):
        for where in _arrays_without_items(schema, ()):
            yield f"Invalid schema for function '{name}': In context={where}, array schema missing items."


def _arrays_without_items(schema: Any, where: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(schema, list):
        for part in schema:
            yield from _arrays_without_items(part, where)
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and not isinstance(
        schema.get("items"), dict
    ):
        yield where
    for key, inner in schema.items():
        if key in ("properties", "$defs", "definitions", "patternProperties"):
            for name, part in inner.items():
                yield from _arrays_without_items(part, (*where, key, name))
        elif key not in ("enum", "const", "default", "examples", "required"):
            yield from _arrays_without_items(inner, (*where, key))


def _blocks(message: Body) -> list[Body]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _answered_calls(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    messages = body.get("messages") or []
    for at, message in enumerate([{"content": []}, *messages], -1):
        asked = [block["id"] for block in _blocks(message) if block["type"] == "tool_use"]
        following = _blocks(messages[at + 1]) if at + 1 < len(messages) else []
        answered = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
        if sorted(asked) != sorted(answered):
            yield (
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after, or "
                f"the other way round: {asked} and {answered}"
            )
        kinds = [block["type"] == "tool_result" for block in following]
        if kinds != sorted(kinds, reverse=True):
            yield f"messages.{at + 1}: `tool_result` blocks must come before any other content"
        bad = next((one for one in asked if not _ID.fullmatch(one)), None)
        if bad is not None:
            yield f"messages.{at}.content.id: {bad!r} should match pattern '^[a-zA-Z0-9_-]+$'"


def _answered_functions(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    waiting: list[str] = []
    for at, message in enumerate(body.get("messages") or []):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.[{at}]: 'tool' must be a response to a preceding message with 'tool_calls'."
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = [call["id"] for call in message.get("tool_calls") or []]
    if waiting:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following did not have response messages: {', '.join(waiting)}"
        )


def _answered_items(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    items = body.get("input") or []
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    if missing := [call for call in asked if call not in answered]:
        yield f"No tool output found for function call {missing[0]}."
    if missing := [call for call in answered if call not in asked]:
        yield f"No tool call found for function call output with call_id {missing[0]}."
    for at, item in enumerate(items):
        after = items[at + 1] if at + 1 < len(items) else {}
        its = after.get("type") in ("function_call", "reasoning") or after.get("role") == "assistant"
        if item.get("type") == "reasoning" and not its:
            yield f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."


# From a developer's report to the vendor's API description (541), and gateways that met it.
_NEWER = re.compile(r"gpt-(5\.[5-9]|[6-9])|.*codex|.*-pro\b")


def _newer_models(_wire: str, body: Body, headers: Headers) -> Iterator[str]:
    model = str(body.get("model"))
    if is_openai(headers.get("host", "")) and body.get("tools") and _NEWER.match(model):
        yield f"Function tools with reasoning are not supported for {model} in /v1/chat/completions. Use /v1/responses."


def _texts(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    messages = body.get("input" if wire == RESPONSES else "messages") or []
    for at, message in enumerate(messages):
        if wire == RESPONSES and "role" not in message:
            continue
        if not message.get("content") and not message.get("tool_calls") and message["role"] != "tool":
            yield f"messages.{at}: content must be non-empty"
        for block in _blocks(message) if wire == MESSAGES else ():
            if block["type"] == "text" and not (block["text"] or "").strip():
                yield f"messages.{at}: text content blocks must contain non-whitespace text"


def _cache_marks(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    blocks = [block for message in body.get("messages") or [] for block in _blocks(message)]
    system = body.get("system")
    marked = [
        block
        for block in [*(body.get("tools") or []), *(system if isinstance(system, list) else []), *blocks]
        if "cache_control" in block
    ]
    if len(marked) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        yield "thinking.cache_control: Extra inputs are not permitted"


def _pictures_in(wire: str, body: Body) -> Iterator[tuple[str, str, bytes]]:
    """Where each picture stands, the type it is said to be of, its bytes."""
    for at, message in enumerate(body.get("messages") or body.get("input") or []):
        outputs = message.get("output")  # of a function, on the Responses wire
        for number, block in enumerate(_blocks(message) + (outputs if isinstance(outputs, list) else [])):
            inner = block.get("content") if block["type"] == "tool_result" else None
            for part in [block, *(inner if isinstance(inner, list) else [])]:
                where = f"messages.{at}.content.{number}.image.source.base64"
                if wire == MESSAGES and part["type"] == "image":
                    yield where, part["source"]["media_type"], base64.b64decode(part["source"]["data"])
                elif part["type"] in ("image_url", "input_image"):
                    url = part["image_url"]
                    url = url if isinstance(url, str) else url["url"]
                    kind, data = url.removeprefix("data:").split(";base64,")
                    yield where, kind, base64.b64decode(data)


# The vendor's page on vision (8,000 px, 2,000 where there are more than 20, 100 at most); the words from users:
# anthropics/claude-code 4778, 49537, 19631, and 2anki/2anki.net 2834 of types that differ.
def _pictures(wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    found = list(_pictures_in(wire, body))
    most = 2_000 if len(found) > 20 else 8_000
    if len(found) > 100:
        yield f"messages: too many images: {len(found)} > 100"
    for where, kind, content in found:
        said = kind.removeprefix("image/").upper()
        if said == "JPEG":
            said = "\xff\xd8\xff"
        sides = (0, 0)
        if content[:4] == b"\x89PNG":
            sides = struct.unpack_from(">II", content.ljust(24, b"\0"), 16)
        elif content[:4] == b"GIF8":
            sides = struct.unpack_from("<HH", content.ljust(10, b"\0"), 6)
        elif content[:3] in (b"\xff\xd8\xff", b"RIF"):
            sides = (1, 1)  # that these are measured is tested by what is sent
        if not all(sides):
            yield f"{where}: Could not process image"
        elif said.encode("latin-1") not in content[:12]:
            yield f"{where}: Image does not match the provided media type {kind}"
        elif max(sides) > most:
            yield f"{where}: At least one of the image dimensions exceed max allowed size: {most} pixels"
        elif len(content) > 5 << 20:
            yield f"{where}: image exceeds 5 MB maximum: {len(content)} bytes > {5 << 20} bytes"


# The vendor's page on extended thinking; words: tailcallhq/forgecode 2107 and 1853, anomalyco/opencode 3077.
def _thoughts(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    kinds = [
        (message["role"], [block["type"] for block in _blocks(message)])
        for message in body.get("messages") or []
    ]
    for at, (role, blocks) in enumerate(kinds):
        if role == "assistant" and blocks[-1:] in (["thinking"], ["redacted_thinking"]):
            yield f"messages.{at}: The final block in an assistant message cannot be `thinking`."
    loop: list[int] = []  # where the model spoke since a person last did
    for at, (role, blocks) in enumerate(kinds):
        if role == "assistant":
            loop.append(at)
        elif "tool_result" not in blocks:
            loop.clear()
    if not loop or not _OLDER.match(str(body.get("model"))):
        return
    thinks = (body.get("thinking") or {}).get("type") == "enabled"
    began = kinds[loop[0]][1][:1]
    if thinks and began not in (["thinking"], ["redacted_thinking"]):
        yield f"messages.{loop[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found {began}"
    if not thinks and any("thinking" in kind for at in loop for kind in kinds[at][1]):
        yield (
            f"messages.{loop[0]}.content.0: When thinking is disabled, an `assistant` message in the final "
            "position cannot contain `thinking`"
        )


_OLDER = re.compile(r"claude-(3-7|(opus|sonnet)-4(-[01])?(-20\d+)?$|(opus|sonnet|haiku)-4-5)")


def _error_results(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    for message in body.get("messages") or []:
        for block in _blocks(message):
            parts = block.get("content") if block["type"] == "tool_result" else None
            if block.get("is_error") and isinstance(parts, list) and any(p["type"] != "text" for p in parts):
                yield 'all content must be type "text" if "is_error" is true'


def _temperature(_wire: str, body: Body, headers: Headers) -> Iterator[str]:
    if "temperature" in body and headers.get("anthropic-version", "") >= _NO_TEMPERATURE_SINCE:
        yield "temperature: Extra inputs are not permitted"


# The vendor's page on structured outputs; its SDK rewrites schemas to the same effect.
_FORM_KEYS = {
    "type", "enum", "const", "title", "required", "$ref", "$defs", "definitions", "properties", "anyOf",
    "allOf", "items", "format", "minItems", "description", "additionalProperties",
}  # fmt: skip


def _forms(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    form = (body.get("output_config") or {}).get("format")
    yield from _form_faults(form["schema"]) if form else ()


def _form_faults(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for key in set(schema) - _FORM_KEYS:
        yield f"output_config.format.schema: For '{schema.get('type')}' type, property '{key}' is not supported"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
    for key in ("properties", "$defs", "definitions"):
        for part in (schema.get(key) or {}).values():
            yield from _form_faults(part)
    for part in (*(schema.get("anyOf") or ()), *(schema.get("allOf") or ()), schema.get("items")):
        yield from _form_faults(part)


# The vendor's page on thought signatures: the first call of each step has one. From Gemini 3 on.
def _signed_calls(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    if not re.match(r"gemini-([3-9]|\d\d)", str(body.get("model"))):
        return
    for at, message in enumerate(body.get("messages") or []):
        calls = message.get("tool_calls") or []
        if calls and not ((calls[0].get("extra_content") or {}).get("google") or {}).get("thought_signature"):
            name = calls[0]["function"]["name"]
            yield f"Function call is missing a thought_signature in functionCall parts. `default_api:{name}`, position {at}."


# The vendor's guide to thinking mode, and what its server answers in many reports.
def _reasoning_back(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    said = [m for m in body.get("messages") or [] if m["role"] == "assistant"]
    thinks = (body.get("thinking") or {}).get("type") != "disabled" and bool(body.get("tools"))
    thinks &= str(body.get("model")).startswith("deepseek-v4")
    if thinks and any("reasoning_content" not in message for message in said):
        yield "The `reasoning_content` in the thinking mode must be passed back to the API."


# The vendor's pages on its chat API and on context length: 4,096 tokens where nobody says more, and the
# beginning of what is longer is cut without a word; here that is an error.
def _fits_context(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    room = (body.get("options") or {}).get("num_ctx", 4_096)
    size = len(json.dumps([body.get("messages"), body.get("tools")])) // 5
    if size > room:
        yield f"the prompt of {size} tokens is longer than the context of {room}: it would be cut silently"
    for message in body.get("messages") or []:
        for call in message.get("tool_calls") or []:
            if not isinstance(call["function"]["arguments"], dict):
                yield "json: cannot unmarshal string into Go struct field .arguments"
        if message["role"] == "tool" and not message.get("tool_name"):
            yield "a result names no tool"


def _first_is_users(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    messages = body.get("messages")
    if not messages:
        yield "messages: at least one message is required"
    elif messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'


_PARAMETERS = {
    MESSAGES: "model messages max_tokens system stream tools tool_choice thinking output_config cache_control temperature "
    "container diagnostics inference_geo metadata service_tier speed stop_sequences user_profile_id workspace_id",
    RESPONSES: "model input instructions max_output_tokens stream store include reasoning temperature text tools "
    "tool_choice prompt_cache_key parallel_tool_calls truncation metadata top_p user",
    CHAT: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice temperature top_p "
    "response_format reasoning_effort prompt_cache_key parallel_tool_calls metadata seed stop store user verbosity",
    "api.mistral.ai": "model messages max_tokens stream tools tool_choice temperature top_p response_format stop "
    "random_seed parallel_tool_calls prompt_mode reasoning_effort safe_prompt prompt_cache_key metadata n prediction",
    "generativelanguage.googleapis.com": "model messages max_tokens max_completion_tokens stream stream_options tools "
    "tool_choice temperature top_p response_format reasoning_effort extra_body n stop",
}  # fmt: skip
_OPEN = ("api.deepseek.com", "openrouter.ai", "api.groq.com")  # leave out what they do not know


def _parameters(wire: str, body: Body, headers: Headers) -> Iterator[str]:
    host = headers.get("host", "")
    if wire == CHAT and (host in _OPEN or not is_vendor(host)):
        return
    known = _PARAMETERS.get(host, _PARAMETERS[wire]).split()
    for name in body:
        if name not in known:
            yield f"Unknown parameter: '{name}'."
    for at, message in enumerate(body.get("messages") or []):
        if host == "api.mistral.ai" and "reasoning_content" in message:
            yield f"body.messages.{at}.assistant.reasoning_content: Extra inputs are not permitted"


# The vendor's pages on its reasoning models, and what its server answers of each in many reports.
_REASONS = re.compile(r"o\d|gpt-[5-9]")
_EFFORTS = (
    (re.compile(r"o\d"), ("low", "medium", "high")),
    (re.compile(r"gpt-5(-|$)"), ("minimal", "low", "medium", "high")),
    (re.compile(r"gpt-5\.1"), ("none", "low", "medium", "high")),
    (re.compile(r"gpt-(5\.[2-9]|[6-9])"), ("none", "low", "medium", "high", "xhigh", "max")),
)


def _reasoning_models(wire: str, body: Body, headers: Headers) -> Iterator[str]:
    model = str(body.get("model"))
    if not is_openai(headers.get("host", "")):
        return
    effort = body.get("reasoning_effort") if wire == CHAT else (body.get("reasoning") or {}).get("effort")
    if not _REASONS.match(model):
        if effort is not None:
            yield "Unsupported parameter: 'reasoning_effort' is not supported with this model."
        return
    for name in ("temperature", "max_tokens"):
        if name in body:
            yield f"Unsupported parameter: '{name}' is not supported with this model."
    known = next(efforts for pattern, efforts in _EFFORTS if pattern.match(model))
    if effort is not None and effort not in known:
        yield f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."


# The vendor's pages on extended and on adaptive thinking, and on what changed with 4.6, 4.7 and 5.5.
_ADAPTIVE = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(4-[6-9]|[5-9])")
_ONLY_ADAPTIVE = re.compile(r"claude-((opus|sonnet|haiku)-(4-[7-9]|[5-9])|fable|mythos)")
_ALWAYS_THINKS = re.compile(r"claude-(opus-5-5|fable|mythos)")


def _thinking(_wire: str, body: Body, headers: Headers) -> Iterator[str]:
    model, thinking = str(body.get("model")), body.get("thinking") or {}
    kind, budget = thinking.get("type"), thinking.get("budget_tokens")
    if headers.get("host") != "api.anthropic.com":
        return
    if kind == "adaptive" and not _ADAPTIVE.match(model):
        yield f"thinking.type: adaptive thinking is not supported on {model}"
    if kind == "enabled" and _ONLY_ADAPTIVE.match(model):
        yield f"thinking.type.enabled is not supported for {model}. Use thinking.type.adaptive"
    if kind == "enabled" and not (isinstance(budget, int) and 1_024 <= budget < body["max_tokens"]):
        yield "thinking.enabled.budget_tokens: must be 1,024 or more, and less than max_tokens"
    if kind == "disabled" and _ALWAYS_THINKS.match(model):
        yield f"thinking.type: disabled is not supported on {model}"
    if kind in ("enabled", "adaptive") and (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."
    if (body.get("output_config") or {}).get("effort", "low") not in (
        "low",
        "medium",
        "high",
        "xhigh",
        "max",
    ):
        yield "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"


def _no_prefill(_wire: str, body: Body, headers: Headers) -> Iterator[str]:
    messages = body.get("messages") or [{"role": "user"}]
    if messages[-1]["role"] == "assistant" and _ADAPTIVE.match(str(body.get("model"))):
        yield "This model does not support assistant message prefill. The conversation must end with a user message."


_CHECKS_HISTORY = re.compile(r"claude-((opus|sonnet|haiku)-5-5|(fable|mythos)-5-[12])")


def bound_signatures(body: Body) -> list[str]:
    """Return the signature that reasoning has after so many messages of a request: one that all before it makes."""
    made = hashlib.sha256(_plain([body.get("tools"), body.get("system")]))
    found = [made.hexdigest()[:24]]
    for message in body.get("messages") or []:
        made.update(_plain(message))
        found.append(made.hexdigest()[:24])
    return [f"bound-{one}" for one in found]


def _plain(value: Any) -> bytes:
    return json.dumps(unmarked(value), sort_keys=True).encode()


def unmarked(value: Any) -> Any:
    """Return `value` without its cache marks."""
    if isinstance(value, dict):
        return {key: unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [unmarked(part) for part in value] if isinstance(value, list) else value


# The vendor's page on preserved thinking; the test server signs so where its script says so.
def _bound(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    if not _CHECKS_HISTORY.match(str(body.get("model"))):
        return
    drops = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
    if drops != "drop_block" and unbound(body):
        yield "messages: `thinking` block is bound to a different conversation"


def unbound(body: Body) -> int:
    """Return how many signed blocks of reasoning stand after something else than when they were made."""
    made = bound_signatures(body)
    return sum(
        block.get("signature", "").startswith("bound-") and block["signature"] != made[at]
        for at, message in enumerate(body.get("messages") or [])
        for block in _blocks(message)
        if block["type"] == "thinking"
    )


# What the vendor's own package of its requests checks (mistral-common, issue 169), and its server's 3230 in
# charmbracelet/crush 279 and datapizza-labs/datapizza-ai 98; ids: "must be a-z, A-Z, 0-9, with a length of 9".
def _order(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    role = ""
    for at, message in enumerate(body.get("messages") or []):
        if role == "tool" and message["role"] not in ("tool", "assistant"):
            yield f"Unexpected role '{message['role']}' after role 'tool'"
        role = message["role"]
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield "Assistant message must have either content or tool_calls, but not none."
        ids = [call["id"] for call in message.get("tool_calls") or []] + [
            message.get("tool_call_id", "a" * 9)
        ]
        for one in ids:
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", one):
                yield f"Tool call id was {one} but must be a-z, A-Z, 0-9, with a length of 9. (message {at})"
    if role == "assistant":
        yield "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"


# The vendor's server in many reports (vscode 299295, gemini-cli 11814): after text of its own it may not call.
def _turns(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    role = ""
    for message in body.get("messages") or []:
        if message.get("tool_calls") and role not in ("user", "tool"):
            yield (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        role = message["role"]


# rikkahub 1433, hermes-webui 2297 and many more of the vendor's V4.
def _text_only(_wire: str, body: Body, _headers: Headers) -> Iterator[str]:
    for at, message in enumerate(body.get("messages") or []):
        if any(block["type"] != "text" for block in _blocks(message)):
            yield f"messages[{at}]: unknown variant `image_url`, expected `text`"


def is_openai(host: str) -> bool:
    """Whether the vendor itself answers there, or Azure for it."""
    return host == "api.openai.com" or host.endswith(".openai.azure.com")


def is_vendor(host: str) -> bool:
    """Whether a request was sent to a vendor's own address, which here stands behind a proxy."""
    return is_openai(host) or host in _PARAMETERS or host in (*_OPEN, "api.anthropic.com")


class Rule(NamedTuple):
    """What is refused, where, and what of a request breaks it.

    Attributes:
        wires, hosts: where it holds; no hosts = wherever the wire is spoken.
        source: where it is known from. ours: what we do with what would break it.
        held_by: the test of that.
    """

    name: str
    wires: tuple[str, ...]
    find: Callable[[str, Body, Headers], Iterator[str]]
    source: str
    ours: str
    held_by: str = "server/test_provider_talks.py::test_no_request_is_refused_by_the_rules_of_its_provider_and_no_turn_fails_by_itself"
    hosts: tuple[str, ...] = ()

    def holds(self, wire: str | None, host: str) -> bool:
        """Whether a request of `wire` to `host` is held against it."""
        return wire in self.wires and (not self.hosts or host in self.hosts)


LOOKED_AT = "2026-11-28"
"""Until when sources were collected."""
_MISTRAL, _GEMINI = ("api.mistral.ai",), ("generativelanguage.googleapis.com",)
RULES = (
    Rule("names of tools", (MESSAGES, CHAT, RESPONSES, OLLAMA), _offered_names,
         "API references; at most 128 tools: OpenAI's", "repaired; tools over 128 are left out by name",
         held_by="models/test_accepted.py::test_more_tools_than_a_provider_takes_are_left_out_by_name"),
    Rule("names of calls", (MESSAGES, CHAT, RESPONSES), _said_names,
         "API references", "repaired: other characters become _",
         held_by="models/test_accepted.py::test_a_session_goes_on_after_a_name_that_no_tool_can_have"),
    Rule("schemas are objects", (MESSAGES, CHAT, RESPONSES), _schema_tops,
         "API references; OpenAI's page on function calling", "repaired: alternatives become properties",
         held_by="models/test_accepted.py::test_a_tool_however_described_is_taken_by_every_provider"),
    Rule("arrays have items", (CHAT, RESPONSES), _schema_arrays,
         "OpenAI's server: array schema missing items", "repaired: `items` is added",
         held_by="models/test_accepted.py::test_a_tool_however_described_is_taken_by_every_provider"),
    Rule("calls have results", (MESSAGES,), _answered_calls,
         "Anthropic's page on tool use", "repaired: a missing result is said to be unknown",
         held_by="models/test_conversation.py::test_every_call_has_its_result_directly_after_it_on_both_wires"),
    Rule("calls have results", (CHAT,), _answered_functions,
         "OpenAI's page on function calling", "repaired: a missing result is said to be unknown",
         held_by="models/test_conversation.py::test_every_call_has_its_result_directly_after_it_on_both_wires"),
    Rule("calls have results", (RESPONSES,), _answered_items,
         "OpenAI's page on reasoning items", "repaired; reasoning without what it led to is left out",
         held_by="models/test_conversation.py::test_every_call_has_its_result_directly_after_it_on_both_wires"),
    Rule("newer models by Responses", (CHAT,), _newer_models,
         "openai/openai-openapi 541, BerriAI/litellm 34569", "repaired: asked by Responses",
         held_by="models/test_responses.py::test_newer_models_work_with_all_tools_and_get_their_reasoning_back"),
    Rule("no empty text", (MESSAGES, CHAT, RESPONSES), _texts,
         "Anthropic's and OpenAI's API references", "left out",
         held_by="models/test_pictures.py::test_an_answer_of_reasoning_only_ends_no_session"),
    Rule("cache marks", (MESSAGES,), _cache_marks,
         "Anthropic's page on prompt caching", "never sent",
         held_by="models/test_wire_requests.py::test_a_mark_never_stands_on_reasoning"),
    Rule("errors are text", (MESSAGES,), _error_results,
         "Anthropic's page on tool use", "repaired: the picture is described",
         held_by="models/test_pictures.py::test_a_picture_in_a_result_that_is_an_error_ends_nothing"),
    Rule("pictures", (MESSAGES, CHAT, RESPONSES), _pictures,
         "Anthropic's page on vision; anthropics/claude-code 4778, 49537, 19631", "left out by name",
         held_by="models/test_pictures.py::test_a_picture_that_would_be_refused_is_said_in_text"),
    Rule("thoughts", (MESSAGES,), _thoughts,
         "Anthropic's page on extended thinking; tailcallhq/forgecode 2107, 1853", "left out",
         held_by="models/test_pictures.py::test_reasoning_is_switched_on_and_off_within_a_turn"),
    Rule("no temperature", (MESSAGES,), _temperature,
         "anthropic-version 2026-10-21; its SDK", "sent only if a person set one, then left out",
         held_by="models/test_accepted.py::test_no_temperature_is_sent_that_nobody_set"),
    Rule("closed forms of answers", (MESSAGES,), _forms,
         "Anthropic's page on structured outputs; its SDK", "repaired; what cannot be said is left to the words",
         held_by="models/test_given_back.py::test_a_form_of_answers_is_closed_and_has_no_limits"),
    Rule("reasoning goes back", (CHAT,), _reasoning_back,
         "DeepSeek's guide to thinking mode", "repaired: an empty one for none",
         held_by="models/test_given_back.py::test_a_model_that_wants_all_reasoning_back_gets_it_or_an_empty_one"),
    Rule("fits the context", (OLLAMA,), _fits_context,
         "Ollama's pages on its chat API and on context length", "asked for as large as is planned with",
         held_by="models/test_ollama.py::test_an_agent_works_in_a_context_that_is_asked_for"),
    Rule("signed calls", (CHAT,), _signed_calls,
         "Google's page on thought signatures", "sent back; those of other models are marked so",
         held_by="models/test_given_back.py::test_signed_calls_go_back_signed_over_steps_turns_and_a_change_of_models"),
    Rule("a user begins", (MESSAGES,), _first_is_users,
         "Anthropic's API reference", "never sent"),
    Rule("known parameters", (MESSAGES, CHAT, RESPONSES), _parameters,
         "API references and SDKs; Mistral: dnakov/anon-kode 53, charmbracelet/crush 1590", "never sent"),
    Rule("reasoning models", (CHAT, RESPONSES), _reasoning_models,
         "OpenAI's pages on reasoning", "the nearest effort that the model knows, said in the trace"),
    Rule("forms of thinking", (MESSAGES,), _thinking,
         "Anthropic's pages on extended and adaptive thinking", "the model's own form"),
    Rule("no prefill", (MESSAGES,), _no_prefill,
         "Anthropic's page on 4.6; llm-exe/llm-exe 503", "never sent: a message of ours asks to go on"),
    Rule("nothing before reasoning changes", (MESSAGES,), _bound,
         "Anthropic's page on preserved thinking", "never changed in a turn; else the vendor is asked to drop it",
         held_by="agent/test_prefix.py::test_each_call_of_a_turn_begins_with_the_bytes_of_the_one_before"),
    Rule("order of messages", (CHAT,), _order,
         "mistralai/mistral-common 169, charmbracelet/crush 279", "repaired: a word of the assistant between",
         held_by="models/test_provider_rules.py::test_mistral_hears_a_person_only_after_an_answer", hosts=_MISTRAL),
    Rule("calls follow a turn", (CHAT,), _turns,
         "microsoft/vscode 299295, google-gemini/gemini-cli 11814", "never sent",
         hosts=_GEMINI),
    Rule("text only", (CHAT,), _text_only,
         "rikkahub/rikkahub 1433, nesquena/hermes-webui 2297", "described",
         hosts=("api.deepseek.com",)),
)  # fmt: skip


WHO = {
    MESSAGES: "Anthropic Messages", CHAT: "OpenAI Chat Completions", RESPONSES: "OpenAI Responses", OLLAMA: "Ollama",
    "api.mistral.ai": "Mistral", "api.deepseek.com": "DeepSeek", "generativelanguage.googleapis.com": "Gemini",
}  # fmt: skip


def page() -> str:
    """Return the page of all rules."""
    lines = [
        "# What providers refuse",
        "",
        "Each row is a rule of `tests/support/provider_rules.py`: the model servers of all tests refuse what breaks it,",
        f"as the provider does. They were read, not tried at the providers themselves; the sources are as of {LOOKED_AT}.",
        "What a provider refuses beyond them, and names, is left out of that request and of those that follow.",
        "",
        "| Where | Rule | Known from | What we do | Test |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rule in RULES:
        where = ", ".join(WHO[each] for each in (rule.hosts or rule.wires))
        lines.append(f"| {where} | {rule.name} | {rule.source} | {rule.ours} | `tests/{rule.held_by}` |")
    return "\n".join(lines) + "\n"
