"""What a long conversation costs beside a fresh one: CPU of a turn, and how long the event loop stands still.

Here: stored conversations of any length, turns of them with a scripted model in another process. Not here:
bars; `benchmarks/long_chat.py` prints what comes out, `sessions/turn/test_long_chats.py` counts.
"""

import asyncio
import contextlib
import gc
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from support.heartbeat import heartbeat
from support.patience import HANG_S, patience
from support.sessions import QUICK, PlainMaker
from support.stores import opened

from bowerbird.agent.limits import Limits
from bowerbird.agent.turn import TurnRun
from bowerbird.cli.terminal.collector import started
from bowerbird.models import ModelSettings, ProviderSettings
from bowerbird.sessions import NewSession, SessionService
from bowerbird.store import Append, NewRecord

FAKE = Path(__file__).with_name("fake_models.py")
QUESTION = 'go on [[fake {"steps":[{"text":"done","ttft_s":0.04,"usage":{"input":10,"output":1}}]}]]'
"""Answered after a while, as models do. At once, the scripted one would take twice as long for a long request,
which it reads in Python, and what our process does after a longer wait costs it more: caches are cold."""
RECORDS_A_TURN = 7


@dataclass
class Figures:
    """What was measured of one conversation: CPU seconds a turn, and the longest standstills in seconds.

    Attributes:
        still: without the time in which the machine ran something else. on_wall: with it.
    """

    cpu: list[float] = field(default_factory=list[float])
    still: dict[str, float] = field(default_factory=dict[str, float])
    on_wall: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def turn(self) -> float:
        return statistics.median(self.cpu)


@contextlib.contextmanager
def model_server() -> Iterator[str]:
    """Run the scripted model in a process of its own; gives its address."""
    server = subprocess.Popen(
        [sys.executable, str(FAKE), "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=FAKE.parent.parent
    )
    try:
        assert server.stdout is not None
        found = re.search(r"listening on (\d+)", server.stdout.readline())
        assert found is not None, "the server did not say where it listens"
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        server.terminate()
        server.wait(HANG_S)
        if server.stdout is not None:
            server.stdout.close()


def turn_records(n: int, size: int) -> list[NewRecord]:
    """The records of a turn that read one file; about `size` characters in all."""
    text, call = "word " * (size // 20), f"call_{n}"
    used = {"input_tokens": 10, "output_tokens": 5}
    said = {"stop_reason": "end_turn", "model": "anthropic:claude-sonnet-4-5", "usage": used}
    use = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": f"file_{n}.txt"}}

    def block(words: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": words}]

    bodies: list[tuple[str, dict[str, Any]]] = [
        ("turn_started", {"n": n, "inbox": [], "kind": "message", "model": said["model"], "mode": "normal"}),
        ("user", {"content": block(text + str(n)), "sender": {}, "steer": False}),
        ("assistant", {**said, "content": [*block(text), use], "stop_reason": "tool_use"}),
        ("tool_intent", {"call": call, "tool": "read_file", "input": use["input"], "class": "read"}),
        ("tool_outcome", {"call": call, "status": "ok", "content": block(text[: size // 4]), "ms": 1}),
        ("assistant", {**said, "content": block(text)}),
        ("turn_ended", {"state": "done", "stop_reason": "end_turn"}),
    ]
    return [NewRecord(kind, body, None) for kind, body in bodies]


@dataclass
class Chats:
    """An open service whose conversations are as long as asked for."""

    service: SessionService
    maker: PlainMaker
    project: Path
    compact: bool = False

    def made(self, run: TurnRun) -> TurnRun:
        return msgspec.structs.replace(run, compact="") if self.compact else run

    async def fresh(self) -> str:
        return (await self.service.create(NewSession(workspace=str(self.project)))).thread_id

    async def stored(self, turns: int, size: int) -> str:
        """Make a conversation of `turns` turns of about `size` characters each."""
        thread = await self.fresh()
        for first in range(0, turns, 200):
            records: list[NewRecord] = []
            for n in range(first, min(first + 200, turns)):
                records += turn_records(n, size)
            await self.service.store.append(Append(thread, None, tuple(records)))
        return thread

    async def turn(self, thread: str) -> None:
        receipt = await self.service.submit(thread, QUESTION)
        async with asyncio.timeout(patience(120)):
            ended = await self.service.wait(receipt.turn_id)
        assert ended.state == "done", ended

    async def cost(self, thread: str, figures: Figures, turns: int) -> None:
        """Run turns and note each one's CPU: all that the process uses, so without a heartbeat."""
        gc.collect()  # whose garbage it is must not decide
        for _ in range(turns):
            began = time.process_time()
            await self.turn(thread)
            figures.cpu.append(time.process_time() - began)

    async def stops(self, thread: str, figures: Figures, name: str) -> None:
        """Run a turn and note the longest standstill."""
        gc.collect()
        async with heartbeat() as heart:
            await self.turn(thread)
        figures.still[name] = max(figures.still.get(name, 0.0), heart.own)
        figures.on_wall[name] = max(figures.on_wall.get(name, 0.0), heart.longest)


@asynccontextmanager
async def chats(directory: Path, model: str) -> AsyncIterator[Chats]:
    """Open a service on `directory`; again on the same one is a restart."""
    project = directory / "project"
    project.mkdir(parents=True, exist_ok=True)
    settings = ModelSettings(providers={"anthropic": ProviderSettings(api_key="test-key", base_url=model)})
    async with opened(directory / "data") as store:
        limits = Limits(max_iterations=50, max_tokens_total=10**9)
        maker = PlainMaker(settings, limits=limits)
        service = SessionService(store, maker, settings=QUICK)
        made = Chats(service, maker, project)
        maker.change = made.made
        try:
            async with service:
                yield made
        finally:
            await maker.aclose()


@asynccontextmanager
async def collected_as_in_a_server() -> AsyncIterator[None]:
    """Look for cycles as often, and among as much, as `bowerbird serve` does from when it is ready."""
    before = gc.get_threshold()
    started()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


async def compare(
    directory: Path, model: str, *, turns: int, size: int, repeats: int
) -> tuple[Figures, Figures]:
    """Return the figures of a fresh conversation and of one of `turns` turns, taken by turns."""
    fresh, long = Figures(), Figures()
    async with chats(directory, model) as home:
        thread, other = await home.stored(turns, size), await home.fresh()
        await home.turn(other)
    async with chats(directory, model) as home, collected_as_in_a_server():
        for _ in range(3):  # what the first turns of a process load is nobody's
            await home.turn(other)
        await home.stops(thread, long, "first turn after a restart")
        for _ in range(repeats):
            for each, figures in ((other, fresh), (thread, long)):
                await home.cost(each, figures, 4)
                await home.stops(each, figures, "next turns")
        home.compact = True
        await home.stops(thread, long, "compaction")
        home.compact = False
        await home.stops(thread, long, "after the compaction")
    return fresh, long
