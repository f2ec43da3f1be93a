"""What doors show of sessions: lists, messages, calls, questions, queues, settings (SV-8, 9, 22, 24, 29, 38)."""

import asyncio
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place, writes

from bowerbird.agent.policy import Policy
from bowerbird.core.errors import NotQueued, UnknownSession
from bowerbird.core.events import ModeChange
from bowerbird.sessions import InputMark


async def test_a_list_shows_messages_changed_files_cost_and_what_waits(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    fake.script(
        writes("a.txt", "x"), {"text": "ok"}, {"tools": [{"name": "delete_file", "input": {"path": "a.txt"}}]}
    )
    policy = Policy.of({"ask": ["delete_file"]})
    async with place(tmp_path, fake, url=database_url, policy=policy) as home:
        thread = await home.session(owner="ann")
        other = await home.session(owner="bob")
        await home.ask(thread)
        found = await home.service.get(thread)
        assert (found.messages, found.changed_files, found.turns, found.queued) == (2, 1, 1, 0)
        receipt = await home.service.submit(thread, "delete it")

        async def asks() -> bool:
            return (await home.service.get(thread)).pending == "approval"

        await home.until(asks)
        (request,) = await home.service.pending()
        assert (request.thread_id, request.turn_id, request.kind) == (thread, receipt.turn_id, "approval")
        assert request.tools[0]["name"] == "delete_file"
        assert request.expires_at
        assert await home.service.pending(owner="bob") == []
        assert [info.thread_id for info in await home.service.list(owner="bob")] == [other]
        await home.service.cancel(thread)
        await home.service.wait(receipt.turn_id)


async def test_pages_of_a_list_join_without_gap_or_repetition(home: Place) -> None:
    """SV-8: also where several sessions were used at the same instant."""
    made = {await home.session(title=f"number {n}") for n in range(5)}
    same = "2026-11-20T09:00:00.000000+00:00"
    await home.store.write(lambda c: c.exec_driver_sql(f"UPDATE sessions SET updated_at = '{same}'"))
    seen: list[str] = []
    while page := await home.service.list(limit=2, before=seen[-1] if seen else None):
        seen += [info.thread_id for info in page]
    assert len(seen) == len(set(seen)) == 5
    assert set(seen) == made


async def test_messages_are_what_was_said_and_answered_with_cursors(home: Place) -> None:
    """SV-9: text before a tool call is part of the events, not of this list."""
    home.fake.script({"text": "First.", **writes("a", "x")}, {"text": "Done."}, {"text": "Again."})
    thread = await home.session()
    turn = await home.ask(thread, "do it")
    await home.ask(thread, "and again")
    shown = await home.service.messages(thread)
    assert [(m.role, m.content) for m in shown] == [
        ("user", "do it"), ("assistant", "Done."), ("user", "and again"), ("assistant", "Again."),
    ]  # fmt: skip
    assert shown[0].turn_id == shown[1].turn_id == turn.turn_id
    assert [m.cursor for m in shown] == sorted(m.cursor for m in shown)
    rest = await home.service.messages(thread, after=shown[1].cursor)
    assert rest == shown[2:]
    assert await home.service.messages(thread, limit=1) == shown[:1]
    assert (await home.service.get(thread)).messages == 4
    assert (await home.service.tokens(thread)).calls == 3


async def test_a_call_is_shown_with_its_whole_result(home: Place) -> None:
    """SV-24."""
    home.fake.script(
        writes("a", "x" * 9000), {"tools": [{"name": "read_file", "input": {"path": "a"}}]}, {"text": "ok"}
    )
    thread = await home.session()
    await home.ask(thread)
    records = await home.service.history(thread)
    calls = [r.body["call"] for r in records if r.type == "tool_outcome"]
    found = await home.service.call(thread, calls[1])
    assert (found.tool, found.input, found.status) == ("read_file", {"path": "a"}, "ok")
    assert "x" * 1000 in found.content[0]["text"]
    with pytest.raises(UnknownSession):
        await home.service.call(thread, "call_none")


async def test_settings_are_stored_recorded_and_told_to_every_viewer(home: Place) -> None:
    """SV-22, SV-38: one transaction; the viewer's cursor moves on without a gap."""
    thread = await home.session()
    events = home.service.follow(thread, after=0)
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    changes = {"enable_plan_mode": True, "title": "T", "thinking_effort": "max", "model": "p:m"}
    await home.service.set_flags(thread, changes)
    seen = await asyncio.wait_for(first, HANG_S)
    assert isinstance(seen.event, ModeChange)
    assert (seen.seq, seen.event.changes) == (1, changes)
    await events.aclose()
    info = await home.service.get(thread)
    assert (info.title, info.thinking_effort, info.flags) == (
        "T",
        "max",
        {"enable_plan_mode": True, "model": "p:m"},
    )
    (record,) = await home.service.history(thread)
    assert (record.type, record.body) == ("settings", {**changes, "by": "user"})


async def test_two_changes_at_once_lose_neither(home: Place) -> None:
    thread = await home.session()
    await asyncio.gather(*(home.service.set_flags(thread, {f"flag{n}": n}) for n in range(10)))
    assert (await home.service.get(thread)).flags == {f"flag{n}": n for n in range(10)}


async def test_an_accepted_input_is_told_and_can_be_taken_back_until_it_runs(home: Place) -> None:
    """SV-47, SV-62."""
    home.fake.script({"hang": True}, {"text": "third"})
    thread = await home.session()
    with home.service.subscribe(thread) as viewer:
        running = await home.service.submit(thread, "first", sender={"id": "ann"}, door="web")
        await home.fake.wait_requests(1)
        second = await home.service.submit(thread, "second")
        third = await home.service.submit(thread, "third")
        queue = await home.service.queued(thread)
        assert [(row.text, row.position) for row in queue] == [("second", 1), ("third", 2)]
        await home.service.take_back(thread, second.inbox_id)
        viewer.close()
        marks = [p.event async for p in viewer if isinstance(p.event, InputMark)]
    assert [(m.text, m.position, m.state) for m in marks[:3]] == [
        ("first", 0, "queued"), ("second", 1, "queued"), ("third", 2, "queued"),
    ]  # fmt: skip
    assert (marks[0].sender, marks[3].state) == ({"id": "ann", "door": "web"}, "cancelled")
    with pytest.raises(NotQueued):
        await home.service.take_back(thread, second.inbox_id)
    with pytest.raises(NotQueued):
        await home.service.take_back(thread, running.inbox_id)
    with pytest.raises(UnknownSession):
        await home.service.take_back(thread, "i_none")
    await home.service.cancel(thread)
    assert (await home.service.wait(third.turn_id)).state == "done"
    assert (await home.service.turn(second.turn_id)).state == "cancelled"
    said = [m.content for m in await home.service.messages(thread)]
    assert "second" not in said


async def test_a_late_viewer_gets_the_text_so_far_once(home: Place) -> None:
    """SV-46: replay, then the text so far of the message under way, then live: no gap, no duplicate."""
    from bowerbird.core.events import AssistantStep, TextLive

    home.fake.script({"text": "word " * 40, "deltas": 40, "gap_s": 0.01})
    thread = await home.session()
    receipt = await home.service.submit(thread, "go")
    with home.service.subscribe(thread) as early:
        async for published in early:
            if isinstance(published.event, TextLive):
                break
    await asyncio.sleep(0.05)
    text, whole = "", ""
    events = home.service.follow(thread, after=0)
    async with asyncio.timeout(HANG_S):
        async for published in events:
            if isinstance(published.event, TextLive):
                text += published.event.content
            if isinstance(published.event, AssistantStep):
                whole = published.event.message.text
                break
    await events.aclose()
    assert text == whole == "word " * 40
    assert (await home.service.wait(receipt.turn_id)).state == "done"
