"""What a service does beside turns must not keep them waiting (team 12, 20)."""

import asyncio
import shutil
from pathlib import Path

from sqlalchemy import Connection, event
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place

from bowerbird.store.rows.usage import MoneyScope, standings


async def test_logs_that_are_gone_are_written_again_after_the_start(tmp_path: Path, fake: FakeModels) -> None:
    """Team 20: a start read every journal before it listened, and said nothing."""
    fake.script({"text": "ok"})
    async with place(tmp_path, fake) as home:
        threads = [await home.session() for _ in range(3)]
        for thread in threads:
            await home.ask(thread)
        logs = home.data / "sessions"
        before = {path.name: path.read_bytes() for path in logs.glob("*.jsonl")}
    shutil.rmtree(logs)
    async with place(tmp_path, fake) as home:
        new = await home.session()
        assert (await home.ask(new)).state == "done"
        async with asyncio.timeout(HANG_S):
            while not all((logs / name).exists() for name in before):
                await asyncio.sleep(0.01)
    after = {path.name: path.read_bytes() for path in logs.glob("*.jsonl")}
    assert {name: after[name] for name in before} == before


async def test_a_sum_reads_only_that_day_or_that_session(home: Place) -> None:
    """Team 12, SE-41: it read all usage ever, at least once a model call, inside the only writer."""
    if home.store.dialect != "sqlite":
        return  # the same statement; its plan is asked for where every plan is the same
    seen: list[tuple[str, object]] = []

    def look(connection: Connection) -> list[str]:
        @event.listens_for(connection, "before_cursor_execute")
        def note(_c: object, _k: object, statement: str, values: object, *_: object) -> None:
            if "sum(usage.cost)" in statement:
                seen.append((statement, values))

        day = "2026-11-22"
        standings(connection, [MoneyScope("user", "ben", day, 1.0), MoneyScope("deployment", "", day, 1.0)])
        standings(connection, [MoneyScope("session", "0123456789ab", "", 1.0)])
        event.remove(connection, "before_cursor_execute", note)
        plans: list[str] = []
        for statement, values in seen:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()  # type: ignore[arg-type]
            plans.append(" / ".join(str(row[-1]) for row in rows))
        return plans

    plans = await home.store.read(look)
    assert len(plans) == 3
    assert all("ix_usage_at" in plan for plan in plans[:2]), plans
    assert "SCAN" not in plans[2], "SQLite folds case in LIKE: every call read all usage"
