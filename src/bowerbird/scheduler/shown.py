"""Tasks and their runs in the one form that every door shows (AS-29, AS-39). Pure.

Not here: routes, drawing for a terminal.
"""

from typing import Any

import msgspec

from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.firing import thread_of_task
from bowerbird.scheduler.times import BadValue, following
from bowerbird.store.rows.schedules import RunRow, TaskRow, task_data

NEXT_SHOWN = 3


def shown_task(task: TaskRow) -> dict[str, Any]:
    """Return a task with its next three runs, and the conversation of its runs."""
    return {**task_data(task), "next_runs": next_times(task), "conversation_id": thread_of_task(task.id)}


def next_times(task: TaskRow) -> list[str]:
    """Return when a task runs next, as far as its next three runs are known."""
    if not task.active or task.paused or task.next_run is None:
        return []
    try:
        return [to_iso(at) for at in following(task, from_iso(task.next_run), NEXT_SHOWN)]
    except BadValue:
        return [task.next_run]


def run_data(run: RunRow) -> dict[str, Any]:
    """Return a run."""
    return msgspec.structs.asdict(run)
