"""The server under turns: start, memory, CPU and time per turn, many sessions at once, a large database.

Here: the measurement and its printed table. Not here: the server (`bowerbird serve`, a process of its own),
the model (tests/support/fake_models.py, another one).

    python benchmarks/server_load.py [--provider anthropic|openai] [--turns 50] [--sessions 20] [--each 5]
                                     [--deltas 200] [--foreign 200000] [--json]

A turn is a message over the socket, 200 deltas from the scripted model as fast as it sends them, and `done`.
Beside it the same model stream is read by a bare HTTP client: that time is the model's, not ours. `foreign`
messages of other sessions are put into the database before the last measurement; its ratio to the first one
is the bar that holds on any machine. Exit code 1 when that ratio is over 1.1 or a session was lost.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parent.parent
PER_SESSION = 500  # foreign messages in each foreign session
AT = "2026-01-01T00:00:00.000000+00:00"


def resident_mb(pid: int) -> float:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096 / (1 << 20)


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median_ms(seconds: list[float]) -> float:
    """Return the median in milliseconds."""
    return round(statistics.median(seconds) * 1000, 2)


class Bench:
    """A scripted model, and servers over one data directory."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.model_port, self.port = options.port + 1, options.port
        steps = json.dumps({"steps": [{"deltas": options.deltas}]})
        self.text = f"[[fake {steps}]]"
        self.database = directory / "load.db"

    @contextlib.contextmanager
    def model(self) -> Any:
        """Run the scripted model."""
        command = [sys.executable, str(ROOT / "tests/support/fake_models.py"), "--port", str(self.model_port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(10)

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncGenerator[tuple[int, float, httpx.AsyncClient]]:
        """Run a server; gives its pid, the seconds until it answered, and a client."""
        model = f"http://127.0.0.1:{self.model_port}"
        env = {
            **os.environ,
            "HOME": str(self.directory),
            "LLM_PROVIDER": self.options.provider,
            "ANTHROPIC_API_KEY": "fake",
            "ANTHROPIC_BASE_URL": model,
            "OPENAI_API_KEY": "fake",
            "OPENAI_BASE_URL": f"{model}/v1",
            "ENABLE_MEMORY": "false",
            "WORKSPACE_DIR": str(self.directory / "workspace"),
            "DATABASE_URL": f"sqlite+aiosqlite:///{self.database}",
        }
        command = [sys.executable, "-m", "bowerbird", "serve", "--port", str(self.port)]
        began = time.perf_counter()
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.directory, env=env, stderr=log)
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", trust_env=False) as http:
                while True:
                    with contextlib.suppress(httpx.HTTPError):
                        if (await http.get("/health")).status_code == 200:
                            break
                    if process.poll() is not None:
                        raise RuntimeError((self.directory / "log").read_text(errors="replace")[-2000:])
                    await asyncio.sleep(0.005)
                yield process.pid, time.perf_counter() - began, http
        finally:
            process.terminate()
            process.wait(20)

    # ------------------------------------------------------------ pieces

    async def conversation(self, http: httpx.AsyncClient) -> str:
        """Make a conversation."""
        return (await http.post("/api/chat", json={})).json()["conversation_id"]

    def socket(self, conversation: str) -> connect:
        """Open a conversation's socket."""
        return connect(f"ws://127.0.0.1:{self.port}/api/chat/{conversation}/ws", max_size=None)

    async def turn(self, socket: ClientConnection) -> float:
        """Say something and wait for the end; returns seconds."""
        began = time.perf_counter()
        await socket.send(json.dumps({"type": "message", "content": self.text}))
        async for frame in socket:
            event = json.loads(frame)
            if event["type"] == "error":
                raise RuntimeError(event)
            if event["type"] == "done":
                return time.perf_counter() - began
        raise RuntimeError("the socket closed before the end of the turn")

    async def raw(self) -> list[float]:
        """Read the same stream with a bare client, as often as turns are measured."""
        message = {"role": "user", "content": self.text}
        path = "/v1/messages" if self.options.provider == "anthropic" else "/v1/chat/completions"
        body = {"model": "m", "max_tokens": 1000, "stream": True, "messages": [message]}
        times: list[float] = []
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.model_port}", trust_env=False) as http:
            for _ in range(self.options.turns):
                began = time.perf_counter()
                async with http.stream("POST", path, json=body) as answer:
                    async for _piece in answer.aiter_raw():
                        pass
                times.append(time.perf_counter() - began)
        return times

    async def sequence(self, pid: int, http: httpx.AsyncClient) -> tuple[list[float], float]:
        """Take turns in one conversation; returns their seconds, and CPU seconds for each."""
        async with self.socket(await self.conversation(http)) as socket:
            for _ in range(3):
                await self.turn(socket)
            used = cpu_s(pid)
            times = [await self.turn(socket) for _ in range(self.options.turns)]
            return times, (cpu_s(pid) - used) / len(times)

    async def crowd(self, http: httpx.AsyncClient) -> tuple[float, int]:
        """Take turns in many conversations at once; returns turns per second, and how many were lost."""

        async def session() -> int:
            try:
                async with self.socket(await self.conversation(http)) as socket:
                    for _ in range(self.options.each):
                        await self.turn(socket)
            except (RuntimeError, OSError) as error:
                print(f"lost: {error}", file=sys.stderr)
                return 1
            return 0

        began = time.perf_counter()
        lost = sum(await asyncio.gather(*(session() for _ in range(self.options.sessions))))
        turns = self.options.sessions * self.options.each
        return turns / (time.perf_counter() - began), lost

    async def open_sessions(self, pid: int, http: httpx.AsyncClient) -> float:
        """Open 300 conversations with a socket each; returns MB for 100."""
        async with contextlib.AsyncExitStack() as stack:
            before = resident_mb(pid)
            for _ in range(300):
                await stack.enter_async_context(self.socket(await self.conversation(http)))
            await asyncio.sleep(1)
            return (resident_mb(pid) - before) / 3

    def add_foreign(self) -> None:
        """Put messages of other sessions into the database of a stopped server."""
        with contextlib.closing(sqlite3.connect(self.database)) as database, database:
            for number in range(self.options.foreign // PER_SESSION):
                thread = f"web:{number:012x}"
                database.execute(
                    "INSERT INTO sessions (thread_id, kind, created_at, updated_at, last_seq, messages, status,"
                    " counter, flags, auto_approve, changed_files, bytes)"
                    " VALUES (?, 'web', ?, ?, ?, ?, 'done', 0, '{}', 0, 0, 0)",
                    (thread, AT, AT, PER_SESSION, PER_SESSION),
                )
                user = json.dumps({"content": [{"type": "text", "text": "x" * 200}]})
                usage = {"input_tokens": 1, "output_tokens": 1}
                said = {"content": [{"type": "text", "text": "x" * 200}], "stop_reason": "end_turn"}
                answer = json.dumps({**said, "model": "m", "usage": usage})
                rows = [
                    (thread, seq, 1, 1, *(("user", AT, user) if seq % 2 else ("assistant", AT, answer)))
                    for seq in range(1, PER_SESSION + 1)
                ]
                database.executemany(
                    "INSERT INTO journal (thread_id, seq, epoch, v, type, at, body) VALUES (?,?,?,?,?,?,?)",
                    rows,
                )
                turns = [(f"t_{thread}{n}", thread, n) for n in range(1, PER_SESSION // 2 + 1)]
                inputs = [(f"i_{turn}", thread, f"i_{turn}", user, turn, AT) for turn, _, _ in turns]
                database.executemany(
                    "INSERT INTO inbox (id, thread_id, door, dedupe_key, kind, sender, body, state, turn_id,"
                    " received_at) VALUES (?, ?, 'web', ?, 'message', '{}', ?, 'done', ?, ?)",
                    inputs,
                )
                database.executemany(
                    "INSERT INTO turns (turn_id, thread_id, n, kind, state, attempt, epoch)"
                    " VALUES (?, ?, ?, 'user', 'done', 1, 1)",
                    turns,
                )


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything once and return the figures."""
    with tempfile.TemporaryDirectory(prefix="server-load-") as name:
        bench = Bench(options, Path(name))
        with bench.model():
            starts: list[float] = []
            for _ in range(6):
                async with bench.server() as (pid, seconds, _http):
                    starts.append(seconds)
                    await asyncio.sleep(0.5)
                    idle = resident_mb(pid)
            figures: dict[str, Any] = {
                "start_s": round(statistics.median(starts[1:]), 2),
                "idle_mb": round(idle, 1),
            }
            async with bench.server() as (pid, _, http):
                raw = await bench.raw()
                times, cpu = await bench.sequence(pid, http)
                crowds = [await bench.crowd(http) for _ in range(3)]
            figures |= {
                "raw_stream_ms": median_ms(raw),
                "turn_ms": median_ms(times),
                "turn_cpu_ms": round(cpu * 1000, 1),
                "last_ten_over_first_ten": round(
                    statistics.median(times[-10:]) / statistics.median(times[:10]), 2
                ),
                "turns_per_s": round(statistics.median(rate for rate, _ in crowds), 1),
                "lost": sum(lost for _, lost in crowds),
            }
            async with bench.server() as (pid, _, http):
                async with bench.socket(await bench.conversation(http)) as socket:
                    await bench.turn(socket)
                figures["mb_per_100_sessions"] = round(await bench.open_sessions(pid, http), 2)
            bench.add_foreign()
            async with bench.server() as (pid, _, http):
                after, _cpu = await bench.sequence(pid, http)
            figures[f"turn_ms_beside_{options.foreign}"] = median_ms(after)
            figures["ratio"] = round(median_ms(after) / median_ms(times), 2)
            return figures


def main() -> int:
    """Measure, print, and judge what does not depend on the machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--provider", choices=("anthropic", "openai"), default="anthropic")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--foreign", type=int, default=200_000)
    parser.add_argument("--port", type=int, default=9951)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key:>28}  {value}")
    return 1 if figures["ratio"] > 1.1 or figures["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
