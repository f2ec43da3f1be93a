"""Killing processes in the middle of a turn, and checking by other means what they left."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.patience import HANG_S

THREAD = "0123456789ab"
CHILD = Path(__file__).with_name("crash_child.py")

START = "start\nend\n"
GONE = b"soon gone\n"
_EDIT = {"path": "log.txt", "old": "end", "new": "+end"}
_READ = {"name": "read_file", "input": {"path": "log.txt"}}
STEPS: list[dict[str, Any]] = [
    {
        "text": "First a file.",
        "tools": [{"name": "write_file", "input": {"path": "new/a.txt", "content": "a\n"}}],
    },
    {"tools": [{"name": "edit_file", "input": _EDIT}, {"name": "send", "input": {"text": "one"}}]},
    {
        "tools": [
            {"name": "edit_file", "input": _EDIT},
            {"name": "edit_file", "input": {"path": "other.txt", "old": "x", "new": "xy"}},
            _READ,
        ]
    },
    {
        "tools": [
            {"name": "send", "input": {"text": "two"}},
            {"name": "delete_file", "input": {"path": "gone.txt"}},
        ]
    },
    {"text": "word " * 30, "deltas": 30, "tools": [{"name": "edit_file", "input": _EDIT}]},
    {"text": "All done."},
]


class Forks:
    """The server of children; one at a time.

    Args:
        warm: configuration of a scene of its own, for the turn that the server drives itself.
        program: the server.
    """

    def __init__(self, warm: dict[str, Any], program: Path = CHILD) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(warm) + "\n")

    def run(self, config: dict[str, Any], kill_after_s: float | None = None) -> int:
        """Run a child to its end, killed from outside after a while if asked; return its wait status."""
        server = self._server
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(config) + "\n")
        server.stdin.flush()
        pid = int(server.stdout.readline())
        timer: threading.Timer | None = None
        if kill_after_s is not None:
            timer = threading.Timer(kill_after_s, _kill, (pid,))
            timer.start()
        status = int(server.stdout.readline())
        if timer is not None:
            timer.cancel()
            timer.join()
        return status

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(HANG_S)
        self._server.stdout.close()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def forks(models: str) -> Iterator[Forks]:
    """Start the server of children; `models` is the scripted model's URL."""
    with tempfile.TemporaryDirectory() as directory:
        server = Forks(Scene(Path(directory) / "warm", models).config())
        try:
            yield server
        finally:
            server.close()


@dataclass
class Scene:
    """One session's files: a project, a data directory, what left the house."""

    directory: Path
    models: str
    policy: str = "review"
    steps: list[dict[str, Any]] = field(default_factory=lambda: STEPS)

    def __post_init__(self) -> None:
        project = self.directory / "project"
        project.mkdir(parents=True)
        (project / "log.txt").write_text(START)
        (project / "other.txt").write_text("x\n")
        (project / "gone.txt").write_bytes(GONE)

    def config(self, kill: str | None = None, *, resumes: bool = True) -> dict[str, Any]:
        """What a process is told; `resumes`: a person who finds the turn failed goes on with it."""
        return {
            "data": str(self.directory / "data"),
            "project": str(self.directory / "project"),
            "outside": str(self.directory / "outside"),
            "log": str(self.directory / "child.log"),
            "models": self.models,
            "thread": THREAD,
            "policy": self.policy,
            "text": self.text,
            "kill": kill,
            "resumes": resumes,
        }

    @property
    def text(self) -> str:
        """What the user asks: the model's script is in it."""
        return f"Do it. [[fake {json.dumps({'steps': self.steps})}]]"

    @property
    def calls(self) -> int:
        """How many calls the script makes."""
        return sum(len(step.get("tools", ())) for step in self.steps)

    @property
    def log(self) -> str:
        path = self.directory / "child.log"
        return path.read_text() if path.exists() else ""


def check(scene: Scene) -> list[str]:
    """Return what is wrong with a finished scene, read with nothing of ours: raw SQL and plain files."""
    wrong: list[str] = []
    database = sqlite3.connect(f"file:{scene.directory}/data/agent.db?mode=ro", uri=True)
    try:
        wrong += _check_database(database, scene)
    finally:
        database.close()
    wrong += _check_outside(scene)
    return wrong


