"""Runs of tasks over a real service: begun once, never beside themselves, made up for, tried again (AS-32 … AS-38)."""

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fake_models import FakeModels
from support.schedules import RULES, Scheduled, Wrist, scheduled, seconds

from bowerbird.core.errors import NotFound, SessionError
from bowerbird.scheduler.firing import AT_ONCE
from bowerbird.sessions.delivery.messages import parcel_of
from bowerbird.sessions.values import NewSession
from bowerbird.store.rows.turns import find_input

BUSY = {"status": 529}


async def test_a_due_time_is_one_message_in_the_session_of_its_task(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """AS-32, SE-1: with the dedupe key `{task_id}:{due}`; `last_run` is the start, an interval counts from it."""
    async with scheduled(tmp_path, fake, url=database_url) as home:
        task_id = await home.add("Look after the shop")
        due = (await home.task(task_id)).next_run
        await home.look()
        assert await home.runs(task_id) == []
        home.clock.forward(seconds=60)
        [run] = await home.until(task_id, "done")
        assert run["due"] == due
        assert await home.said(task_id) == ["Look after the shop", "Said."]
        row = await home.place.store.read(lambda c: find_input(c, "scheduler", f"{task_id}:{due}"))
        assert row is not None and row.turn_id == run["turn_id"]
        task = await home.task(task_id)
        assert task.last_run == run["started_at"]
        assert seconds(task.next_run) == pytest.approx(seconds(run["started_at"]) + 60, abs=1e-3)
        assert (task.last_status, task.fail_count) == ("done", 0)
        [session] = await home.place.service.list()
        assert (session.kind, session.title) == ("scheduler", "Look after the shop")


async def test_two_servers_begin_each_due_time_once(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """AS-32: on any number of servers."""
    clock = Wrist()
    async with (
        scheduled(tmp_path, fake, url=database_url, clock=clock) as one,
        scheduled(tmp_path, fake, url=database_url, clock=clock) as other,
    ):
        ids = [await one.add(f"task {number}") for number in range(3)]
        for turn in range(1, 4):
            clock.forward(seconds=61)
            await asyncio.gather(*(home.look() for home in (one, other, one, other)))
            for task_id in ids:
                await one.until(task_id, *["done"] * turn)
        assert fake.request_count == 9


async def test_a_run_of_five_minutes_at_an_interval_of_one_never_overlaps(
    home: Scheduled, fake: FakeModels
) -> None:
    """AS-34, acceptance 8: what came due meanwhile is one later run."""
    go = threading.Event()
    fake.answer(lambda _, number: {"text": "Said."} if number or go.wait(60) else {})
    task_id = await home.add()
    home.clock.forward(seconds=60)
    await home.until(task_id, "running")
    for _ in range(5):
        home.clock.forward(seconds=60)
        await home.look()
        assert len(await home.runs(task_id)) == 1
    go.set()
    first, second = await home.until(task_id, "done", "done")
    assert second["started_at"] >= first["ended_at"][:10]
    assert (await home.said(task_id))[2] == "go"  # nothing was missed: a server was there
    await home.look()
    assert len(await home.runs(task_id)) == 2


@pytest.mark.parametrize(("catch_up", "count"), [("one", 1), ("skip", 0), ("all", 3)])
async def test_three_periods_without_a_server(
    tmp_path: Path, fake: FakeModels, catch_up: str, count: int, database_url: str
) -> None:
    """AS-33, acceptance 8: one run that names the number, none, or one each, never beside each other."""
    clock = Wrist()
    async with scheduled(tmp_path, fake, url=database_url, clock=clock) as home:
        task_id = await home.add(value="3600", catch_up=catch_up)
        await home.look()
    clock.forward(hours=3, minutes=5)
    async with scheduled(tmp_path, fake, url=database_url, clock=clock) as home:
        await home.until(task_id, *["done"] * count)
        await home.look()
        assert len(await home.runs(task_id)) == count
        said = (await home.said(task_id))[::2] if count else []
        named = ["go\n\n[This run stands for 3 due times that passed while Bowerbird was not running.]"]
        assert said == (named if catch_up == "one" else ["go"] * count)
        assert seconds((await home.task(task_id)).next_run) > clock().timestamp()


async def test_once_runs_late_and_is_over_then(tmp_path: Path, fake: FakeModels) -> None:
    """AS-33, AS-36."""
    clock = Wrist()
    async with scheduled(tmp_path, fake, clock=clock) as home:
        at = (clock().replace(microsecond=0)).isoformat()
        task_id = await home.add(kind="once", value=at, catch_up="skip")
    clock.forward(days=3)
    async with scheduled(tmp_path, fake, clock=clock) as home:
        await home.until(task_id, "done")
        task = await home.task(task_id)
        assert (task.active, task.next_run, task.last_status) == (False, None, "done")


async def test_a_clock_that_goes_back_begins_nothing_twice(home: Scheduled) -> None:
    """AS-32."""
    task_id = await home.add(kind="cron", value="* * * * *")
    home.clock.forward(seconds=60)
    [run] = await home.until(task_id, "done")
    for back in (30, 30, 3600):
        home.clock.forward(seconds=-back)
        await home.look()
        assert [each["due"] for each in await home.runs(task_id)] == [run["due"]]


@pytest.mark.parametrize(("kind", "value"), [("interval", "60"), ("cron", "* * * * *")])
async def test_a_task_made_while_the_clock_was_years_ahead_runs_when_it_is_right_again(
    home: Scheduled, kind: str, value: str
) -> None:
    """AS-32, AS-33: it waited for those years."""
    home.clock.forward(seconds=10 * 366 * 86_400)
    task_id = await home.add(kind=kind, value=value)
    await home.look()
    home.clock.forward(seconds=-10 * 366 * 86_400)
    await home.look()
    home.clock.forward(seconds=61)
    [_] = await home.until(task_id, "done")


async def test_at_most_four_runs_are_at_work(home: Scheduled, fake: FakeModels) -> None:
    """AS-34."""
    go = threading.Event()
    fake.answer(lambda _, __: {"text": "Said."} if go.wait(60) else {})
    ids = [await home.add(f"task {number}") for number in range(7)]
    home.clock.forward(seconds=61)
    await home.place.until(lambda: _busy(home, ids, AT_ONCE))
    for _ in range(3):
        await home.look()
        assert sum([len(await home.runs(task_id)) for task_id in ids]) == AT_ONCE
    [waiting, *_] = [task_id for task_id in ids if not await home.runs(task_id)]
    with pytest.raises(SessionError, match="4 scheduled runs"):
        await home.schedules.run_now(waiting)
    go.set()
    for task_id in ids:
        await home.until(task_id, "done")


async def _busy(home: Scheduled, ids: list[str], count: int) -> bool:
    return sum([len(await home.runs(task_id)) for task_id in ids]) >= count


# ---------------------------------------------------------------- failures


async def test_once_with_a_failing_model_is_tried_again_and_then_reported(
    home: Scheduled, fake: FakeModels
) -> None:
    """AS-36, acceptance 9: after 60, 300 and 900 s; the chat is told once."""
    fake.script(BUSY)
    at = home.clock().replace(microsecond=0).isoformat()
    task_id = await home.add(kind="once", value=at, channel="telegram", chat_id="5")
    for tries, wait_s in enumerate((60, 300, 900), 1):
        run = await _tried(home, task_id, tries)
        assert run["status"] == "retrying"
        assert seconds(run["retry_at"]) - home.clock().timestamp() == pytest.approx(wait_s, abs=30)
        assert await home.owed() == []
        home.clock.forward(seconds=wait_s)
    [run] = await home.until(task_id, "failed")
    task = await home.task(task_id)
    assert (task.active, task.fail_count) == (False, 1)
    assert task.last_status is not None and task.last_status.startswith("failed: ")
    [owed] = await home.owed()
    parcel = parcel_of(owed)
    assert (owed.door, owed.address, parcel.kind, parcel.content["is_failure"]) == (
        "telegram",
        "5",
        "schedule",
        True,
    )
    assert f"Scheduled task {task_id} failed" in parcel.content["text"]


async def _tried(home: Scheduled, task_id: str, tries: int) -> dict[str, Any]:
    """Wait until the only run of a task is to be tried for the n-th time again."""

    async def is_so() -> bool:
        return [run["tries"] for run in await home.runs(task_id) if run["retry_at"]] == [tries]

    await home.place.until(is_so)
    [run] = await home.runs(task_id)
    return run


async def test_five_failures_in_a_row_pause_a_repeating_task(home: Scheduled, fake: FakeModels) -> None:
    """AS-36: the owner is told; resuming counts anew."""
    fake.script(
        {
            "status": 400,
            "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        }
    )
    task_id = await home.add(channel="telegram", chat_id="5")
    for number in range(1, 6):
        home.clock.forward(seconds=61)
        await home.until(task_id, *["failed"] * number)
    task = await home.task(task_id)
    assert (task.paused, task.fail_count, task.active) == (True, 5, True)
    texts = [str(parcel_of(row).content["text"]) for row in await home.owed()]
    assert len(texts) == 5 and "is paused" in texts[4] and "is paused" not in texts[3]
    home.clock.forward(hours=1)
    await home.look()
    assert len(await home.runs(task_id)) == 5
    fake.script({"text": "Said."})
    shown = await home.schedules.change(task_id, {"paused": False})
    assert (shown["paused"], shown["fail_count"]) == (False, 0)
    home.clock.forward(seconds=61)
    await home.until(task_id, *["failed"] * 5, "done")


async def test_one_bad_task_among_five_is_off_and_four_run(home: Scheduled) -> None:
    """AS-35, acceptance 9."""
    good = [await home.add(f"task {number}") for number in range(4)]
    bad = await home.put(id="0bad0bad", value="{}", channel="telegram", chat_id="5")
    worse = await home.put(id="0bad0bae", type="cron", value="0 8 * * *", model_tier="gone")
    worst = await home.put(id="0bad0baf", channel="no channel!", chat_id="5")
    home.clock.forward(seconds=61)
    for task_id in good:
        await home.until(task_id, "done")
    for task_id in (bad, worse, worst):
        task = await home.task(task_id)
        assert not task.active
        assert task.last_status is not None and task.last_status.startswith("invalid: ")
        assert await home.runs(task_id) == []


async def test_a_task_whose_directory_is_gone_is_off_and_named(home: Scheduled, tmp_path: Path) -> None:
    """AS-35."""
    task_id = await home.add(workspace=str(tmp_path / "nowhere"))
    home.clock.forward(seconds=61)
    await home.place.until(lambda: _is_off(home, task_id))
    assert "nowhere" in str((await home.task(task_id)).last_status)


async def test_the_chat_of_a_task_that_never_ran_is_told_that_it_cannot(
    home: Scheduled, tmp_path: Path
) -> None:
    """AS-35: its owner is told, though there is no session of its runs to tell them in."""
    await home.place.service.create(NewSession(thread_id="chat_7", kind="chat", channel="chat", chat_id="7"))
    task_id = await home.add(workspace=str(tmp_path / "nowhere"), channel="chat", chat_id="7", owner="7")
    home.clock.forward(seconds=61)
    await home.place.until(lambda: _is_off(home, task_id))
    assert [(row.door, row.address) for row in await home.owed() if "is off" in row.body] == [("chat", "7")]


async def _is_off(home: Scheduled, task_id: str) -> bool:
    return not (await home.task(task_id)).active


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("notify", "text", "sent"),
    [("silent", "Hi", [True]), ("loud", "Hi", [False]), ("never", "Hi", []), ("loud", " NO_REPLY\n", [])],
)
async def test_an_answer_goes_to_its_chat(
    home: Scheduled, fake: FakeModels, notify: str, text: str, sent: list[bool]
) -> None:
    """AS-38, SE-37: in the transaction that ends the turn."""
    fake.script({"text": text})
    task_id = await home.add(channel="telegram", chat_id="5", notify=notify)
    home.clock.forward(seconds=61)
    await home.until(task_id, "done")
    owed = await home.owed()
    assert [parcel_of(row).content["silent"] for row in owed] == sent
    assert all((row.door, row.address, parcel_of(row).kind) == ("telegram", "5", "schedule") for row in owed)


async def test_a_task_without_a_channel_owes_nothing_but_its_session(home: Scheduled) -> None:
    """AS-38."""
    task_id = await home.add()
    home.clock.forward(seconds=61)
    await home.until(task_id, "done")
    assert await home.owed() == []


# ---------------------------------------------------------------- by hand


async def test_run_now_is_a_run_beside_the_times(home: Scheduled, fake: FakeModels) -> None:
    """AS-39: one at a time, also paused ones, none that is over."""
    task_id = await home.add(kind="cron", value="0 8 * * *")
    before = (await home.task(task_id)).next_run
    await home.schedules.change(task_id, {"paused": True})
    await home.schedules.run_now(task_id)
    await home.until(task_id, "done")
    assert (await home.task(task_id)).next_run == before
    fake.script({"hang": True})
    await home.schedules.run_now(task_id)
    with pytest.raises(SessionError, match="one run at a time"):
        await home.schedules.run_now(task_id)
    await home.place.service.cancel(f"scheduler_{task_id}")
    await home.until(task_id, "done", "cancelled")
    await home.schedules.call_off(task_id)
    with pytest.raises(SessionError, match="is over"):
        await home.schedules.run_now(task_id)
    with pytest.raises(NotFound, match="Task ffffffff not found"):
        await home.schedules.run_now("ffffffff")


async def test_deleting_the_session_cancels_the_task(home: Scheduled) -> None:
    task_id = await home.add()
    home.clock.forward(seconds=61)
    await home.until(task_id, "done")
    await home.place.service.delete(f"scheduler_{task_id}")
    task = await home.task(task_id)
    assert (task.active, task.last_status) == (False, "cancelled: its conversation was deleted")
    home.clock.forward(hours=1)
    await home.look()


async def test_a_server_that_does_not_drive_all_sessions_begins_nothing(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AS-32: a command looks after its own session only."""
    rules: Any = RULES
    async with scheduled(tmp_path, fake, rules=rules) as home:
        await home.schedules.stop(0)
        await home.schedules.start(drives_all=False)
        task_id = await home.add()
        home.clock.forward(hours=1)
        await asyncio.sleep(0)
        assert await home.runs(task_id) == []


async def test_imported_tasks_first_run_at_the_hour_of_the_zone_of_settings(
    tmp_path: Path, fake: FakeModels
) -> None:
    made = {"prompt": "hello", "created_at": "2026-02-24T10:00:00+00:00", "channel": None, "chat_id": None}
    tasks = [
        {**made, "id": "a1b2c3d4", "type": "cron", "value": "0 8 * * *"},
        {**made, "id": "b1b2c3d4", "type": "once", "value": "2030-01-05T08:00:00"},
    ]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps(tasks))
    rules = msgspec.structs.replace(RULES, timezone="Asia/Tokyo")
    async with scheduled(tmp_path, fake, rules=rules, data_file=file) as home:
        await home.look()
        hours = {
            task: datetime.fromisoformat(str((await home.task(task)).next_run)).astimezone(UTC).hour
            for task in ("a1b2c3d4", "b1b2c3d4")
        }
        assert hours == {"a1b2c3d4": 23, "b1b2c3d4": 23}
