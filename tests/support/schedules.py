"""Schedules over a real service, with a clock that the test sets.

Here: the place and its clock. Not here: what tests expect.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place
from support.stores import URL

from bowerbird.core.timestamps import from_iso
from bowerbird.scheduler.schedules import Schedules
from bowerbird.scheduler.task_rules import NewTask, ScheduleRules
from bowerbird.store.rows.outbox import OutboxRow
from bowerbird.store.rows.schedules import TaskRow, find_task, insert_task
from bowerbird.store.sql.tables import outbox

RULES = ScheduleRules(enabled=True, min_interval_s=1, timezone="UTC")


@dataclass
class Wrist:
    """What the test's watch shows: it runs as time does, from where it was set."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def forward(self, **time: float) -> None:
        self.ahead += timedelta(**time)


@dataclass
class Scheduled:
    """An open service with schedules."""

    place: Place
    schedules: Schedules
    clock: Wrist

    async def add(self, prompt: str = "go", kind: str = "interval", value: str = "60", **more: Any) -> str:
        return str((await self.schedules.add(NewTask(prompt=prompt, type=kind, value=value, **more)))["id"])

    async def put(self, **values: Any) -> str:
        """Store a task as it is, past every check."""
        usual: dict[str, Any] = {
            "id": "00000001", "prompt": "go", "type": "interval", "value": "60",
            "created_at": "2026-03-02T00:00:00+00:00",
        }  # fmt: skip
        task = TaskRow(**(usual | values))
        await self.place.store.write(lambda c: insert_task(c, task))
        return task.id

    async def task(self, task_id: str) -> TaskRow:
        found = await self.place.store.read(lambda c: find_task(c, task_id))
        assert found is not None
        return found

    async def runs(self, task_id: str) -> list[dict[str, Any]]:
        return list(await self.schedules.runs(task_id))

    async def look(self) -> None:
        """Look once, now."""
        await self.schedules.clock.look()

    async def until(self, task_id: str, *statuses: str) -> list[dict[str, Any]]:
        """Wait until the runs of a task, oldest first, stand like this."""
        found: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(HANG_S):
                while [run["status"] for run in found] != list(statuses):
                    await asyncio.sleep(0.02)
                    found = (await self.runs(task_id))[::-1]
        except TimeoutError:
            raise AssertionError(f"{statuses} did not come: {found}") from None
        return found

    async def owed(self) -> list[OutboxRow]:
        rows = await self.place.store.read(
            lambda c: c.execute(outbox.select().order_by(outbox.c.id)).mappings().all()
        )
        return [OutboxRow(**row) for row in rows]

    async def said(self, task_id: str) -> list[str]:
        """What was put before the model in the session of a task, and what it answered."""
        return [message.content for message in await self.place.service.messages(f"scheduler_{task_id}")]


@asynccontextmanager
async def scheduled(
    directory: Path,
    fake: FakeModels,
    *,
    url: str = URL,
    rules: ScheduleRules = RULES,
    clock: Wrist | None = None,
    data_file: Path | None = None,
    **more: Any,
) -> AsyncGenerator[Scheduled]:
    """Open a service whose schedules run; opening it twice in a row is a restart."""
    wrist = clock or Wrist()
    project = directory / "project"
    kept = msgspec.structs.replace(rules, workspace=str(project))
    async with place(
        directory,
        fake,
        url=url,
        parts=lambda service: (Schedules(service, lambda: kept, data_file, now=wrist),),
        **more,
    ) as opened:
        yield Scheduled(opened, opened.service.part(Schedules), wrist)


def seconds(iso: str | None) -> float:
    assert iso is not None
    return from_iso(iso).timestamp()
