"""Vendors' wires for provider agents on one loopback server: Messages, Responses, Chat, Ollama, lists of models.

Here: what each would stream for a scripted answer. It runs in the loop of the test.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from support.provider_rules import refusal


class AgentWires:
    """What was asked, and what is answered.

    Attributes:
        asked: path, headers and body of every request.
        text: streamed in two pieces. status, said: of a refusal instead. models: of its lists.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.text = "hello there"
        self.status = 200
        self.said = "no"
        self.models = ["first", "second"]
        self.url = ""

    @property
    def bodies(self) -> list[Any]:
        """The bodies of the requests that had one."""
        return [body for _, _, body in self.asked if body is not None]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["AgentWires"]:
        """Serve while the block runs."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.path, dict(request.headers), body))
        if self.status != 200:
            return web.json_response({"error": {"message": self.said}}, status=self.status)
        if request.method == "GET":
            if request.path.endswith("/api/tags"):
                return web.json_response({"models": [{"name": name} for name in self.models]})
            return web.json_response({"data": [{"id": name} for name in self.models]})
        refused = refusal(request.path, body or {}, request.headers)
        if refused is not None:
            return web.json_response({"error": {"message": refused}}, status=400)
        kind = "application/x-ndjson" if request.path == "/api/chat" else "text/event-stream"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        for payload in self._payloads(request.path):
            line = json.dumps(payload).encode()
            await response.write(line + b"\n" if "ndjson" in kind else b"data: " + line + b"\n\n")
        await response.write_eof()
        return response

    def _payloads(self, path: str) -> list[dict[str, Any]]:
        pieces = [self.text[:3], self.text[3:]]
        if path.endswith("/responses"):
            usage = {"input_tokens": 12, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 2}}
            return [
                {"type": "response.created", "response": {"model": "m"}},
                {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
                *({"type": "response.output_text.delta", "delta": piece} for piece in pieces),
                {"type": "response.completed", "response": {"status": "completed", "usage": usage}},
            ]
        if path.endswith("/api/chat"):
            return [
                *({"model": "m", "message": {"content": piece}, "done": False} for piece in pieces),
                {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 3},
            ]
        if path.endswith("/messages"):
            usage = {"input_tokens": 12, "output_tokens": 0}
            return [
                {"type": "message_start", "message": {"id": "1", "model": "m", "usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                *(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "text_delta", "text": piece},
                    }
                    for piece in pieces
                ),
                {"type": "content_block_stop", "index": 0},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 3},
                },
                {"type": "message_stop"},
            ]
        return [
            *({"model": "m", "choices": [{"delta": {"content": piece}}]} for piece in pieces),
            {
                "choices": [{"delta": {}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 12, "completion_tokens": 3},
            },
        ]
