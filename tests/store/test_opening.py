"""Opening a database: migrating it, or refusing it unchanged (SE-6, 31, 60, CF-14)."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine
from support.stores import THREAD, URL, opened

from bowerbird.core.errors import ConfigError, StoreCorrupt, StoreError, StoreTooNew
from bowerbird.store import Store, StoreOptions
from bowerbird.store.migrate import run_revisions, upgrade
from bowerbird.store.migrations import HEAD, REVISIONS
from bowerbird.store.sql.postgres_url import postgres_url
from bowerbird.store.sql.sqlite import database_file, filesystem_of, refuse_unusable
from bowerbird.store.sql.tables import metadata

GOLDEN = Path(__file__).parent / "golden"
SECTION_2 = (
    "sessions inbox turns journal effects leases executors snapshots outbox usage budgets reservations "
    "counters bridge_states quarantine meta"
).split()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def open_and_close(directory: Path, **options: object) -> None:
    store = await Store.open(URL, data_dir=directory, options=StoreOptions(min_free_mb=0, **options))  # type: ignore[arg-type]
    await store.aclose()


async def test_a_new_database_has_every_table_of_the_chapter(tmp_path: Path) -> None:
    await open_and_close(tmp_path)
    assert set(SECTION_2) <= set(metadata.tables)
    engine = create_engine(f"sqlite:///{tmp_path}/agent.db")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def described(connection: Connection) -> dict[str, object]:
    """Return what a database says of each of its tables, with nothing depending on the order of making."""
    seen = inspect(connection)
    return {
        table: [
            sorted(map(repr, found))
            for found in (
                [{**column, "type": str(column["type"])} for column in seen.get_columns(table)],
                [seen.get_pk_constraint(table)],
                seen.get_foreign_keys(table),
                seen.get_unique_constraints(table),
                seen.get_indexes(table),
                seen.get_check_constraints(table),
            )
        ]
        for table in seen.get_table_names()
    }


def made(connection: Connection, way: Callable[[Connection], None]) -> dict[str, object]:
    way(connection)
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    return {**described(connection), "version": version}


async def test_a_new_database_is_what_all_revisions_make(database_url: str) -> None:
    """SE-6: new ones are made without Alembic (D-14)."""
    found: list[dict[str, object]] = []
    for way in (upgrade, run_revisions):
        if database_url.startswith("sqlite"):
            with create_engine("sqlite://").begin() as connection:
                found.append(made(connection, way))
            continue
        engine = create_async_engine(postgres_url(database_url))
        async with engine.connect() as connection, connection.begin() as all_of_it:
            found.append(await connection.run_sync(made, way))
            await all_of_it.rollback()
        await engine.dispose()
    at_once, by_revisions = found
    assert at_once == by_revisions and len(at_once) > 20


async def test_every_foreign_key_has_an_index(tmp_path: Path) -> None:
    """SE §2."""
    await open_and_close(tmp_path)
    connection = sqlite3.connect(tmp_path / "agent.db")
    for table in metadata.tables:
        indexed = {
            connection.execute(f"PRAGMA index_info('{index[1]}')").fetchone()[2]
            for index in connection.execute(f"PRAGMA index_list('{table}')")
        }
        wanted = {row[3] for row in connection.execute(f"PRAGMA foreign_key_list('{table}')")}
        assert wanted <= indexed, table
    connection.close()


async def test_the_database_is_private_and_in_wal_mode(tmp_path: Path) -> None:
    async with opened(tmp_path / "data") as store:
        assert (tmp_path / "data" / "agent.db").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
        mode = await store.read(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar())
        assert mode == "wal"


async def test_a_database_newer_than_the_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    """SE-6: both revisions are named."""
    await open_and_close(tmp_path)
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = digest(tmp_path / "agent.db")
    with pytest.raises(StoreTooNew, match=rf"9999.*{HEAD}"):
        await open_and_close(tmp_path)
    assert digest(tmp_path / "agent.db") == before


async def test_a_failing_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    """SE-6: the migrations run inside one transaction."""
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")  # the first migration stumbles
    connection.commit()
    connection.close()
    with pytest.raises(Exception):  # noqa: B017  whatever the driver calls it
        await open_and_close(tmp_path)
    connection = sqlite3.connect(tmp_path / "agent.db")
    assert connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall() == [("meta",)]
    connection.close()


async def test_foreign_tables_are_refused_unless_adopted(tmp_path: Path) -> None:
    """CF-14."""
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.execute("CREATE TABLE customers (id INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(ConfigError, match="customers"):
        await open_and_close(tmp_path)
    await open_and_close(tmp_path, adopt=True)
    await open_and_close(tmp_path)


async def test_a_file_that_cannot_be_opened_says_what_to_look_at(tmp_path: Path) -> None:
    """SE-60, law 7: in a directory that is not there, or is not ours: the driver's class was all that was said."""
    (tmp_path / "agent.db").symlink_to(tmp_path / "gone/agent.db")
    with pytest.raises(StoreError, match=r"cannot be opened or written.*permissions"):
        await open_and_close(tmp_path)


