"""Kill drills: many deaths in one data directory, and an independent look at what is left.

The checker reads the database with plain SQL and the branch's layers as files; it does not care who
wrote them, so it serves children of these tests and a real server process alike.
"""

import json
import os
import random
import re
import signal
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.crashes import Forks, effective_content
from support.drill_child import THREAD

CHILD = Path(__file__).with_name("drill_child.py")
START = "start\nend\n"
_DIRECTIVE = re.compile(r"\[\[drill (\d+)\]\]")


def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
    """The scripted model: a summary when asked for one, else the next step of the newest message."""
    if "You summarise" in json.dumps(body.get("system") or ""):
        return {"text": "They asked; it was done."}
    number, step = "0", 0
    for message in body["messages"]:
        text = json.dumps(message["content"])
        found = _DIRECTIVE.findall(text) if message["role"] == "user" else []
        if found:
            number, step = found[-1], 0
        elif message["role"] == "assistant":
            step += 1
    return script(int(number))[min(step, 2)]


def script(number: int) -> list[dict[str, Any]]:
    """What the model does about the n-th message."""
    edit = {"path": "log.txt", "old": "end", "new": "+end"}
    return [
        {"tools": [{"name": "edit_file", "input": edit}, {"name": "send", "input": {"text": f"m{number}"}}]},
        {"tools": [{"name": "write_file", "input": {"path": f"new/{number}.txt", "content": f"{number}\n"}}]},
        {"text": f"Done {number}."},
    ]


@dataclass
class Drill:
    """One data directory, the operations so far, the deaths so far."""

    directory: Path
    models: str
    policy: str = "review"
    url: str = "sqlite:///agent.db"
    messages: int = 0
    kills: int = 0
    counted: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.project.mkdir(parents=True)
        (self.project / "log.txt").write_text(START)
        (self.directory / "imports").mkdir()

    @property
    def project(self) -> Path:
        return self.directory / "project"

    def config(self, operations: list[dict[str, Any]], kill: str | None) -> dict[str, Any]:
        place = str(self.directory)
        return {
            "data": f"{place}/data", "project": str(self.project), "outside": f"{place}/outside",
            "delivered": f"{place}/delivered", "imports": f"{place}/imports", "log": f"{place}/child.log",
            "models": self.models, "policy": self.policy, "url": self.url, "operations": operations,
            "kill": kill,
        }  # fmt: skip

    @property
    def log(self) -> str:
        path = self.directory / "child.log"
        return path.read_text()[-6000:] if path.exists() else ""

    def next_message(self) -> list[dict[str, Any]]:
        self.messages += 1
        return [{"do": "message", "n": self.messages}]

    def next(self, kind: str) -> list[dict[str, Any]]:
        """The next operation of another kind; an import gets its files."""
        self.counted[kind] = self.counted.get(kind, 0) + 1
        number = self.counted[kind]
        if kind == "import":
            place = self.directory / "imports" / str(number) / "sessions"
            place.mkdir(parents=True)
            line = {"role": "user", "content": "hi", "ts": "2026-02-24T14:30:00.123456+00:00",
                    "channel": "x", "user_id": None}  # fmt: skip
            for index in range(3):
                (place / f"imported_{number}_{index}.jsonl").write_text(json.dumps(line) + "\n")
        return [{"do": kind, "n": number}]

    def kill(self, children: Forks, operations: list[dict[str, Any]], point: str) -> None:
        """Die at `point` during `operations`."""
        status = children.run(self.config(operations, point))
        assert os.WTERMSIG(status) == signal.SIGKILL, f"{point} was not reached\n{self.log}"
        self.kills += 1

    def finish(self, children: Forks, operations: list[dict[str, Any]]) -> None:
        """Carry `operations` out to their end."""
        assert children.run(self.config(operations, None)) == 0, self.log


