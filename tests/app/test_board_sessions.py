"""Boards, lists and background commands in whole applications (DE-29 … DE-45): tools, events, copies, kills."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import result_of, results, texts
from support.fake_models import FakeModels
from support.killed_app import application, killed_turn
from support.patience import HANG_S

from bowerbird.app import Application, open_application
from bowerbird.app.features.boards import SessionRecords
from bowerbird.boards.boards import board_at
from bowerbird.config import load_settings
from bowerbird.core.events import BackgroundResult, Notice, TaskUpdate, ToolOutcome
from bowerbird.sessions import NewSession, Published

MODEL = "anthropic:claude-sonnet-4-5"


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


@asynccontextmanager
async def opened(directory: Path, fake: FakeModels, **flags: Any) -> AsyncIterator[Application]:
    chosen = {
        "provider.api_key": "k",
        "provider.base_url": fake.anthropic_url,
        "store.min_free_mb": 0,
        **flags,
    }
    async with application(directory, chosen, MODEL) as app:
        yield app


async def new_thread(app: Application, directory: Path, name: str = "project") -> str:
    (directory / name).mkdir(exist_ok=True)
    thread = (await app.sessions.create(NewSession(workspace=str(directory / name)))).thread_id
    await app.drive(thread)
    return thread


async def ask(app: Application, thread: str, text: str = "go") -> Any:
    receipt = await app.sessions.submit(thread, text)
    async with asyncio.timeout(HANG_S):
        turn = await app.sessions.wait(receipt.turn_id)
    assert turn.state == "done", turn
    return turn


def step(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments} for name, arguments in calls]}


async def bodies(app: Application, thread: str, kind: str) -> list[dict[str, Any]]:
    return [record.body for record in await app.sessions.history(thread) if record.type == kind]


async def until(events: Any, wanted: Any) -> list[Published]:
    """Take events up to and with the first for which `wanted` is true."""
    seen: list[Published] = []
    async with asyncio.timeout(HANG_S):
        async for published in events:
            seen.append(published)
            if wanted(published.event):
                return seen
    raise AssertionError("the events ended")


def done_in(event: Any, number: int) -> bool:
    return isinstance(event, TaskUpdate) and sum(t["status"] == "completed" for t in event.tasks) == number


async def test_every_session_of_the_workspace_is_shown_what_one_changes(
    tmp_path: Path, fake: FakeModels
) -> None:
    """DE-32, DE-42, SV-44: one's own after the call's result; the last state always, few in between."""
    async with opened(tmp_path, fake) as app:
        mine, theirs = await new_thread(app, tmp_path), await new_thread(app, tmp_path)
        elsewhere = await new_thread(app, tmp_path, "other")
        fake.script(
            step(*(("task_create", {"subject": f"Add {n}"}) for n in range(20))),
            step(("task_update", {"taskId": 20, "status": "completed"})),
            {"text": "done"},
        )
        with (
            app.sessions.subscribe(mine) as own,
            app.sessions.subscribe(theirs) as other,
            app.sessions.subscribe(elsewhere) as apart,
        ):
            await ask(app, mine)
            seen = [p.event for p in await until(own, lambda e: done_in(e, 1))]
            shown = [p.event for p in await until(other, lambda e: done_in(e, 1))]
            apart.close()
            assert [p async for p in apart] == []
        first = next(i for i, event in enumerate(seen) if isinstance(event, TaskUpdate))
        assert any(isinstance(event, ToolOutcome) for event in seen[:first])
        for events in (seen, shown):
            updates = [event for event in events if isinstance(event, TaskUpdate)]
            assert [task["id"] for task in updates[-1].tasks] == list(range(1, 21))
            assert len(updates) < 21
        ids = [o["data"]["id"] for o in await bodies(app, mine, "tool_outcome")]
        assert ids == [*range(1, 21), 20]  # calls of one answer take effect in their order
        assert {i["class"] for i in await bodies(app, mine, "tool_intent")} == {"store"}
        fake.script(step(("task_list", {})), {"text": "done"})
        await ask(app, theirs)
        assert "[x] #20: Add 19" in result_of(results(fake.requests[-1])[-1])


async def test_changes_of_another_process_are_shown_too(tmp_path: Path, fake: FakeModels) -> None:
    """DE-42 over one SQLite file."""
    async with opened(tmp_path, fake) as app, opened(tmp_path, fake) as foreign:
        thread = await new_thread(app, tmp_path)
        with app.sessions.subscribe(thread) as events:
            key = board_at(str(tmp_path / "project"))
            await foreign.sessions.part(SessionRecords).boards.create(key, "From afar")
            seen = await until(events, lambda e: isinstance(e, TaskUpdate) and bool(e.tasks))
        update = seen[-1].event
        assert isinstance(update, TaskUpdate) and update.tasks[0]["subject"] == "From afar"


async def test_a_task_just_made_can_be_read_as_a_file_and_by_commands_of_no_diff(
    tmp_path: Path, fake: FakeModels
) -> None:
    """DE-32: a private path of the branch; damaged files of the directory are named and left (DE-43)."""
    (tmp_path / "project" / ".tasks").mkdir(parents=True)
    (tmp_path / "project" / ".tasks" / "task_3.json").write_text("{")
    async with opened(tmp_path, fake) as app:
        thread = await new_thread(app, tmp_path)
        fake.script(
            step(("task_create", {"subject": "Read me"})), step(("read_file", {"path": ".tasks/task_4.json"})),
            {"text": "done"},
        )  # fmt: skip
        with app.sessions.subscribe(thread) as events:
            await ask(app, thread)
            notice = (await until(events, lambda e: isinstance(e, Notice)))[-1]
        assert isinstance(notice.event, Notice) and ".tasks/task_3.json" in notice.event.text
        assert json.loads(result_of(results(fake.requests[-1])[-1]))["subject"] == "Read me"
        branch = await app.sessions.branch(thread)
        assert branch.changes().record() == {"written": [], "deleted": []}
    assert sorted(p.name for p in (tmp_path / "project" / ".tasks").iterdir()) == ["task_3.json"]


async def test_board_and_list_survive_a_restart_and_are_kept_by_summaries(
    tmp_path: Path, fake: FakeModels
) -> None:
    """DE-44, DE-45, AG-56."""
    async with opened(tmp_path, fake) as app:
        thread = await new_thread(app, tmp_path)
        item = {"content": "Look", "status": "in_progress", "activeForm": "Looking"}
        fake.script(
            step(("task_create", {"subject": "Survive"}), ("write_todos", {"todos": [item]})),
            {"text": "done"},
        )
        await ask(app, thread)
        [todo] = [o for o in await bodies(app, thread, "tool_intent") if o["tool"] != "task_create"]
        assert (todo["tool"], todo["input"], todo["class"]) == ("todo_write", {"items": [item]}, "store")
    async with opened(tmp_path, fake) as app:
        await app.drive(thread)
        fake.script(step(("todo_list", {}), ("task_get", {"taskId": "1"})), {"text": "done"})
        await ask(app, thread)
        todo_text, task_text = (result_of(block) for block in results(fake.requests[-1])[-2:])
        assert "[>] Looking" in todo_text and json.loads(task_text)["subject"] == "Survive"
        fake.script({"text": "a summary"}, {"text": "later"})
        await app.sessions.set_flags(thread, {"compact": "all"})
        await ask(app, thread)
        [compaction] = await bodies(app, thread, "compaction")
        assert "#1: Survive" in compaction["summary"] and "Looking" in compaction["summary"]
        fake.script(step(("todo_list", {})), {"text": "done"})
        other = await new_thread(app, tmp_path)
        await ask(app, other)
        assert result_of(results(fake.requests[-1])[-1]) == "The list is empty."


# ---------------------------------------------------------------- background


async def needs_processes(app: Application) -> None:
    status = await app.sandboxes.status()
    if status.tier == "none":
        pytest.skip(f"no commands can run here: {status.reasons}")


async def test_with_notify_an_idle_session_starts_a_turn_for_it(tmp_path: Path, fake: FakeModels) -> None:
    """DE-29: source background; the model is told once, by the turn that its end started."""
    async with opened(tmp_path, fake) as app:
        await needs_processes(app)
        thread = await new_thread(app, tmp_path)
        wait = "until [ -e go ]; do sleep 0.02; done; echo finished"
        fake.script(
            step(("background_run", {"command": wait, "notify": True})), {"text": "started"},
            {"text": "I see"}, {"text": "later"},
        )  # fmt: skip
        await ask(app, thread)
        branch = await app.sessions.branch(thread)
        with app.sessions.subscribe(thread) as events:
            await branch.write_file("go", "")
            seen = await until(events, lambda e: getattr(e, "text", "") == "I see" and hasattr(e, "state"))
        assert any(isinstance(p.event, BackgroundResult) for p in seen)
        turns = await app.sessions.turns(thread)
        assert [turn.kind for turn in turns] == ["user", "background"]
        [injected] = await bodies(app, thread, "injected")
        assert injected["source"] == "background" and "finished" in str(injected["content"])
        assert [r["kind"] for r in await bodies(app, thread, "turn_started")] == ["user", "background"]
        assert len(await bodies(app, thread, "user")) == 1
        await ask(app, thread)
        assert len(await bodies(app, thread, "injected")) == 1
        told = [t for t in texts(fake.requests[-1]) if "<background_result" in t]
        assert len(told) == 1


async def test_an_end_during_a_turn_is_told_before_the_next_model_call_and_starts_no_turn(
    tmp_path: Path, fake: FakeModels
) -> None:
    """DE-29: a busy session."""
    async with opened(tmp_path, fake) as app:
        await needs_processes(app)
        thread = await new_thread(app, tmp_path)

        def answer(body: dict[str, Any], number: int) -> dict[str, Any]:
            if number == 0:
                return step(("background_run", {"command": "echo quick", "notify": True}))
            if any("<background_result" in said for said in texts(body)):
                return {"text": "done"}
            return step(("bash", {"command": f"sleep 0.1; echo {number}"}))

        fake.answer(answer)
        await ask(app, thread)
        assert [turn.kind for turn in await app.sessions.turns(thread)] == ["user"]
        assert len(await bodies(app, thread, "injected")) == 1


async def test_stopping_a_command_oneself_is_no_news(tmp_path: Path, fake: FakeModels) -> None:
    """DE-28: whoever cancels it was told by the call's result."""
    async with opened(tmp_path, fake) as app:
        await needs_processes(app)
        thread = await new_thread(app, tmp_path)
        fake.script(step(("background_run", {"command": "sleep 100", "notify": True})), {"text": "ok"})
        await ask(app, thread)
        [started] = await bodies(app, thread, "tool_outcome")
        task = started["data"]["task_id"]
        fake.script(step(("cancel_background", {"task_id": task})), {"text": "ok"}, {"text": "more"})
        await ask(app, thread)
        await ask(app, thread)
        assert (await bodies(app, thread, "tool_outcome"))[-1]["data"]["status"] == "killed"
        assert await bodies(app, thread, "injected") == []
        assert [turn.kind for turn in await app.sessions.turns(thread)] == ["user"] * 3


