"""Memory written anew when a session has been quiet (SE-44)."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from support.fake_models import FakeModels
from support.sessions import Place, place

from bowerbird.core.errors import NotFound
from bowerbird.memory.copies import copy_path, write_copy
from bowerbird.memory.rewriting import MAX_BYTES, fitted
from bowerbird.sessions.upkeep.memory_rewriting import LEFT_S, MemoryRules, Remembering
from bowerbird.store.rows.memory import (
    KEPT,
    add_job,
    add_memory,
    due_threads,
    memory_log,
    newest_memory,
    restore_memory,
)
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.rows.turns import TurnRow, insert_turn
from bowerbird.store.sql.tables import inbox, memory_versions, usage

LATER = timedelta(seconds=60)


def remembering(home: Place, **rules: Any) -> Remembering:
    async def opens(_: Any) -> Any:
        assert home.maker.model is not None
        return home.maker.model

    return Remembering(
        home.store, home.service.settings, MemoryRules(**{"idle_s": 30.0, "opens": opens, **rules})
    )


async def text_of(home: Place) -> str:
    found = await home.store.read(lambda c: newest_memory(c, "", str(home.project)))
    return found.body if found is not None else ""


def now() -> datetime:
    return datetime.now(UTC)


async def test_a_quiet_session_has_its_memory_written_once(home: Place) -> None:
    keeper = remembering(home)
    await keeper.look()  # memory is kept from now on
    thread = await home.session()
    home.fake.script({"text": "Noted."})
    await home.ask(thread, "I like tabs.")
    assert await keeper.look() == 0  # not quiet for long enough
    home.fake.script({"text": "Prefers tabs."})
    assert await keeper.look(now() + LATER) == 1
    assert await text_of(home) == "Prefers tabs."
    asked = home.fake.requests[-1]
    assert "I like tabs." in str(asked["messages"]) and "Noted." in str(asked["messages"])
    assert await keeper.look(now() + LATER) == 0
    assert home.fake.request_count == 2
    rows = await home.store.read(
        lambda c: c.execute(select(usage.c.purpose).where(usage.c.thread_id == thread)).scalars().all()
    )
    assert sorted(rows) == ["main", "memory"]


async def test_only_what_was_said_since_the_last_time_is_read_again_beside_the_present_text(
    home: Place,
) -> None:
    keeper = remembering(home)
    await keeper.look()
    thread = await home.session()
    home.fake.script({"text": "a1"}, {"text": "one"}, {"text": "a2"}, {"text": "one\ntwo"})
    await home.ask(thread, "first question")
    await keeper.look(now() + LATER)
    await home.ask(thread, "second question")
    await keeper.look(now() + LATER)
    said = str(home.fake.requests[-1]["messages"])
    assert "second question" in said and "first question" not in said and "one" in said
    assert await text_of(home) == "one\ntwo"


async def test_a_failure_keeps_the_old_text_and_the_next_turn_is_the_next_chance(home: Place) -> None:
    keeper = remembering(home)
    await keeper.look()
    await home.store.write(lambda c: add_memory(c, "", str(home.project), "old"))
    thread = await home.session()
    home.fake.script({"text": "fine"}, {"status": 400}, {"text": "fine"}, {"text": "new"})
    await home.ask(thread, "one")
    assert await keeper.look(now() + LATER) == 0
    assert await text_of(home) == "old"
    assert await keeper.look(now() + LATER) == 0
    await home.ask(thread, "two")
    assert await keeper.look(now() + LATER) == 1
    assert await text_of(home) == "new"


async def test_a_message_meanwhile_is_not_delayed(home: Place) -> None:
    keeper = remembering(home)
    await keeper.look()
    thread = await home.session()
    home.fake.script({"text": "fine"}, {"text": "slow memory", "ttft_s": 3600}, {"text": "at once"})
    await home.ask(thread, "one")
    job = asyncio.create_task(keeper.look(now() + LATER))
    await home.fake.wait_requests(2)
    assert (await home.ask(thread, "two")).state == "done"
    assert not job.done()
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)


async def test_nobody_is_disturbed_who_looks_or_whose_turn_runs(home: Place) -> None:
    watched = {"now": True}
    keeper = remembering(home, watched=lambda _: watched["now"])
    await keeper.look()
    thread = await home.session()
    home.fake.script({"text": "fine"}, {"text": "memory"})
    await home.ask(thread, "one")
    seen = now() + LATER
    assert await keeper.look(seen) == 0
    watched["now"] = False
    assert await keeper.look(seen + timedelta(seconds=29)) == 0  # the viewer left a moment ago
    assert await keeper.look(seen + timedelta(seconds=31)) == 1


async def test_a_job_whose_process_died_is_done_by_the_next_one_and_no_more_than_three_times(
    home: Place,
) -> None:
    """SE-56: the whole rewrite or none."""
    keeper = remembering(home)
    await keeper.look()
    thread = await home.session()
    home.fake.script({"text": "fine"}, {"text": "late"})
    await home.ask(thread, "one")
    last = (await home.service.history(thread))[-1].seq
    await home.store.write(lambda c: add_job(c, "i_left", thread, last))
    assert await keeper.look(now() + LATER) == 0  # it may be at it
    assert await keeper.look(now() + timedelta(seconds=LEFT_S + 1)) == 1
    assert await text_of(home) == "late"
    await home.ask(thread, "two")
    newer = (await home.service.history(thread))[-1].seq
    await home.store.write(lambda c: add_job(c, "i_poison", thread, newer))
    for _ in range(2):
        raw = await home.store.read(
            lambda c: c.scalar(select(inbox.c.body).where(inbox.c.id == "i_poison")) or ""
        )
        tried = raw.replace('"tries":1', '"tries":3')
        await home.store.write(
            lambda c, body=tried: c.execute(inbox.update().where(inbox.c.id == "i_poison").values(body=body))
        )
        assert await keeper.look(now() + timedelta(seconds=LEFT_S + 1)) == 0
    state = await home.store.read(lambda c: c.scalar(select(inbox.c.state).where(inbox.c.id == "i_poison")))
    assert state == "cancelled"


async def test_a_text_that_another_session_wrote_meanwhile_is_not_lost(home: Place) -> None:
    keeper = remembering(home)
    await keeper.look()
    thread = await home.session()
    home.fake.script({"text": "fine"}, {"text": "mine", "ttft_s": 0.3})
    await home.ask(thread, "one")
    job = asyncio.create_task(keeper.look(now() + LATER))
    await home.fake.wait_requests(2)
    await home.store.write(lambda c: add_memory(c, "", str(home.project), "theirs"))
    assert await job == 0
    assert await text_of(home) == "theirs"
    home.fake.script({"text": "theirs\nmine"})
    assert await keeper.look(now() + timedelta(seconds=LEFT_S + 1)) == 1
    assert await text_of(home) == "theirs\nmine"


async def test_no_money_left_means_no_call(tmp_path: Path, fake: FakeModels) -> None:
    """SE-42: memory counts against the same limits."""
    async with place(tmp_path, fake) as home:
        keeper = remembering(home)
        keeper._settings = msgspec.structs.replace(home.service.settings, deployment_day_usd=0.0)
        await keeper.look()
        thread = await home.session()
        home.fake.script({"text": "fine"})
        await home.ask(thread, "one")
        assert await keeper.look(now() + LATER) == 0
        assert home.fake.request_count == 1


async def test_many_sessions_that_were_seen_hide_none_that_was_not(home: Place) -> None:
    def fill(connection: Any) -> list[tuple[str, int]]:
        for number in range(130):
            thread, at = f"{number:012}", f"2026-01-01T00:00:00.{number:06}+00:00"
            row = SessionRow(
                thread_id=thread, kind="web", created_at=at, updated_at=at, workspace="/w", last_seq=number
            )
            insert_session(connection, row)
            turn = TurnRow(turn_id=f"t_{number:026}", thread_id=thread, n=1, state="done", ended_at=at)
            insert_turn(connection, turn)
            if number < 129:
                add_job(connection, f"i_{number}", thread, number)
        return due_threads(connection, "2025", "2027")

    assert await home.store.write(fill) == [(f"{129:012}", 129)]


async def test_twenty_versions_are_kept_and_any_of_them_can_count_again(home: Place) -> None:
    def write(connection: Any) -> None:
        for number in range(25):
            add_memory(connection, "", "/w", f"text {number}")
        add_memory(connection, "other", "/w", "not mine")

    await home.store.write(write)
    log = await home.store.read(lambda c: memory_log(c, "", "/w"))
    assert [version.body for version in log] == [f"text {n}" for n in range(24, 4, -1)]
    made = await home.store.write(lambda c: restore_memory(c, "", "/w", log[-1].id))
    assert (await home.store.read(lambda c: newest_memory(c, "", "/w"))) == made
    assert made.body == "text 5"
    count = await home.store.read(lambda c: len(c.execute(select(memory_versions)).all()))
    assert count == KEPT + 1
    foreign = await home.store.read(lambda c: newest_memory(c, "other", "/w"))
    with pytest.raises(NotFound):
        await home.store.write(lambda c: restore_memory(c, "", "/w", foreign.id if foreign else 0))


@settings(deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",)), max_size=300), max_size=60))
def test_a_memory_keeps_its_newest_lines_within_the_limit(lines: list[str]) -> None:
    text = "\n".join(lines)
    kept = fitted(text)
    assert len(kept.encode()) <= MAX_BYTES
    if len(text.strip().encode()) <= MAX_BYTES:
        assert kept.splitlines() == text.strip().splitlines()
    elif kept:
        assert kept.splitlines()[-1].strip() in text


def test_the_copy_is_replaced_in_one_step_and_follows_no_link(tmp_path: Path) -> None:
    own = tmp_path / "ws"
    own.mkdir()
    path = copy_path("", str(own), tmp_path / "data", is_own=True)
    assert path == own / ".agent" / "memory.md"
    write_copy(path, "one")
    write_copy(path, "two")
    assert path.read_text() == "two\n" and path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    path.unlink()
    path.parent.rmdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    path.parent.symlink_to(outside)
    with pytest.raises(OSError):
        write_copy(path, "three")
    assert list(outside.iterdir()) == []
    for owner, is_own in (("somebody", True), ("", False)):
        place = copy_path(owner, str(own), tmp_path / "data", is_own=is_own)
        assert place.parent == tmp_path / "data" / "memory"  # D-15: never into a person's project