async def test_a_database_without_its_table_of_revisions_is_named_and_unchanged(tmp_path: Path) -> None:
    """Reliability 12: it was "refused the operation (OperationalError)"."""
    await open_and_close(tmp_path)
    connection = sqlite3.connect(tmp_path / "agent.db")
    [(table,)] = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'alembic%'").fetchall()
    connection.execute(f"DROP TABLE {table}")
    connection.commit()
    connection.close()
    with pytest.raises(ConfigError, match=f"not {table}.*nothing was changed"):
        await open_and_close(tmp_path)


@pytest.mark.parametrize("where", ["header", "middle", "no database at all"])
async def test_a_damaged_file_is_named_with_the_way_back_and_not_written(tmp_path: Path, where: str) -> None:
    """SE-60."""
    await open_and_close(tmp_path)
    path = tmp_path / "agent.db"
    content = bytearray(path.read_bytes())
    if where == "header":
        content[:16] = b"not a database!!"
    elif where == "middle":
        content[4096 : 4096 * 6] = b"\xff" * (4096 * 5)
    else:
        content = bytearray(b"plain text, and more of it " * 50)
    path.write_bytes(content)
    before = digest(path)
    with pytest.raises(StoreCorrupt, match="state import") as caught:
        await open_and_close(tmp_path)
    assert str(path) in str(caught.value)
    assert digest(path) == before


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("*.sql")), ids=lambda path: path.stem)
async def test_data_of_every_released_version_loads(tmp_path: Path, golden: Path) -> None:
    """SE-6."""
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.executescript(golden.read_text())
    connection.close()
    shutil.copy(tmp_path / "agent.db", tmp_path / "before.db")
    async with opened(tmp_path) as store:
        records = await store.records(THREAD)
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert {record.type for record in records} >= {"turn_started", "user", "assistant", "turn_ended"}
    assert all(record.type != "corrupt" for record in records)


def test_every_released_revision_has_a_golden_file() -> None:
    assert {path.stem for path in GOLDEN.glob("*.sql")} == REVISIONS


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_sqlite_on_a_network_filesystem_is_refused(kind: str) -> None:
    """SE-31."""
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x /mnt/share {kind} rw 0 0\n"
    with pytest.raises(ConfigError, match=kind):
        refuse_unusable(Path("/mnt/share/data/agent.db"), mounts)
    assert filesystem_of(Path("/mnt/sharepoint"), mounts) == "ext4"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite+aiosqlite:///./agent.db", "/data/agent.db"),
        ("sqlite:///sub/x.db", "/data/sub/x.db"),
        ("sqlite:////abs/x.db", "/abs/x.db"),
        ("postgresql+asyncpg://h/d", None),
    ],
)
def test_a_relative_path_starts_at_the_data_directory(url: str, path: str | None) -> None:
    """CF-43."""
    assert database_file(url, Path("/data")) == (None if path is None else Path(path))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "nonsense"])
def test_an_unusable_url_is_a_settings_error(url: str) -> None:
    with pytest.raises(ConfigError, match=r"store\.url"):
        database_file(url, Path("/data"))
