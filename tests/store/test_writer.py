"""Group commit: who shares a transaction, who hears of which failure (SE-12, SE-15)."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.stores import THREAD, opened, say, with_lease

from bowerbird.core.errors import StoreBusy, StoreError, UnknownSession
from bowerbird.store import Append, NewRecord, Store
from bowerbird.store.journal.group_commit import GroupCommit, Job
from bowerbird.store.rows.sessions import SessionRow, get_session, insert_session


class Gate:
    """A committer that notes its batches and commits when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[Job]] = []
        self.open = asyncio.Event()
        self.began = asyncio.Event()

    async def commit(self, batch: Sequence[Job]) -> list[Any]:
        self.batches.append(list(batch))
        self.began.set()
        await self.open.wait()
        return [index for index, _ in enumerate(batch)]

    async def aclose(self) -> None:
        pass


def one(text: str = "x") -> Append:
    return Append("t", 1, (NewRecord("user", {}),), bodies=(text,))


async def test_what_arrives_during_a_commit_is_the_next_batch() -> None:
    """SE-12: no timer; the first goes alone, the others together."""
    gate = Gate()
    writer = GroupCommit(gate)
    first = asyncio.create_task(writer.submit(one()))
    await gate.began.wait()
    others = [asyncio.create_task(writer.submit(one())) for _ in range(30)]
    await asyncio.sleep(0)
    assert not first.done()
    gate.open.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in gate.batches] == [1, 30]
    await writer.aclose()


@pytest.mark.parametrize(
    ("jobs", "batches"),
    [
        pytest.param([one()] * 1200, [512, 512, 176], id="512 records"),
        pytest.param([one("x" * 400_000)] * 5, [2, 2, 1], id="1 MiB"),
        pytest.param([one("x" * 3_000_000)] * 2, [1, 1], id="a single one may be larger"),
    ],
)
async def test_a_batch_has_at_most_512_records_and_1_mib(jobs: list[Append], batches: list[int]) -> None:
    """SE-12."""
    gate = Gate()
    gate.open.set()
    writer = GroupCommit(gate)
    await asyncio.gather(*(writer.submit(job) for job in jobs))
    assert [len(batch) for batch in gate.batches] == batches
    await writer.aclose()


async def test_a_cancelled_caller_does_not_disturb_the_batch(store: Store) -> None:
    epoch = await with_lease(store)
    gone = asyncio.create_task(say(store, "gone", epoch=epoch))
    stays = asyncio.create_task(say(store, "stays", epoch=epoch))
    await asyncio.sleep(0)
    gone.cancel()
    (record,) = await stays
    assert record.body["content"][0]["text"] == "stays"
    seqs = [record.seq for record in await store.records(THREAD)]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_a_failing_change_takes_back_only_its_own_part(store: Store) -> None:
    def half(connection: Any) -> None:
        insert_session(connection, SessionRow(thread_id="half"))
        raise UnknownSession("no")

    def whole(connection: Any) -> None:
        insert_session(connection, SessionRow(thread_id="whole"))

    results = await asyncio.gather(store.write(half), store.write(whole), return_exceptions=True)
    assert isinstance(results[0], UnknownSession)
    with pytest.raises(UnknownSession):
        await store.read(lambda c: get_session(c, "half"))
    assert (await store.read(lambda c: get_session(c, "whole"))).thread_id == "whole"


async def test_a_callers_mistake_reaches_only_that_caller(store: Store) -> None:
    def mistake(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(mistake)
    await store.write(lambda c: insert_session(c, SessionRow(thread_id="after")))


async def test_a_locked_database_is_waited_for_then_busy_without_sql(tmp_path: Path) -> None:
    """SE-15."""
    async with opened(tmp_path, busy_timeout_s=0.2) as store:
        await with_lease(store)
        other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy) as caught:
            await say(store, "hello")
        assert "INSERT" not in str(caught.value).upper().replace("INSERTED", "")
        assert "busy_timeout_s" in str(caught.value)
        other.execute("ROLLBACK")
        other.close()
        await say(store, "hello")


async def test_a_lock_of_another_process_that_ends_in_time_is_not_noticed(tmp_path: Path) -> None:
    """SE-15."""
    async with opened(tmp_path) as store:
        await with_lease(store)
        other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(say(store, "hello"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        assert len(await waiting) == 1


async def test_a_closed_store_commits_what_it_has_and_refuses_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        epoch = await with_lease(store)
        last = asyncio.create_task(say(store, "last", epoch=epoch))
        await asyncio.sleep(0)
    assert len(await last) == 1
    with pytest.raises(StoreError):
        await say(store, "too late", epoch=epoch)
