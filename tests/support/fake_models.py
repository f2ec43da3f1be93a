"""A scripted model server on loopback: Anthropic Messages, OpenAI Chat Completions and Responses over real HTTP.

Here: the server, its scripting and its log of what clients asked. Not here: any of our
clients, nor checks; tests decide what the log must show. What the real provider would refuse
(`provider_rules`) is refused here too, whatever the script says.

A STEP is a dict, every key optional:

    text        full text; streamed in `deltas` pieces (default 1)
    deltas      number of text deltas; without `text` they are "word0 ", "word1 ", …
    first       so many characters of `text` are a delta of their own, before the others
    thinking    a string (4 deltas) or a number of deltas, before the text
    signature   signature of the thinking block (Anthropic); default "fakesig"
    tools       [{"name", "input" | "raw", "id"?}]; `raw` is the literal argument text
    stop        stop reason in Anthropic's words; mapped for OpenAI
    usage       {"input", "output", "cache_read", "cache_write", "reasoning"}, or None to report none;
                `input` is the uncached part (on the OpenAI wire the prompt count includes the cached part)
    ttft_s      seconds before the first byte
    gap_s       seconds before each delta but the first
    status      answer with this HTTP status (with `headers`, `body`: dict, str or bytes)
    headers     additional response headers
    body        literal response body; with a `content-type` header also for status 200
    cut_after   drop the TCP connection after this many deltas (thinking, text, arguments all count)
    end_after   end the body cleanly after this many deltas, without the final marker
    hang_after  stop sending after this many deltas until the client closes
    hang        never answer until the client closes

Scripted: `fake.script(STEP, …)` (one per request, the last repeats) or `fake.answer(lambda body, n: STEP)`.
Otherwise the newest user text with a directive decides: `[[fake {"steps":[STEP,…], "match"?: "…"}]]`
(`match`: only for requests whose system prompt contains that text); the step used is the number of
assistant messages after that text.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

if not __package__:  # run as a program: `python tests/support/fake_models.py`
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.fake_wire import (
    Plan,
    Step,
    anthropic_events,
    anthropic_json,
    directed_step,
    error_body,
    ollama_events,
    openai_events,
    openai_json,
    responses_events,
    responses_json,
)
from support.patience import HANG_S
from support.provider_rules import refusal


class FakeModels:
    """The server, in its own thread with its own loop; use as a context manager.

    `wait_requests` and `wait_closed` block where no event loop runs; inside a coroutine
    they return an awaitable, so `await fake.wait_requests(1)` never stalls the client's loop.

    Example:
        >>> with FakeModels() as fake:
        ...     fake.script({"text": "hello"})
        ...     fake.request_count
        0
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []  # time.monotonic() of each request
        self.without: set[str] = set()  # rules of `provider_rules` that this server does not have
        self.refused: list[str] = []  # what the real provider would have refused, and so it was
        self.closed = 0
        self.closed_times: list[float] = []
        self._answer: Callable[[dict[str, Any], int], Step] | None = None
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._salt = os.urandom(3).hex()

    # ------------------------------------------------------------ life

    def __enter__(self) -> FakeModels:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), daemon=True, name="fake-models"
        )
        self._thread.start()
        if not ready.wait(HANG_S):
            raise TimeoutError("the fake model server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        loop, stopping, thread = self._loop, self._stopping, self._thread
        if loop and stopping and thread:
            with contextlib.suppress(RuntimeError):  # the loop is gone when serving failed
                loop.call_soon_threadsafe(stopping.set)
            thread.join(HANG_S)
        self._thread = None

    @property
    def anthropic_url(self) -> str:
        """Base URL for an Anthropic client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """Base URL for an OpenAI client; ends in /v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    # ------------------------------------------------------------ script and log

    def script(self, *steps: Step) -> None:
        """Answer the coming requests with `steps` in order; the last repeats."""
        if not steps:
            self._answer = None
            return
        first = self.request_count
        self._answer = lambda _body, n: steps[min(n - first, len(steps) - 1)]

    def answer(self, function: Callable[[dict[str, Any], int], Step]) -> None:
        """Answer each request with `function(body, number of the request from 0)`."""
        self._answer = function

    def reset(self) -> None:
        """Forget script and log."""
        with self._changed:
            self._answer = None
            self.closed = 0
            for log in (self.requests, self.headers, self.paths, self.times, self.refused, self.closed_times):
                log.clear()

    @property
    def request_count(self) -> int:
        """How many model requests arrived."""
        return len(self.requests)

    def wait_requests(self, n: int, timeout: float = HANG_S) -> Any:
        """Wait until `n` requests arrived (see the class for use in coroutines)."""
        return self._wait(lambda: self.request_count >= n, f"{n} requests", timeout)

    def wait_closed(self, n: int = 1, timeout: float = HANG_S) -> Any:
        """Wait until clients closed `n` answers before their end."""
        return self._wait(lambda: self.closed >= n, f"{n} closed streams", timeout)

    def _wait(self, condition: Callable[[], bool], what: str, timeout: float) -> Awaitable[None] | None:
        def block() -> None:
            with self._changed:
                if not self._changed.wait_for(condition, timeout):
                    raise TimeoutError(
                        f"waited {timeout} s for {what}; saw {self.request_count}, {self.closed} closed"
                    )

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            block()
            return None
        return asyncio.to_thread(block)

    def _log(self, body: dict[str, Any], headers: dict[str, str], path: str) -> int:
        with self._changed:
            self.requests.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            self.times.append(time.monotonic())
            self._changed.notify_all()
            return len(self.requests) - 1

    def _log_closed(self) -> None:
        with self._changed:
            self.closed += 1
            self.closed_times.append(time.monotonic())
            self._changed.notify_all()

    # ------------------------------------------------------------ HTTP

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._connection(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", self.port, limit=1 << 26, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stopping.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request_line, *lines = head.strip().split("\r\n")
        method, path, _ = request_line.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        if method != "POST":
            await _send_whole(writer, 200, {}, {"ok": True, "object": "list", "data": []})
            return
        body = json.loads(raw)
        number = self._log(body, headers, path)
        step = self._answer(body, number) if self._answer else directed_step(body)
        refused = refusal(path, body, headers, self.without)
        if refused is not None:
            self.refused.append(refused)
            step = {"status": 400, "body": error_body(400, path.endswith("/messages"), refused)}
        answer = asyncio.create_task(self._respond(writer, path, body, step, number))
        gone = asyncio.create_task(_until_closed(reader))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                self._log_closed()
        finally:
            for task in (answer, gone):
                task.cancel()
            outcomes = await asyncio.gather(answer, gone, return_exceptions=True)
        if isinstance(outcomes[0], ConnectionError):
            self._log_closed()
        elif isinstance(outcomes[0], Exception):
            raise outcomes[0]

    async def _respond(
        self, writer: asyncio.StreamWriter, path: str, body: dict[str, Any], step: Step, n: int
    ) -> None:
        if step.get("hang"):
            await asyncio.Event().wait()
        await asyncio.sleep(step.get("ttft_s", 0))
        anthropic = path.split("?", maxsplit=1)[0].endswith("/messages")
        responses = path.split("?", maxsplit=1)[0].endswith("/responses")
        status, headers = step.get("status", 200), step.get("headers", {})
        if status != 200 or "body" in step:
            content = step.get("body", error_body(status, anthropic))
            await _send_whole(writer, status, headers, content)
            return
        plan = Plan(step, n, self._salt, body)
        if not body.get("stream"):
            whole = anthropic_json if anthropic else responses_json if responses else openai_json
            content = whole(plan, body)
            await _send_whole(writer, 200, headers, content)
            return
        pieces = anthropic_events if anthropic else responses_events if responses else openai_events
        if path.endswith("/api/chat"):
            pieces, headers = ollama_events, {"content-type": "application/x-ndjson", **headers}
        await _send_stream(writer, step, headers, pieces(plan, body))


async def _until_closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1024):
            pass


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Status",
        *(f"{k}: {v}" for k, v in headers.items()),
        "connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1")