def alive(marker: str) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if marker in command and "pytest" not in command and "killed_app" not in command:
                found.append(command)
    return found


async def test_killing_the_server_leaves_no_process_and_the_state_lost_told_once(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Acceptance 10, DE-30: found at the next start, before anybody speaks in the session."""
    marker = f"sleep 10{os.getpid() % 100_000:05d}"
    async with opened(tmp_path, fake) as app:
        await needs_processes(app)
        thread = await new_thread(app, tmp_path)
    begun = {"name": "background_run", "input": {"command": f"echo begun; {marker}"}}
    fake.script(
        {"tools": [begun]},
        step(("bash", {"command": "until [ -e /proc/1 ]; do sleep 0.01; done; sleep 0.3"})),
        {"hang": True},
    )
    flags = {"provider.api_key": "k", "provider.base_url": fake.anthropic_url, "store.min_free_mb": 0}
    await killed_turn(fake, tmp_path, flags, MODEL, thread, requests=3)
    async with asyncio.timeout(HANG_S):
        while alive(marker):
            await asyncio.sleep(0.05)
    fake.script({"text": "I see"})
    loaded = load_settings(
        {"agent.data_dir": str(tmp_path / "data"), **flags},
        env={"HOME": str(tmp_path)}, cwd=tmp_path, home=tmp_path, workspace=tmp_path / "project",
    )  # fmt: skip
    for expected in ([("lost", "begun")], []):
        async with open_application(loaded, model=MODEL, attended=True, drives_all=True) as app:
            with app.sessions.subscribe(thread) as events:
                await app.start()
                async with asyncio.timeout(HANG_S):
                    while (await app.sessions.turns(thread))[-1].state in ("queued", "running"):
                        await asyncio.sleep(0.05)
                await ask(app, thread)
                events.close()
                ends = [p.event for p in [p async for p in events] if isinstance(p.event, BackgroundResult)]
            rows = [row for event in ends for row in event.notifications]
            assert [(row["status"], row["result"]) for row in rows] == expected
            assert len(await bodies(app, thread, "injected")) == 1
