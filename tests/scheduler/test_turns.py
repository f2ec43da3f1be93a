"""What a scheduled turn is given, and the tools of schedules in any turn (AS-37, AS-40, SE-5, TO-43 … TO-45)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fake_models import FakeModels
from support.schedules import RULES, Scheduled, scheduled

from bowerbird.agent.policy import Policy
from bowerbird.scheduler.tools import Asker
from bowerbird.store.rows.schedules import TaskRow
from bowerbird.tools import Tool


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


async def results(home: Scheduled, thread: str) -> list[str]:
    return [str(body["content"]) for body in await home.place.bodies(thread, "tool_outcome")]


async def texts(home: Scheduled, thread: str) -> list[str]:
    found: list[str] = []
    for body in await home.place.bodies(thread, "tool_outcome"):
        content = body["content"]
        found.append(
            content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
        )
    return found


async def test_an_agent_makes_lists_and_cancels_the_tasks_of_its_chat(
    home: Scheduled, fake: FakeModels
) -> None:
    """TO-43 … TO-45, AS-40: channel, chat and owner come from the turn."""
    other = await home.add("theirs", channel="telegram", chat_id="6", owner="6")
    fake.script(
        calls("schedule_task", prompt="Look", schedule_type="cron", schedule_value="0 8 * * *"),
        calls("schedule_task", prompt="Look", schedule_type="cron", schedule_value="0 8 * *"),
        calls("list_tasks"),
        calls("cancel_task", task_id=other),
        {"text": "ok"},
    )
    chat = await home.place.session(
        thread_id="telegram_5", kind="chat", channel="telegram", chat_id="5", owner="5"
    )
    await home.place.ask(chat, sender={"id": "5", "name": "Ann"}, door="telegram")
    made, refused, listed, missing = await texts(home, chat)
    [mine] = [row for row in await home.schedules.list() if row["id"] != other]
    assert made.startswith(f"Scheduled task {mine['id']}: cron=0 8 * * *") and mine["next_run"] in made
    assert (mine["channel"], mine["chat_id"], mine["owner"]) == ("telegram", "5", "5")
    assert refused.startswith("Invalid value: ")
    assert mine["id"] in listed and other not in listed
    assert missing == f"Task {other} not found."
    fake.script(calls("cancel_task", task_id=mine["id"]), {"text": "ok"})
    await home.place.ask(chat, sender={"id": "5", "name": "Ann"}, door="telegram")
    assert (await texts(home, chat))[-1] == f"Task {mine['id']} is cancelled."
    assert [row["id"] for row in await home.schedules.list()] == [other]


@pytest.mark.parametrize(
    ("asker", "seen"),
    [
        (Asker(channel="telegram", chat_id="5", owner="1"), ["own", "guests"]),
        (Asker(channel="telegram", chat_id="5", owner="2", is_guest=True), ["guests"]),
        (Asker(channel="telegram", chat_id="6", owner="1"), []),
        (Asker(owner="1"), ["web"]),
        (Asker(owner=None), []),
    ],
)
def test_who_sees_which_task(asker: Asker, seen: list[str]) -> None:
    """AS-40: this chat's only, guests their own."""
    made: dict[str, Any] = {
        "prompt": "x",
        "type": "interval",
        "value": "60",
        "created_at": "2026-03-02T00:00:00+00:00",
    }
    tasks = [
        TaskRow(**made, id="own", channel="telegram", chat_id="5", owner="1"),
        TaskRow(**made, id="guests", channel="telegram", chat_id="5", owner="2"),
        TaskRow(**made, id="web", owner="1"),
    ]
    assert [task.id for task in tasks if asker.sees(task)] == seen


async def test_a_scheduled_run_makes_at_most_five_tasks_which_inherit_its_chat(
    home: Scheduled, fake: FakeModels
) -> None:
    """AS-37."""
    one = {
        "name": "schedule_task",
        "input": {"prompt": "x", "schedule_type": "interval", "schedule_value": "60"},
    }
    fake.script({"tools": [one] * 6}, {"text": "ok"})
    task_id = await home.add(channel="telegram", chat_id="5", owner="7")
    await home.schedules.run_now(task_id)
    await home.until(task_id, "done")
    said = await texts(home, f"scheduler_{task_id}")
    assert sum(text.startswith("Scheduled task ") for text in said) == 5
    assert sum(text.startswith("Invalid: one scheduled run makes at most 5") for text in said) == 1
    made = [row for row in await home.schedules.list() if row["id"] != task_id]
    assert {(row["channel"], row["chat_id"], row["owner"]) for row in made} == {("telegram", "5", "7")}


async def test_a_run_sees_the_last_turns_only_and_what_would_ask_is_denied(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-5, AS-37: `ask` = deny; a person who writes there is asked as ever."""

    async def touch() -> str:
        """Touch the world."""
        raise AssertionError("never allowed")

    outside = Tool(touch, effect="outside", name="touch")
    async with scheduled(
        tmp_path,
        fake,
        rules=msgspec.structs.replace(RULES, history_turns=2),
        tools=(outside,),
        policy=Policy(),
    ) as home:
        task_id = await home.add("the prompt")
        thread = f"scheduler_{task_id}"
        for number in range(1, 5):
            fake.script({"text": f"answer {number}"})
            await home.schedules.run_now(task_id)
            await home.until(task_id, *["done"] * number)
        sent = fake.requests[-1]["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
        assert "answer 1" not in str(sent) and "answer 2" in str(sent)
        assert f"a run of the scheduled task {task_id}" in str(fake.requests[-1]["system"])
        fake.script(calls("touch"), {"text": "denied, it seems"})
        await home.schedules.run_now(task_id)
        await home.until(task_id, *["done"] * 5)
        [denied] = await texts(home, thread)
        assert "denied" in denied and "nobody can be asked" in denied
        assert await home.place.bodies(thread, "request") == []
        fake.script({"text": "hello"})
        await home.place.ask(thread, "And you?")
        assert "answer 1" in str(fake.requests[-1]["messages"])


async def test_without_a_scheduler_the_tools_are_refused_with_the_setting(
    tmp_path: Path, fake: FakeModels
) -> None:
    """TO-43, CF-55."""
    fake.script(
        calls("schedule_task", prompt="x", schedule_type="interval", schedule_value="60"), {"text": "ok"}
    )
    async with scheduled(tmp_path, fake, rules=msgspec.structs.replace(RULES, enabled=False)) as home:
        thread = await home.place.session()
        await home.place.ask(thread)
        [said] = await texts(home, thread)
        assert "scheduler.enabled" in said
        assert "schedule_task" not in str(fake.requests[0]["tools"])
