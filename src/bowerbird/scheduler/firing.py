"""Beginning runs: a due time becomes one input of its session, in one transaction (AS-32 … AS-37).

Here: those transactions. Not here: when to look (`clock.py`), what an end means (`endings.py`).

Every transaction that begins runs or changes tasks passes alone (`rows.schedules.alone`), so that several
servers decide one after the other; each decides by what it finds then.
"""

import contextlib
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import SessionError, TurnRunning
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.catching_up import after_correction, after_downtime, after_firing
from bowerbird.scheduler.endings import RETRY_S, Around, invalid, settle_left
from bowerbird.scheduler.task_rules import InvalidTask, ScheduleRules, check, planned
from bowerbird.scheduler.times import BadValue
from bowerbird.sessions.inbox.accept import Accepted, Offered, accept
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.undriven_turns import queue_again
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.rows.schedules import (
    RunRow,
    TaskRow,
    alone,
    busy_runs,
    due_tasks,
    find_task,
    insert_run,
    list_tasks,
    open_run,
    run_of_turn,
    update_run,
    update_task,
)
from bowerbird.store.rows.sessions import find_session
from bowerbird.store.rows.turns import TurnRow

DOOR = "scheduler"
KIND = "schedule"  # of turns
AT_ONCE = 4  # scheduled runs at work, whichever server drives them
SEEN = "scheduler_seen"
SLACK_S = 5.0


def thread_of_task(task_id: str) -> str:
    """Return the session of a task's runs.

    Example:
        >>> thread_of_task("a1b2c3d4")
        'scheduler_a1b2c3d4'
    """
    return f"scheduler_{task_id}"


class Fired(msgspec.Struct, frozen=True):
    """A run that was begun: the service goes on with its input."""

    task: TaskRow
    run: RunRow
    offered: Offered
    accepted: Accepted


def note_look(connection: Connection, now: datetime, rules: ScheduleRules) -> None:
    """Remember that a server is there; after a time without any, decide what becomes of what was missed."""
    alone(connection)
    known = get_meta(connection, SEEN)
    seen = now if known is None else from_iso(known)
    set_meta(connection, SEEN, to_iso(now))
    if (seen - now).total_seconds() > rules.poll_s + SLACK_S:
        _set_back(connection, seen, now)
        return
    if (now - seen).total_seconds() <= rules.poll_s + SLACK_S:
        return
    for task in due_tasks(connection, to_iso(now)):
        if open_run(connection, task.id) is not None:
            continue  # its run goes on now: what came due meanwhile is one later run
        try:
            after = after_downtime(task, seen, now)
        except BadValue as error:
            invalid(connection, task, str(error), find_session(connection, thread_of_task(task.id)))
        else:
            update_task(connection, task.id, next_run=after.next_run, missed=after.missed)


def _set_back(connection: Connection, seen: datetime, now: datetime) -> None:
    """Bring times nearer that a clock put too far ahead which was set back since."""
    for task in list_tasks(connection, active=True):
        with contextlib.suppress(BadValue):  # it is taken out when its time comes
            after = after_correction(task, seen, now)
            if after.next_run != task.next_run:
                update_task(connection, task.id, next_run=after.next_run)


def plan(connection: Connection, task_id: str, now: datetime, rules: ScheduleRules) -> None:
    """Give a task that was imported its zone and its first time; one that cannot run is taken out."""
    alone(connection)
    task = find_task(connection, task_id)
    if (
        task is None
        or not task.active
        or task.paused
        or task.next_run is not None
        or open_run(connection, task_id)
    ):
        return
    task = msgspec.structs.replace(task, tz=task.tz or rules.timezone)
    update_task(connection, task.id, tz=task.tz)
    try:
        check(task, rules)
        made = planned(task, now)
    except InvalidTask as error:
        invalid(connection, task, _reason(error), find_session(connection, thread_of_task(task.id)))
    else:
        update_task(connection, task.id, next_run=made.next_run, active=made.active)


def _reason(error: InvalidTask) -> str:
    return str(error).removeprefix("Invalid").lstrip(" :")


