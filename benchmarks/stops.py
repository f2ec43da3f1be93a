"""How soon a stop is a stop: viewer told, provider's connection closed, processes dead (SV-48, issue 4).

Here: the measurement and its printed table. Not here: the server (`bowerbird serve`, a process of its own),
the model (tests/support/fake_models.py, in a thread of this one).

    python benchmarks/stops.py [--n 25] [--only SITUATION …] [--limit 100] [--json]

Each round begins a turn on one socket, waits until it is where it should be stopped, sends `cancel` or
`interrupt`, and notes how long until the viewer has `done` or `interrupted`, until the model server sees its
connection closed, and until no process of the turn is left. Then the socket must serve another message.
Exit code 1 when a p99 is over `--limit` milliseconds. Wants an idle machine.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.fake_models import FakeModels  # noqa: E402  the path is set first
from support.servers import free_port  # noqa: E402  likewise

WAIT_S = 60.0
LOOK_S = 0.001
SLEEP = "612.125"  # names the processes of this benchmark
Step = dict[str, Any]


def bash(command: str) -> Step:
    """A step that runs a command."""
    return {"tools": [{"name": "bash", "input": {"command": command}}]}


@dataclass(frozen=True)
class Situation:
    """Where a turn is when it is stopped.

    Attributes:
        first: the model's first step. inner: those of subagents, by a word of their task.
        streams: connections to the model that are open then. sleeps: processes that run then.
    """

    first: Step
    inner: dict[str, Step] = field(default_factory=dict[str, Step])
    streams: int = 0
    sleeps: int = 0


SITUATIONS = {
    "silent stream": Situation({"hang": True}, streams=1),
    "long stream": Situation({"deltas": 100_000, "gap_s": 0.002}, streams=1),
    "sleep 600": Situation(bash(f"sleep {SLEEP} & sleep {SLEEP}"), sleeps=2),
    "daemon": Situation(
        bash(f"(setsid sh -c 'sleep {SLEEP} & sleep {SLEEP}' >/dev/null 2>&1 </dev/null &); sleep {SLEEP}"),
        sleeps=3,
    ),
    "subagents": Situation(
        {"tools": [{"name": "spawn_subagents", "input": {"tasks": ["think about it", "sleep on it"]}}]},
        {"think": {"hang": True}, "sleep": bash(f"sleep {SLEEP}")},
        streams=1,
        sleeps=1,
    ),
}


@dataclass
class Times:
    """Milliseconds from the stop, round by round."""

    viewer: list[float] = field(default_factory=list[float])
    provider: list[float] = field(default_factory=list[float])
    processes: list[float] = field(default_factory=list[float])


def sleeping() -> list[int]:
    """Processes of the present round."""
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                argv = Path(entry.path, "cmdline").read_bytes().split(b"\0")
                if argv[0].endswith(b"sleep") and argv[1] == SLEEP.encode():
                    found.append(int(entry.name))
    return found


async def until(true: Callable[[], bool], what: str, look_s: float = 0.01) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {WAIT_S:.0f} s")
        await asyncio.sleep(look_s)


async def event(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """Return the next event of a kind."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = json.loads(await socket.recv())
            if found["type"] == kind:
                return found


class Rounds:
    """Rounds in one situation over one socket."""

    def __init__(self, fake: FakeModels, situation: Situation, stop: str) -> None:
        self._fake = fake
        self._situation = situation
        self._stop = stop
        self.times = Times()

    def script(self) -> None:
        """Let the model do what the situation says."""

        def answer(body: dict[str, Any], _n: int) -> Step:
            said = [m for m in body["messages"] if m["role"] == "user"]
            first, last = str(said[0]["content"]), str(said[-1]["content"])
            for word, step in self._situation.inner.items():
                if word in first:
                    return step
            return {"text": "next"} if "next" in last else self._situation.first

        self._fake.answer(answer)

    async def one(self, socket: ClientConnection, counted: bool) -> None:
        """Run one round."""
        situation, fake = self._situation, self._fake
        closed, asked = fake.closed, fake.request_count
        wanted = 1 + len(situation.inner)
        await socket.send(json.dumps({"type": "message", "content": "go"}))
        await until(lambda: fake.request_count >= asked + wanted, "the model is asked")
        if "deltas" in situation.first:
            await event(socket, "text_delta")
        await until(lambda: len(sleeping()) == situation.sleeps, "its processes run")
        pids = [Path(f"/proc/{pid}") for pid in sleeping()]
        began = time.monotonic()
        gone = asyncio.create_task(self._gone(pids))
        end = "interrupted"
        if self._stop == "cancel":
            end = "done"
            await socket.send('{"type": "cancel"}')
        else:
            await socket.send('{"type": "interrupt", "content": "next"}')
        await event(socket, end)
        viewer = time.monotonic()
        await until(lambda: fake.closed >= closed + situation.streams, "its connections are closed", LOOK_S)
        dead = await gone
        if self._stop == "cancel":
            await socket.send(json.dumps({"type": "message", "content": "next"}))
        await event(socket, "done")
        if counted:
            self.times.viewer.append((viewer - began) * 1000)
            if situation.streams:
                last = max(fake.closed_times[closed : closed + situation.streams])
                self.times.provider.append((last - began) * 1000)
            if pids:
                self.times.processes.append((dead - began) * 1000)

    @staticmethod
    async def _gone(pids: Sequence[Path]) -> float:
        await until(lambda: not any(pid.exists() for pid in pids), "its processes are dead", LOOK_S)
        return time.monotonic()


