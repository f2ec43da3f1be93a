"""An assistant that is killed at every point of its work, and what must be true of its chats afterwards.

Here: the drill, the points, the check, which reads the database with plain SQL and the chat as people see it.
Not here: the assistant (`assistants.py`), how many kills (`benchmarks/assistant_kills.py`).
"""

import asyncio
import json
import random
import re
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import FakeTelegram, fake_telegram
from support.gateways import TOKEN, Running
from support.patience import patience
from support.quick_servers import QuickServers

CHATS = range(7, 13)
PARTS = 3
PART_CHARS = 3_900
ROUND_S = patience(30)
POINTS = ("received", "committed", "begun", "part 2 of 3", "pressed", "due", "fired", "host command")

_ASKED = re.compile(r"\b(say|write|host) (\d+)\b")


def answer(number: int) -> str:
    """A text of three messages."""
    filler = "word " * (PART_CHARS // 5)
    return "\n\n".join(
        f"[{number}.{part}] {filler[: PART_CHARS - 20].strip()}" for part in range(1, PARTS + 1)
    )


@dataclass
class Outcome:
    """What is wrong, and how often it was killed where."""

    wrong: list[str] = field(default_factory=list[str])
    kills: Counter[str] = field(default_factory=Counter[str])
    repeated: int = 0
    runs: int = 0

    def __str__(self) -> str:
        where = ", ".join(f"{self.kills[point]} × {point}" for point in POINTS if self.kills[point])
        return (
            f"{self.kills.total()} kills ({where}); {self.runs} scheduled runs; "
            f"{self.repeated} parts came twice; wrong: {len(self.wrong)}"
        )

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.wrong + other.wrong, self.kills + other.kills, self.repeated + other.repeated,
            self.runs + other.runs,
        )  # fmt: skip