def _check_database(database: sqlite3.Connection, scene: Scene) -> list[str]:
    wrong: list[str] = []
    if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        wrong.append("the database is damaged")
    turns = database.execute("SELECT turn_id, state, snapshot_id FROM turns").fetchall()
    if [state for _, state, _ in turns] != ["done"]:
        return [*wrong, f"turns are {turns}"]
    [(turn, _, snapshot)] = turns
    records = database.execute("SELECT seq, type, body FROM journal ORDER BY seq").fetchall()
    if [seq for seq, _, _ in records] != list(range(1, len(records) + 1)):
        wrong.append(f"the journal has gaps: {[seq for seq, _, _ in records]}")
    kinds = Counter(kind for _, kind, _ in records)
    once = ("turn_started", "user")
    wrong += [f"{kinds[kind]} records of type {kind}" for kind in once if kinds[kind] != 1]
    bodies = [(kind, json.loads(body)) for _, kind, body in records]
    asked = [
        b["id"]
        for kind, body in bodies
        if kind == "assistant"
        for b in body["content"]
        if b["type"] == "tool_use"
    ]
    answered = Counter(body["call"] for kind, body in bodies if kind == "tool_outcome")
    if len(asked) != scene.calls or answered != Counter(dict.fromkeys(asked, 1)):
        wrong.append(f"calls {asked} have outcomes {answered}")
    if [b["stop_reason"] for kind, b in bodies if kind == "assistant"].count("partial"):
        wrong.append("a partial answer is on record")
    rows = database.execute("SELECT snapshot_id, turn_id FROM snapshots").fetchall()
    if rows != [(snapshot, turn)]:
        wrong.append(f"snapshots are {rows}, the turn has {snapshot}")
    open_effects = database.execute("SELECT call_id FROM effects WHERE state = 'intent'").fetchall()
    if open_effects:
        wrong.append(f"effects without an end: {open_effects}")
    # A run killed before its message was accepted leaves a session without a turn beside this one.
    query = "SELECT branch_id FROM sessions JOIN turns USING (thread_id)"
    [branch] = database.execute(query).fetchone()
    return wrong + _check_files(scene, str(branch), bodies)


def _check_files(scene: Scene, branch: str, bodies: list[tuple[str, dict[str, Any]]]) -> list[str]:
    expected: dict[str, bytes | None] = {
        "new/a.txt": b"a\n", "log.txt": b"start\n+++end\n", "other.txt": b"xy\n", "gone.txt": None,
    }  # fmt: skip
    failed = [b for kind, b in bodies if kind == "tool_outcome" and b["status"] not in ("ok", "abandoned")]
    if failed:
        return [f"outcomes that are neither ok nor abandoned: {failed}"]
    directory = scene.directory / "data" / "branches" / branch
    project = scene.directory / "project"
    wrong = [
        f"{name} is {found!r}, not {content!r}"
        for name, content in expected.items()
        if (found := effective_content(directory, project, name)) != content
    ]
    landed = {name: (project / name).read_bytes() if (project / name).exists() else None for name in expected}
    if scene.policy == "review":
        before = {
            "new/a.txt": None,
            "log.txt": START.encode(),
            "other.txt": b"x\n",
            "gone.txt": b"soon gone\n",
        }
        wrong += [f"the workspace changed: {landed}"] if landed != before else []
    else:
        wrong += [f"landed {landed}"] if landed != expected else []
    left = [str(path) for path in project.rglob("*") if path.name.startswith(".bower")]
    return wrong + ([f"left behind: {left}"] if left else [])


def effective_content(directory: Path, project: Path, name: str) -> bytes | None:
    """Content of a file by hand: the newest layer that has it, whiteouts hide, else the workspace."""
    manifest = json.loads((directory / "manifest.json").read_bytes())
    layers = [
        directory / "open",
        *(directory / "layers" / str(row["n"]) for row in reversed(manifest["layers"])),
    ]
    for layer in layers:
        path = layer / name
        if path.is_char_device():
            return None
        if path.is_file():
            return path.read_bytes()
    path = project / name
    return path.read_bytes() if path.exists() else None


def _check_outside(scene: Scene) -> list[str]:
    path = scene.directory / "outside"
    sent = Counter(path.read_text().splitlines()) if path.exists() else Counter[str]()
    return [f"{text!r} was sent {count} times" for text, count in sent.items() if count > 1]
