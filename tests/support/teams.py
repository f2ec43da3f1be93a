"""Applications with quick teams, and models that play their lead and teammates.

Every agent is known by the last line of its system prompt, `Agent: NAME.`: the lead is `main`.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support import killed_app
from support.fake_models import FakeModels
from support.killed_app import application
from support.patience import HANG_S

from bowerbird.app import Application
from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"
QUICK = {
    "teams.poll_s": 0.05, "teams.idle_s": 30, "teams.wake_lead": False, "store.min_free_mb": 0,
    # A dead process is found by its pid, whatever its lease; a busy machine may be slow to renew one.
    "dispatch.lease_s": 20, "dispatch.heartbeat_s": 2, "turn.max_attempts": 20, "provider.api_key": "k",
}  # fmt: skip

Step = dict[str, Any]


def flags_for(fake: FakeModels, **more: Any) -> dict[str, Any]:
    """Settings of an application whose models `fake` plays; teams wait long and look often."""
    return {**QUICK, "provider.base_url": fake.anthropic_url, **more}


@asynccontextmanager
async def opened(directory: Path, fake: FakeModels, **more: Any) -> AsyncIterator[Application]:
    async with application(directory, flags_for(fake, **more), MODEL) as app:
        yield app


def who(body: dict[str, Any]) -> str:
    """The agent that a request is from."""
    found = re.findall(r"Agent: ([A-Za-z0-9_-]+)\.", json.dumps(body["system"]))
    return found[-1]


def text_of(body: dict[str, Any]) -> str:
    """Everything that a request says, as one text."""
    return json.dumps(body["messages"], ensure_ascii=False)


def newest(body: dict[str, Any]) -> str:
    """What the last message of a request says."""
    return json.dumps(body["messages"][-1]["content"], ensure_ascii=False)


def play(fake: FakeModels, scripts: dict[str, list[Step] | Callable[[dict[str, Any]], Step]]) -> None:
    """Answer each agent's requests by its own steps in order, the last one again and again, or a function.

    Agents without a script do what they are told.
    """
    taken: dict[str, int] = {}

    def answer(body: dict[str, Any], _n: int) -> Step:
        name = who(body)
        script = scripts.get(name, obey)
        if callable(script):
            return script(body)
        at = taken[name] = taken.get(name, -1) + 1
        return script[min(at, len(script) - 1)]

    fake.answer(answer)


def requests_of(fake: FakeModels, name: str) -> list[dict[str, Any]]:
    """The requests of an agent, oldest first."""
    return [body for body in list(fake.requests) if who(body) == name]


async def new_lead(app: Application, directory: Path, **flags: Any) -> str:
    """A session that may have teammates."""
    new = NewSession(workspace=str(directory / "project"), flags={"enable_teams": True, **flags})
    thread = (await app.sessions.create(new)).thread_id
    await app.drive(thread)
    return thread


async def ask(app: Application, thread: str, text: str = "go") -> Any:
    """One turn of the lead, to its end."""
    receipt = await app.sessions.submit(thread, text)
    async with asyncio.timeout(HANG_S):
        return await app.sessions.wait(receipt.turn_id)


async def outcomes(app: Application, thread: str, tool: str) -> list[dict[str, Any]]:
    """The results of a tool in a session, oldest first."""
    records = await app.sessions.history(thread)
    calls = {r.body["call"] for r in records if r.type == "tool_intent" and r.body["tool"] == tool}
    return [r.body for r in records if r.type == "tool_outcome" and r.body["call"] in calls]


async def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until `condition`, a function or coroutine function, gives something true; return that."""
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.01)


async def statuses(app: Application, lead: str) -> dict[str, str]:
    """The newest status of each teammate by name."""
    from bowerbird.store.rows.teams import members_of

    rows = await app.store.read(lambda c: members_of(c, lead))
    return {row.name: row.status for row in rows}


async def reaches(app: Application, lead: str, **wanted: str) -> None:
    """Wait until teammates have these statuses."""

    async def same() -> bool:
        found = await statuses(app, lead)
        return all(found.get(name) == status for name, status in wanted.items())

    await until(same)


# ---------------------------------------------------------------- agents that do what they are told


def order(*calls: tuple[str, dict[str, Any]]) -> str:
    """A message that has its reader make these calls, then say done."""
    return "!" + json.dumps([{"name": name, "input": arguments} for name, arguments in calls]) + "!"


def obey(body: dict[str, Any]) -> Step:
    """The step of an agent that makes the calls of the newest `order` it was given since it spoke last."""
    fresh: list[dict[str, Any]] = []
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        fresh.append(message)
    calls: list[dict[str, Any]] = []
    for message in reversed(fresh):
        for text in said(message):
            calls += ordered(text)
    return {"tools": calls} if calls else {"text": "done"}


def said(message: dict[str, Any]) -> list[str]:
    """The texts of a message, and the contents of the mail in it."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    found: list[str] = []
    for text in texts:
        if text.startswith("<inbox>"):
            lines = [line for line in text.splitlines() if line.startswith("{")]
            found += [json.loads(line)["content"] for line in lines]
        else:
            found.append(text)
    return found


def ordered(text: str) -> list[dict[str, Any]]:
    """The calls of the first order in a text; orders in its strings are others' to carry out."""
    at = text.find("![")
    return [] if at < 0 else json.JSONDecoder().raw_decode(text, at + 1)[0]


async def do(app: Application, lead: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Have the lead make one call; return its outcome's data."""
    turn = await ask(app, lead, order((tool, arguments)))
    assert turn.state == "done", turn.error
    return (await outcomes(app, lead, tool))[-1]["data"]


def busy(body: dict[str, Any]) -> Step:
    """A step that keeps an agent at work for a moment, each time another one."""
    thought = f"thought {len(body['messages'])}"
    return {"tools": [{"name": "think", "input": {"thought": thought}}], "ttft_s": 0.03}


# ---------------------------------------------------------------- processes that are killed


@asynccontextmanager
async def child(fake: FakeModels, directory: Path, lead: str, **more: Any) -> AsyncIterator["Child"]:
    """A process that drives a session, which says `the turn that is killed`; killed at the end at the latest."""
    tests = killed_app.HERE.parent.parent
    given = {"directory": str(directory), "flags": flags_for(fake, **more), "model": MODEL, "thread": lead}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(killed_app.HERE), json.dumps(given),
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent / 'src'}"},
    )  # fmt: skip
    running = Child(process)
    try:
        yield running
    finally:
        await running.kill()


class Child:
    """A running process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def ended(self) -> bool:
        """Whether it ended by itself."""
        return self._process.returncode is not None

    async def kill(self) -> None:
        """End it as kill -9 does."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
