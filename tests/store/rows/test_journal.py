"""The journal: numbering, fencing, grouping, reading back (SE-7 … SE-13, 28, 59)."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Connection
from support.cpu_time import cpu
from support.stores import THREAD, TURN, opened, say, text_record, with_lease

from bowerbird.core.errors import LeaseLost, StoreError, UnknownSession
from bowerbird.store import Append, NewRecord, Record, Store
from bowerbird.store.journal.journal import CORRUPT, Intent, Outcome, UsageRow
from bowerbird.store.journal.reading import read_records
from bowerbird.store.rows.leases import release_lease, take_lease
from bowerbird.store.rows.sessions import SessionRow, insert_session


async def rows(store: Store, query: str) -> list[tuple[object, ...]]:
    return await store.read(lambda c: [tuple(row) for row in c.exec_driver_sql(query).all()])


async def alter(store: Store, *statements: str) -> None:
    for statement in statements:
        await store.write(lambda c, sql=statement: c.exec_driver_sql(sql))


async def test_seq_starts_at_1_and_has_no_gap_however_many_tasks_append(store: Store) -> None:
    """SE-7, SE-12."""
    epoch = await with_lease(store)
    await asyncio.gather(*(say(store, f"{i} a", f"{i} b", epoch=epoch) for i in range(40)))
    records = await store.records(THREAD)
    assert [record.seq for record in records] == list(range(1, 81))
    texts = [record.body["content"][0]["text"] for record in records]
    for i in range(40):  # records of one append stay together and in order
        assert texts.index(f"{i} b") == texts.index(f"{i} a") + 1


async def test_a_record_has_exactly_the_keys_of_the_chapter_in_their_order(store: Store) -> None:
    """SE-7."""
    epoch = await with_lease(store)
    (record,) = await say(store, "hello", epoch=epoch)
    data = json.loads(msgspec.json.encode(record))
    assert list(data) == ["v", "seq", "turn", "type", "at", "epoch", "body"]
    assert (data["v"], data["seq"], data["turn"], data["epoch"]) == (1, 1, TURN, epoch)
    assert data["at"].endswith("+00:00")
    assert len(data["at"]) == len("2026-11-20T09:00:00.123456+00:00")
    assert (await store.records(THREAD))[0] == record


async def test_an_append_with_an_old_epoch_is_refused_and_spares_its_batch(store: Store) -> None:
    """SE-28."""
    epoch = await with_lease(store)
    other = await with_lease(store, "ffffffffffff")
    taken = await store.write(lambda c: take_lease(c, THREAD, "another", 600, dead=lambda _: True))
    assert taken == epoch + 1
    results = await asyncio.gather(
        say(store, "old", epoch=epoch),
        say(store, "mine", thread="ffffffffffff", epoch=other),
        say(store, "new", epoch=taken),
        return_exceptions=True,
    )
    assert isinstance(results[0], LeaseLost)
    assert [record.body["content"][0]["text"] for record in await store.records(THREAD)] == ["new"]
    assert len(await store.records("ffffffffffff")) == 1


async def test_an_append_after_the_lease_has_run_out_is_refused(store: Store) -> None:
    """SE-29."""
    epoch = await with_lease(store)
    await store.write(lambda c: release_lease(c, THREAD, epoch))
    with pytest.raises(LeaseLost):
        await say(store, "late", epoch=epoch)
    assert await store.records(THREAD) == []


async def test_an_append_to_an_unknown_session_is_refused(store: Store) -> None:
    with pytest.raises(UnknownSession):
        await say(store, "hello", thread="nobody")


async def test_one_append_that_breaks_a_constraint_does_not_take_its_batch_along(store: Store) -> None:
    epoch = await with_lease(store)
    other = await with_lease(store, "ffffffffffff")
    results = await asyncio.gather(
        store.append(Append(THREAD, epoch, (text_record("no such turn", "t_nobody"),))),
        say(store, "fine", thread="ffffffffffff", epoch=other),
        return_exceptions=True,
    )
    assert isinstance(results[0], StoreError)
    assert "INSERT" not in str(results[0])
    assert len(await store.records("ffffffffffff")) == 1


async def test_ledger_and_usage_rows_are_in_the_commit_of_their_record(store: Store, tmp_path: Path) -> None:
    """SE-25, SE-41: an unknown price is priced=false and null, never 0."""
    epoch = await with_lease(store)
    intent = Intent("c1", TURN, "bash", "branch", "m_1")
    await store.append(Append(THREAD, epoch, (text_record("", kind="tool_intent"),), intents=(intent,)))
    assert await rows(store, "SELECT call_id, class, state, intent_seq, outcome_seq, mark FROM effects") == [
        ("c1", "branch", "intent", 1, None, "m_1")
    ]
    await store.append(
        Append(THREAD, epoch, (text_record("", kind="tool_outcome"),), outcomes=(Outcome("c1", "outcome"),))
    )
    usage = UsageRow(TURN, "main", "main", "p:m", 10, 5, 2, 1, None)
    await store.append(Append(THREAD, epoch, (text_record("", kind="assistant"),), usage=(usage,)))
    assert await rows(store, "SELECT state, intent_seq, outcome_seq FROM effects") == [("outcome", 1, 2)]
    assert await rows(store, "SELECT input_tokens, cost, priced, estimated FROM usage") == [(10, None, 0, 0)]


async def test_an_intent_of_a_second_attempt_replaces_the_first(store: Store, tmp_path: Path) -> None:
    epoch = await with_lease(store)
    for mark in ("step:a", "step:b"):
        intent = Intent("c1", TURN, "write_file", "branch", mark)
        await store.append(Append(THREAD, epoch, (text_record("", kind="tool_intent"),), intents=(intent,)))
    assert await rows(store, "SELECT intent_seq, mark FROM effects") == [(2, "step:b")]


@pytest.mark.parametrize(
    ("durability", "kind", "ledger", "synchronous"),
    [
        pytest.param("full", "assistant", None, 2, id="answer of the model"),
        pytest.param("full", "tool_outcome", None, 2, id="outcome"),
        pytest.param("full", "tool_intent", "external", 2, id="external intent"),
        pytest.param("full", "tool_intent", "branch", 1, id="branch intent"),
        pytest.param("full", "compaction", None, 1, id="compaction"),
        pytest.param("normal", "assistant", None, 1, id="normal never flushes"),
    ],
)
async def test_only_important_batches_are_flushed(
    tmp_path: Path, durability: str, kind: str, ledger: str | None, synchronous: int
) -> None:
    """SE-13: `PRAGMA synchronous` of the writer is 2 (FULL) for these and 1 (NORMAL) for others."""
    async with opened(tmp_path, durability=durability) as store:
        epoch = await with_lease(store)
        intents = () if ledger is None else (Intent("c1", TURN, "t", ledger, None),)  # type: ignore[arg-type]
        await store.append(Append(THREAD, epoch, (text_record("x", kind=kind),), intents=intents))
        # The pragma stays as the last batch set it; a write that is not flushed must not change it first.
        seen = await store.write(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar(), flush=False)
        assert seen == 1
        flushing = store._writer._committer._flushing
        assert flushing is False
        await store.append(Append(THREAD, epoch, (text_record("x", kind=kind),), intents=intents))
        assert store._writer._committer._flushing is (synchronous == 2)


async def test_a_large_body_is_in_the_blobs_before_the_commit_and_whole_when_read(
    store: Store, tmp_path: Path
) -> None:
    """SE-9: hash in `blob`, preview in `content`."""
    epoch = await with_lease(store)
    text = "ä" * 300_000
    (written,) = await say(store, text, epoch=epoch)
    assert written.body["content"][0]["text"] == text
    [(raw,)] = await rows(store, "SELECT body FROM journal")
    inline = json.loads(str(raw))
    assert len(str(raw)) < 3_000
    assert inline["content"][0]["text"].startswith("ääää")
    stored = tmp_path / "blobs" / inline["blob"].removeprefix("sha256:")
    assert json.loads(stored.read_bytes())["content"][0]["text"] == text
    assert stored.stat().st_mode & 0o777 == 0o600
    [read] = await store.records(THREAD)
    assert read.body == written.body


async def test_a_missing_blob_leaves_the_preview_and_says_so(store: Store, tmp_path: Path) -> None:
    epoch = await with_lease(store)
    await say(store, "x" * 400_000, epoch=epoch)
    for blob in (tmp_path / "blobs").iterdir():
        blob.unlink()
    [record] = await store.records(THREAD)
    assert record.body["content"][0]["text"].startswith("xxx")
    assert "cannot be read" in record.body["gap"]


async def test_names_with_undecodable_bytes_can_be_recorded(store: Store) -> None:
    epoch = await with_lease(store)
    await say(store, "caf\udce9.txt", epoch=epoch)
    [record] = await store.records(THREAD)
    assert record.body["content"][0]["text"] == "caf\\xe9.txt"


async def test_a_corrupt_record_is_set_aside_and_its_neighbours_are_read(
    store: Store, tmp_path: Path
) -> None:
    """SE-59."""
    epoch = await with_lease(store)
    await say(store, "one", "two", "three", "four", epoch=epoch)
    await alter(store, "UPDATE journal SET body = '{\"content' WHERE seq = 2")
    if store.dialect == "sqlite":  # PostgreSQL stores no text that is not one
        await alter(store, "UPDATE journal SET body = CAST(x'7bff80' AS TEXT) WHERE seq = 3")
    else:
        await alter(store, "UPDATE journal SET body = 'null' WHERE seq = 3")
    for _ in range(2):
        records = await store.records(THREAD)
        assert [r.type for r in records] == ["user", CORRUPT, CORRUPT, "user"]
    aside = await rows(store, "SELECT source, key, raw FROM quarantine ORDER BY id")
    assert aside == [
        ("journal", f"{THREAD}:2", '{"content'),
        ("journal", f"{THREAD}:3", "{\\xff\\x80" if store.dialect == "sqlite" else "null"),
    ]


async def test_a_missing_record_is_a_gap_with_its_number(store: Store, tmp_path: Path) -> None:
    epoch = await with_lease(store)
    await say(store, "one", "two", "three", epoch=epoch)
    await alter(store, "DELETE FROM journal WHERE seq = 2")
    records = await store.records(THREAD)
    assert [(r.seq, r.type) for r in records] == [(1, "user"), (2, CORRUPT), (3, "user")]


async def test_a_fork_reads_its_ancestors_records_and_goes_on_counting(store: Store) -> None:
    """SE-36: records are referenced; the child's numbers continue the parent's."""
    epoch = await with_lease(store)
    await say(store, "p1", "p2", "p3", epoch=epoch)
    child = SessionRow(thread_id="c" * 12, parent_thread_id=THREAD, parent_seq=2, last_seq=2)
    grandchild = SessionRow(thread_id="d" * 12, parent_thread_id="c" * 12, parent_seq=3, last_seq=3)
    await store.write(lambda c: insert_session(c, child))
    await store.append(Append("c" * 12, None, (text_record("c3", None), text_record("c4", None))))
    await store.write(lambda c: insert_session(c, grandchild))
    await store.append(Append("d" * 12, None, (text_record("d4", None),)))
    await say(store, "p4", epoch=epoch)

    def texts(records: list[Record]) -> list[str]:
        assert [r.seq for r in records] == list(range(records[0].seq, records[0].seq + len(records)))
        return [r.body["content"][0]["text"] for r in records]

    assert texts(await store.records("c" * 12)) == ["p1", "p2", "c3", "c4"]
    assert texts(await store.records("d" * 12)) == ["p1", "p2", "c3", "d4"]
    assert texts(await store.records("d" * 12, after=2)) == ["c3", "d4"]
    assert texts(await store.records(THREAD)) == ["p1", "p2", "p3", "p4"]


async def test_unknown_types_and_keys_are_kept(store: Store) -> None:
    """SE-7."""
    epoch = await with_lease(store)
    await store.append(Append(THREAD, epoch, (NewRecord("from_the_future", {"x": [1, None]}, TURN),)))
    [record] = await store.records(THREAD)
    assert (record.type, record.body) == ("from_the_future", {"x": [1, None]})


async def test_a_page_costs_what_it_holds_however_long_the_history_is(store: Store) -> None:
    """SV-46: each page read all that came after it, so that a viewer of 17,500 records waited 20 seconds."""
    epoch = await with_lease(store)
    for _ in range(20):
        await say(store, *["x"] * 500, epoch=epoch)
    last = len(await store.records(THREAD)) - 20

    def costs(connection: Connection) -> tuple[float, float]:
        first, end = (
            cpu(lambda after=after: read_records(connection, THREAD, after=after, limit=10))
            for after in (5, last)
        )
        return first, end

    early, late = await store.read(costs)
    assert early < 8 * late, f"{early:.4f} s with 10,000 records behind it, {late:.4f} s with 20"


async def test_pages_are_the_whole_history_with_its_gaps(store: Store) -> None:
    """SE-13, SV-46: page by page as at once, over what is missing or corrupt, and in a fork."""
    epoch = await with_lease(store)
    await say(store, *[str(n) for n in range(40)], epoch=epoch)
    await alter(store, "DELETE FROM journal WHERE seq IN (3, 4, 5, 12, 30)")
    await alter(store, "UPDATE journal SET body = 'x' WHERE seq = 13")
    fork = SessionRow(thread_id="f" * 12, kind="web", parent_thread_id=THREAD, parent_seq=30)
    await store.write(lambda c: insert_session(c, fork))
    for thread in (THREAD, fork.thread_id):
        whole = await store.records(thread)
        for limit in (1, 2, 7, 100):
            found: list[Record] = []
            while page := await store.records(thread, after=found[-1].seq if found else 0, limit=limit):
                found += page
            assert found == whole, (thread, limit)
