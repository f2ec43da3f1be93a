"""What people and agents do with tasks, as functions of a transaction (AS-29, AS-31, AS-40).

Here: adding, listing, changing, cancelling. Not here: beginning runs (`firing.py`), who may see which task.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import NotFound
from bowerbird.scheduler.task_rules import NewTask, ScheduleRules, at_most, changed, task_of
from bowerbird.store.rows.schedules import (
    TaskRow,
    alone,
    count_active,
    count_made_by,
    find_task,
    insert_task,
    list_tasks,
    update_task,
)

Sees = Callable[[TaskRow], bool]
_STORED = (
    "prompt", "type", "value", "tz", "model_tier", "catch_up", "notify", "paused", "next_run", "missed",
    "fail_count", "active",
)  # fmt: skip


def add_task(connection: Connection, new: NewTask, rules: ScheduleRules, now: datetime) -> TaskRow:
    """Store a new task; raises InvalidTask, and nothing is stored."""
    task = task_of(new, rules, now)
    alone(connection)
    made = 0 if new.made_by is None else count_made_by(connection, new.made_by)
    at_most(task, count_active(connection, task.owner), made)
    while find_task(connection, task.id) is not None:
        task = task_of(new, rules, now)
    insert_task(connection, task)
    return task


def listed_for(connection: Connection, sees: Sees) -> list[TaskRow]:
    """Return the active tasks that somebody sees, in the order of their making."""
    return [task for task in list_tasks(connection, active=True) if sees(task)]


def get_task(connection: Connection, task_id: str, sees: Sees) -> TaskRow:
    """Return a task; raises NotFound when there is none for this person."""
    task = find_task(connection, task_id)
    if task is None or not sees(task):
        raise NotFound(f"Task {task_id[:60]} not found.", "")
    return task


def change_task(
    connection: Connection,
    task_id: str,
    changes: Mapping[str, Any],
    rules: ScheduleRules,
    now: datetime,
    sees: Sees,
) -> TaskRow:
    """Change a task; raises NotFound, InvalidTask, and nothing is changed."""
    alone(connection)
    after = changed(get_task(connection, task_id, sees), changes, rules, now)
    update_task(connection, task_id, **{name: getattr(after, name) for name in _STORED})
    return after


def cancel_task(connection: Connection, task_id: str, sees: Sees, why: str = "cancelled") -> TaskRow | None:
    """Take a task out of the schedule for good; None when there is no active one for this person.

    A run under way goes to its end.
    """
    alone(connection)
    task = find_task(connection, task_id)
    if task is None or not task.active or not sees(task):
        return None
    values: dict[str, Any] = {"active": False, "next_run": None, "last_status": why}
    update_task(connection, task_id, **values)
    return msgspec.structs.replace(task, **values)
