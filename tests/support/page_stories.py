"""A server that has something for every page to show: conversations in all states, landings, usage of months.

Here: making it, by the doors that people use and rows where only months would make them. Not here: which pages are
opened with it (`page_states.py`), pictures (`scripts/page_pictures.py`), axe (`benchmarks/web_axe.py`).
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from support.fake_models import FakeModels
from support.large_reviews import conflicts, made
from support.live_server import LiveServer, live_server
from support.patience import HANG_S

from bowerbird.store.rows.memory import add_memory
from bowerbird.store.sql.tables import usage

Call = dict[str, Any]
Step = dict[str, Any]
USAGE = {"input": 900, "output": 120, "cache_read": 400}
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwAEAQIBNOOMWQAAAABJRU5ErkJggg=="
)
EVERYTHING = """# All that an answer may hold

A paragraph with **strong**, *soft*, `code`, a [link](https://example.org), a footnote[^1], and `report.py:4`.

> Somebody said this, in two lines
> of a quotation.

| name | value | note |
| :--- | ---: | --- |
| orders | 12,400 | the usual |
| returns | 310 | fewer than last year, which nobody expected of a year like this |

```python
def total(rows: list[str]) -> int:
    return sum(int(row) for row in rows)  # a comment that is longer than what a phone has room for in one line
```

- [x] read the file
- [ ] write the test
  1. the first
  2. the second

$$\\sum_{n=1}^{k} n = \\frac{k(k+1)}{2}$$

```mermaid
graph LR
  A[Branch] --> B{Review}
  B -->|keep| C[Your files]
  B -->|discard| D[Gone]
```

[^1]: Which stands at the end.
"""
MODULE = '"""Counts orders."""\n\n\n' + "".join(
    f"def part_{n}(rows):\n    return sum(rows[{n}:])\n\n\n" for n in range(20)
)


@dataclass
class Stage:
    """A filled server and what is on it: conversations and landings by name."""

    server: LiveServer
    fake: FakeModels
    at: dict[str, str] = field(default_factory=dict)

    async def say(self, name: str, words: str, *steps: Step, wait: int = 60) -> None:
        """One message in the conversation `name`, answered by `steps`."""
        left = iter([{"usage": USAGE, **step} for step in steps])
        self.fake.answer(lambda _body, _n: next(left, {"text": "That is all.", "usage": USAGE}))
        done = await self.server.http.post(
            f"/api/conversations/{self.at[name]}/messages",
            params={"wait": wait} if wait else {},
            json={"content": words},
            timeout=wait + 30,
        )
        assert done.status_code in (200, 202), done.text

    async def chat(self, name: str, title: str, **flags: Any) -> None:
        self.at[name] = await self.server.conversation(title=title, **flags)


def write(path: str, content: str) -> Call:
    return {"name": "write_file", "input": {"path": f"/{path}", "content": content}}


def edit(path: str, old: str, new: str) -> Call:
    return {"name": "edit_file", "input": {"path": f"/{path}", "old": old, "new": new}}


def project(workspace: Path) -> None:
    """The directory that everything happens to."""
    (workspace / "docs").mkdir(parents=True)
    (workspace / "report.py").write_text(MODULE)
    (workspace / "orders.txt").write_text("12\n40\n")
    (workspace / "logo.png").write_bytes(DOT)
    (workspace / "docs" / "guide.md").write_text("# Guide\n\nRead `report.py` first.\n")
    (workspace / "docs" / "numbers.csv").write_text("".join(f"{n},{n * n}\n" for n in range(400)))


@asynccontextmanager
async def filled_server(directory: Path) -> AsyncIterator[Stage]:
    """Serve in `directory` with everything that the pages show; uploads may have 1 MB."""
    with FakeModels() as fake:
        flags = {"scheduler__enabled": True, "limits__upload_mb": 1}
        async with live_server(directory, fake, changeable=True, **flags) as server:
            yield await filled(Stage(server, fake))


async def filled(stage: Stage) -> Stage:
    """Make everything that the pages show."""
    server = stage.server
    project(Path(server.context.settings.workspace))
    await _talks(stage)
    await _reviews(stage)
    await _helpers(stage)
    await _long(stage)
    await _further(stage)
    await _asking(stage)
    return stage


async def _talks(stage: Stage) -> None:
    await stage.chat("empty", "")
    await stage.chat("words", "What an answer may hold", enable_tracing=True)
    look = {"name": "bash", "input": {"command": "ls docs && wc -l report.py"}}
    read = {"name": "read_file", "input": {"path": "/report.py"}}
    await stage.say(
        "words", "Show me everything", {"text": "I look.", "thinking": "Let me see.", "tools": [read, look]},
        {"text": EVERYTHING},
    )  # fmt: skip
    await stage.say(
        "words", "And if it fails? A_word_that_is_very_long_" + "x" * 90, {"tools": [{"name": "bash", "input": {"command": "exit 3"}}]}, {"text": "It failed."}
    )  # fmt: skip
    await stage.chat("broken", "A model that fails")
    await stage.say("broken", "Hello", {"status": 401, "body": {"error": {"message": "no such key"}}})


async def _reviews(stage: Stage) -> None:
    await stage.chat("landed", "Landed and taken back")
    for at in range(3):
        await stage.say("landed", f"Note {at}", {"tools": [write(f"notes/{at}.md", f"# Note {at}\n" * 4)]})
        done = await stage.server.http.post(f"/api/conversations/{stage.at['landed']}/land", json={})
        stage.at[f"landing {at}"] = done.json()["id"]
    await stage.server.http.post(f"/api/landings/{stage.at['landing 0']}/undo", json={})
    await stage.chat("review", "Simplify the report")
    changes = [
        edit("report.py", "sum(rows[3:])", "sum(int(row) for row in rows[3:])"),
        edit("report.py", "sum(rows[15:])", "sum(int(row) for row in rows[15:])"),
        write("tests/test_report.py", "from report import part_1\n\n\ndef test_it():\n    assert part_1([1, 2]) == 2\n"),
        write(".github/workflows/ci.yml", "on: push\n"), write("Makefile", "all:\n\ttrue\n"),
        {"name": "delete_file", "input": {"path": "/docs/numbers.csv"}},
        {"name": "move_file", "input": {"src": "/docs/guide.md", "dst": "/docs/handbook.md"}},
    ]  # fmt: skip
    await stage.say("review", "Simplify it", {"text": "I change it.", "tools": changes}, {"text": "Done."})
    stage.at["conflicts"] = await made(stage.server, stage.fake, conflicts(3))


async def _helpers(stage: Stage) -> None:
    """Subagents, teammates with a board, attempts; each plays its part by what it was asked."""
    await stage.chat("subagents", "Two helpers")
    tasks = [
        {"task": "Note what the report counts", "agent_type": "general"},
        {"task": "Look", "agent_type": "explore"},
    ]

    def helped(body: dict[str, Any], _n: int) -> Step:
        said = str(body["messages"][0]["content"])
        begun = not any(message["role"] == "assistant" for message in body["messages"])
        if "Note what" in said and begun:
            return {"text": "I write it down.", "tools": [write("counts.md", "# Orders\n")]}
        if "Say hello" in said and begun:
            return {"tools": [write("hello.txt", f"hello from {body['model']}\n")]}
        if "Help" in said and begun:
            return {"text": "Two helpers.", "tools": [{"name": "spawn_subagents", "input": {"tasks": tasks}}]}
        if "Team up" in said and begun:
            mate = {"name": "ann", "role": "tester", "prompt": "Test the report"}
            board = [{"name": "task_create", "input": {"subject": f"Part {n} of the work"}} for n in range(3)]
            return {
                "text": "I ask Ann.",
                "tools": [{"name": "spawn_teammate", "input": mate}, *board],
                "usage": USAGE,
            }
        return {"text": "That is done.", "usage": USAGE}

    stage.fake.answer(helped)
    http = stage.server.http
    await http.post(
        f"/api/conversations/{stage.at['subagents']}/messages", params={"wait": 60}, json={"content": "Help"}
    )
    await stage.chat("team", "With a teammate", enable_teams=True)
    await http.post(
        f"/api/conversations/{stage.at['team']}/messages", params={"wait": 60}, json={"content": "Team up"}
    )
    await stage.chat("attempts", "Six attempts")
    models = ["anthropic:model-one", "anthropic:a-model-with-a-name-that-is-rather-long"]
    asked = {
        "task": "Say hello in a file",
        "attempts": 6,
        "models": models,
        "checks": ["test -f hello.txt", "true"],
    }
    begun = await http.post(f"/api/conversations/{stage.at['attempts']}/attempts", json=asked)
    assert begun.status_code < 300, begun.text
    await _until(lambda: _attempted(stage))


async def _long(stage: Stage) -> None:
    """A hundred turns of ten messages each, for replay and search."""
    await stage.chat("long", "A thousand messages")
    calls = {"tools": [{"name": "list_files", "input": {"pattern": "docs/*"}}], "text": "Next."}
    for turn in range(100):
        await stage.say("long", f"Go on with part {turn + 1}", *[calls] * 4, {"text": f"Part {turn + 1} is done."})  # fmt: skip


async def _further(stage: Stage) -> None:
    http, server = stage.server.http, stage.server
    now = datetime.now(UTC)
    thread, rows = stage.at["words"], []
    for back in range(150):
        for model in ("anthropic:claude-sonnet-4-5", "openai:gpt-5"):
            cost = (back * 37 % 50) / 25 + 0.02
            rows.append(
                {"thread_id": thread, "purpose": "turn", "model": model, "input_tokens": 40_000 + back * 700, "output_tokens": 3000 + back * 9,
                 "cost": cost, "priced": True, "at": (now - timedelta(days=back)).isoformat()}
            )  # fmt: skip
    await server.context.store.write(lambda c: c.execute(insert(usage), rows), flush=True)
    place = server.context.settings.workspace
    for text in ("Likes tabs.\n", "Likes spaces.\n\nWrites short notes.\n"):
        await server.context.store.write(lambda c, text=text: add_memory(c, "", place, text), flush=True)
    await http.post("/api/auth/tokens", json={"name": "laptop"})
    for type_, value in (("cron", "0 8 * * 1-5"), ("interval", "3600")):
        told = await http.post(
            "/api/schedules", json={"prompt": "Look at the orders and say what is new.", "type": type_, "value": value}
        )  # fmt: skip
        assert told.status_code < 300, told.text
    skill = {"name": "notes", "description": "Use it for notes.", "body": "# How\n\nWrite short notes.\n"}
    assert (await http.post("/api/skills", json=skill)).status_code < 300


async def _asking(stage: Stage) -> None:
    """What waits for a person: last, since each of them goes on asking."""
    await stage.chat("approval", "May it write?", enable_approval=True)
    calls = [edit("report.py", "sum(rows[1:])", "sum(rows[2:])"), {"name": "bash", "input": {"command": "rm -rf build && make"}}]  # fmt: skip
    await stage.say("approval", "Write it", {"text": "Two things.", "tools": calls}, wait=0)
    await _until(lambda: _waits(stage, "approval"))
    await stage.chat("plan", "First a plan", enable_plan_mode=True)
    plan = "# Plan\n\n1. Read the report\n2. Change `total`\n3. Test it\n"
    ask = {"name": "exit_plan_mode", "input": {"plan": plan}}
    await stage.say("plan", "Plan it", {"text": "Here is a plan.", "tools": [ask]}, wait=0)
    await _until(lambda: _waits(stage, "plan"))


async def _waits(stage: Stage, name: str) -> bool:
    """Whether a turn of this conversation waits for a person."""
    told = await stage.server.http.get(f"/api/conversations/{stage.at[name]}/turns")
    return any(turn["waiting_for"] for turn in told.json()["turns"])


async def _attempted(stage: Stage) -> bool:
    told = await stage.server.http.get(f"/api/conversations/{stage.at['attempts']}/attempts")
    return all(one["state"] != "running" for one in told.json())


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANG_S):
        while not await condition():
            await asyncio.sleep(0.1)
