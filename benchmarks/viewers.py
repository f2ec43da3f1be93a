"""Many viewers of one session, one of them stalled: how late the others get each event (SV-51, acceptance 13).

Here: the measurement and its printed table. Not here: the server (`bowerbird serve`, a process of its own),
the model (tests/support/fake_models.py, another one).

    python benchmarks/viewers.py [--viewers 1000] [--deltas 200] [--gap 0.02] [--turns 3] [--limit 100] [--json]

Each delta holds the time at which the model server sent it, so lateness is provider to viewer, all of the
server included. Viewers are plain sockets whose frames are read without a WebSocket library: with 1,000 of
them in one process the client would otherwise be what is measured. The stalled viewer never reads; it must
be closed with 1013 and get everything it missed by cursor. Exit code 1 when the others' p99 is over
`--limit` milliseconds, or a viewer lost something.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
SIGN = re.compile(rb'@(\d+\.\d+)@|"type":"done"')


class Viewer:
    """One socket that notes how late each stamp in what it reads is."""

    def __init__(self, wanted: int = 0) -> None:
        self.late: list[float] = []
        self.stamps = 0
        self.done = asyncio.Event()
        self.complete = asyncio.Event()
        self._wanted = wanted
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self, port: int, conversation: str, query: str = "") -> None:
        """Connect and shake hands."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        self._reader, self._writer = reader, writer
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET /api/chat/{conversation}/ws{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise RuntimeError(head.decode())

    async def read(self) -> None:
        """Take what comes until the connection ends; a `done` sets the event."""
        assert self._reader is not None
        kept = b""  # what may be the beginning of something that the next piece completes
        while True:
            piece = await self._reader.read(1 << 16)
            if not piece:
                return
            now = time.time()
            text, end = kept + piece, 0
            for found in SIGN.finditer(text):
                end = found.end()
                if found[1] is None:
                    self.done.set()
                else:
                    self.stamps += 1
                    self.late.append(now - float(found[1]))
                    if self.stamps == self._wanted:
                        self.complete.set()
            kept = text[max(end, len(text) - 40) :]

    def say(self, text: str) -> None:
        """Send a message, as a masked frame."""
        assert self._writer is not None
        content = json.dumps({"type": "message", "content": text}).encode()
        mask = os.urandom(4)
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(content))
        size = len(content)
        head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + size.to_bytes(2, "big")
        self._writer.write(head + mask + body)

    def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.close()


class Model:
    """An Anthropic stream whose every delta is stamped with the time it is sent."""

    def __init__(self, deltas: int, gap_s: float, padding: int) -> None:
        self._deltas, self._gap_s, self._padding = deltas, gap_s, "x" * padding
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "m",
            "usage": usage,
        }
        self._send(writer, "message_start", message=message)
        self._send(writer, "content_block_start", index=0, content_block={"type": "text", "text": ""})
        for _ in range(self._deltas):
            text = f"@{time.time():.6f}@ {self._padding}"
            self._send(writer, "content_block_delta", index=0, delta={"type": "text_delta", "text": text})
            await asyncio.sleep(self._gap_s)
        self._send(writer, "content_block_stop", index=0)
        self._send(writer, "message_delta", delta={"stop_reason": "end_turn"}, usage=usage)
        self._send(writer, "message_stop")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    def _send(self, writer: asyncio.StreamWriter, kind: str, **body: Any) -> None:
        writer.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode())


def serve(directory: Path, port: int, model_port: int) -> "subprocess.Popen[bytes]":
    """Start the server in a process of its own."""
    env = {
        **os.environ,
        "HOME": str(directory),
        "LLM_PROVIDER": "anthropic",
        "ANTHROPIC_API_KEY": "fake",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model_port}",
        "ENABLE_MEMORY": "false",
        "WORKSPACE_DIR": str(directory / "workspace"),
    }
    command = [sys.executable, "-m", "bowerbird", "serve", "--port", str(port)]
    return subprocess.Popen(command, cwd=directory, env=env, stderr=(directory / "log").open("wb"))


def percentile(values: list[float], share: float) -> float:
    """Return the value below which so large a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything once and return the figures."""
    model = Model(options.deltas, options.gap, options.padding)
    await model.start()
    with tempfile.TemporaryDirectory(prefix="viewers-") as name:
        directory = Path(name)
        process = serve(directory, options.port, model.port)
        try:
            return await _measured(options, process.pid)
        except BaseException:
            sys.stderr.write((directory / "log").read_text(errors="replace")[-2000:])
            raise
        finally:
            process.terminate()
            process.wait(20)


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _measured(options: argparse.Namespace, pid: int) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{options.port}", trust_env=False) as http:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get("/health")).status_code == 200:
                        break
                await asyncio.sleep(0.05)
        conversation = (await http.post("/api/chat", json={})).json()["conversation_id"]
        stalled, viewers = Viewer(), [Viewer() for _ in range(options.viewers - 1)]
        await stalled.open(options.port, conversation)  # and never read
        for viewer in viewers:
            await viewer.open(options.port, conversation)
        readers = [asyncio.create_task(viewer.read()) for viewer in viewers]
        health: list[float] = []
        watching = asyncio.create_task(_health(http, health))
        began, used = time.perf_counter(), cpu_s(pid)
        for _ in range(options.turns):
            for viewer in viewers:
                viewer.done.clear()
            viewers[0].say("go")
            async with asyncio.timeout(120):
                await asyncio.gather(*(viewer.done.wait() for viewer in viewers))
        watching.cancel()
        used, took = cpu_s(pid) - used, time.perf_counter() - began
        wanted = options.deltas * options.turns
        back = Viewer(wanted)
        await back.open(options.port, conversation, "?after=0")
        catching_up = asyncio.create_task(back.read())
        async with asyncio.timeout(60):
            await back.complete.wait()
        late = [ms * 1000 for viewer in viewers for ms in viewer.late]
        for task in (*readers, catching_up):
            task.cancel()
        for viewer in (stalled, back, *viewers):
            viewer.close()
        return {
            "viewers": options.viewers,
            "deltas": wanted,
            "p50_ms": round(percentile(late, 0.5), 1),
            "p99_ms": round(percentile(late, 0.99), 1),
            "max_ms": round(max(late), 1),
            "server_cpu_percent": round(100 * used / took),
            "health_p95_ms": round(percentile(health, 0.95) * 1000, 1),
            "lost": sum(viewer.stamps != wanted for viewer in viewers),
        }


async def _health(http: httpx.AsyncClient, times: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await http.get("/health")
        times.append(time.perf_counter() - began)
        await asyncio.sleep(0.1)


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=1000)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--gap", type=float, default=0.02, help="seconds between deltas")
    parser.add_argument("--padding", type=int, default=0, help="further characters in each delta")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--port", type=int, default=9931)
    parser.add_argument("--limit", type=float, default=100.0, help="ms")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key:>16}  {value}")
    return 1 if figures["p99_ms"] > options.limit or figures["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
