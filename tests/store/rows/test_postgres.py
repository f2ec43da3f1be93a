"""PostgreSQL as the store: outages, collisions, refusals, notices (SE-13, 15, 33, 58)."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from support.patience import HANG_S
from support.postgres import PostgresServer, postgres_server
from support.stores import THREAD, opened, say, with_lease

from bowerbird.core.errors import ConfigError, LeaseLost, StoreBusy, StoreTooNew
from bowerbird.store import Append, NewRecord, Store
from bowerbird.store.postgres import PgCommitter
from bowerbird.store.rows.leases import renew_lease, take_lease
from bowerbird.store.rows.sessions import SessionRow, insert_session, lock_session
from bowerbird.store.rows.turns import InboxRow, find_input, insert_input
from bowerbird.store.sql.notify import PgNotices
from bowerbird.store.sql.postgres_url import name_of, postgres_url
from bowerbird.store.sql.space import DiskSpace
from bowerbird.store.sql.turnstile import pass_alone


@pytest.fixture
async def store(tmp_path: Path, postgres_url: str) -> AsyncIterator[Store]:
    async with opened(tmp_path, url=postgres_url) as opened_store:
        yield opened_store


@pytest.fixture(scope="module")
def restless() -> Any:
    """A server that a test may stop: nobody else's."""
    with postgres_server() as server:
        yield server


async def texts(store: Store) -> list[str]:
    return [record.body["content"][0]["text"] for record in await store.records(THREAD)]


async def test_a_server_that_is_away_is_waited_for_and_the_lease_holds(
    tmp_path: Path, restless: PostgresServer
) -> None:
    """SE-58: what was submitted meanwhile is committed once; a lease nobody took goes on."""
    async with opened(tmp_path, url=await restless.database()) as store:
        epoch = await with_lease(store, ttl_s=1)
        await say(store, "before", epoch=epoch)
        await asyncio.to_thread(restless.stop, crash=True)
        waiting = [asyncio.create_task(say(store, f"during {n}", epoch=epoch)) for n in range(3)]
        reading = asyncio.create_task(store.read(lambda c: c.exec_driver_sql("SELECT 1").scalar()))
        await asyncio.sleep(1.2)  # the lease's second is over on any clock
        assert not any(task.done() for task in (*waiting, reading))
        await asyncio.to_thread(restless.start)
        await asyncio.gather(*waiting)
        assert await reading == 1
        assert await store.write(lambda c: renew_lease(c, THREAD, epoch, 10))
        assert await texts(store) == ["before", "during 0", "during 1", "during 2"]


