"""Parts of a request that a server refused by name: left out of it, and of all that follow.

Here: which part an error means, and requests without it, as JSON of any wire. Not here: pictures, which are
known before (`content`), fields (`failures`), asking again (`wrappers/retry`).

What is refused for a reason that nobody foresaw would be refused in every later request too: no session
could go on.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import msgspec

from bowerbird.core.forms import decoder
from bowerbird.models.providers.encoding import compact_json

_decode: Callable[[bytes], dict[str, Any]] = decoder(dict[str, Any])
LEFT_OUT = "[left out: the provider refused it]"
# Anthropic: messages.3.content.1 and tools.4; OpenAI: messages[3].content[1], input[5]; Mistral: "messages",
# 5; Gemini: tools[0].function_declarations[57].
_PLACE = re.compile(
    r"\b(function_declarations|messages|input|tools(?!.{1,5}function_))\W{1,4}(\d+)\b(?:\W+content\W{1,4}(\d+)\b)?"
)
_TOOL = re.compile(r"(?:function|tool) ['\"`]([\w-]{1,128})['\"`]")


def part_named(error: str, body: bytes) -> tuple[str, str] | None:
    """Return the key of the part of `body` that `error` names, and what it is; None where it names none.

    A part in which nothing is left to leave out is none: what is wrong there is something else.
    """
    request = _decode(body)
    tools: list[dict[str, Any]] = request.get("tools") or []
    place, named = _PLACE.search(error), _TOOL.search(error)
    if named is not None and (place is None or place[1] not in ("messages", "input")):
        tool = next((tool for tool in tools if _name_of(tool) == named[1]), None)
        return None if tool is None else (_key(tool), f"the tool {named[1]}")
    if place is None:
        return None
    is_tool = place[1] in ("tools", "function_declarations")
    parts: list[dict[str, Any]] = tools if is_tool else request.get(place[1]) or []
    number, inner = int(place[2]), int(place[3] or 0)
    if number >= len(parts) or parts[number].get("role") in ("system", "developer"):
        return None
    part, said = parts[number], f"message {number}"
    if is_tool:
        return _key(part), f"the tool {_name_of(part)}"
    content: Any = part.get("content")
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    if inner >= max(1, len(blocks)):
        return None  # it is not what we think it is
    if place[3] and blocks:
        part, said = blocks[inner], f"part {inner} of message {number}"
    return None if _left_out(part) == part else (_key(part), said)


def without_parts(body: bytes, refused: Collection[str]) -> bytes:
    """Return `body` in which what is refused is left out, or says that it was."""
    if not refused:
        return body
    request = _decode(body)
    if "tools" in request:
        request["tools"] = [tool for tool in request["tools"] if _key(tool) not in refused]
    for name in ("messages", "input"):
        if isinstance(request.get(name), list):
            request[name] = [one for part in request[name] if (one := _kept(part, refused)) is not None]
    return msgspec.json.encode(request)


def _kept(message: dict[str, Any], refused: Collection[str]) -> dict[str, Any] | None:
    if _key(message) in refused:
        return _left_out(message)
    content = message.get("content")
    if isinstance(content, list):
        blocks = cast("list[dict[str, Any]]", content)
        kept = [_left_out(block) if _key(block) in refused else block for block in blocks]
        return message | {"content": _some(kept)}
    return message


def _left_out(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return what stands in place of a part: nothing for reasoning; calls and results stay pairs."""
    match part.get("type"):
        case "thinking" | "redacted_thinking" | "reasoning":
            return None
        case "tool_use":
            return part | {"input": {}}
        case "function_call":
            return part | {"arguments": "{}"}
        case "tool_result":
            return part | {"content": LEFT_OUT}
        case "function_call_output":
            return part | {"output": LEFT_OUT}
        case str() as kind if "role" not in part:
            return {"type": "input_text" if kind.startswith("input_") else "text", "text": LEFT_OUT}
        case _:
            return _message(part)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    made = {key: value for key, value in message.items() if key not in ("images", "reasoning_details")}
    if isinstance(content, list):
        blocks = cast("list[dict[str, Any]]", content)
        # A turn that began with reasoning must still do so.
        made["content"] = _some([each if _is_thought(each) else _left_out(each) for each in blocks])
    elif content:
        made["content"] = LEFT_OUT
    if calls := cast("list[dict[str, Any]]", message.get("tool_calls") or []):
        blank = [call["function"] | {"arguments": _no_arguments(call["function"])} for call in calls]
        made["tool_calls"] = [call | {"function": each} for call, each in zip(calls, blank, strict=True)]
    return made


def _is_thought(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


def _no_arguments(function: Mapping[str, Any]) -> Any:
    return "{}" if isinstance(function["arguments"], str) else {}


def _some(blocks: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    return [block for block in blocks if block is not None] or [{"type": "text", "text": LEFT_OUT}]


def _name_of(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def _key(part: dict[str, Any]) -> str:
    """Return what tells a part from all others; where a cache mark stands is no part of it."""
    return hashlib.sha256(compact_json(_unmarked(part)).encode()).hexdigest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _unmarked(part) for key, part in table.items() if key != "cache_control"}
    return [_unmarked(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value