async def _send_whole(
    writer: asyncio.StreamWriter, status: int, headers: dict[str, str], content: Any
) -> None:
    raw = content.encode() if isinstance(content, str) else content
    raw = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    own = {"content-type": "application/json", "content-length": str(len(raw)), "request-id": "req_fake"}
    writer.write(_head(status, own | {k.lower(): v for k, v in headers.items()}) + raw)
    await writer.drain()


async def _send_stream(
    writer: asyncio.StreamWriter, step: Step, headers: dict[str, str], events: Iterator[tuple[bytes, bool]]
) -> None:
    own = {"content-type": "text/event-stream", "transfer-encoding": "chunked", "request-id": "req_fake"}
    writer.write(_head(200, own | {k.lower(): v for k, v in headers.items()}))
    gap, deltas = step.get("gap_s", 0), 0
    for raw, is_delta in events:
        if is_delta:
            if gap and deltas:
                await asyncio.sleep(gap)
            if deltas == step.get("cut_after"):
                await writer.drain()
                await asyncio.sleep(0.02)  # let the bytes leave before the reset overtakes them
                writer.transport.abort()
                return
            if deltas == step.get("hang_after"):
                await asyncio.Event().wait()
            if deltas == step.get("end_after"):
                break
            deltas += 1
        writer.write(b"%x\r\n%b\r\n" % (len(raw), raw))
        if gap or deltas % 64 == 0:
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def main() -> None:
    """Serve until killed; prints `listening on PORT` once ready."""
    parser = argparse.ArgumentParser(description="scripted model server; see the module's docstring")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    with FakeModels(parser.parse_args().port) as fake:
        print(f"listening on {fake.port}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