def drill_at_random(drill: Drill, children: Forks, chance: random.Random, deaths: int) -> None:
    """Send messages whose processes die at any write point, until there were so many deaths."""
    while drill.kills < deaths:
        message = drill.next_message()
        for _ in range(8):
            # Early points are passed by every process: a later one says more.
            status = children.run(drill.config(message, f"any:{chance.randint(1, 26)}"))
            if status == 0:
                break
            assert os.WTERMSIG(status) == signal.SIGKILL, drill.log
            drill.kills += 1
        drill.finish(children, message)


def check_drill(drill: Drill) -> list[str]:
    """Return what is wrong after the operations are finished."""
    database = sqlite3.connect(f"file:{drill.directory}/data/agent.db?mode=ro", uri=True)
    try:
        wrong = _check_sessions(database)
        wrong += _check_turns(database, drill)
        wrong += _check_calls(database)
        wrong += _check_deliveries(database, drill)
        wrong += _check_others(database, drill)
        [branch] = database.execute(
            "SELECT branch_id FROM sessions WHERE thread_id = ?", (THREAD,)
        ).fetchone()
    finally:
        database.close()
    return wrong + check_files(drill, str(branch)) + _check_outside(drill)


def _check_sessions(database: sqlite3.Connection) -> list[str]:
    wrong: list[str] = []
    if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        wrong.append("the database is damaged")
    wrong += [f"orphans: {row}" for row in database.execute("PRAGMA foreign_key_check").fetchall()]
    parents = dict(database.execute("SELECT thread_id, coalesce(parent_seq, 0) FROM sessions").fetchall())
    for thread, last in database.execute("SELECT thread_id, last_seq FROM sessions").fetchall():
        seqs = [
            seq
            for (seq,) in database.execute(
                "SELECT seq FROM journal WHERE thread_id = ? ORDER BY seq", (thread,)
            )
        ]
        if seqs != list(range(parents[thread] + 1, last + 1)):
            wrong.append(f"the journal of {thread} has gaps: {seqs}, last {last}")
    return wrong


def _check_turns(database: sqlite3.Connection, drill: Drill) -> list[str]:
    wrong: list[str] = []
    turns = database.execute(
        "SELECT turn_id, n, state, snapshot_id FROM turns WHERE thread_id = ? ORDER BY n", (THREAD,)
    ).fetchall()
    if [(n, state) for _, n, state, _ in turns] != [(n, "done") for n in range(1, drill.messages + 1)]:
        return [f"turns are {turns}"]
    for turn, n, _, snapshot in turns:
        records = [
            (kind, json.loads(body))
            for kind, body in database.execute(
                "SELECT type, body FROM journal WHERE turn_id = ? ORDER BY seq", (turn,)
            )
        ]
        kinds = Counter(kind for kind, _ in records)
        wrong += [
            f"turn {n}: {kinds[k]} × {k}" for k in ("turn_started", "user", "turn_ended") if kinds[k] != 1
        ]
        said = [body for kind, body in records if kind == "user"]
        if said and f"Message {n} " not in json.dumps(said[0]):
            wrong.append(f"turn {n} belongs to another message: {said}")
        answers = [
            b["content"] for kind, b in records if kind == "assistant" and b["stop_reason"] == "end_turn"
        ]
        if [f"Done {n}." in json.dumps(a) for a in answers] != [True]:
            wrong.append(f"turn {n} was answered with {answers}")
        if [b["stop_reason"] for kind, b in records if kind == "assistant"].count("partial"):
            wrong.append(f"turn {n}: a partial answer is on record")
        rows = database.execute("SELECT snapshot_id FROM snapshots WHERE turn_id = ?", (turn,)).fetchall()
        if rows != [(snapshot,)]:
            wrong.append(f"turn {n}: snapshots {rows}, the turn has {snapshot}")
    return wrong


