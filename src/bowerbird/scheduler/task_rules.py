"""What a scheduled task may be (AS-31), and making one. Pure.

Here: the rules of settings, what people and agents give, the check of both. Not here: reading values of time
(`times.py`), storing (`changes.py`).
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bowerbird.core.errors import InvalidArgument, InvalidThreadId
from bowerbird.core.timestamps import to_iso
from bowerbird.scheduler.times import BadValue, check_value, instant_of, interval_of, next_run, zone_of
from bowerbird.sessions.thread_ids import thread_of_chat
from bowerbird.store.rows.schedules import TaskRow

TYPES = ("cron", "interval", "once")
CATCH_UPS = ("one", "skip", "all")
NOTIFIES = ("silent", "loud", "never")
PROMPT_CHARS = 10_000
VALUE_CHARS = 200
MOST_ACTIVE = 100  # of one owner
MOST_MADE = 5  # by one scheduled run
LATE = timedelta(seconds=60)  # so far back may the time of a `once` lie
OFF = "the scheduler is off; whoever runs Bowerbird turns it on with scheduler.enabled: true"


class InvalidTask(InvalidArgument):
    """A task that cannot be; the text begins with `Invalid` and says why.

    Attributes:
        field: the member that is wrong, "" for none of them.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"Invalid {field}: {reason}" if field else f"Invalid: {reason}")
        self.field = field


