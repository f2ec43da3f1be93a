"""Two `bowerbird serve` and the command, in turns on one data directory (issue 10, point 5; D-4).

Here: the servers, what is asked of whom, what must be true at the end. Not here: how often (the test and
`benchmarks/shared_data.py` say).

Several conversations go on at once. In each, messages go to one server, the other one and `bowerbird run --resume`
by turns, with landings through all three doors and commands of the agent in the sandbox. Nobody may be refused,
and every line of the log that the agent keeps must be there once, in order.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.servers import free_port

_WORD = re.compile(r"\[\[add (\w+) (\d+)\]\]")
DOORS = ("first", "second", "command")
# Of each ten things done with a conversation: who does what.
PLAN = (
    ("first", "say"), ("second", "say"), ("command", "land"), ("first", "say"), ("command", "say"),
    ("second", "land"), ("second", "say"), ("first", "say"), ("first", "land"), ("command", "say"),
)  # fmt: skip


def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
    """The scripted model: append a line by a command, note its number by a file tool, say so."""
    name, number, step = "", "0", 0
    for message in body["messages"]:
        found = _WORD.findall(json.dumps(message["content"])) if message["role"] == "user" else []
        if found:
            (name, number), step = found[-1], 0
        elif message["role"] == "assistant":
            step += 1
    if not name:
        return {"text": "ready"}
    tools = {tool["name"] for tool in body.get("tools", ())}
    command = {"name": "bash", "input": {"command": f"echo {number} >> {name}/log.txt"}}
    note = {"name": "write_file", "input": {"path": f"{name}/last.txt", "content": f"{number}\n"}}
    steps = [{"tools": [command]}] if "bash" in tools else []
    # Another process may have written it: what stands there is read before it is written over.
    steps += [
        {"tools": [{"name": "read_file", "input": {"path": f"{name}/last.txt"}}, note]},
        {"text": f"Added {number}."},
    ]
    return steps[min(step, len(steps) - 1)]


@dataclass
class Shared:
    """One data directory and its users.

    Attributes:
        url: of the database; SQLite in the data directory when empty.
        done: what was done, by door and deed. refused: what somebody was told instead.
    """

    directory: Path
    model: FakeModels
    url: str = ""
    done: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    refused: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.model.answer(answer)
        self.project.mkdir(parents=True)
        (self.directory / "home").mkdir()
        settings: dict[str, Any] = {
            "agent": {"workspace": str(self.project), "data_dir": str(self.directory / "data")},
            "provider": {
                "name": "anthropic",
                "base_url": self.model.anthropic_url,
                "api_key": "sk-ant-0123456789",
            },
            "logging": {"level": "WARNING"},
            "memory": {"enabled": False},
            "store": {"min_free_mb": 0, **({"url": self.url} if self.url else {})},
        }
        (self.directory / "config.yaml").write_text(json.dumps(settings))
        (self.directory / "config.yaml").chmod(0o600)
        self.servers: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}

    @property
    def project(self) -> Path:
        return self.directory / "project"

    def __enter__(self) -> "Shared":
        for door in DOORS[:2]:
            port = free_port()
            with (self.directory / f"{door}.log").open("ab") as log:
                process = subprocess.Popen(
                    [*self._command(), "serve", "--port", str(port)],
                    cwd=self.directory, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip
            self.servers[door] = (f"http://127.0.0.1:{port}", process)
            self._until_ready(door)
        return self

    def __exit__(self, *_: object) -> None:
        for _, process in self.servers.values():
            process.terminate()
        for _, process in self.servers.values():
            try:
                process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, door: str) -> str:
        return (self.directory / f"{door}.log").read_text()[-4000:]

    def run(self, deeds: int, talks: int) -> None:
        """Do that many things in all, in so many conversations at once."""
        shares = [deeds // talks + (number < deeds % talks) for number in range(talks)]
        with ThreadPoolExecutor(talks) as pool:
            for number, share in enumerate(shares):
                pool.submit(self._talk, f"t{number}", number, share)

    def _talk(self, name: str, offset: int, deeds: int) -> None:
        try:
            (self.project / name).mkdir()
            answered = self._request("first", "POST", "/api/chat", {})
            thread, said, landed = str(answered["conversation_id"]), 0, 0
            for number in range(deeds):
                door, deed = PLAN[(number + offset) % len(PLAN)]
                if deed == "land" and said == landed:
                    deed = "say"  # there is nothing to land
                if deed == "say":
                    said += 1
                    self._say(door, thread, f"Go on. [[add {name} {said}]]")
                else:
                    self._land(door, thread)
                    landed = said
                self.done[door, deed] += 1
            if said != landed:
                self._land("second", thread)
            self._check(name, thread, said)
        except Exception as error:  # noqa: BLE001  a thread's failure is a finding like any other
            self.refused.append(f"{name}: {type(error).__name__}: {error}")

    def _say(self, door: str, thread: str, text: str) -> None:
        if door == "command":
            told = self._run("run", "--resume", thread, "--json", text)
            if told.returncode:
                self.refused.append(
                    f"run --resume: {told.returncode} {told.stdout[-500:]} {told.stderr[-500:]}"
                )
            return
        path = f"/api/conversations/{thread}/messages?wait=60"
        got = self._request(door, "POST", path, {"content": text})
        if got.get("state") != "done":
            self.refused.append(f"{door} said: {json.dumps(got)[:500]}")

    def _land(self, door: str, thread: str) -> None:
        if door == "command":
            told = self._run("land", thread, "--yes")
            if told.returncode:
                self.refused.append(f"land: {told.returncode} {told.stdout[-500:]} {told.stderr[-500:]}")
            return
        self._request(door, "POST", f"/api/conversations/{thread}/land", {})

    def _check(self, name: str, thread: str, said: int) -> None:
        log, last = self.project / name / "log.txt", self.project / name / "last.txt"
        if log.exists():  # there is a sandbox
            expected = "".join(f"{number}\n" for number in range(1, said + 1))
            if log.read_text() != expected:
                self.refused.append(f"{name}: log has {log.read_text().split()} after {said} messages")
        if last.read_text() != f"{said}\n":
            self.refused.append(f"{name}: last is {last.read_text()!r} after {said} messages")
        shown = self._request("second", "GET", f"/api/conversations/{thread}", None)["messages"]
        texts = [row["content"] for row in shown if row["role"] == "assistant"]
        if texts != [f"Added {number}." for number in range(1, said + 1)]:
            self.refused.append(f"{name}: answers {texts}")

    def _request(self, door: str, method: str, path: str, body: Any) -> dict[str, Any]:
        address, _ = self.servers[door]
        found = httpx.request(method, address + path, json=body, timeout=patience(18), trust_env=False)
        if found.status_code >= 400:
            self.refused.append(f"{door} {method} {path}: {found.status_code} {found.text[:500]}")
        return found.json()

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._command(), *words], cwd=self.project, env=self._environment(), capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=patience(24), check=False,
        )  # fmt: skip

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "bowerbird", "--config", str(self.directory / "config.yaml")]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return {**kept, "HOME": str(self.directory / "home")}

    def _until_ready(self, door: str) -> None:
        address, process = self.servers[door]
        until = time.monotonic() + HANG_S
        while time.monotonic() < until and process.poll() is None:
            try:
                if httpx.get(f"{address}/health", timeout=HANG_S, trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"the server does not start: {self.log(door)}")
