"""What a first contact costs, each figure beside a bare program that does the least of it, measured in the same run.

Here: the one-shot command, the prompt, the start of a server and its first turn; processes of their own,
against the scripted model server (tests/support/fake_models.py, another one). Not here: turns of a server
that is warm (`agent_turn.py`, `server_load.py`).

    python benchmarks/first_contact.py [--runs 7] [--only one-shot prompt server]

Each row alternates with its reference, so that both see the same load. Printed are the least and the median
of the wall time, of the processor time (user and system) and of the memory; the bars hold the least times and
the median memory, of which other programs on the machine take nothing. Exit code 1 when a bar is missed.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.patience import HANG_S  # noqa: E402 - the tests' own support, which is no package
from support.terminals import Terminal  # noqa: E402

BOWERBIRD = (sys.executable, "-m", "bowerbird")
BARE = """
import asyncio, json, sys
import aiohttp

async def ask(url, question):
    body = {"model": "claude-sonnet-5", "max_tokens": 1000, "stream": True,
            "messages": [{"role": "user", "content": question}]}
    async with aiohttp.ClientSession() as session, session.post(url + "/v1/messages", json=body) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                if event["type"] == "content_block_delta":
                    sys.stdout.write(event["delta"]["text"])

asyncio.run(ask(*sys.argv[1:]))
"""
# A child's peak of memory begins with that of the process it was forked from: nothing heavy is imported here.
TYPING_S = 2.0
"""From opening a conversation to sending what was typed: what a server does meanwhile, nobody waits for."""
QUESTION = 'hi [[fake {"steps":[{"deltas":20}]}]]'


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: seconds by the clock and of the processor, and the most memory it held, in MB."""

    wall_s: float
    cpu_s: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its reference, and how many times the reference it may be."""

    what: str
    ours: Sequence[Cost]
    reference: Sequence[Cost]
    times: float
    memory: float | None = None

    def misses(self) -> list[str]:
        """Print the figures; return which bars were missed."""
        wall, cpu = (self._ratio(lambda cost: cost.wall_s, min), self._ratio(lambda cost: cost.cpu_s, min))
        held = self._ratio(lambda cost: cost.memory_mb, statistics.median)
        print(f"\n{self.what}")
        for name, costs in (("here", self.ours), ("reference", self.reference)):
            print(f"  {name:10} {_line(costs)}")
        print(
            f"  {'ratio':10} wall {wall:.1f} (bar {self.times:g}) · CPU {cpu:.1f} · memory {held:.1f}", end=""
        )
        print("" if self.memory is None else f" (bar {self.memory:g})")
        missed = [] if wall <= self.times else [f"{self.what}: {wall:.1f} times instead of {self.times:g}"]
        if self.memory is not None and held > self.memory:
            missed.append(f"{self.what}: {held:.1f} times the memory instead of {self.memory:g}")
        return missed

    def _ratio(self, of: Callable[[Cost], float], chosen: Callable[[list[float]], float]) -> float:
        ours, reference = (chosen([of(cost) for cost in costs]) for costs in (self.ours, self.reference))
        return ours / reference if reference else float("nan")


def _line(costs: Sequence[Cost]) -> str:
    wall = [cost.wall_s * 1000 for cost in costs]
    cpu = [cost.cpu_s * 1000 for cost in costs]
    memory = statistics.median(cost.memory_mb for cost in costs)
    return (
        f"wall {min(wall):6.0f} / {statistics.median(wall):6.0f} ms · "
        f"CPU {min(cpu):6.0f} / {statistics.median(cpu):6.0f} ms · {memory:5.1f} MB"
    )


class Place:
    """A home, a project and a model server for the runs of one benchmark."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory, self.url = directory, url
        self.project = directory / "project"
        self.project.mkdir()
        (self.project / "notes.txt").write_text("one\n")

    def environment(self, home: str) -> dict[str, str]:
        """Return the environment of a user whose home is `home`, which is made where it is not."""
        where = self.directory / home
        where.mkdir(exist_ok=True)
        return {
            "PATH": os.environ["PATH"], "HOME": str(where), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": "sk-ant-0123456789", "ANTHROPIC_BASE_URL": self.url,
        }  # fmt: skip


