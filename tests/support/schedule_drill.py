"""Servers on one database with many schedules, killed now and then, and what must be true of the runs afterwards.

Here: the servers, the drill, the check. Not here: how long and on which database (`benchmarks/schedules.py`).
"""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird.store import Store, StoreOptions

Row = dict[str, Any]
SQLITE = "sqlite+aiosqlite:///./agent.db"
DOWN_S = 3.0  # a killed server is started again after so long


@dataclass(frozen=True)
class Drill:
    """What is done: a random server is killed every `kill_every` seconds, `seconds` long."""

    seconds: float
    kill_every: float
    servers: int
    tasks: int
    interval_s: int


@dataclass
class Outcome:
    """What is wrong, every run, and how often a server was killed."""

    wrong: list[str] = field(default_factory=list[str])
    runs: list[Row] = field(default_factory=list[Row])
    kills: int = 0

    def __str__(self) -> str:
        late = sorted((_at(run["started_at"]) - _at(run["due"])).total_seconds() for run in self.runs)
        if not late:
            return "no runs"
        tasks = len({run["task_id"] for run in self.runs})
        return (
            f"{tasks} tasks, {len(late)} runs, {self.kills} kills; began after due: median "
            f"{late[len(late) // 2]:.2f} s, 90 % {late[len(late) * 9 // 10]:.2f} s, longest {late[-1]:.2f} s"
        )


class Servers:
    """`bowerbird serve` processes on one configuration."""

    def __init__(self, place: Path, models: str, url: str, count: int) -> None:
        self._place = place
        self._config = place / "config.yaml"
        settings = {
            "agent": {"data_dir": str(place / "data"), "workspace": str(place / "ws")},
            "store": {"url": url, "min_free_mb": 0},
            "memory": {"enabled": False},
            "scheduler": {"enabled": True, "min_interval": 1},
            "limits": {"parallel_turns": 16},
        }
        self._config.write_text(json.dumps(settings))
        self._environment = {
            "HOME": str(place), "PATH": os.environ["PATH"], "LLM_PROVIDER": "anthropic",
            "ANTHROPIC_API_KEY": "sk-drill-0123456789", "ANTHROPIC_BASE_URL": models,
        }  # fmt: skip
        self._ports = [_free_port() for _ in range(count)]
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        """Start one; it answers a moment later."""
        with (self._place / f"serve{number}.log").open("ab") as log:
            self._running[number] = subprocess.Popen(
                [sys.executable, "-m", "bowerbird", "--config", str(self._config), "serve",
                 "--port", str(self._ports[number])],
                cwd=self._place, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def start_all(self) -> None:
        """Start all and wait until each is ready."""
        for number in range(len(self._ports)):
            self.start(number)
            self.wait(number)

    def wait(self, number: int) -> None:
        """Wait until one is ready."""
        until = time.monotonic() + HANG_S
        while True:
            try:
                self.ask("GET", "/health/ready", number=number)
            except OSError:
                if time.monotonic() > until or self._running[number].poll() is not None:
                    raise AssertionError((self._place / f"serve{number}.log").read_text()) from None
                time.sleep(0.1)
            else:
                return

    def kill(self, number: int) -> None:
        """Kill one at once."""
        process = self._running.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait(HANG_S)

    def ask(self, method: str, path: str, body: Any = None, *, number: int = 0) -> Any:
        """Ask one over REST."""
        data = None if body is None else json.dumps(body).encode()
        address = f"http://127.0.0.1:{self._ports[number]}{path}"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def drill(place: Path, url: str, options: Drill) -> Outcome:
    """Run the drill."""
    (place / "ws").mkdir(parents=True)
    with FakeModels() as model:
        model.answer(lambda _body, _number: {"text": "done"})
        servers = Servers(place, model.anthropic_url, url, options.servers)
        try:
            servers.start_all()
            for number in range(options.tasks):
                kind, value = ("cron", "* * * * *") if number % 2 else ("interval", str(options.interval_s))
                asked = {"prompt": f"Task {number}.", "type": kind, "value": value}
                servers.ask("POST", "/api/schedules", asked)
            kills = _trouble(servers, options)
            tasks: list[Row] = servers.ask("GET", "/api/schedules")
            for task in tasks:
                servers.ask("PATCH", f"/api/schedules/{task['id']}", {"paused": True})
            runs = _ended(servers, tasks)
        finally:
            servers.stop()
    stored = asyncio.run(_stored(place / "data", url))
    wrong = judged(tasks, runs, options.interval_s) + unmatched(runs, stored)
    return Outcome(wrong, [run for mine in runs.values() for run in mine], kills)


def _trouble(servers: Servers, options: Drill) -> int:
    """Let time pass; kill a server now and then."""
    until, kills = time.monotonic() + options.seconds, 0
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(options.kill_every, left))
        if until - time.monotonic() > DOWN_S:
            number = random.randrange(options.servers)
            servers.kill(number)
            kills += 1
            time.sleep(DOWN_S)
            servers.start(number)
    for number in range(options.servers):
        servers.wait(number)
    return kills


