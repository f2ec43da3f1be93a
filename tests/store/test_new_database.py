"""A new SQLite database is made whole or not at all, whatever dies and however many make it (SE-6, UI-51)."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from support.patience import HANG_S
from support.stores import URL

from bowerbird.store import Store, StoreOptions
from bowerbird.store.migrate import upgrade
from bowerbird.store.migrations import HEAD


def whole() -> list[str]:
    """Return the statements that a whole database keeps of itself, sorted."""
    with create_engine("sqlite://").begin() as connection:
        upgrade(connection)
        found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return sorted(str(each) for each in found.scalars())


MAKING = """
import asyncio, os, signal, sys
from pathlib import Path
from sqlalchemy import event, Engine
from bowerbird.store import Store, StoreOptions

left = int(sys.argv[2])

@event.listens_for(Engine, "before_cursor_execute")
def count(connection, cursor, statement, parameters, context, many):
    global left
    made = statement.strip().startswith(("CREATE", "INSERT"))
    left -= made
    if made and left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = await Store.open("sqlite:///agent.db", data_dir=Path(sys.argv[1]), options=StoreOptions(min_free_mb=0))
    await store.aclose()

asyncio.run(main())
"""


def making(directory: Path, killed_at: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", MAKING, str(directory), str(killed_at)])


@pytest.mark.parametrize("statement", [1, 50, 94])
async def test_a_kill_while_a_database_is_made_leaves_a_place_that_the_next_start_finishes(
    tmp_path: Path, statement: int
) -> None:
    """SE-6, UI-51."""
    assert making(tmp_path, statement).wait(HANG_S) == -signal.SIGKILL
    store = await Store.open(URL, data_dir=tmp_path, options=StoreOptions(min_free_mb=0))
    await store.aclose()
    assert schema_of(tmp_path) == whole()


async def test_two_processes_may_make_one_database(tmp_path: Path) -> None:
    """SE-6, UI-51."""
    both = [making(tmp_path, 0) for _ in range(2)]
    assert [each.wait(HANG_S) for each in both] == [0, 0]
    assert schema_of(tmp_path) == whole()


def schema_of(directory: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(directory / "agent.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return sorted(row[0] for row in found)