def run(command: Sequence[str], place: Place, home: str) -> Cost:
    """Run a command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=place.project, env=place.environment(home),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    said, warned = process.stdout.read(), process.stderr.read()
    cost = _waited(process, time.perf_counter() - began, began)
    if process.returncode or (QUESTION in command and b"word" not in said):
        raise RuntimeError(f"{command}: {process.returncode}: {said.decode()} {warned.decode()}")
    return cost


def _waited(process: subprocess.Popen[bytes], wall_s: float | None, began: float) -> Cost:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began if wall_s is None else wall_s
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def one_shot(place: Place, runs: int) -> list[Row]:
    """`bowerbird -q hi`: where nothing is yet, and where there is a database."""
    bare, first, later = [], [], []
    for n in range(runs):
        bare.append(run((sys.executable, "-c", BARE, place.url, QUESTION), place, "one-shot"))
        first.append(run((*BOWERBIRD, "-q", QUESTION), place, f"new-{n}"))
        later.append(run((*BOWERBIRD, "-q", QUESTION), place, "one-shot"))
    return [
        Row("bowerbird -q hi, the first of all (makes the database)", first[1:], bare[1:], 4, 2.5),
        Row("bowerbird -q hi, a later one", later[1:], bare[1:], 4, 2.5),
    ]


def prompt(place: Place, runs: int) -> list[Row]:
    """From the start of `bowerbird` to its prompt on the screen."""
    bare, ours = [], []
    for _ in range(runs):
        bare.append(run((sys.executable, "-c", "import prompt_toolkit"), place, "prompt"))
        began = time.perf_counter()
        with Terminal(
            [], cwd=place.project, environment=place.environment("prompt"), command=BOWERBIRD
        ) as terminal:
            terminal.wait_for("lists commands.")
            terminal.wait_for(">")
            wall_s = time.perf_counter() - began
            ours.append(Cost(wall_s, *_used(terminal.process.pid)))
            terminal.send("\x04")
            terminal.process.wait(HANG_S)
    return [Row("bowerbird, until the prompt is on the screen", ours[1:], bare[1:], 4)]


def _used(pid: int) -> tuple[float, float]:
    """Return what a running process has used: seconds of the processor and MB of memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return seconds, int(peak[1]) / 1024 if peak else 0.0


def server(place: Place, runs: int) -> list[Row]:
    """From the start of `serve` to its first answer at /health; its first turn beside its tenth."""
    bare, starts, first, tenth = [], [], [], []
    for _ in range(runs):
        bare.append(run((sys.executable, "-c", "import fastapi, uvicorn, sqlalchemy"), place, "server"))
        with serving(place) as (pid, port, start):
            starts.append(start)
            turns = [turn(pid, port) for _ in range(10)]
            first.append(turns[0])
            tenth.append(turns[-1])
    return [
        Row("bowerbird serve, until /health answers (beside: importing FastAPI, uvicorn, SQLAlchemy)", starts[1:], bare[1:], 4),
        Row("the first turn of a server (beside: its tenth)", first[1:], tenth[1:], 4),
    ]  # fmt: skip


@contextlib.contextmanager
def serving(place: Place) -> Iterator[tuple[int, int, Cost]]:
    """Start a server; give its process, its port and what it took to answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    began = time.perf_counter()
    with subprocess.Popen(
        (*BOWERBIRD, "serve", "--port", str(port)), cwd=place.project, env=place.environment("server"),
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            while not _answers(port):
                if process.poll() is not None or time.perf_counter() - began > HANG_S:
                    raise RuntimeError("the server did not start")
                select.select([], [], [], 0.002)
            wall_s = time.perf_counter() - began
            yield process.pid, port, Cost(wall_s, *_used(process.pid))
        finally:
            process.terminate()
            process.communicate(timeout=HANG_S)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def turn(pid: int, port: int) -> Cost:
    """Ask a new conversation the question; wait for `done`."""
    before, _ = _used(pid)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/chat", method="POST", data=b"{}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=HANG_S) as answer:
        conversation = json.loads(answer.read())["conversation_id"]
    wall_s = asyncio.run(_turn(f"ws://127.0.0.1:{port}/api/chat/{conversation}/ws"))
    after, memory = _used(pid)
    return Cost(wall_s, after - before, memory)


async def _turn(address: str) -> float:
    from websockets.asyncio.client import connect

    async with connect(address, proxy=None) as chat:
        await asyncio.sleep(TYPING_S)
        began = time.perf_counter()
        await chat.send(json.dumps({"type": "message", "content": QUESTION}))
        while json.loads(await asyncio.wait_for(chat.recv(), HANG_S))["type"] != "done":
            pass
        return time.perf_counter() - began


PARTS = {"one-shot": one_shot, "prompt": prompt, "server": server}


def main() -> int:
    """Run the parts; print their rows and what missed its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7, help="of each; the first is not counted")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args()
    models = subprocess.Popen(
        (sys.executable, str(ROOT / "tests" / "support" / "fake_models.py"), "--port", "0"),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    missed: list[str] = []
    try:
        assert models.stdout is not None
        port = models.stdout.readline().split()[-1]
        print(f"least / median of {chosen.runs - 1} runs; load {os.getloadavg()[0]:.1f}")
        with tempfile.TemporaryDirectory() as directory:
            place = Place(Path(directory), f"http://127.0.0.1:{port}")
            for name in chosen.only:
                for row in PARTS[name](place, chosen.runs):
                    missed += row.misses()
    finally:
        models.terminate()
        models.wait(HANG_S)
    print("".join(f"\nMISSED {each}" for each in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
