"""The clock of a server's schedules: looks when something is due, and begins it (AS-32, AS-34, AS-36).

Here: one task that sleeps and looks, and one look. Not here: the transactions (`firing.py`, `endings.py`),
what doors ask for (`schedules.py`).

Other processes on the database change tasks, too. The time of the next run is read twice a second, which
costs one look at an index; so a change by a command is seen as soon as one by this server.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, InvalidArgument, QueueFull, StorageFull, StoreError
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.endings import Around, invalid, settle_left
from bowerbird.scheduler.firing import AT_ONCE, Fired, fire, note_look, plan, retry, thread_of_task
from bowerbird.scheduler.task_rules import ScheduleRules, utc_now
from bowerbird.sessions.values import NewSession
from bowerbird.store.rows.schedules import (
    RunRow,
    TaskRow,
    alone,
    busy_runs,
    due_tasks,
    find_task,
    next_times,
    open_tasks,
    retries_due,
    runs_left_open,
)
from bowerbird.store.rows.sessions import find_session

if TYPE_CHECKING:
    from bowerbird.sessions.service import SessionService

LOOK_S = 0.5
TITLE_CHARS = 100

_log = logging.getLogger(__name__)


class Found(msgspec.Struct, frozen=True):
    """What one look finds to do."""

    left: list[RunRow]
    retries: list[RunRow]
    due: list[TaskRow]
    at_work: set[str]
    room: int


def found(connection: Connection, now: str) -> Found:
    """Return what is to be done now."""
    return Found(
        left=runs_left_open(connection),
        retries=retries_due(connection, now),
        due=due_tasks(connection, now),
        at_work=open_tasks(connection),
        room=AT_ONCE - busy_runs(connection),
    )


class Clock:
    """Begins the runs that are due; several servers on one database may have one each.

    Args:
        service: whose sessions the runs are. rules: of settings.
        now: the present, given by tests of wrong clocks.
    """

    def __init__(
        self,
        service: "SessionService",
        rules: Callable[[], ScheduleRules],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._service = service
        self._store = service.store
        self._rules = rules
        self._now = now
        self._news = asyncio.Event()
        self._noted: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def around(self) -> Around:
        """The present, and how channels cut texts."""
        return Around(self._now(), self._service.outbox.parts)

    def start(self) -> None:
        """Look from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="bowerbird-schedules")

    async def stop(self) -> None:
        """Begin nothing more; a run that was begun is driven by whoever drives its session."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def look_soon(self) -> None:
        """Something has changed, or a run has ended."""
        self._news.set()

    async def _run(self) -> None:
        while True:
            wait_s = LOOK_S
            try:
                if self._news.is_set() or await self._is_due():
                    self._news.clear()
                    await self.look()
                wait_s = await self._wait_s()
            except StoreError as error:
                _log.warning("schedules: %s", error)
            except Exception:  # noqa: BLE001  one look failed; without this task nothing is ever due again
                _log.exception("schedules: one look failed")
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _is_due(self) -> bool:
        now = self._now()
        longest = min(self._rules().poll_s, 60.0) / 4  # so that others know in time that a server is there
        if self._noted is None or abs((now - self._noted).total_seconds()) >= longest:
            return True
        is_unplanned, times = await self._store.read(next_times)
        return is_unplanned or any(from_iso(at) <= now for at in times)

    async def _wait_s(self) -> float:
        _, times = await self._store.read(next_times)
        now = self._now()
        ahead = [(from_iso(at) - now).total_seconds() for at in times]
        return min([LOOK_S, *(seconds for seconds in ahead if seconds > 0)])

    async def look(self) -> None:
        """Do everything that is due; one thing that fails does not stop the others."""
        rules, store = self._rules(), self._store

        def note(connection: Connection) -> datetime:
            now = self._now()  # read alone: of two looks, the later has the later time
            note_look(connection, now, rules)
            return now

        self._noted = now = await store.write(note, flush=False)
        seen = await store.read(lambda c: found(c, to_iso(now)))
        for run in seen.left:
            await store.write(lambda c, run=run: settle_left(c, run, self.around))
        room = seen.room
        for run in seen.retries[: max(0, room)]:
            turn = await store.write(lambda c, run=run: retry(c, run, self.around))
            if turn is not None:
                room -= 1
                await self._service.wake(turn)
        for task in seen.due:
            if task.next_run is None:
                await store.write(lambda c, task=task: plan(c, task.id, now, rules))
                self._news.set()
            elif room > 0 and task.id not in seen.at_work:
                await self._fired(task)
                room -= 1  # also where another server was first: it has taken the place

    async def _fired(self, task: TaskRow) -> None:
        try:
            await self.open_session(task)
            limits, rules = self._service.settings, self._rules()
            fired = await self._store.write(lambda c: fire(c, task.id, self._now(), rules, limits))
        except (QueueFull, StorageFull, StoreError) as error:
            _log.warning("schedule %s waits: %s", task.id, error)
            return
        except (BowerbirdError, OSError) as error:
            await self._take_out(task, str(error))
            return
        if fired is not None:
            await self.go_on(fired)

    async def go_on(self, fired: Fired) -> None:
        """Have a run that was begun driven, and shown."""
        await self._service.go_on(fired.offered, fired.accepted)

    async def open_session(self, task: TaskRow) -> None:
        """Make the session of a task's runs, if it is not there; raises BowerbirdError."""
        service, rules, thread_id = self._service, self._rules(), thread_of_task(task.id)
        if await service.find(thread_id) is not None:
            return
        new = NewSession(
            thread_id=thread_id,
            kind="scheduler",
            channel=task.channel,
            chat_id=task.chat_id,
            owner=task.owner,
            title=" ".join(task.prompt.split())[:TITLE_CHARS],
            workspace=task.workspace or rules.workspace,
            policy=rules.policy,
            hide=rules.hide,
        )
        try:
            await service.create(new)
        except InvalidArgument:
            if await service.find(thread_id) is None:  # else another server was first
                raise

    async def _take_out(self, task: TaskRow, reason: str) -> None:
        _log.warning("schedule %s cannot run and is off: %s", task.id, reason)

        def change(connection: Connection) -> None:
            alone(connection)
            fresh = find_task(connection, task.id)
            if fresh is not None and fresh.active:
                invalid(connection, fresh, reason, find_session(connection, thread_of_task(task.id)))

        await self._store.write(change)