async def test_a_lease_that_another_took_during_an_outage_is_lost(
    tmp_path: Path, restless: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-28, SE-58."""
    url = await restless.database()
    async with opened(tmp_path / "a", url=url) as store, opened(tmp_path / "b", url=url) as other:
        epoch = await with_lease(store, ttl_s=60)
        committer = cast("PgCommitter", store._writer._committer)
        connect, may_connect = committer._open, asyncio.Event()

        async def connect_later() -> Any:
            await may_connect.wait()
            return await connect()

        await asyncio.to_thread(restless.stop, crash=True)
        monkeypatch.setattr(committer, "_open", connect_later)
        waiting = asyncio.create_task(say(store, "late", epoch=epoch))
        await asyncio.to_thread(restless.start)
        assert await other.write(lambda c: take_lease(c, THREAD, "another", 60, lambda _: True)) == epoch + 1
        may_connect.set()
        with pytest.raises(LeaseLost):
            await waiting
        assert await store.records(THREAD) == []


async def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    store: Store, postgres: PostgresServer
) -> None:
    """SE-58: the connection breaks after COMMIT reached the server."""
    epoch = await with_lease(store)
    from sqlalchemy import event

    engine = store._writer._committer._engine.sync_engine
    broken: list[bool] = []

    def lose_the_answer(connection: Any) -> None:
        if not broken:
            broken.append(True)
            raw = connection.connection.dbapi_connection
            raw.commit()  # the server has it …
            raise ConnectionResetError("… and we do not know")

    event.listen(engine, "commit", lose_the_answer)
    try:
        await say(store, "once", epoch=epoch)
    finally:
        event.remove(engine, "commit", lose_the_answer)
    assert broken
    assert await texts(store) == ["once"]


async def test_a_server_that_stays_away_is_busy_after_the_patience_is_over(
    tmp_path: Path, restless: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bowerbird.store.postgres.OUTAGE_S", 0.0)
    async with opened(tmp_path, url=await restless.database(), busy_timeout_s=0.3) as store:
        await with_lease(store)
        await asyncio.to_thread(restless.stop)
        try:
            with pytest.raises(StoreBusy, match="not reachable"):
                await say(store, "hello")
        finally:
            await asyncio.to_thread(restless.start)
        assert len(await say(store, "hello")) == 1


async def test_one_key_offered_by_two_processes_at_once_is_one_row(tmp_path: Path, postgres_url: str) -> None:
    """SE-17: the second looks again and finds the first's row."""

    def accept(row: InboxRow) -> Any:
        def change(connection: Any) -> str:
            known = find_input(connection, row.door, row.dedupe_key)
            if known is not None:
                return known.id
            insert_input(connection, row)
            return row.id

        return change

    async with (
        opened(tmp_path / "a", url=postgres_url) as one,
        opened(tmp_path / "b", url=postgres_url) as two,
    ):
        await one.write(lambda c: insert_session(c, SessionRow(thread_id=THREAD)))
        for number in range(10):
            rows = [
                InboxRow(id=f"i_{number}_{who}", thread_id=THREAD, door="web", dedupe_key=f"k{number}",
                         kind="message", sender="{}", body="{}")
                for who in "ab"
            ]  # fmt: skip
            found = await asyncio.gather(one.write(accept(rows[0])), two.write(accept(rows[1])))
            assert len(set(found)) == 1


async def test_two_processes_append_to_one_session_without_gap(tmp_path: Path, postgres_url: str) -> None:
    """SE-7."""
    async with (
        opened(tmp_path / "a", url=postgres_url) as one,
        opened(tmp_path / "b", url=postgres_url) as two,
    ):
        await with_lease(one)
        await asyncio.gather(*(say(store, "x") for store in (one, two) * 20))
        records = await two.records(THREAD)
    assert [record.seq for record in records] == list(range(1, 41))


async def test_a_lock_that_is_held_too_long_is_busy_without_sql(tmp_path: Path, postgres_url: str) -> None:
    """SE-15."""
    async with opened(tmp_path / "a", url=postgres_url, busy_timeout_s=0.2) as store:
        await with_lease(store)
        async with opened(tmp_path / "b", url=postgres_url) as other:
            held, done = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            engine = other._writer._committer._engine

            async def hold() -> None:
                async with engine.begin() as connection:
                    await connection.run_sync(lambda c: lock_session(c, THREAD))
                    loop.call_soon(held.set)
                    await done.wait()

            holding = asyncio.create_task(hold())
            await held.wait()
            with pytest.raises(StoreBusy, match="busy_timeout_s") as caught:
                await say(store, "hello")
            assert "SELECT" not in str(caught.value).upper()
            done.set()
            await holding
        assert len(await say(store, "hello")) == 1


@pytest.mark.parametrize(
    ("durability", "kind", "expected"),
    [("full", "tool_outcome", "on"), ("full", "compaction", "off"), ("normal", "tool_outcome", "off")],
)
async def test_important_batches_wait_for_the_disk_and_others_do_not(
    tmp_path: Path, postgres_url: str, durability: str, kind: str, expected: str
) -> None:
    """SE-13: per batch."""
    async with opened(tmp_path, url=postgres_url, durability=durability) as store:
        await with_lease(store)
        seen: list[str] = []

        def look(connection: Any) -> None:
            seen.append(str(connection.exec_driver_sql("SHOW synchronous_commit").scalar()))

        job = asyncio.gather(
            store.write(look, flush=False), store.append(Append(THREAD, None, (NewRecord(kind, {}),)))
        )
        await job
    assert seen == [expected]


async def test_text_that_the_server_cannot_hold_is_stored_with_a_mark(store: Store) -> None:
    row = SessionRow(thread_id="a" * 12, title="nul\0here")
    await store.write(lambda c: insert_session(c, row))
    title = await store.read(lambda c: c.exec_driver_sql("SELECT title FROM sessions").scalar())
    assert title == "nul\ufffdhere"


async def test_a_schema_of_a_newer_program_is_refused_unchanged(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """SE-6."""
    url = await postgres.empty()
    async with opened(tmp_path, url=url):
        pass
    database = str(postgres_url(url).database)
    await postgres.execute("UPDATE alembic_version SET version_num = '9999'", database)
    with pytest.raises(StoreTooNew, match="9999"):
        async with opened(tmp_path, url=url):
            pass


async def test_foreign_tables_are_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    """CF-14."""
    url = await postgres.empty()
    await postgres.execute("CREATE TABLE customers (id int)", str(postgres_url(url).database))
    with pytest.raises(ConfigError, match="customers"):
        async with opened(tmp_path, url=url):
            pass


async def test_two_processes_that_open_an_empty_database_at_once_make_one_schema(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """SE-6."""
    url = await postgres.empty()
    async with asyncio.TaskGroup() as group:
        opening = [group.create_task(Store.open(url, data_dir=tmp_path / name)) for name in "ab"]
    for task in opening:
        await task.result().aclose()


async def left_open(postgres: PostgresServer, url: str) -> int:
    """How many connections of ours the server has in a database, once those that end have ended."""
    other = await postgres.connect("postgres")
    try:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'bowerbird%'"
        )
        name = urlsplit(url).path.strip("/")
        until = time.monotonic() + 2.0
        while (found := await other.fetchval(query, name)) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return int(found or 0)
    finally:
        await other.close()


async def test_whoever_closes_waits_until_all_connections_are_closed(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    """The second of two returned at once, and the loop's end cut the first off: an unclosed connection."""
    store = await Store.open(postgres_url, data_dir=tmp_path)
    await with_lease(store)
    assert await store.records(THREAD) == [], "a writer and a reader are connected"
    first = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    await store.aclose()
    await asyncio.sleep(0)
    assert first.done(), "closed, for both"
    assert await left_open(postgres, postgres_url) == 0


async def test_a_store_whose_opening_fails_at_the_end_leaves_no_connection(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: DiskSpace) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DiskSpace, "take_reserve", full)
    with pytest.raises(OSError, match="No space left"):
        await Store.open(postgres_url, data_dir=tmp_path)
    assert await left_open(postgres, postgres_url) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [("port", "cannot be reached"), ("database", "no such database"), ("driver", "not supported")],
)
async def test_a_server_that_cannot_be_used_is_a_settings_error(
    tmp_path: Path, postgres: PostgresServer, change: str, said: str
) -> None:
    url = postgres.url("postgres")
    wrong = {
        "port": url.replace(str(postgres.port), "1"),
        "database": postgres.url("no_such_database"),
        "driver": "postgresql+psycopg2://h/d",
    }[change]
    with pytest.raises(ConfigError, match=said) as caught:
        async with opened(tmp_path, url=wrong):
            pass
    assert "Traceback" not in str(caught.value)


def test_the_name_for_people_has_no_password() -> None:
    """CF-79."""
    assert (
        name_of(postgres_url("postgresql://me:secret@db.example:5433/agent"))
        == "postgresql db.example:5433/agent"
    )


async def test_sums_are_read_and_added_to_by_one_process_at_a_time(tmp_path: Path, postgres_url: str) -> None:
    """SE-42: two processes cannot both take the last place."""

    def take(connection: Any) -> bool:
        pass_alone(connection, "places")
        taken = connection.exec_driver_sql("SELECT count(*) FROM counters").scalar()
        if taken >= 5:
            return False
        connection.exec_driver_sql("INSERT INTO counters VALUES (gen_random_uuid()::text, 1)")
        return True

    async with (
        opened(tmp_path / "a", url=postgres_url) as one,
        opened(tmp_path / "b", url=postgres_url) as two,
    ):
        found = await asyncio.gather(*(store.write(take) for store in (one, two) * 10))
    assert sum(found) == 5


async def test_notices_reach_the_other_process_and_not_the_sender(postgres_url: str) -> None:
    """SE-33: also after the connection broke."""
    from bowerbird.store.sql.postgres_url import postgres_url as parsed

    one, two = PgNotices(parsed(postgres_url)), PgNotices(parsed(postgres_url))
    heard: asyncio.Queue[str] = asyncio.Queue()
    own: list[str] = []
    try:
        await two.start(heard.put_nowait)
        await one.start(own.append)
        one.send("hello")
        assert await asyncio.wait_for(heard.get(), HANG_S) == "hello"
        assert one.has_listeners
        assert own == []
    finally:
        await one.aclose()
        await two.aclose()
