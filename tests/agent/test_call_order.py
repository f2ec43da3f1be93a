"""The calls of one message run in their order; what people switch holds from the next call on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from support.agent_turns import call, result_of, results
from support.fake_models import FakeModels

from bowerbird.core.events import ApprovalAnswer, ToolOutcome
from bowerbird.tools import Tool

Run = Callable[..., Awaitable[Any]]


async def test_a_read_after_a_write_sees_what_was_written(fake: FakeModels, make: Any, project: Path) -> None:
    fake.script(
        {
            "tools": [
                call("write_file", path="n.py", content="import old_name\n"),
                call("read_file", path="n.py"),
                call("bash", command="sed -i s/old_name/new_name/ n.py"),
                call("search_files", pattern="new_name"),
                call("read_file", path="n.py"),
            ]
        },
        {"text": "done"},
    )
    await make(project).run("go")
    said = [result_of(block) for block in results(fake.requests[1])]
    assert "old_name" in said[1] and "n.py" in said[3] and "new_name" in said[4]


class Watch:
    """Tools that note when they begin and end."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def tool(self, name: str, effect: Any) -> Tool:
        async def handler(args: dict[str, Any]) -> str:
            self.seen.append(f"{name} begins")
            await asyncio.sleep(0.05)
            self.seen.append(f"{name} ends")
            return name

        schema = {"type": "object", "properties": {}}
        return Tool(name=name, description=name, input_schema=schema, handler=handler, effect=effect)


async def test_only_neighbours_that_read_overlap(fake: FakeModels, turn: Run) -> None:
    watch = Watch()
    tools = [
        watch.tool("a", "read"),
        watch.tool("b", "read"),
        watch.tool("w", "branch"),
        watch.tool("v", "branch"),
    ]
    fake.script({"tools": [call(name) for name in ("a", "b", "w", "v", "a")]}, {"text": "ok"})
    await turn(tools=tools)
    assert sorted(watch.seen[:2]) == ["a begins", "b begins"] and sorted(watch.seen[2:4]) == [
        "a ends",
        "b ends",
    ]
    assert watch.seen[4:] == ["w begins", "w ends", "v begins", "v ends", "a begins", "a ends"]


async def test_a_read_after_a_call_that_is_asked_about_waits_for_the_word(
    fake: FakeModels, turn: Run
) -> None:
    watch = Watch()
    tools = [watch.tool("out", "outside"), watch.tool("a", "read")]

    class Person:
        async def ask(self, request: Any) -> ApprovalAnswer:
            await asyncio.sleep(0.1)
            watch.seen.append("answered")
            return ApprovalAnswer(request.id, "approve")

    fake.script({"tools": [call("out"), call("a")]}, {"text": "ok"})
    await turn(tools=tools, approver=Person())
    assert watch.seen == ["answered", "out begins", "out ends", "a begins", "a ends"]


async def test_approval_and_plan_mode_hold_from_the_next_call_on(fake: FakeModels, turn: Run) -> None:
    for changes, told in (
        ({"enable_approval": True}, "nobody can answer"),
        ({"enable_plan_mode": True}, "plan mode"),
    ):
        watch, moved = Watch(), [{}, changes]

        async def switched(moved: list[Any] = moved) -> dict[str, Any]:
            return moved.pop(0) if moved else {}

        fake.script({"tools": [call("w"), call("v")]}, {"text": "ok"})
        tools = [watch.tool("w", "branch"), watch.tool("v", "branch")]
        done = await turn(tools=tools, switched=switched)
        outcomes = [event for event in done.events if isinstance(event, ToolOutcome)]
        assert [(o.tool, o.status) for o in outcomes] == [("w", "ok"), ("v", "denied")]
        assert told in str(outcomes[1].content) and watch.seen == ["w begins", "w ends"]
