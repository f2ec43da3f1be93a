"""A server that speaks the wires of Anthropic, OpenAI (chat, Responses) and Google, for real agents to talk to.

It plays one scene: the first answer calls the agent's own shell tool, found in the tools that it offers, to
write a file; once a tool's result came, the answer is a sentence. Here: that scene on each wire, a key that is
rejected, and a host that never answers. Not here: agents.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-real-Zx81QpV0mLk7"
HALF = "> made.txt; rm gone.txt"
COMMAND = f"printf 'written by the agent\\n' {HALF}"
ANSWER = "I wrote made.txt and removed gone.txt."
EDIT = "made.txt\n```\nwritten by the agent\n```\n"
_SHELLS = ("bash", "shell", "terminal", "exec_command", "run_command", "command")
_BEFORE = b"Pending tool call to classify"  # Qwen has the model judge a call before it runs
_Object = dict[str, Any]


@dataclass
class Scripted:
    """What was asked, and how to answer: `fine`, `reject` the key, `hang`, or `half`: hang once work was done.

    Attributes:
        hanging: set when an answer of `half` is owed that never comes.
        commands: what the shell is told, by wire (`anthropic`, `responses`, `chat`, `google`); else `COMMAND`.
    """

    mode: str = "fine"
    edits: bool = False
    commands: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[tuple[str, _Object]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    url: str = ""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    """Serve on a free port of loopback."""
    state = Scripted()
    app = web.Application(client_max_size=64 << 20)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(state, request)

    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield state
    finally:
        await runner.cleanup()


async def _answer(state: Scripted, request: web.Request) -> web.StreamResponse:
    raw = await request.read()
    try:
        body: _Object = json.loads(raw) if raw else {}
    except ValueError:
        body = {}
    state.asked.append((request.path, body))
    given = request.headers
    bearer = given.get("authorization", "").removeprefix("Bearer ")
    key = given.get("x-api-key") or given.get("x-goog-api-key") or bearer
    state.keys.add(key)
    worked = state.edits or (b"> made.txt; rm gone.txt" in raw and _BEFORE not in raw)
    if state.mode == "half" and worked:
        state.hanging.set()
    if state.mode == "hang" or (state.mode == "half" and worked):
        await asyncio.sleep(3600)
    if key != KEY or state.mode == "reject":
        error = {"type": "authentication_error", "message": f"Incorrect API key provided: {key[:8]}***"}
        return web.json_response({"type": "error", "error": error}, status=401)
    path = request.path
    if path.endswith("/messages"):
        return await _anthropic(request, state, body)
    if path.endswith("/responses"):
        return await _responses(request, state, body)
    if path.endswith("/chat/completions"):
        return await _chat(request, state, body)
    if "enerateContent" in path:
        return await _google(request, state, body)
    if path.endswith("/models"):
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
    return web.json_response({"input_tokens": 10, "totalTokens": 10})


def _plan(
    state: Scripted, wire: str, tools: Iterable[tuple[str, _Object]], done: bool
) -> tuple[str, _Object] | str:
    """Return the call to make, or the text to say."""
    if state.edits:
        return EDIT
    if not done:
        for name, schema in sorted(tools, key=lambda tool: _rank(tool[0])):
            if _rank(name) < len(_SHELLS):
                return name, _arguments(schema, state.commands.get(wire, COMMAND))
    return ANSWER


def _rank(name: str) -> int:
    low = name.lower()
    if any(word in low for word in ("output", "stdin", "kill", "read_", "list_", "stop", "write")):
        return len(_SHELLS)
    return next((at for at, word in enumerate(_SHELLS) if word in low), len(_SHELLS))


def _arguments(schema: _Object, command: str) -> _Object:
    fields: _Object = schema.get("properties", {})
    required = schema.get("required", list(fields))
    made: _Object = {}
    for name, about in fields.items():
        kind = about.get("type")
        if name in ("command", "cmd", "commands", "script"):
            listed = ["bash", "-lc", command] if name == "command" else [command]
            made[name] = listed if kind == "array" else command
        elif name in required:
            made[name] = {
                "string": "write a file",
                "boolean": False,
                "number": 10_000,
                "integer": 10_000,
            }.get(kind, [])
            if about.get("enum"):
                made[name] = about["enum"][0]
    return made


async def _events(
    request: web.Request, events: Iterable[tuple[str | None, _Object | str]]
) -> web.StreamResponse:
    back = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await back.prepare(request)
    for name, data in events:
        head = f"event: {name}\n" if name else ""
        text = data if isinstance(data, str) else json.dumps(data)
        await back.write(f"{head}data: {text}\n\n".encode())
    await back.write_eof()
    return back


async def _anthropic(request: web.Request, state: Scripted, body: _Object) -> web.StreamResponse:
    tools = [(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", [])]
    last = body["messages"][-1]["content"]
    done = isinstance(last, list) and any(block.get("type") == "tool_result" for block in last)
    plan = _plan(state, "anthropic", tools, done)
    usage = {"input_tokens": 100, "output_tokens": 20}
    block: _Object = (
        {"type": "text", "text": plan}
        if isinstance(plan, str)
        else {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:12]}", "name": plan[0], "input": plan[1]}
    )
    stop = "end_turn" if isinstance(plan, str) else "tool_use"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}  # fmt: skip
    if not body.get("stream"):
        return web.json_response({**message, "content": [block], "stop_reason": stop, "usage": usage})
    empty = {**block, "text": ""} if isinstance(plan, str) else {**block, "input": {}}
    delta = (
        {"type": "text_delta", "text": plan}
        if isinstance(plan, str)
        else {"type": "input_json_delta", "partial_json": json.dumps(plan[1])}
    )
    events: list[_Object] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return await _events(request, [(each["type"], each) for each in events])


async def _chat(request: web.Request, state: Scripted, body: _Object) -> web.StreamResponse:
    tools = [(t["function"]["name"], t["function"].get("parameters", {})) for t in body.get("tools") or []]
    plan = _plan(state, "chat", tools, body["messages"][-1]["role"] == "tool")
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    base = {"id": "chatcmpl-1", "created": 1, "model": body.get("model")}
    call = None if isinstance(plan, str) else [{"index": 0, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "function",
            "function": {"name": plan[0], "arguments": json.dumps(plan[1])}}]  # fmt: skip
    said: _Object = {"role": "assistant", "content": plan if call is None else None}
    if call is not None:
        said["tool_calls"] = call
    stop = "stop" if call is None else "tool_calls"
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": stop}
        return web.json_response({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunk = {**base, "object": "chat.completion.chunk"}
    return await _events(request, [
        (None, {**chunk, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}),
        (None, {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}),
        (None, {**chunk, "choices": [], "usage": usage}),
        (None, "[DONE]"),
    ])  # fmt: skip


async def _responses(request: web.Request, state: Scripted, body: _Object) -> web.StreamResponse:
    tools = [
        (t["name"], t.get("parameters", {})) for t in body.get("tools", []) if t.get("type") == "function"
    ]
    last = body["input"][-1] if isinstance(body.get("input"), list) and body["input"] else {}
    plan = _plan(state, "responses", tools, str(last.get("type", "")).endswith("_output"))
    number = len(state.asked)
    item: _Object = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": plan, "annotations": []}]} if isinstance(plan, str) else {
            "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{uuid.uuid4().hex[:12]}", "name": plan[0],
            "arguments": json.dumps(plan[1]), "status": "completed"}  # fmt: skip
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120}  # fmt: skip
    answer = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed",
              "model": body.get("model"), "output": [item], "usage": usage}  # fmt: skip
    if not body.get("stream"):
        return web.json_response(answer)
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    events: list[_Object] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        *([{"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
            "delta": plan}] if isinstance(plan, str) else []),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": answer},
    ]  # fmt: skip
    return await _events(request, [(each["type"], each) for each in events])


async def _google(request: web.Request, state: Scripted, body: _Object) -> web.StreamResponse:
    declared = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
    tools = [(d["name"], d.get("parametersJsonSchema") or d.get("parameters", {})) for d in declared]
    parts = body["contents"][-1].get("parts", []) if body.get("contents") else []
    plan = _plan(state, "google", tools, any("functionResponse" in part for part in parts))
    part = {"text": plan} if isinstance(plan, str) else {"functionCall": {"name": plan[0], "args": plan[1]}}
    schema = body.get("generationConfig", {}).get("responseJsonSchema")
    if schema:  # it asks which model to take, say
        part = {"text": json.dumps(_arguments(schema))}
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
              "modelVersion": "scripted"}  # fmt: skip
    if "stream" in request.path:
        return await _events(request, [(None, answer)])
    return web.json_response(answer)
