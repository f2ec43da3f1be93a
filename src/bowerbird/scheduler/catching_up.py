"""What follows a run, a time without a server, or a clock that was set back (AS-30, AS-33). Pure.

Here: a task before to a task after. Not here: when the time of a line comes (`times.py`), storing it.

A due time that passed while a server ran was held up: by the task's own run, which never overlaps itself, or
by other runs. Such times become one later run, whatever the task says of catching up.
"""

from datetime import datetime, timedelta

import msgspec

from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.times import interval_of, matches, zone_of
from bowerbird.store.rows.schedules import TaskRow

MOST_RUNS = 10  # that `all` makes up for
MOST_COUNTED = 1_000
_FIRST_WINDOW = timedelta(minutes=10)
_SMALL_CORRECTION = timedelta(days=1)


def after_downtime(task: TaskRow, seen: datetime, now: datetime) -> TaskRow:
    """Return a task whose time may have passed while no server ran.

    Args:
        seen: when a server looked last before it came back at `now`.

    Raises:
        BadValue: the task's value says no time.
    """
    due = None if task.next_run is None else from_iso(task.next_run)
    if due is None or due <= seen or due > now or task.type == "once":
        return task
    if task.catch_up == "skip":
        return msgspec.structs.replace(task, next_run=to_iso(_first_behind(task, due, now)), missed=0)
    if task.catch_up == "all":
        last = _last_times(task, due, now)
        return msgspec.structs.replace(task, next_run=to_iso(last[0]), missed=len(last))
    return msgspec.structs.replace(task, missed=count_times(task, due, now))


def after_correction(task: TaskRow, seen: datetime, now: datetime) -> TaskRow:
    """Return a task as it is after the clock was set back: no time lies further ahead than its value says.

    A line of cron keeps its next time after less than a day, lest a time of that day comes twice.

    Args:
        seen: when a server looked last, by the clock as it was; later than `now`.

    Raises:
        BadValue: the task's value says no time.
    """
    if task.next_run is None or task.type not in ("interval", "cron"):
        return task
    planned, at = from_iso(task.next_run), now
    if task.type == "interval":
        at = now + interval_of(task.value)
    elif seen - now > _SMALL_CORRECTION:
        at = next(matches(task.value, zone_of(task.tz or "UTC"), now))
    else:
        return task
    return task if planned <= at else msgspec.structs.replace(task, next_run=to_iso(at))


def after_firing(task: TaskRow, now: datetime) -> TaskRow:
    """Return a task whose run for `next_run` begins now, with its next time; raises BadValue."""
    assert task.next_run is not None, "only what was due fires"
    due = from_iso(task.next_run)
    at: datetime | None = None
    left = task.missed - 1 if task.catch_up == "all" and task.type != "once" else 0
    if left > 0:
        at = _first_behind(task, due, due)
    elif task.type == "cron":
        at = next(matches(task.value, zone_of(task.tz or "UTC"), max(due, now)))
    elif task.type == "interval":
        at = now + interval_of(task.value)
    return msgspec.structs.replace(
        task, last_run=to_iso(now), next_run=None if at is None else to_iso(at), missed=max(0, left)
    )


def count_times(task: TaskRow, due: datetime, now: datetime) -> int:
    """Return how many times of a task lie from `due` to `now`, at most 1,000."""
    if task.type == "interval":
        return min(MOST_COUNTED, 1 + (now - due) // interval_of(task.value))
    count = 1
    for at in matches(task.value, zone_of(task.tz or "UTC"), due):
        if at > now or count >= MOST_COUNTED:
            break
        count += 1
    return count


def _first_behind(task: TaskRow, due: datetime, now: datetime) -> datetime:
    if task.type == "interval":
        step = interval_of(task.value)
        return due + step * (1 + (now - due) // step)
    return next(matches(task.value, zone_of(task.tz or "UTC"), now))


def _last_times(task: TaskRow, due: datetime, now: datetime) -> list[datetime]:
    """Return the last ten times from `due` to `now`; looks back only as far as it must."""
    if task.type == "interval":
        step = interval_of(task.value)
        passed = (now - due) // step
        return [due + step * number for number in range(max(0, passed + 1 - MOST_RUNS), passed + 1)]
    window, zone = _FIRST_WINDOW, zone_of(task.tz or "UTC")
    while True:
        start = max(due, now - window)
        found = [due] if start == due else []
        for at in matches(task.value, zone, start):
            if at > now:
                break
            found.append(at)
        if len(found) >= MOST_RUNS or start == due:
            return found[-MOST_RUNS:]
        window *= 4
