"""A transcription service on loopback that speaks OpenAI's form and can be made to fail.

Here: the HTTP server. Not here: any code of the product.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "gsk-TESTkeyTESTkeyTESTkey"


@dataclass
class FakeTranscription:
    """What was asked, and what the next answers are: `(status, body)`; status 0 cuts, None hangs."""

    url: str = ""
    text: str = "hello there"
    answers: deque[tuple[int | None, Any]] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        with file.file:
            content = file.file.read()
        self.requests.append(
            {
                "authorization": request.headers.get("authorization"),
                "model": form["model"],
                "name": file.filename,
                "type": file.content_type,
                "content": content,
            }
        )
        if not self.answers:
            return web.json_response({"text": self.text})
        status, body = self.answers.popleft()
        if status is None:
            await asyncio.Event().wait()
        if not status:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        headers = {"retry-after": "0"}
        if isinstance(body, bytes):
            return web.Response(status=status, body=body, headers=headers)
        return web.json_response(body, status=status, headers=headers)


@asynccontextmanager
async def fake_transcription() -> AsyncIterator[FakeTranscription]:
    """Run a service on a free port."""
    fake = FakeTranscription()
    app = web.Application(client_max_size=100 * 1024 * 1024)
    app.router.add_post("/v1/audio/transcriptions", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}/v1"
    try:
        yield fake
    finally:
        await runner.cleanup()
