"""Turns that land, on a real server: many conversations at once, and the last turn costs what the first did.

    python benchmarks/landing_turns.py [--sessions 15] [--turns 200] [--stored 0]

Each conversation writes one small file by a tool and answers; the turn lands by the policy `turn` before its
`done`. All go at once over WebSocket, `--turns` times each. `--stored` adds as many conversations, each with a
turn that landed, beforehand. Printed: seconds of a turn in the first and in the last ten rounds of all (median),
the slowest one, and turns that never ended. Exit code 1 when one hung, a file did not land, or the last ten are
slower than 1.2 times the first ten.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.servers import free_port  # noqa: E402  the path is set first

AT_MOST, TEN, HUNG_S = 1.2, 10, 120
MODEL = [sys.executable, str(ROOT / "tests/support/fake_models.py"), "--port"]


class Server:
    """A scripted model and a server, each a process of its own."""

    def __init__(self, place: Path) -> None:
        self.project = place / "project"
        self.project.mkdir()
        self.port, model = free_port(), free_port()
        settings = {
            "agent": {"workspace": str(self.project), "data_dir": str(place / "data")},
            "provider": {
                "name": "anthropic", "base_url": f"http://127.0.0.1:{model}", "api_key": "sk-ant-0123456789",
            },
            "workspace": {"landing": "turn"},
            "logging": {"level": "WARNING"},
            "memory": {"enabled": False},
        }  # fmt: skip
        (place / "config.yaml").write_text(json.dumps(settings))
        (place / "config.yaml").chmod(0o600)
        serve = [sys.executable, "-m", "bowerbird", "--config", str(place / "config.yaml"), "serve"]
        env = {**os.environ, "HOME": str(place)}
        with (place / "log").open("ab") as log:
            self.processes = [
                subprocess.Popen([*MODEL, str(model)], stdout=subprocess.DEVNULL),
                subprocess.Popen(
                    [*serve, "--port", str(self.port)], cwd=place, env=env, stdout=log, stderr=log
                ),
            ]
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=HUNG_S
        )

    async def ready(self) -> None:
        """Wait until it answers."""
        while True:
            try:
                if (await self.http.get("/health")).status_code == 200:
                    return
            except httpx.HTTPError:
                await asyncio.sleep(0.05)

    def end(self) -> None:
        """End both."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)

    async def talk(self, name: str, turns: int) -> list[float]:
        """Take turns in one conversation; return the seconds of each."""
        conversation = (await self.http.post("/api/chat", json={})).json()["conversation_id"]
        address = f"ws://127.0.0.1:{self.port}/api/chat/{conversation}/ws"
        took: list[float] = []
        async with connect(address, max_size=None, proxy=None) as socket:
            for turn in range(turns):
                began = time.perf_counter()
                await socket.send(json.dumps({"type": "message", "content": message(name, turn)}))
                async with asyncio.timeout(HUNG_S):
                    while True:
                        event = json.loads(await socket.recv())
                        if event["type"] == "error":
                            raise RuntimeError(event)
                        if event["type"] == "done":
                            break
                took.append(time.perf_counter() - began)
        return took


def message(name: str, turn: int) -> str:
    """Return a message that tells the scripted model to write a file, then to answer."""
    file: dict[str, Any] = {"path": f"{name}/f{turn % 5}.txt", "content": f"{turn}\n"}
    return f"[[fake {json.dumps({'steps': [{'tools': [{'name': 'write_file', 'input': file}]}, {'text': 'ok'}]})}]]"


async def stored(server: Server, count: int) -> None:
    """Have that many conversations with a turn that landed, eight at once."""
    names = iter(range(count))

    async def some() -> None:
        for number in names:
            await server.talk(f"old/{number}", 1)

    await asyncio.gather(*(some() for _ in range(8)))


async def measure(server: Server, sessions: int, turns: int, before: int) -> tuple[list[list[float]], int]:
    """Return the seconds of all turns by conversation, and how many files do not say what they should."""
    try:
        await server.ready()
        await stored(server, before)
        took = await asyncio.gather(*(server.talk(f"s{number}", turns) for number in range(sessions)))
    finally:
        await server.http.aclose()
    wrong = 0
    for number in range(sessions):
        for turn in range(max(0, turns - 5), turns):
            file = server.project / f"s{number}" / f"f{turn % 5}.txt"
            wrong += not file.exists() or file.read_text() != f"{turn}\n"
    return took, wrong


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=15)
    parser.add_argument("--turns", type=int, default=200, help="of each conversation")
    parser.add_argument("--stored", type=int, default=0, help="conversations that exist beside them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place))
        try:
            began = time.monotonic()
            took, wrong = asyncio.run(measure(server, given.sessions, given.turns, given.stored))
            all_s = time.monotonic() - began
        finally:
            server.end()
    first = statistics.median(each for row in took for each in row[:TEN])
    last = statistics.median(each for row in took for each in row[-TEN:])
    slowest = max(max(row) for row in took)
    print(
        f"{given.sessions * given.turns} turns of {given.sessions} conversations beside {given.stored} stored: "
        f"{all_s:.1f} s, none hung, {wrong} files wrong; median of the first ten rounds {1000 * first:.0f} ms, of the "
        f"last ten {1000 * last:.0f} ms ({last / first:.2f} x), slowest {1000 * slowest:.0f} ms"
    )
    return 1 if wrong or last > AT_MOST * first else 0


if __name__ == "__main__":
    sys.exit(main())
