"""Histories that a process keeps: they say what the journal says (SE-8)."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from support.fake_models import FakeModels
from support.sessions import place, writes
from support.stores import opened, say, text_record, turn_of, with_lease

from bowerbird.sessions.journal.history import load
from bowerbird.sessions.journal.history_cache import Recall
from bowerbird.store import Append, NewRecord, Store
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.sql.tables import journal

THREAD = "0123456789ab"


async def row_of(store: Store, thread: str = THREAD) -> SessionRow:
    def get(connection: Connection) -> SessionRow:
        return get_session(connection, thread)

    return await store.read(get)


async def test_what_a_driver_notes_is_what_the_journal_gives_back(tmp_path: Path) -> None:
    """SE-8: also tuples and lone surrogates, which JSON does not know."""
    async with opened(tmp_path) as store:
        epoch = await with_lease(store)
        recall = Recall(store)
        await say(store, "first", epoch=epoch)
        await recall.load(await row_of(store), turn_of(THREAD))
        body: dict[str, Any] = {"content": ({"type": "text", "text": "bad \udcff name"},)}
        records = (NewRecord("user", body, turn_of(THREAD)), text_record("third"))
        recall.note(THREAD, await store.append(Append(THREAD, epoch, records)))
        session = await row_of(store)
        kept = await recall.load(session, turn_of(THREAD))
        assert kept == await Recall(store).load(session, turn_of(THREAD))
        assert [message.text for message in kept.history.messages] == ["first", "bad \\xff name", "third"]


async def test_what_came_between_is_read_from_the_journal(tmp_path: Path) -> None:
    """SE-8: a record of somebody else, say a landing, is not lost."""
    async with opened(tmp_path) as store:
        epoch = await with_lease(store)
        recall = Recall(store)
        await recall.load(await row_of(store), turn_of(THREAD))
        await say(store, "of somebody else", epoch=epoch)
        recall.note(THREAD, await say(store, "own", epoch=epoch))
        loaded = await recall.load(await row_of(store), turn_of(THREAD))
        assert [message.text for message in loaded.history.messages] == ["of somebody else", "own"]


async def test_the_first_records_of_a_turn_count_once(tmp_path: Path) -> None:
    """SE-8."""
    async with opened(tmp_path) as store:
        epoch = await with_lease(store)
        recall = Recall(store)
        await recall.load(await row_of(store), turn_of(THREAD))
        before = await row_of(store)
        first = await say(store, "asked", epoch=epoch)
        loaded = await recall.load(before, turn_of(THREAD), first)
        assert [message.text for message in loaded.history.messages] == ["asked"]
        again = await recall.load(await row_of(store), turn_of(THREAD))
        assert [message.text for message in again.history.messages] == ["asked"]


async def test_a_process_that_kept_the_history_sends_what_a_new_one_sends(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-8, over turns with tools, a failure in the middle, and its resume."""

    def said(messages: list[dict[str, Any]]) -> list[Any]:
        return [(m["role"], m["content"]) for m in messages]

    fake.script(writes("a.txt", "x"), {"text": "one"}, {"status": 400}, {"text": "two"}, {"text": "three"})
    async with place(tmp_path, fake) as home:
        thread = await home.session()
        await home.ask(thread, "first")
        failed = await home.ask(thread, "second")
        assert failed.state == "failed"
        resumed = await home.service.resume(failed.turn_id)
        await home.service.wait(resumed.turn_id)
        await home.ask(thread, "third")
        kept = said(fake.requests[-1]["messages"])
    fake.script({"text": "four"})
    async with place(tmp_path, fake) as home:
        await home.ask(thread, "fourth")
    fresh = said(fake.requests[-1]["messages"])
    assert texts(fresh)[: len(texts(kept))] == texts(kept)


def texts(messages: list[Any]) -> list[Any]:
    """What was said, without the marks for the provider's cache, which move."""
    found: list[Any] = []
    for role, content in messages:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found.append((role, [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]))
    return found


async def test_a_long_journal_read_in_parts_gives_what_it_gives_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-8, SE-59: also with records missing in the middle and at the seams of the parts."""
    monkeypatch.setattr("bowerbird.sessions.journal.history_cache.READ_AT_ONCE", 10)
    async with opened(tmp_path) as store:
        epoch = await with_lease(store)
        for n in range(57):
            await say(store, f"said {n}", epoch=epoch)

        def lose(connection: Connection) -> None:
            lost = journal.c.seq.in_((10, 11, 12, *range(24, 47)))
            connection.execute(journal.delete().where(journal.c.thread_id == THREAD, lost))

        whole = load(await store.records(THREAD), turn_of(THREAD))
        assert await Recall(store).load(await row_of(store), turn_of(THREAD)) == whole
        await store.write(lose)
        broken = load(await store.records(THREAD), turn_of(THREAD))
        assert await Recall(store).load(await row_of(store), turn_of(THREAD)) == broken
        assert broken != whole
