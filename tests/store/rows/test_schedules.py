"""Rows of scheduled tasks: what lay in `meta` moves, old runs are forgotten (AS-39, SE-6)."""

import sqlite3
from pathlib import Path

from support.stores import opened

from bowerbird.store.rows.schedules import (
    RunRow,
    TaskRow,
    find_task,
    insert_run,
    insert_task,
    runs_of,
    stored_tasks,
)

GOLDEN = Path(__file__).parent.parent / "golden"
OLD = (
    '{"id":"a1b2c3d4","prompt":"Say hello","type":"cron","value":"0 8 * * *","channel":"telegram","chat_id":"5",'
    '"created_at":"2026-02-24T10:00:00.000000+00:00","last_run":null,"active":true,"model_tier":"lite"}'
)


async def test_tasks_that_were_kept_as_values_move_to_their_table(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.executescript((GOLDEN / "0010.sql").read_text())
    rows = [
        ("schedule:a1b2c3d4", OLD),
        ("schedule:b1b2c3d4", "no JSON"),
        ("schedule:c1b2c3d4", '{"id":"c1b2c3d4"}'),
    ]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    async with opened(tmp_path) as store:
        [task] = await store.read(stored_tasks)
        found = await store.read(lambda c: find_task(c, "a1b2c3d4"))
    assert (task["id"], task["model_tier"], task["catch_up"], task["next_run"]) == (
        "a1b2c3d4",
        "lite",
        "one",
        None,
    )
    assert found is not None and (found.channel, found.chat_id, found.active) == ("telegram", "5", True)
    connection = sqlite3.connect(tmp_path / "agent.db")
    left = connection.execute("SELECT key FROM meta WHERE key LIKE 'schedule:%' ORDER BY key").fetchall()
    connection.close()
    assert left == [("schedule:b1b2c3d4",), ("schedule:c1b2c3d4",)]  # nobody's to throw away


async def test_the_last_hundred_runs_are_kept(tmp_path: Path) -> None:
    """AS-39: one that has not ended is never forgotten."""
    at = "2026-03-02T00:{:02}:{:02}.000000+00:00"
    task = TaskRow(id="a1b2c3d4", prompt="x", type="interval", value="60", created_at=at.format(0, 0))

    async with opened(tmp_path) as store:
        await store.write(lambda c: insert_task(c, task))
        for number in range(130):
            due = at.format(*divmod(number, 60))
            ended = None if number == 3 else due
            run = RunRow(task_id=task.id, due=due, turn_id=f"t_{number}", started_at=due, ended_at=ended)
            await store.write(lambda c, run=run: insert_run(c, run))
        runs = await store.read(lambda c: runs_of(c, task.id, 1000))
    assert [run.turn_id for run in runs] == [*(f"t_{number}" for number in range(129, 29, -1)), "t_3"]