@asynccontextmanager
async def server(directory: Path, fake: FakeModels) -> AsyncIterator[int]:
    """Run `bowerbird serve`; gives its port."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bowerbird.cli.main", "serve", "--port", str(port)],
        cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "ANTHROPIC_API_KEY": "k",
             "ANTHROPIC_BASE_URL": fake.anthropic_url, "BOWERBIRD_MEMORY__ENABLED": "false"},
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    if (await http.get("/health")).status_code == 200:
                        break
                await asyncio.sleep(0.05)
            yield port
    finally:
        process.terminate()
        process.wait()


async def measured(port: int, fake: FakeModels, situation: Situation, stop: str, n: int) -> Times:
    """Return the times of `n` rounds; one more before them warms everything up."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        conversation = (await http.post("/api/chat", json={})).json()["conversation_id"]
    rounds = Rounds(fake, situation, stop)
    rounds.script()
    where = f"ws://127.0.0.1:{port}/api/chat/{conversation}/ws"
    async with connect(where, max_size=None, compression=None, proxy=None) as socket:
        for number in range(n + 1):
            await rounds.one(socket, counted=number > 0)
    return rounds.times


def worst(values: Sequence[float]) -> float:
    """The 99th percentile, which of fewer than 100 values is the greatest."""
    return sorted(values)[max(0, -(-99 * len(values) // 100) - 1)]


def shown(values: Sequence[float]) -> str:
    """Median and p99."""
    return f"{statistics.median(values):6.1f} {worst(values):6.1f}" if values else "     –      –"


async def run(chosen: argparse.Namespace) -> int:
    """Measure everything; print it; return the exit code."""
    print(f"ms from the stop, n = {chosen.n}, load {os.getloadavg()[0]:.1f}; median and p99 of each\n")
    print(f"{'':28}{'viewer':>13}  {'connection':>13}  {'processes':>13}")
    rows: dict[str, dict[str, dict[str, float]]] = {}
    with FakeModels() as fake, tempfile.TemporaryDirectory() as place:
        async with server(Path(place), fake) as port:
            for name, situation in SITUATIONS.items():
                if chosen.only and name not in chosen.only:
                    continue
                for stop in ("cancel", "interrupt"):
                    times = await measured(port, fake, situation, stop, chosen.n)
                    parts = {
                        "viewer": times.viewer,
                        "connection": times.provider,
                        "processes": times.processes,
                    }
                    print(
                        f"{name + ', ' + stop:28}" + "  ".join(shown(part) for part in parts.values()),
                        flush=True,
                    )
                    rows[f"{name}, {stop}"] = {
                        part: {"median": statistics.median(found), "p99": worst(found)}
                        for part, found in parts.items()
                        if found
                    }
    slowest = max(part["p99"] for row in rows.values() for part in row.values())
    held = slowest <= chosen.limit
    print(f"\nslowest p99 {slowest:.1f} ms (bar {chosen.limit:g} ms) {'held' if held else 'MISSED'}")
    if chosen.json:
        print(json.dumps(rows))
    return 0 if held else 1


def main() -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=25)
    parser.add_argument("--only", nargs="+", metavar="SITUATION", choices=sorted(SITUATIONS), default=[])
    parser.add_argument("--limit", type=float, default=100.0)
    parser.add_argument("--json", action="store_true")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
