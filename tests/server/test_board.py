"""The board over HTTP and sockets (SV-62, SV-44, DE-42), and acceptance 10 of the delegation chapter."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, one, say, types


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


@pytest.fixture
async def live(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake) as opened:
        yield opened


def step(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments} for name, arguments in calls]}


async def test_the_board_is_listed_in_numeric_order_with_its_links(live: LiveServer) -> None:
    """SV-62."""
    assert (await live.http.get("/api/tasks")).json() == []
    creates = [("task_create", {"subject": f"Add {n}"}) for n in range(1, 12)]
    live.fake.script(
        step(*creates),
        step(("task_update", {"taskId": 2, "addBlocks": [10], "owner": "ann"})),
        {"text": "done"},
    )
    conversation = await live.conversation()
    async with live.socket(conversation) as socket:
        await say(socket, "go")
        seen = await events(socket, "done")
    names = types(seen)
    first = names.index("tool_result")
    assert names[first + 1] == "task_update" and "task_update" not in names[:first]  # SV-44
    cursors = [event["cursor"] for event in seen if event.get("cursor") is not None]
    assert cursors == sorted(cursors)
    rows = (await live.http.get("/api/tasks")).json()
    assert [row["id"] for row in rows] == list(range(1, 12))
    assert rows[1] == {
        "id": 2, "subject": "Add 2", "description": "", "status": "pending", "blockedBy": [], "blocks": [10],
        "owner": "ann", "activeForm": "Adding 2", "metadata": {},
    }  # fmt: skip
    assert rows[9]["blockedBy"] == [2]
    same = await live.http.get("/api/tasks", params={"conversation": conversation, "status": "pending"})
    assert same.json() == rows
    assert (await live.http.get("/api/tasks", params={"status": "completed"})).json() == []
    assert (await live.http.get("/api/tasks", params={"conversation": "nothing"})).status_code == 404
    assert (await live.http.get("/api/tasks", params={"workspace": "nothing"})).status_code == 404
    copies = Path(live.context.settings.workspace) / ".tasks"
    assert sorted(path.name for path in copies.iterdir()) == sorted(f"task_{n}.json" for n in range(1, 12))


async def test_viewers_of_another_conversation_are_sent_the_board(live: LiveServer) -> None:
    """DE-42: the frame of SV-41, also to a client without `v=2`."""
    mine, theirs = await live.conversation(), await live.conversation()
    live.fake.script(step(("task_create", {"subject": "Seen"})), {"text": "done"})
    async with live.socket(mine) as socket, live.socket(theirs) as other:
        await say(socket, "go")
        event = await one(other)
        await events(socket, "done")
    assert event["type"] == "task_update"
    assert [task["subject"] for task in event["tasks"]] == ["Seen"]


async def test_a_list_is_shown_after_each_change(live: LiveServer) -> None:
    """DE-45: todo_update holds all items."""
    conversation = await live.conversation()
    live.fake.script(
        step(("todo_write", {"items": [{"content": "a", "status": "pending", "activeForm": "A"}]})),
        step(("todo_complete", {"content": "a"})),
        {"text": "done"},
    )
    async with live.socket(conversation) as socket:
        await say(socket, "go")
        seen = await events(socket, "done")
    updates = [event["todos"] for event in seen if event["type"] == "todo_update"]
    assert [[item["status"] for item in todos] for todos in updates] == [["pending"], ["completed"]]


async def test_an_idle_conversation_s_socket_gets_the_end_of_a_command(live: LiveServer) -> None:
    """Acceptance 10, DE-29: at once; the model sees it once."""
    status = await live.context.sandbox_status()
    if status.tier == "none":
        pytest.skip(f"no commands can run here: {status.reasons}")
    live.fake.script(
        step(("background_run", {"command": "until [ -e go ]; do sleep 0.02; done; echo done"})),
        {"text": "started"}, {"text": "fine"}, {"text": "again"},
    )  # fmt: skip
    conversation = await live.conversation()
    async with live.socket(conversation) as socket:
        await say(socket, "go")
        await events(socket, "done")
        branch = await live.sessions.branch(conversation)
        await branch.write_file("go", "")
        event = await one(socket)
        assert event["type"] == "background_result"
        [row] = event["notifications"]
        assert (row["status"], row["result"]) == ("completed", "done")
        for _ in range(2):
            await say(socket, "and?")
            await events(socket, "done")
    told = [str(request["messages"]).count(f'task_id="{row["task_id"]}"') for request in live.fake.requests]
    assert told[:2] == [0, 0] and told[-1] == told[-2] == 1
    await asyncio.sleep(0)
