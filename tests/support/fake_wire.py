"""The answers of `fake_models` in both wire forms, made from a STEP.

Here: steps chosen from directives, and bytes of the two wires. Not here: HTTP, scripting, the log.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

Step = dict[str, Any]

_STOP_TO_OPENAI = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}
_ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
    529: "overloaded_error",
}  # fmt: skip
_OPEN = "[[fake "

# ---------------------------------------------------------------- steps from directives


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if part.get("type") == "text")


def _directives(text: str) -> Iterator[dict[str, Any]]:
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        position = start + len(_OPEN)
        with contextlib.suppress(ValueError):
            directive, position = json.JSONDecoder().raw_decode(text, position)
            if isinstance(directive, dict) and directive.get("steps"):
                yield directive


def directed_step(body: dict[str, Any]) -> Step:
    messages: list[dict[str, Any]] = body.get("messages", [])
    system = _text(body.get("system")) + "".join(
        _text(m["content"]) for m in messages if m["role"] == "system"
    )
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] != "user":
            continue
        for directive in _directives(_text(messages[index].get("content"))):
            if directive.get("match", "") in system:
                steps = directive["steps"]
                done = sum(1 for m in messages[index + 1 :] if m["role"] == "assistant")
                return steps[min(done, len(steps) - 1)]
    return {"text": "ok"}


# ---------------------------------------------------------------- answers


def _pieces(text: str, count: int) -> list[str]:
    count = max(1, min(count, len(text)))
    size, rest = divmod(len(text), count)
    ends = [size * i + min(i, rest) for i in range(count + 1)]
    return [text[a:b] for a, b in itertools.pairwise(ends) if b > a]


class Plan:
    """One answer, independent of the wire."""

    def __init__(self, step: Step, number: int, salt: str, body: dict[str, Any]) -> None:
        self.tools = [
            {
                "id": tool.get("id", f"call_fake_{salt}_{number}_{k}"),
                "name": tool["name"],
                "input": tool.get("input", {}),
                "raw": tool.get("raw", json.dumps(tool.get("input", {}))),
            }
            for k, tool in enumerate(step.get("tools", []))
        ]
        if "text" in step:
            first, rest = step["text"][: step.get("first", 0)], step["text"][step.get("first", 0) :]
            self.text = [*([first] if first else []), *(_pieces(rest, step.get("deltas", 1)) if rest else [])]
        else:
            self.text = [f"word{i % 10} " for i in range(step.get("deltas", 0))]
        thinking = step.get("thinking", 0)
        self.thinking = (
            [f"idea{i % 10} " for i in range(thinking)] if isinstance(thinking, int) else _pieces(thinking, 4)
        )
        self.signature = step.get("signature", "fakesig")
        self.message = f"msg_fake_{salt}_{number}"
        self.stop = step.get("stop") or ("tool_use" if self.tools else "end_turn")
        counted = sum(len(str(m.get("content"))) for m in body.get("messages", [])) // 4 + 1
        used = len(self.text) + len(self.thinking) + 20 * len(self.tools)
        given = step.get("usage", {})
        self.usage: dict[str, int] | None = None
        if given is not None:
            usage = {key.removesuffix("_tokens"): value for key, value in given.items()}
            blank = {"input": counted, "output": used, "cache_read": 0, "cache_write": 0, "reasoning": 0}
            self.usage = {**blank, **usage}


def error_body(status: int, anthropic: bool, message: str = "") -> dict[str, Any]:
    kind = _ERROR_TYPES.get(status, "api_error")
    error = {"type": kind, "message": message or f"scripted failure {status}"}
    return (
        {"type": "error", "error": error} if anthropic else {"error": {**error, "code": None, "param": None}}
    )


def _sse(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _anthropic_usage(plan: Plan) -> dict[str, int]:
    if plan.usage is None:
        return {}
    return {
        "input_tokens": plan.usage["input"],
        "output_tokens": plan.usage["output"],
        "cache_read_input_tokens": plan.usage["cache_read"],
        "cache_creation_input_tokens": plan.usage["cache_write"],
    }


def anthropic_events(plan: Plan, body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    start = {
        "id": plan.message,
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
    }
    usage = {"usage": {**_anthropic_usage(plan), "output_tokens": 1}} if plan.usage else {}
    yield (
        _sse("message_start", {"message": {**start, "stop_reason": None, "stop_sequence": None, **usage}}),
        False,
    )
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if plan.thinking:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in plan.thinking]
        signature = {"type": "signature_delta", "signature": plan.signature}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]))
    if plan.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in plan.text]))
    for tool in plan.tools:
        pieces = [{"type": "input_json_delta", "partial_json": p} for p in _pieces(tool["raw"], 3)]
        blocks.append(({"type": "tool_use", "id": tool["id"], "name": tool["name"], "input": {}}, pieces))
    for index, (block, deltas) in enumerate(blocks):
        yield _sse("content_block_start", {"index": index, "content_block": block}), False
        for delta in deltas:
            yield (
                _sse("content_block_delta", {"index": index, "delta": delta}),
                delta["type"] != "signature_delta",
            )
        yield _sse("content_block_stop", {"index": index}), False
    used = {"usage": {"output_tokens": plan.usage["output"]}} if plan.usage else {}
    yield _sse("message_delta", {"delta": {"stop_reason": plan.stop, "stop_sequence": None}, **used}), False
    yield _sse("message_stop", {}), False


def anthropic_json(plan: Plan, body: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if plan.thinking:
        content.append({"type": "thinking", "thinking": "".join(plan.thinking), "signature": plan.signature})
    if plan.text:
        content.append({"type": "text", "text": "".join(plan.text)})
    content += [
        {"type": "tool_use", "id": t["id"], "name": t["name"], "input": t["input"]} for t in plan.tools
    ]
    whole = {
        "id": plan.message,
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": content,
    }
    return {**whole, "stop_reason": plan.stop, "stop_sequence": None, "usage": _anthropic_usage(plan)}


def _openai_usage(plan: Plan) -> dict[str, Any]:
    if plan.usage is None:
        return {}
    prompt = plan.usage["input"] + plan.usage["cache_read"]
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": plan.usage["output"]}
    usage["total_tokens"] = prompt + plan.usage["output"]
    usage["prompt_tokens_details"] = {"cached_tokens": plan.usage["cache_read"]}
    usage["completion_tokens_details"] = {"reasoning_tokens": plan.usage["reasoning"]}
    return usage


def openai_events(plan: Plan, body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    base = {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": body.get("model"),
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + json.dumps({**base, "choices": [choice]}).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""}), False
    for piece in plan.thinking:
        yield chunk({"reasoning_content": piece}), True
    for piece in plan.text:
        yield chunk({"content": piece}), True
    for k, tool in enumerate(plan.tools):
        function = {"name": tool["name"], "arguments": ""}
        call: dict[str, Any] = {"index": k, "id": tool["id"], "type": "function", "function": function}
        if k == 0 and str(body.get("model")).startswith("gemini"):
            call["extra_content"] = {"google": {"thought_signature": f"of-{tool['id']}"}}
        yield chunk({"tool_calls": [call]}), False
        for piece in _pieces(tool["raw"], 3):
            yield chunk({"tool_calls": [{"index": k, "function": {"arguments": piece}}]}), True
    yield chunk({}, _STOP_TO_OPENAI.get(plan.stop, plan.stop)), False
    if plan.usage and body.get("stream_options", {}).get("include_usage"):
        yield (
            b"data: " + json.dumps({**base, "choices": [], "usage": _openai_usage(plan)}).encode() + b"\n\n",
            False,
        )
    yield b"data: [DONE]\n\n", False


def openai_json(plan: Plan, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(plan.text) or None}
    if plan.thinking:
        message["reasoning_content"] = "".join(plan.thinking)
    if plan.tools:
        message["tool_calls"] = [
            {"id": t["id"], "type": "function", "function": {"name": t["name"], "arguments": t["raw"]}}
            for t in plan.tools
        ]
    choice = {"index": 0, "message": message, "finish_reason": _STOP_TO_OPENAI.get(plan.stop, plan.stop)}
    whole = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": body.get("model")}
    return {**whole, "choices": [choice], "usage": _openai_usage(plan)}


def _responses_items(plan: Plan) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if plan.thinking:
        summary = [{"type": "summary_text", "text": "".join(plan.thinking)}]
        kept = f"encrypted-{plan.signature}"
        items.append({"type": "reasoning", "id": "rs_fake", "summary": summary, "encrypted_content": kept})
    if plan.text:
        part = {"type": "output_text", "text": "".join(plan.text), "annotations": []}
        said = {"type": "message", "id": plan.message, "role": "assistant", "status": "completed"}
        items.append({**said, "phase": "commentary" if plan.tools else "final_answer", "content": [part]})
    for tool in plan.tools:
        call = {
            "type": "function_call",
            "id": f"fc_{tool['id']}",
            "call_id": tool["id"],
            "name": tool["name"],
        }
        items.append({**call, "arguments": tool["raw"], "status": "completed"})
    return items


def responses_json(plan: Plan, body: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {"id": "resp_fake", "object": "response", "model": body.get("model")}
    whole["status"] = "incomplete" if plan.stop == "max_tokens" else "completed"
    if plan.stop == "max_tokens":
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    if plan.usage is not None:
        read = plan.usage["input"] + plan.usage["cache_read"]
        whole["usage"] = {
            "input_tokens": read, "input_tokens_details": {"cached_tokens": plan.usage["cache_read"]},
            "output_tokens": plan.usage["output"],
            "output_tokens_details": {"reasoning_tokens": plan.usage["reasoning"]},
            "total_tokens": read + plan.usage["output"],
        }  # fmt: skip
    return {**whole, "output": _responses_items(plan)}


def responses_events(plan: Plan, body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    whole = responses_json(plan, body)
    empty = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield _sse("response.created", {"response": empty}), False
    blank = {"reasoning": {"summary": [], "encrypted_content": None}, "message": {"content": []}}
    for index, item in enumerate(whole["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        begun = {**item, **blank.get(item["type"], {"arguments": ""})}
        yield _sse("response.output_item.added", {"output_index": index, "item": begun}), False
        if item["type"] == "reasoning":
            name, pieces, more = "reasoning_summary_text", plan.thinking, {"summary_index": 0}
        elif item["type"] == "message":
            name, pieces, more = "output_text", plan.text, {"content_index": 0, "logprobs": []}
        else:
            name, pieces, more = "function_call_arguments", _pieces(item["arguments"], 3), {}
        part = {**where, **more, "part": {"type": name, "text": "", "annotations": []}}
        if item["type"] == "message":
            yield _sse("response.content_part.added", part), False
        elif item["type"] == "reasoning":
            part["part"] = {"type": "summary_text", "text": ""}
            yield _sse("response.reasoning_summary_part.added", part), False
        for piece in pieces:
            yield _sse(f"response.{name}.delta", {**where, **more, "delta": piece}), True
        yield _sse("response.output_item.done", {"output_index": index, "item": item}), False
    last = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    yield _sse(last, {"response": whole}), False


def ollama_events(plan: Plan, body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    def line(message: dict[str, Any], **more: Any) -> bytes:
        said = {"model": body.get("model"), "message": {"role": "assistant", "content": "", **message}}
        return json.dumps({**said, "done": False, **more}).encode() + b"\n"

    for piece in plan.thinking:
        yield line({"thinking": piece}), True
    for piece in plan.text:
        yield line({"content": piece}), True
    for tool in plan.tools:
        function = {"name": tool["name"], "arguments": json.loads(tool["raw"])}
        yield line({"tool_calls": [{"function": function}]}), True
    stops = {"max_tokens": "length"}
    used = (
        {"prompt_eval_count": plan.usage["input"], "eval_count": plan.usage["output"]} if plan.usage else {}
    )
    yield line({}, done=True, done_reason=stops.get(plan.stop, "stop"), **used)[:-1] + b"\n", False
