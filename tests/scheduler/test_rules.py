"""AS-31, AS-33, AS-36: what a task may be, and what follows what, as pure decisions."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.schedules import RULES

from bowerbird.core.events import RunError
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.catching_up import after_downtime, after_firing, count_times
from bowerbird.scheduler.endings import judge, task_values
from bowerbird.scheduler.task_rules import InvalidTask, NewTask, ScheduleRules, at_most, changed, task_of
from bowerbird.store.rows.schedules import TaskRow

NOW = from_iso("2026-03-02T07:30:00+00:00")


def new(**values: object) -> NewTask:
    return NewTask(**{"prompt": "go", "type": "interval", "value": "60", **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("type", {"type": "hourly"}), ("type", {"type": ""}), ("value", {"type": "cron", "value": "* * * * * *"}),
        ("value", {"type": "cron", "value": "0 0 30 2 *"}), ("value", {"value": "59"}),
        ("value", {"value": "{}"}), ("value", {"type": "once", "value": "2026-03-02T07:28:59"}),
        ("tz", {"tz": "Mars/Olympus"}), ("model_tier", {"model_tier": "gone"}), ("prompt", {"prompt": " "}),
        ("prompt", {"prompt": "x" * 10_001}), ("value", {"value": "1" * 201}), ("catch_up", {"catch_up": "two"}),
        ("notify", {"notify": "shout"}), ("channel", {"channel": "telegram"}),
        ("channel", {"channel": "scheduler", "chat_id": "1"}), ("channel", {"channel": "X!", "chat_id": "1"}),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_field(field: str, values: dict[str, object]) -> None:
    """AS-31: the text begins with `Invalid`."""
    rules = ScheduleRules(enabled=True, tiers=("lite",))
    with pytest.raises(InvalidTask) as caught:
        task_of(new(**values), rules, NOW)
    assert str(caught.value).startswith(f"Invalid {field}: ")
    assert caught.value.field == field


def test_nothing_is_made_while_the_scheduler_is_off() -> None:
    """AS-31, TO-43."""
    with pytest.raises(InvalidTask, match=r"^Invalid: the scheduler is off.*scheduler\.enabled"):
        task_of(new(), ScheduleRules(), NOW)


def test_there_is_room_for_a_hundred_tasks_and_five_of_one_run() -> None:
    """AS-31, AS-37."""
    task = task_of(new(made_by="t_1"), RULES, NOW)
    at_most(task, 99, 4)
    with pytest.raises(InvalidTask, match=r"^Invalid: 100 tasks are active"):
        at_most(task, 100, 0)
    with pytest.raises(InvalidTask, match=r"^Invalid: one scheduled run makes at most 5"):
        at_most(task, 0, 5)


def test_once_may_lie_a_minute_back_and_runs_at_once() -> None:
    """AS-31: more than 60 s are too late."""
    task = task_of(new(type="once", value="2026-03-02T07:29:01"), RULES, NOW)
    assert task.next_run == "2026-03-02T07:29:01.000000+00:00"


def test_other_times_are_planned_from_now_and_other_words_change_no_time() -> None:
    task = task_of(new(), RULES, NOW)
    later = NOW + timedelta(seconds=30)
    assert changed(task, {"prompt": "stay"}, RULES, later).next_run == task.next_run
    assert changed(task, {"value": "90"}, RULES, later).next_run == to_iso(later + timedelta(seconds=90))
    paused = changed(task, {"paused": True}, RULES, later)
    resumed = changed(paused, {"paused": False}, RULES, NOW + timedelta(days=2))
    assert resumed.next_run == to_iso(NOW + timedelta(days=2))
    with pytest.raises(InvalidTask, match="over"):
        changed(msgspec.structs.replace(task, active=False), {"paused": True}, RULES, NOW)


# ---------------------------------------------------------------- catching up


def waiting(kind: str, catch_up: str, minutes: int) -> TaskRow:
    """A task whose next time is an hour away."""
    value = f"*/{minutes} * * * *" if kind == "cron" else str(minutes * 60)
    return TaskRow(
        id="a1b2c3d4", prompt="x", catch_up=catch_up, created_at=to_iso(NOW), type=kind, value=value,
        next_run=to_iso(NOW + timedelta(hours=1)),
    )  # fmt: skip


tasks = st.builds(
    waiting,
    st.sampled_from(["cron", "interval"]),
    st.sampled_from(["one", "skip", "all"]),
    st.sampled_from([1, 5, 7, 30]),
)


@settings(max_examples=40, deadline=None)
@given(task=tasks, away=st.integers(0, 400), seconds=st.integers(0, 59))
def test_what_was_missed_is_one_run_none_or_the_last_ten(task: TaskRow, away: int, seconds: int) -> None:
    """AS-33, against firing one due time after the other."""
    assert task.next_run is not None
    due = from_iso(task.next_run)
    now = due + timedelta(minutes=away, seconds=seconds)
    passed = [due]
    while True:  # one due time after the other, as a server that was there would have found them
        step = after_firing(msgspec.structs.replace(task, next_run=to_iso(passed[-1]), missed=0), passed[-1])
        assert step.next_run is not None
        if from_iso(step.next_run) > now or len(passed) > 5000:
            break
        passed.append(from_iso(step.next_run))
    after = after_downtime(task, NOW, now)
    assert after.next_run is not None
    if task.catch_up == "one":
        assert (after.next_run, after.missed) == (task.next_run, min(1000, len(passed)))
        assert after_firing(after, now).missed == 0
    elif task.catch_up == "skip":
        assert from_iso(after.next_run) > now and after.missed == 0
    else:
        runs: list[str] = []
        while after.missed:
            runs.append(str(after.next_run))
            after = after_firing(after, now)
        assert runs == [to_iso(at) for at in passed[-10:]]
    assert from_iso(after_firing(after, max(now, from_iso(str(after.next_run)))).next_run or "") > now


def test_a_time_that_passed_while_a_server_ran_was_held_up_not_missed() -> None:
    """AS-34."""
    task = TaskRow(
        id="a1b2c3d4", prompt="x", type="interval", value="60", created_at=to_iso(NOW), next_run=to_iso(NOW)
    )
    assert after_downtime(task, NOW + timedelta(seconds=1), NOW + timedelta(hours=1)) == task
    assert count_times(task, NOW, NOW + timedelta(days=99)) == 1000


# ---------------------------------------------------------------- ends


def test_a_failure_is_tried_again_three_times_then_it_stands() -> None:
    """AS-36."""
    busy = RunError("ModelError", "busy", True)
    assert [judge("failed", "error", busy, tries).retry_s for tries in range(5)] == [60, 300, 900, None, None]
    assert judge("failed", "error", busy, 3).status == "failed"
    assert judge("failed", "error", RunError("ConfigError", "no key", False), 0).status == "failed"
    assert judge("cancelled", "cancelled", None, 0).status == "cancelled"
    assert judge("done", "end_turn", None, 2).status == "done"


@given(st.lists(st.sampled_from(["done", "failed", "retrying", "cancelled"]), max_size=30))
def test_a_repeating_task_is_paused_by_five_failures_in_a_row_and_never_else(ends: list[str]) -> None:
    """AS-36."""
    task = TaskRow(
        id="a1b2c3d4", prompt="x", type="interval", value="60", created_at=to_iso(NOW), next_run=to_iso(NOW)
    )
    row = 0
    for status in ends:
        row = row + 1 if status == "failed" else 0 if status == "done" else row
        values = task_values(task, status, "why")
        assert values.get("paused", False) == (status == "failed" and row >= 5)
        assert "active" not in values
        task = msgspec.structs.replace(task, **values)