def _check_calls(database: sqlite3.Connection) -> list[str]:
    wrong: list[str] = []
    asked: list[str] = []
    outcomes: Counter[str] = Counter()
    for kind, raw in database.execute("SELECT type, body FROM journal ORDER BY thread_id, seq"):
        body = json.loads(raw)
        if kind == "assistant":
            asked += [block["id"] for block in body["content"] if block["type"] == "tool_use"]
        elif kind == "tool_outcome":
            outcomes[body["call"]] += 1
            if body["status"] not in ("ok", "abandoned"):
                wrong.append(f"outcome {body['status']}: {body['content']}")
    if outcomes != Counter(dict.fromkeys(asked, 1)):
        wrong.append(f"calls {asked} have outcomes {outcomes}")
    left = database.execute("SELECT call_id FROM effects WHERE state = 'intent'").fetchall()
    return wrong + ([f"effects without an end: {left}"] if left else [])


def _check_deliveries(database: sqlite3.Connection, drill: Drill) -> list[str]:
    rows = database.execute("SELECT dedupe_key, state FROM outbox ORDER BY id").fetchall()
    wrong = [f"not delivered: {row}" for row in rows if row[1] != "sent"]
    path = drill.directory / "delivered"
    got = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    texts = [text for at, (key, text) in enumerate(got) if at == 0 or got[at - 1][0] != key]
    wanted = [part for n in range(1, drill.messages + 1) for part in (f"Done {n}.", "(end)")]
    if texts != wanted:
        wrong.append(f"delivered in this order: {texts}")
    repeated = len(got) - len(texts)
    return wrong + ([f"{repeated} parts repeated, {drill.kills} deaths"] if repeated > drill.kills else [])


def _check_others(database: sqlite3.Connection, drill: Drill) -> list[str]:
    wrong: list[str] = []
    resets = drill.counted.get("reset", 0)
    names = database.execute(
        "SELECT thread_id FROM sessions WHERE thread_id LIKE 'telegram\\_77%' ESCAPE '\\'"
    )
    expected = {f"telegram_77_s{n}" for n in range(1, resets + 1)}
    if {name for (name,) in names} != expected:
        wrong.append(f"resets: {resets} made other sessions than {expected}")
    branches = {path.name for path in (drill.directory / "data" / "branches").iterdir()}
    forks = database.execute("SELECT title, deleted_at, branch_id FROM sessions WHERE title LIKE 'fork %'")
    for title, deleted, branch in forks.fetchall():
        if branch not in branches:
            wrong.append(f"{title} has no branch on disk")
        trashed = (drill.directory / "data" / "branches" / branch / "discarded_at").exists()
        if trashed != (deleted is not None):
            wrong.append(f"{title}: deleted {deleted}, its branch in the trash: {trashed}")
    imported = database.execute("SELECT count(*) FROM sessions WHERE thread_id LIKE 'imported%'").fetchone()
    if imported != (3 * drill.counted.get("import", 0),):
        wrong.append(f"imported {imported}")
    return wrong


def check_files(drill: Drill, branch: str) -> list[str]:
    """Return what is wrong with the branch's files and the workspace."""
    directory = drill.directory / "data" / "branches" / branch
    expected = {"log.txt": ("start\n" + "+" * drill.messages + "end\n").encode()}
    expected |= {f"new/{n}.txt": f"{n}\n".encode() for n in range(1, drill.messages + 1)}
    undone = drill.counted.get("undo", 0)
    wrong: list[str] = []
    if not undone:
        wrong += [
            f"{name} is {found!r} in the branch"
            for name, content in expected.items()
            if (found := effective_content(directory, drill.project, name)) != content
        ]
    landed = drill.messages - undone if drill.policy == "turn" else 0
    on_disk = {"log.txt": ("start\n" + "+" * landed + "end\n").encode()}
    on_disk |= {f"new/{n}.txt": f"{n}\n".encode() for n in range(1, landed + 1)}
    present = {
        str(path.relative_to(drill.project)): path.read_bytes()
        for path in drill.project.rglob("*")
        if path.is_file()
    }
    return wrong + ([f"the workspace holds {present}"] if present != on_disk else [])


def _check_outside(drill: Drill) -> list[str]:
    path = drill.directory / "outside"
    sent = Counter(path.read_text().splitlines()) if path.exists() else Counter[str]()
    return [f"{text!r} was sent {count} times" for text, count in sent.items() if count > 1]
