"""Rows of `scheduled_tasks` and `scheduled_runs` (AS-29 … AS-39), and tasks as they are exported (SE-45).

Here: reading and writing those rows inside a given transaction. Not here: when a task runs, what a task may
be, what a run's end means (`bowerbird.scheduler`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, and_, func, or_, select

from bowerbird.store.sql.schedule_tables import scheduled_runs, scheduled_tasks
from bowerbird.store.sql.tables import turns
from bowerbird.store.sql.turnstile import pass_alone

KEPT_RUNS = 100  # of each task

_tasks, _runs = scheduled_tasks.c, scheduled_runs.c
_IN_WORK = select(_runs.task_id).where(_runs.ended_at.is_(None))
_UNPLANNED = and_(_tasks.next_run.is_(None), _tasks.id.not_in(_IN_WORK))  # not a `once` in its run


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduled task; times in the record form.

    Attributes:
        type: `cron`, `interval` (value: seconds) or `once` (value: ISO time).
        tz: zone of `value`; None until a scheduler gives it the settings'.
        channel, chat_id: where its answers go, None for the web UI and the CLI. owner: a user's id.
        workspace: directory it works on, None for the server's own.
        catch_up: `one`, `skip` or `all`. notify: `silent`, `loud` or `never`.
        made_by: the scheduled turn that made it. active: False = cancelled or finished.
        last_run: start of the latest run. next_run: None = nothing more, or not worked out yet.
        missed: due times that passed while no server ran, until a run has said or made up for them.
        last_status: how the latest run went. fail_count: failed runs in a row.
    """

    id: str
    prompt: str
    type: str
    value: str
    created_at: str
    tz: str | None = None
    channel: str | None = None
    chat_id: str | None = None
    owner: str | None = None
    workspace: str | None = None
    model_tier: str | None = None
    catch_up: str = "one"
    notify: str = "silent"
    made_by: str | None = None
    active: bool = True
    paused: bool = False
    last_run: str | None = None
    next_run: str | None = None
    missed: int = 0
    last_status: str | None = None
    fail_count: int = 0


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a task; `due` names it. `tries`: after failures; `retry_at`: when the next one is due."""

    task_id: str
    due: str
    turn_id: str
    started_at: str
    ended_at: str | None = None
    status: Literal["running", "retrying", "done", "failed", "cancelled"] = "running"
    cost: float | None = None
    tries: int = 0
    retry_at: str | None = None
    error: str | None = None


def alone(connection: Connection) -> None:
    """Let no other transaction change schedules until this one ends."""
    pass_alone(connection, "schedules")


# ---------------------------------------------------------------- tasks


def insert_task(connection: Connection, task: TaskRow) -> None:
    """Add a task; its id must be new."""
    connection.execute(scheduled_tasks.insert().values(**msgspec.structs.asdict(task)))


def update_task(connection: Connection, task_id: str, **values: Any) -> None:
    """Change columns of a task."""
    connection.execute(scheduled_tasks.update().where(_tasks.id == task_id).values(**values))


def find_task(connection: Connection, task_id: str) -> TaskRow | None:
    """Return a task or None."""
    row = connection.execute(select(scheduled_tasks).where(_tasks.id == task_id)).mappings().first()
    return None if row is None else TaskRow(**row)


def list_tasks(connection: Connection, *, active: bool = False) -> list[TaskRow]:
    """Return tasks in the order they were made, all or those that still run."""
    query = select(scheduled_tasks).order_by(_tasks.created_at, _tasks.id)
    if active:
        query = query.where(_tasks.active)
    return [TaskRow(**row) for row in connection.execute(query).mappings()]


def count_active(connection: Connection, owner: str | None) -> int:
    """Return how many active tasks an owner has."""
    here = _tasks.owner.is_(None) if owner is None else _tasks.owner == owner
    return int(connection.scalar(select(func.count()).where(_tasks.active, here)) or 0)


def count_made_by(connection: Connection, turn_id: str) -> int:
    """Return how many tasks a scheduled turn has made."""
    return int(connection.scalar(select(func.count()).where(_tasks.made_by == turn_id)) or 0)


def due_tasks(connection: Connection, now: str) -> list[TaskRow]:
    """Return the tasks whose time has come, the longest due first, and those that have no time yet."""
    query = (
        select(scheduled_tasks)
        .where(_tasks.active, ~_tasks.paused, or_(_UNPLANNED, _tasks.next_run <= now))
        .order_by(_tasks.next_run, _tasks.id)
    )
    return [TaskRow(**row) for row in connection.execute(query).mappings()]


def next_times(connection: Connection) -> tuple[bool, list[str]]:
    """Return whether a task waits for its first time, and the earliest times at which something is due."""
    unplanned = select(_tasks.id).where(_tasks.active, ~_tasks.paused, _UNPLANNED).limit(1)
    task = select(func.min(_tasks.next_run)).where(_tasks.active, ~_tasks.paused)
    retry = select(func.min(_runs.retry_at)).where(_runs.ended_at.is_(None))
    times = [connection.scalar(task), connection.scalar(retry)]
    return connection.scalar(unplanned) is not None, [at for at in times if at is not None]


# ---------------------------------------------------------------- runs


def insert_run(connection: Connection, run: RunRow) -> None:
    """Add a run, and forget the oldest ended ones of its task beyond those that are kept."""
    connection.execute(scheduled_runs.insert().values(**msgspec.structs.asdict(run)))
    newest = select(_runs.started_at).where(_runs.task_id == run.task_id).order_by(_runs.started_at.desc())
    last = connection.scalar(newest.offset(KEPT_RUNS - 1).limit(1))
    if last is not None:
        old = and_(_runs.task_id == run.task_id, _runs.started_at < last, _runs.ended_at.is_not(None))
        connection.execute(scheduled_runs.delete().where(old))


def update_run(connection: Connection, run: RunRow, **values: Any) -> None:
    """Change columns of a run."""
    here = and_(_runs.task_id == run.task_id, _runs.due == run.due)
    connection.execute(scheduled_runs.update().where(here).values(**values))


def runs_of(connection: Connection, task_id: str, limit: int = KEPT_RUNS) -> list[RunRow]:
    """Return the runs of a task, the newest first."""
    query = select(scheduled_runs).where(_runs.task_id == task_id)
    rows = connection.execute(query.order_by(_runs.started_at.desc(), _runs.due.desc()).limit(limit))
    return [RunRow(**row) for row in rows.mappings()]


def run_of_turn(connection: Connection, turn_id: str) -> RunRow | None:
    """Return the run that a turn is."""
    row = connection.execute(select(scheduled_runs).where(_runs.turn_id == turn_id)).mappings().first()
    return None if row is None else RunRow(**row)


def open_run(connection: Connection, task_id: str) -> RunRow | None:
    """Return the run of a task that has not ended."""
    here = (_runs.task_id == task_id, _runs.ended_at.is_(None))
    row = connection.execute(select(scheduled_runs).where(*here)).mappings().first()
    return None if row is None else RunRow(**row)


def open_tasks(connection: Connection) -> set[str]:
    """Return the tasks that have a run which has not ended."""
    return set(connection.scalars(_IN_WORK))


def busy_runs(connection: Connection) -> int:
    """Return how many runs are queued or at work; those that wait for a person or a retry are not."""
    query = (
        select(func.count())
        .select_from(scheduled_runs.join(turns, turns.c.turn_id == _runs.turn_id))
        .where(_runs.ended_at.is_(None), turns.c.state.in_(("queued", "running")))
    )
    return int(connection.scalar(query) or 0)


def retries_due(connection: Connection, now: str) -> list[RunRow]:
    """Return the runs that are to be tried again by now."""
    here = (_runs.ended_at.is_(None), _runs.retry_at <= now)
    rows = connection.execute(select(scheduled_runs).where(*here).order_by(_runs.retry_at))
    return [RunRow(**row) for row in rows.mappings()]


def runs_left_open(connection: Connection) -> list[RunRow]:
    """Return the open runs whose turn has ended, or is gone, without their being told."""
    query = (
        select(scheduled_runs)
        .select_from(scheduled_runs.outerjoin(turns, turns.c.turn_id == _runs.turn_id))
        .where(
            _runs.ended_at.is_(None),
            _runs.retry_at.is_(None),
            or_(turns.c.state.is_(None), turns.c.state.in_(("done", "failed", "cancelled", "interrupted"))),
        )
    )
    return [RunRow(**row) for row in connection.execute(query).mappings()]


# ---------------------------------------------------------------- export and import

_SHOWN = (
    "id", "prompt", "type", "value", "channel", "chat_id", "created_at", "last_run", "active", "model_tier",
    "owner", "tz", "next_run", "catch_up", "notify", "last_status", "fail_count", "paused", "workspace",
)  # fmt: skip


def task_data(task: TaskRow) -> dict[str, Any]:
    """Return a task as API, export and tools show it (AS-29)."""
    return {name: getattr(task, name) for name in _SHOWN}


def stored_tasks(connection: Connection) -> list[dict[str, Any]]:
    """Return all tasks as they are exported, by id."""
    return [task_data(task) for task in sorted(list_tasks(connection), key=lambda task: task.id)]


def has_task(connection: Connection, task_id: str) -> bool:
    """Whether a task with this id is stored."""
    return find_task(connection, task_id) is not None


def store_task(connection: Connection, task: Mapping[str, Any]) -> None:
    """Add an imported task; its id must be new. A scheduler works out when it runs next."""
    known: Sequence[str] = TaskRow.__struct_fields__
    given: dict[str, Any] = {
        name: value for name, value in task.items() if name in known and value is not None
    }
    given |= {"next_run": None, "missed": 0}
    insert_task(connection, TaskRow(**given))