def _ended(servers: Servers, tasks: Sequence[Row]) -> dict[str, list[Row]]:
    """Return all runs, the oldest first, once each has ended."""
    until = time.monotonic() + HANG_S
    while True:
        runs = {task["id"]: servers.ask("GET", f"/api/schedules/{task['id']}/runs")[::-1] for task in tasks}
        if all(run["ended_at"] for of_task in runs.values() for run in of_task) or time.monotonic() > until:
            return runs
        time.sleep(0.5)


def judged(tasks: Sequence[Row], runs: dict[str, list[Row]], interval_s: int) -> list[str]:
    """Return what is wrong with the times of runs."""
    wrong: list[str] = []
    for task in tasks:
        mine = runs[task["id"]]
        if not mine:
            wrong.append(f"{task['id']} ({task['type']}) never ran")
        for run in mine:
            if run["status"] != "done":
                wrong.append(f"{task['id']} due {run['due']}: {run['status']} {run['error']}")
            if _at(run["started_at"]) < _at(run["due"]):
                wrong.append(f"{task['id']} due {run['due']} began before its time")
        for before, run in pairwise(mine):
            if task["type"] == "interval":
                due = _at(before["started_at"]) + timedelta(seconds=interval_s)
            else:
                due = _at(before["due"]) + timedelta(minutes=1)
            if _at(run["due"]) != due:
                wrong.append(f"{task['id']} ({task['type']}) lost: {due} expected, {run['due']} found")
    return wrong


def unmatched(runs: dict[str, list[Row]], stored: tuple[list[str], list[str]]) -> list[str]:
    """Return runs that are not one message and one turn each, and messages and turns without a run."""
    keys, said = stored
    expected = sorted(f"{run['task_id']}:{run['due']}" for mine in runs.values() for run in mine)
    turns = sorted(run["turn_id"] for mine in runs.values() for run in mine)
    wrong = [] if sorted(keys) == expected else [f"{len(keys)} messages for {len(expected)} runs"]
    return (
        wrong if sorted(said) == turns else [*wrong, f"{len(said)} messages in journals, {len(turns)} runs"]
    )


async def _stored(data: Path, url: str) -> tuple[list[str], list[str]]:
    """Return the keys of the messages that schedules sent, and the turn of each that is in a journal."""
    store = await Store.open(url, data_dir=data, options=StoreOptions(min_free_mb=0))

    def read(connection: Connection) -> tuple[list[str], list[str]]:
        keys = connection.scalars(text("SELECT dedupe_key FROM inbox WHERE door = 'scheduler'"))
        said = connection.scalars(
            text(
                "SELECT journal.turn_id FROM journal JOIN turns ON turns.turn_id = journal.turn_id "
                "WHERE journal.type = 'user' AND turns.kind = 'schedule'"
            )
        )
        return list(keys), list(said)

    try:
        return await store.read(read)
    finally:
        await store.aclose()


def _at(iso: str) -> datetime:
    return datetime.fromisoformat(iso)
