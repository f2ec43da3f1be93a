"""TO-37, DE-34 … DE-40, DE-45: board and list as a model meets them, over a real store."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.stores import THREAD, opened, with_lease

from bowerbird.agent.turn_loop.arguments import prepare, resolve
from bowerbird.boards.boards import Boards
from bowerbird.boards.todos import Todos
from bowerbird.boards.tool_calls import BoardToolCalls
from bowerbird.core.messages import ToolUseBlock
from bowerbird.store import Store
from bowerbird.tools import ToolContext, ToolResult, Toolset
from bowerbird.tools.together.board import board_tools
from bowerbird.tools.together.todo import todo_tools


class Desk:
    """Calls tools the way the loop does: alias, fitted arguments, then the call."""

    def __init__(self, store: Store) -> None:
        self.tools = Toolset([*board_tools(BoardToolCalls(Boards(store))), *todo_tools(Todos(store))])

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        prepared = await prepare(resolve(ToolUseBlock("call_1", name, arguments), self.tools, None))
        if prepared.problem is not None:
            return ToolResult.error(prepared.problem)
        assert prepared.tool is not None
        return await prepared.tool.call(dict(prepared.arguments or {}), ToolContext(session=THREAD))

    async def data(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        done = await self.use(name, **arguments)
        assert not done.is_error, done.text
        assert done.data is not None
        return done.data

    async def refused(self, name: str, /, **arguments: Any) -> str:
        done = await self.use(name, **arguments)
        assert done.is_error
        return done.text


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(tmp_path / "data") as store:
        await with_lease(store)
        yield Desk(store)


def test_classes_are_the_specified_ones() -> None:
    """TO-37: session; the reading ones read."""
    tools = Toolset([*board_tools(None), *todo_tools(None)])
    assert tools.names == (
        "task_create", "task_get", "task_update", "task_list",
        "todo_write", "todo_add", "todo_complete", "todo_list",
    )  # fmt: skip
    reading = {tool.name for tool in tools if tool.effect == "read"}
    assert reading == {"task_get", "task_list", "todo_list"}
    assert {tool.ledger_effect for tool in tools if tool.effect != "read"} == {"store"}
    assert tools.canonical("write_todos") == "todo_write"
    wanted = tools.get("task_create")
    assert wanted is not None and wanted.input_schema["required"] == ["subject"]


async def test_a_task_is_made_read_changed_and_listed(desk: Desk) -> None:
    """DE-34 … DE-36, DE-40."""
    made = await desk.data("task_create", subject="Add tests")
    assert made == {
        "id": 1, "subject": "Add tests", "description": "", "status": "pending", "blockedBy": [], "blocks": [],
        "owner": "", "activeForm": "Adding tests", "metadata": {},
    }  # fmt: skip
    await desk.data("task_create", subject="Ship", description="carefully", activeForm="Shipping it")
    changed = await desk.data(
        "task_update", taskId="2", addBlockedBy=["1"], owner="ann", metadata={"a": 1, "b": {"c": [1]}}
    )
    assert (changed["blockedBy"], changed["owner"]) == ([1], "ann")
    changed = await desk.data("task_update", taskId=2, metadata={"a": None}, subject="Release")
    assert changed["metadata"] == {"b": {"c": [1]}} and changed["activeForm"] == "Shipping it"
    assert (await desk.data("task_get", taskId=1))["blocks"] == [2]
    listed = await desk.use("task_list")
    assert listed.text == "[ ] #1: Add tests\n[ ] #2: Release (blocked by #1) @ann\n\n0 of 2 done"
    assert (await desk.data("task_update", taskId=1, status="completed"))["status"] == "completed"
    assert (await desk.data("task_update", taskId=2, removeBlockedBy=[1]))["blockedBy"] == []
    await desk.data("task_update", taskId=1, status="pending")
    assert (await desk.data("task_get", taskId=2))["blockedBy"] == []
    assert (await desk.data("task_update", taskId=1, status="deleted"))["status"] == "deleted"
    assert (await desk.use("task_list")).text == "[ ] #2: Release @ann\n\n0 of 1 done"


async def test_refusals_name_what_is_wrong(desk: Desk) -> None:
    await desk.data("task_create", subject="One")
    assert "no task 7" in await desk.refused("task_get", taskId=7)
    assert "'x'" in await desk.refused("task_get", taskId="x")
    assert "no task 9" in await desk.refused("task_update", taskId=1, addBlocks=[9])
    assert "itself" in await desk.refused("task_update", taskId=1, addBlockedBy=[1])
    assert "nothing to change" in await desk.refused("task_update", taskId=1)
    assert "1 to 500" in await desk.refused("task_create", subject=" ")
    assert "status" in await desk.refused("task_update", taskId=1, status="done")
    assert (await desk.data("task_get", taskId=1))["status"] == "pending"


# ---------------------------------------------------------------- the list


def entry(content: str, status: str = "pending", form: str = "Doing") -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": form}


async def test_the_list_is_replaced_added_to_and_completed(desk: Desk) -> None:
    """DE-45."""
    assert (await desk.use("todo_list")).text == "The list is empty."
    items = [entry("a", "completed"), entry("b", "in_progress", "Being b")]
    assert await desk.data("todo_write", items=items) == {"todos": items}
    added = await desk.data("todo_add", content="c", activeForm="Doing c")
    assert added == {"todos": [*items, entry("c", form="Doing c")]}
    done = await desk.data("todo_complete", content="b")
    assert [row["status"] for row in done["todos"]] == ["completed", "completed", "pending"]
    shown = await desk.use("todo_list")
    assert shown.text == "[x] a\n[x] b\n[ ] c\n\n2 of 3 done" and shown.data == done
    assert await desk.data("write_todos", todos=[entry("new")]) == {"todos": [entry("new")]}
    assert await desk.data("todo_write", items=[]) == {"todos": []}


async def test_no_call_leaves_two_in_progress_or_more_than_20(desk: Desk) -> None:
    """DE-45: errors change nothing."""
    full = [entry(f"item {n}", "in_progress" if n == 3 else "pending") for n in range(20)]
    await desk.data("todo_write", items=full)
    two = [entry("a", "in_progress"), entry("b", "in_progress")]
    assert "a; b" in await desk.refused("todo_write", items=two)
    assert "at most 20" in await desk.refused("todo_write", items=[*full, entry("more")])
    assert "at most 20" in await desk.refused("todo_add", content="more", activeForm="x")
    unknown = await desk.refused("todo_complete", content="nothing such")
    assert all(f"item {n}" in unknown for n in range(20))
    assert "status" in await desk.refused("todo_write", items=[entry("a", "done")])
    assert "content is empty" in await desk.refused("todo_write", items=[entry(" ")])
    assert (await desk.data("todo_list"))["todos"] == full


async def test_of_two_equal_items_the_open_one_is_completed(desk: Desk) -> None:
    await desk.data("todo_write", items=[entry("a", "completed"), entry("a"), entry("a")])
    done = await desk.data("todo_complete", content="a")
    assert [row["status"] for row in done["todos"]] == ["completed", "completed", "pending"]


async def test_an_item_without_active_form_gets_one(desk: Desk) -> None:
    done = await desk.data("write_todos", todos=[{"content": "Write docs", "status": "pending"}])
    assert done["todos"][0]["activeForm"] == "Writing docs"