class ScheduleRules(msgspec.Struct, frozen=True, kw_only=True):
    """What settings say.

    Attributes:
        enabled, min_interval_s, timezone, history_turns: `scheduler.*`. poll_s: `scheduler.poll_interval`.
        tiers: names that `model_tier` may have. workspace: for tasks without one.
        policy, hide: of their branches.
    """

    enabled: bool = False
    poll_s: float = 60.0
    min_interval_s: float = 60.0
    timezone: str = "UTC"
    history_turns: int = 5
    tiers: tuple[str, ...] = ()
    workspace: str | None = None
    policy: str = "review"
    hide: tuple[str, ...] = ()

    def require_on(self) -> None:
        """Raise InvalidTask when no task may be made."""
        if not self.enabled:
            raise InvalidTask("", OFF)


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as somebody wants it; the fields are those of `TaskRow`."""

    prompt: str
    type: str
    value: str
    tz: str | None = None
    channel: str | None = None
    chat_id: str | None = None
    owner: str | None = None
    workspace: str | None = None
    model_tier: str | None = None
    catch_up: str = "one"
    notify: str = "silent"
    made_by: str | None = None


def task_of(new: NewTask, rules: ScheduleRules, now: datetime) -> TaskRow:
    """Return a new task with its first time; raises InvalidTask."""
    rules.require_on()
    task = TaskRow(
        id=os.urandom(4).hex(),
        prompt=new.prompt,
        type=new.type,
        value=new.value.strip(),
        created_at=to_iso(now),
        tz=new.tz or rules.timezone,
        channel=new.channel or None,
        chat_id=new.chat_id or None,
        owner=new.owner,
        workspace=new.workspace,
        model_tier=new.model_tier or None,
        catch_up=new.catch_up,
        notify=new.notify,
        made_by=new.made_by,
    )
    check(task, rules)
    _require_future(task, now)
    return planned(task, now)


CHANGEABLE = frozenset(("prompt", "type", "value", "tz", "model_tier", "catch_up", "notify", "paused"))


def changed(task: TaskRow, changes: Mapping[str, Any], rules: ScheduleRules, now: datetime) -> TaskRow:
    """Return a task with other values; a changed or resumed one is planned from now on.

    Args:
        changes: of `CHANGEABLE`.

    Raises:
        InvalidTask: it cannot be so, or it has ended.
    """
    if not task.active:
        raise InvalidTask("", f"task {task.id} is over; make a new one")
    given = {name: value for name, value in changes.items() if name in CHANGEABLE}
    if given.get("tz", "") is None:
        given["tz"] = rules.timezone
    if given.get("model_tier") == "":
        given["model_tier"] = None
    wanted = msgspec.structs.replace(task, **given)
    check(wanted, rules)
    timing = ("type", "value", "tz")
    if any(getattr(wanted, name) != getattr(task, name) for name in timing):
        _require_future(wanted, now)
        # What ran under the old times counts for nothing in the new ones.
        fresh = msgspec.structs.replace(wanted, created_at=to_iso(now), last_run=None, missed=0)
        at = planned(fresh, now).next_run
        wanted = msgspec.structs.replace(wanted, next_run=at, missed=0)
    elif task.paused and not wanted.paused:
        wanted = planned(msgspec.structs.replace(wanted, missed=0, fail_count=0), now)
    return wanted


def planned(task: TaskRow, now: datetime) -> TaskRow:
    """Return a task with the time of its next run, nothing that lies behind it made up for; a `once` whose
    time has passed runs at once. Raises InvalidTask.
    """
    try:
        at = next_run(task, now)
    except BadValue as error:
        raise InvalidTask("value", str(error)) from None
    if task.type == "interval" and at is not None:
        at = max(at, now)
    is_over = at is None  # an imported `once` that has run
    return msgspec.structs.replace(
        task, next_run=None if at is None else to_iso(at), active=task.active and not is_over
    )


def check(task: TaskRow, rules: ScheduleRules) -> None:
    """Raise InvalidTask when a task cannot be run."""
    if not task.prompt.strip() or len(task.prompt) > PROMPT_CHARS:
        raise InvalidTask("prompt", f"it has 1 to {PROMPT_CHARS:,} characters")
    for name, known in (("type", TYPES), ("catch_up", CATCH_UPS), ("notify", NOTIFIES)):
        if getattr(task, name) not in known:
            raise InvalidTask(name, f"{str(getattr(task, name))[:60]!r} is none of {', '.join(known)}")
    tz = task.tz or rules.timezone
    try:
        zone_of(tz)
    except BadValue as error:
        raise InvalidTask("tz", str(error)) from None
    if len(task.value) > VALUE_CHARS:
        raise InvalidTask("value", f"it has at most {VALUE_CHARS} characters")
    try:
        check_value(task.type, task.value, tz)
    except BadValue as error:
        raise InvalidTask("value", str(error)) from None
    if task.type == "interval" and interval_of(task.value) < timedelta(seconds=rules.min_interval_s):
        raise InvalidTask(
            "value", f"at least {rules.min_interval_s:g} s lie between runs (scheduler.min_interval)"
        )
    if task.model_tier is not None and task.model_tier not in rules.tiers:
        known = (
            f"; known: {', '.join(rules.tiers)}" if rules.tiers else "; no tiers are set up (model_router)"
        )
        raise InvalidTask("model_tier", f"there is no tier {task.model_tier[:60]!r}{known}")
    _check_address(task)


def _check_address(task: TaskRow) -> None:
    if task.channel is None and task.chat_id is None:
        return
    if task.channel is None or task.chat_id is None:
        raise InvalidTask("channel", "channel and chat_id belong together")
    try:
        thread_of_chat(task.channel, task.chat_id)
    except InvalidThreadId as error:
        raise InvalidTask("channel", str(error)) from None


def _require_future(task: TaskRow, now: datetime) -> None:
    if task.type == "once" and instant_of(task.value, zone_of(task.tz or "UTC")) < now - LATE:
        raise InvalidTask("value", f"{task.value} has passed")


def at_most(task: TaskRow, active: int, made: int) -> None:
    """Raise InvalidTask when there is no room for one more task.

    Args:
        active: tasks that the owner has. made: tasks that the run which makes it has made.
    """
    if active >= MOST_ACTIVE:
        raise InvalidTask("", f"{MOST_ACTIVE} tasks are active; cancel one first")
    if task.made_by is not None and made >= MOST_MADE:
        raise InvalidTask("", f"one scheduled run makes at most {MOST_MADE} tasks")


def utc_now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)
