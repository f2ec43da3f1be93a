"""SE-25: a change of the store and its call's outcome are one transaction, whatever dies in between."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import board_child
from support.crashes import Forks
from support.fake_models import FakeModels
from support.sessions import Place, place
from support.stores import opened

from bowerbird.agent.policy import Policy
from bowerbird.boards.boards import Boards, board_at
from bowerbird.boards.changes import all_shown, create_task
from bowerbird.boards.tool_calls import BoardToolCalls
from bowerbird.store.rows.todos import session_todos
from bowerbird.tools import Tool, ToolContext, ToolResult
from bowerbird.tools.result import to_result
from bowerbird.tools.together.board import board_tools

OPEN = Policy()
STEPS = (
    {"tools": [
        {"name": "task_create", "input": {"subject": "Once"}},
        {"name": "todo_add", "input": {"content": "a", "activeForm": "A"}},
    ]},
    {"tools": [{"name": "task_update", "input": {"taskId": 1, "metadata": {"n": 1}}}]},
    {"text": "done"},
)  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path, fake: FakeModels) -> dict[str, Any]:
    (tmp_path / "project").mkdir()
    return {
        "models": fake.anthropic_url, "data": str(tmp_path / "data"), "project": str(tmp_path / "project"),
        "thread": "0123456789ab", "log": str(tmp_path / "log"),
    }  # fmt: skip


@pytest.fixture
def forks(tmp_path: Path, scene: dict[str, Any], fake: FakeModels) -> Iterator[Forks]:
    fake.script({"text": "imported"})
    server = Forks({**scene, "data": str(tmp_path / "first")}, Path(board_child.__file__))
    yield server
    server.close()


def scripted(body: dict[str, Any], _: int) -> dict[str, Any]:
    """The step that follows from what was said, so that a repeated request is answered alike."""
    return STEPS[min(sum(message["role"] == "assistant" for message in body["messages"]), 2)]


async def test_each_change_is_made_once_wherever_the_process_is_killed(
    tmp_path: Path, scene: dict[str, Any], forks: Forks, fake: FakeModels
) -> None:
    points = [
        f"{when} {what}:{number}"
        for when, what, number in (
            ("before", "tool_intent", 1), ("after", "tool_intent", 2), ("before", "tool_outcome", 1),
            ("before", "tool_outcome", 2), ("after", "tool_outcome", 1), ("before", "tool_outcome", 3),
            ("after", "tool_outcome", 3),
        )
    ]  # fmt: skip
    for number, point in enumerate(points):
        mine = {**scene, "data": str(tmp_path / f"data{number}")}
        fake.answer(scripted)
        assert os.WTERMSIG(forks.run({**mine, "kill": point})) == signal.SIGKILL, point
        assert forks.run(mine) == 0, (point, Path(scene["log"]).read_text()[-2000:])
        async with opened(tmp_path / f"data{number}") as store:
            key = board_at(scene["project"]).name
            [task] = await store.read(lambda c, name=key: all_shown(c, name))
            assert (task["id"], task["subject"], task["metadata"]) == (1, "Once", {"n": 1}), point
            items = await store.read(lambda c: session_todos(c, scene["thread"]))
            assert [item.content for item in items] == ["a"], point
            outcomes = [r.body for r in await store.records(scene["thread"]) if r.type == "tool_outcome"]
            assert [body["status"] for body in outcomes] == ["ok"] * 3, point
            assert len({body["call"] for body in outcomes}) == 3, point


@pytest.fixture
async def boarded(tmp_path: Path, fake: FakeModels, database_url: str) -> Any:
    tools: list[Any] = []
    async with place(tmp_path, fake, url=database_url, tools=tools) as home:
        tools += board_tools(BoardToolCalls(Boards(home.store)))
        yield home


async def test_the_outcome_that_is_recorded_is_the_one_the_model_sees(
    boarded: Place, fake: FakeModels
) -> None:
    """Once each, refused ones too; shown to viewers as it was recorded."""
    fake.script(
        {"tools": [
            {"name": "task_create", "input": {"subject": "One"}},
            {"name": "task_update", "input": {"taskId": 9, "subject": "x"}},
            {"name": "task_create", "input": {"subject": "Two"}},
        ]},
        {"text": "done"},
    )  # fmt: skip
    thread = await boarded.session()
    with boarded.service.subscribe(thread) as events:
        assert (await boarded.ask(thread)).state == "done"
        events.close()
        shown = [p async for p in events if getattr(p.event, "call", None) and hasattr(p.event, "status")]
    outcomes = await boarded.bodies(thread, "tool_outcome")
    assert sorted(body["status"] for body in outcomes) == ["error", "ok", "ok"]
    assert len(shown) == 3 and len({p.seq for p in shown}) == 3 and all(p.seq for p in shown)
    said = [b["content"] for b in fake.requests[-1]["messages"][-1]["content"] if b["type"] == "tool_result"]
    recorded = {"".join(block["text"] for block in body["content"]) for body in outcomes}
    assert {text if isinstance(text, str) else text[0]["text"] for text in said} == recorded


async def test_a_change_without_the_lease_is_taken_back(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-28: who was overtaken between intent and change changes nothing."""
    homes: list[Place] = []

    async def overtaken(context: ToolContext) -> ToolResult:
        """Be overtaken, then make a task."""
        store = homes[0].store

        def steal(connection: Any) -> None:
            connection.exec_driver_sql("UPDATE leases SET epoch = epoch + 1, holder = 'somebody else'")

        await store.write(steal)
        assert context.change is not None
        return await context.change(lambda c: to_result(create_task(c, "board", "Late").task))

    fake.script({"tools": [{"name": "overtaken", "input": {}}]}, {"text": "done"})
    tools = [Tool(overtaken, effect="session")]
    async with place(tmp_path, fake, url=database_url, tools=tools, policy=OPEN) as home:
        homes.append(home)
        thread = await home.session()
        await home.service.submit(thread, "go")
        await home.until(lambda: _is_stolen(home))
        await home.service.stop()
        assert await home.bodies(thread, "tool_intent") != []
        assert await home.bodies(thread, "tool_outcome") == []
        assert await home.store.read(lambda c: all_shown(c, "board")) == []


async def _is_stolen(home: Place) -> bool:
    query = "SELECT count(*) FROM leases WHERE holder = 'somebody else'"
    return bool(await home.store.read(lambda c: c.exec_driver_sql(query).scalar()))
