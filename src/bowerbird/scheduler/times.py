"""When a task runs next (AS-30). Pure.

Here: reading the values of the three types, and the next time of each. Not here: what else a task must
fulfil (`task_rules.py`), what was missed (`catching_up.py`).

croniter knows which minutes of the wall clock a cron line means; the instants of these minutes are worked out
here, because its own steps across a change of the clocks are not ours: a minute that is skipped happens at
the first instant after the gap, one that comes twice counts the first time only.
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bowerbird.core.timestamps import from_iso
from bowerbird.store.rows.schedules import TaskRow

MOST_SECONDS = 366 * 86_400 * 10
_FIELD = re.compile(r"[0-9A-Za-z*,/?#-]+")
_NAMES = re.compile(r"sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|l", re.I)


class BadValue(ValueError):
    """A value that says no time; the message says why, to follow the name of the field."""


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """Return a time zone; raises BadValue for an unknown name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadValue(f"there is no time zone {name[:60]!r}; use a name such as Europe/Rome") from None


def check_value(kind: str, value: str, tz: str) -> None:
    """Raise BadValue when a task of this type cannot have this value."""
    zone = zone_of(tz)
    if kind == "cron":
        _first_match(_cron(value), datetime(2024, 1, 1))
    elif kind == "interval":
        interval_of(value)
    else:
        instant_of(value, zone)


def next_run(task: TaskRow, after: datetime) -> datetime | None:
    """Return when a task runs next, None for never again.

    Args:
        after: of a cron line, the first match behind this instant and behind the task's making counts.

    Raises:
        BadValue: the value or the zone says no time.

    Example:
        >>> from bowerbird.store.rows.schedules import TaskRow
        >>> made = "2026-11-20T07:30:00.000000+00:00"
        >>> task = TaskRow(id="a1b2c3d4", prompt="x", type="cron", value="0 8 * * *", created_at=made)
        >>> next_run(task, from_iso(made)).isoformat()
        '2026-11-20T08:00:00+00:00'
    """
    made = from_iso(task.created_at)
    zone = zone_of(task.tz or "UTC")
    if task.type == "cron":
        return next(matches(task.value, zone, max(made, after)))
    if task.type == "interval":
        return (made if task.last_run is None else from_iso(task.last_run)) + interval_of(task.value)
    if task.type == "once":
        at = instant_of(task.value, zone)
        return at if task.last_run is None or from_iso(task.last_run) < at else None
    raise BadValue(f"the type is {task.type!r}; use cron, interval or once")


def following(task: TaskRow, start: datetime, count: int) -> list[datetime]:
    """Return up to `count` times from the first run at `start` on; raises BadValue."""
    if task.type == "cron":
        later = matches(task.value, zone_of(task.tz or "UTC"), start)
        return [start, *(next(later) for _ in range(count - 1))]
    if task.type == "interval":
        step = interval_of(task.value)
        return [start + step * number for number in range(count)]
    return [start]


def interval_of(value: str) -> timedelta:
    """Return the time between two runs; raises BadValue."""
    try:
        seconds = float(value)
    except ValueError:
        raise BadValue(f"an interval is a number of seconds, not {value[:60]!r}") from None
    if not math.isfinite(seconds) or not 0 < seconds <= MOST_SECONDS:
        raise BadValue(f"an interval is more than 0 and at most {MOST_SECONDS} seconds, not {value[:60]!r}")
    return timedelta(seconds=seconds)


def instant_of(value: str, zone: ZoneInfo) -> datetime:
    """Return the instant that an ISO time means, in `zone` where it names no offset; raises BadValue."""
    try:
        moment = datetime.fromisoformat(value.strip())
        return (to_instant(moment, zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadValue(f"a time is written as 2026-11-20T09:00, not {value[:60]!r}") from None


def matches(line: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield the instants of a cron line behind `after`, each once; raises BadValue for a bad line."""
    fields = _cron(line)
    last = after
    # Instants follow the order of the wall clock's minutes, and those up to this one have been.
    minute = after.astimezone(zone).replace(tzinfo=None, fold=0, second=0, microsecond=0) - timedelta(
        minutes=1
    )
    while True:
        minute = _first_match(fields, minute)
        instant = to_instant(minute, zone)
        if instant > last:
            last = instant
            yield instant


def to_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant at which clocks in a zone show `wall`: the first of two, and for a time that is
    skipped the first instant behind the gap.
    """
    earlier = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if earlier.astimezone(zone).replace(tzinfo=None, fold=0) == wall:
        return earlier
    # In a gap the offset from before it gives an instant behind the change, the other one an instant before.
    behind = earlier.replace(microsecond=0)
    before = wall.replace(tzinfo=zone, fold=1, microsecond=0).astimezone(UTC)
    offset = before.astimezone(zone).utcoffset()
    while behind - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(behind - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            behind = middle
    return behind


@lru_cache(maxsize=512)
def _cron(line: str) -> str:
    fields = line.split()
    if len(fields) != 5:
        raise BadValue(f"a cron line has five fields (minute hour day month weekday), not {len(fields)}")
    for field in fields:
        words = re.findall(r"[A-Za-z]+", field)
        if not _FIELD.fullmatch(field) or not all(_NAMES.fullmatch(word) for word in words):
            raise BadValue(f"the cron field {field[:60]!r} cannot be read")
    return " ".join(fields)


def _first_match(line: str, behind: datetime) -> datetime:
    from croniter import CroniterBadDateError, CroniterError, croniter  # few processes have such a task

    try:
        found: datetime = croniter(line, behind).get_next(datetime)
    except CroniterBadDateError:
        raise BadValue(f"the cron line {line!r} never comes") from None
    except (CroniterError, OverflowError, ValueError) as error:
        raise BadValue(f"the cron line {line[:60]!r} cannot be read: {str(error)[:200]}") from None
    return found.replace(tzinfo=None)