def fire(
    connection: Connection, task_id: str, now: datetime, rules: ScheduleRules, limits: SessionSettings
) -> Fired | None:
    """Begin the run of a task that is due; None when it is not, or not now.

    Raises:
        QueueFull, SessionError: nothing is stored.
    """
    alone(connection)
    task = find_task(connection, task_id)
    if task is None or not task.active or task.paused or task.next_run is None:
        return None
    if from_iso(task.next_run) > now or open_run(connection, task_id) or busy_runs(connection) >= AT_ONCE:
        return None
    try:
        check(task, rules)
        after = after_firing(task, now)
    except (InvalidTask, BadValue) as error:
        reason = _reason(error) if isinstance(error, InvalidTask) else str(error)
        invalid(connection, task, reason, find_session(connection, thread_of_task(task_id)))
        return None
    update_task(connection, task_id, last_run=after.last_run, next_run=after.next_run, missed=after.missed)
    return _begin(connection, task, task.next_run, now, limits)


def fire_now(connection: Connection, task_id: str, now: datetime, limits: SessionSettings) -> Fired:
    """Begin a run of a task because a person wants it.

    Raises:
        SessionError: one is under way, or there are as many as may be. QueueFull: nothing is stored.
    """
    alone(connection)
    task = find_task(connection, task_id)
    if task is None or not task.active:
        raise SessionError(f"task {task_id} is over; make a new one")
    if open_run(connection, task_id) is not None:
        raise SessionError(f"task {task_id} is running, or will be tried again soon; one run at a time")
    if busy_runs(connection) >= AT_ONCE:
        raise SessionError(f"{AT_ONCE} scheduled runs are at work, which is the most; try again in a while")
    values = {"last_run": to_iso(now)}
    if task.type == "interval" and task.next_run is not None:
        values["next_run"] = str(after_firing(task, now).next_run)
    update_task(connection, task_id, **values)
    begun = _begin(connection, task, to_iso(now), now, limits)
    if begun is None:
        raise SessionError(f"task {task_id} has run at this very moment")
    return begun


def _begin(
    connection: Connection, task: TaskRow, due: str, now: datetime, limits: SessionSettings
) -> Fired | None:
    text = task.prompt + _made_up(task)
    offered = Offered(
        thread_id=thread_of_task(task.id),
        door=DOOR,
        dedupe_key=f"{task.id}:{due}",
        kind="message",
        sender={"id": task.owner, "name": f"schedule {task.id}"},
        body={"content": [{"type": "text", "text": text}]},
        text=task.prompt,
        turn_kind=KIND,
    )
    accepted = accept(connection, offered, limits)
    if accepted.receipt.duplicate:
        return None  # this due time has had its run
    run = RunRow(task_id=task.id, due=due, turn_id=accepted.receipt.turn_id, started_at=to_iso(now))
    insert_run(connection, run)
    update_task(connection, task.id, last_status="running")
    return Fired(task, run, offered, accepted)


def _made_up(task: TaskRow) -> str:
    """Say what a run makes up for, as a part of its message."""
    if task.missed < 1 or task.catch_up == "all":
        return ""
    times = "1 due time" if task.missed == 1 else f"{task.missed:,} due times"
    return f"\n\n[This run stands for {times} that passed while Bowerbird was not running.]"


def retry(connection: Connection, run: RunRow, around: Around) -> TurnRow | None:
    """Queue the failed turn of a run again; None when that is not to be, or not now."""
    alone(connection)
    fresh = run_of_turn(connection, run.turn_id)
    if fresh is None or fresh.ended_at is not None or fresh.retry_at is None:
        return None
    if from_iso(fresh.retry_at) > around.now or busy_runs(connection) >= AT_ONCE:
        return None
    turn: TurnRow | None = None
    try:
        turn = queue_again(
            connection, fresh.turn_id, None
        )  # locks the session before the run, as an end does
    except TurnRunning:
        pass  # a person was first
    except SessionError:
        # The conversation has gone on, or is gone: the failure stands.
        settle_left(connection, msgspec.structs.replace(fresh, tries=len(RETRY_S)), around)
        return None
    update_run(connection, fresh, status="running", retry_at=None)
    return turn