class Drill:
    """One assistant, its chats, the deaths so far."""

    def __init__(
        self, place: Path, fake: FakeModels, bot: FakeTelegram, seed: str, quick: QuickServers
    ) -> None:
        self.fake, self.bot, self.random = fake, bot, random.Random(seed)
        (place / "host").mkdir()
        self.log = place / "host" / "log"
        script = f"import time; open({str(self.log)!r}, 'a').write('%s\\n'); time.sleep(0.5)"
        self._script = script
        bridge = {
            "allowed_commands": [sys.executable], "allowed_cwd": [str(place)], "token": TOKEN, "approval": "allow",
            "agent": True,
        }  # fmt: skip
        self.gateway = Running(place / "host", {"bridges": {"tools": bridge}})
        given = {"enabled": True, "url": f"unix:{self.gateway.socket}", "bridges": {"tools": bridge}}
        users = [str(chat) for chat in CHATS]
        self.assistant = Assistant(
            place, fake, bot, telegram={"allowed_users": users},
            more={"gateway": given}, quick=quick,
        )  # fmt: skip
        self.missed: list[str] = []  # what was waited for in vain
        self.kills: Counter[str] = Counter()
        self.said: dict[int, str] = {}
        self.begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._number = 0
        fake.answer(self._model)

    # ------------------------------------------------------------ the model

    def _model(self, body: dict[str, Any], _: int) -> dict[str, Any]:
        self._loop.call_soon_threadsafe(self.begun.set)
        newest = body["messages"][-1]
        text = json.dumps(newest["content"])
        asked = [
            found
            for m in body["messages"]
            if m["role"] == "user"
            for found in _ASKED.findall(json.dumps(m["content"]))
        ]
        if "scheduled" in text or not asked:
            return {"text": "NO_REPLY"}
        kind, number = asked[-1][0], int(asked[-1][1])
        is_done = "tool_result" in text
        if kind == "write" and not is_done:
            call = {"name": "write_file", "input": {"path": f"{number}.txt", "content": "x\n"}}
            return {"tools": [call]}
        if kind == "host" and not is_done:
            command = f'{sys.executable.rpartition("/")[2]} -c "{self._script % number}"'
            return {"tools": [{"name": "host_execute", "input": {"bridge": "tools", "command": command}}]}
        return {"text": answer(number)}

    # ------------------------------------------------------------ one round

    async def round(self, point: str) -> None:
        """Send a message, kill the server at a point, start it again, and wait for the whole answer."""
        self._number += 1
        number, chat = self._number, self.random.choice(list(CHATS))
        kind = {"pressed": "write", "host command": "host"}.get(point, "say")
        self.said[number] = f"{kind} {number}"
        self.begun.clear()
        ready = await self._until_point(point, number, chat)
        await ready()
        await asyncio.to_thread(self.assistant.kill, signal.SIGKILL)
        self.kills[point] += 1
        await asyncio.to_thread(self.assistant.start)
        await self._wait(
            lambda: self.shown(number) >= {1, 2, 3}, f"message {number} ({point}) is not answered"
        )
        if point == "pressed":
            landed = self.assistant.workspace / f"{number}.txt"
            await self._wait(landed.exists, f"the press for {landed.name} did nothing")

    async def _until_point(self, point: str, number: int, chat: int) -> Callable[[], Awaitable[None]]:
        """Send the message of a round; return what waits until its point is reached."""
        text, bot = self.said[number], self.bot
        update = await bot.say(text, chat=chat, user=chat)
        waits: dict[str, Callable[[], Awaitable[None]]] = {
            "received": lambda: asyncio.sleep(self.random.random() * 0.05),
            "committed": lambda: bot.until(lambda: bot.offset > update),
            "begun": self.begun.wait,
            "part 2 of 3": lambda: bot.until(lambda: any(f"[{number}.2]" in c.text for c in bot.calls[-40:])),
            "pressed": lambda: self._pressed(number, chat),
            "due": lambda: asyncio.sleep(self.random.random() * 2),
            "fired": self._fired,
            "host command": lambda: self._wait(lambda: f"{number}\n" in self._host_log(), f"no command {number}"),
        }  # fmt: skip
        return waits[point]

    async def _pressed(self, number: int, chat: int) -> None:
        await self._wait(lambda: self._card(number, chat) is not None, f"no summary for {number}")
        call = self._card(number, chat)
        assert call is not None
        message, markup = call
        data = next(
            b["callback_data"] for row in markup["inline_keyboard"] for b in row if b["text"] == "Land"
        )
        await self.bot.update(
            callback_query={
                "id": f"q{number}", "from": {"id": chat, "is_bot": False, "first_name": "Ann"},
                "chat_instance": "1", "data": data, "message": message,
            }
        )  # fmt: skip
        await asyncio.sleep(self.random.random() * 0.3)

    def _card(self, number: int, chat: int) -> tuple[dict[str, Any], Any] | None:
        for (where, _), known in reversed(self.bot.messages.items()):
            if (
                where == chat
                and f"{number}.txt" in known["source"]
                and "Land" in json.dumps(known["markup"] or {})
            ):
                return known["message"], known["markup"]
        return None

    async def _fired(self) -> None:
        before = self._count("SELECT count(*) FROM scheduled_runs")
        await self._wait(
            lambda: self._count("SELECT count(*) FROM scheduled_runs") > before, "nothing is due"
        )

    async def _wait(self, condition: Callable[[], Any], what: str) -> None:
        deadline = self._loop.time() + ROUND_S
        while not condition():
            if self._loop.time() > deadline:
                self.missed.append(what)
                return
            await asyncio.sleep(0.02)

    # ------------------------------------------------------------ what people see

    def shown(self, number: int) -> set[int]:
        """Which parts of an answer are in the chat now."""
        texts = "\n".join(str(known["source"]) for known in self.bot.messages.values())
        return {part for part in range(1, PARTS + 1) if f"[{number}.{part}]" in texts}

    def _host_log(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    # ------------------------------------------------------------ the check

    def check(self) -> Outcome:
        """Say what is wrong now, between two rounds: each update one turn, each due time one run, each answer
        whole, each act once."""
        outcome = Outcome(list(self.missed), Counter(self.kills))
        wrong = outcome.wrong
        rows = self._rows("SELECT body, turn_id FROM inbox WHERE door = 'telegram' AND kind = 'message'")
        turns = Counter(found[1] for body, _ in rows for found in _ASKED.findall(body))
        texts = [str(known["source"]) for known in self.bot.messages.values()]
        for number, said in self.said.items():
            if turns[str(number)] != 1:
                wrong.append(f"{said}: {turns[str(number)]} turns")
            for part in range(1, PARTS + 1):
                count = sum(f"[{number}.{part}]" in text for text in texts)
                outcome.repeated += max(0, count - 1)
                if count not in (1, 2):
                    wrong.append(f"{said}: part {part} is there {count} times")
            if sum(f"[{number}." in text for text in texts) > PARTS + 1:
                wrong.append(f"{said}: more than one part came twice")
        for number, count in Counter(self._host_log().split()).items():
            if count != 1:
                wrong.append(f"the host command of {number} ran {count} times")
        runs = self._rows("SELECT task_id, due, turn_id FROM scheduled_runs")
        outcome.runs = len(runs)
        if len({run[2] for run in runs}) != len(runs):
            wrong.append("two runs share a turn")
        if len({run[:2] for run in runs}) != len(runs):
            wrong.append("a due time has two runs")
        doubled = self._rows("SELECT dedupe_key FROM inbox GROUP BY door, dedupe_key HAVING count(*) > 1")
        wrong += [f"{key} is in the inbox twice" for (key,) in doubled]
        landed = Counter(path.name for path in self.assistant.workspace.iterdir())
        pressed = {said.split()[1] for said in self.said.values() if said.startswith("write")}
        wrong += [f"{number}.txt is not landed" for number in pressed if f"{number}.txt" not in landed]
        if (landings := self._landings()) != len(pressed):
            wrong.append(f"{landings} landings of {len(pressed)} presses")
        return outcome

    def _landings(self) -> int:
        branches = self.assistant.place / "data" / "branches"
        kept = [branch / "landings" for branch in branches.iterdir() if not branch.name.startswith(".")]
        return sum(one.is_dir() for place in kept if place.is_dir() for one in place.iterdir())

    def _count(self, query: str) -> int:
        return int(self._rows(query)[0][0])

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        database = self.assistant.place / "data" / "agent.db"
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


async def drill(
    place: Path, seed: str, quick: QuickServers, points: Iterator[str], told: Callable[[Outcome], None]
) -> None:
    """Kill an assistant at one point after the other, as long as there are any.

    Args:
        told: takes what is to be said after each kill.
    """
    with FakeModels() as fake:
        async with fake_telegram() as bot:
            done = Drill(place, fake, bot, seed, quick)
            try:
                await asyncio.to_thread(done.assistant.start)
                await bot.until(lambda: bot.of("getUpdates"))
                await done.assistant.run(
                    "tasks", "add", "a scheduled note", "--every", "3", "--channel", "telegram", "--chat",
                    str(CHATS[0]),
                )  # fmt: skip
                for point in points:
                    await done.round(point)
                    told(done.check())
            finally:
                await asyncio.to_thread(done.assistant.close)
                await asyncio.to_thread(done.gateway.stop)
