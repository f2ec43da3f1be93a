"""Watching a session: committed events in order, from this process or another (SE-14, SE-33)."""

import asyncio
from pathlib import Path

from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, changed, place, writes

from bowerbird.core.events import AssistantStep, TextLive, ToolOutcome
from bowerbird.sessions.live.follow import POLL_S, follow
from bowerbird.sessions.live.hub import Live, Published, TurnMark


async def test_an_event_is_shown_only_after_its_commit(home: Place) -> None:
    """SE-14: whoever sees a record's event can read the record."""
    home.fake.script(writes("a.txt", "x"), {"text": "word " * 20, "deltas": 10})
    thread = await home.session()
    seen: list[str] = []
    with home.service.subscribe(thread) as viewer:
        receipt = await home.service.submit(thread, "go")
        async for published in viewer:
            seen.append(type(published.event).__name__)
            if published.seq is not None:
                stored = await home.store.records(thread, after=published.seq - 1, limit=1)
                assert stored[0].seq == published.seq
            if isinstance(published.event, TurnMark) and published.event.has_stopped:
                assert published.turn_id == receipt.turn_id
                break
    assert seen[:3] == ["InputMark", "TurnMark", "UserStep"]
    assert seen.index("ToolIntent") < seen.index("ToolOutcome") < seen.index("TextLive")


async def test_following_from_a_cursor_has_no_gap_and_no_duplicate(home: Place) -> None:
    """SE-33."""
    home.fake.script(writes("a", "1"), {"text": "one"}, writes("b", "2"), {"text": "two"})
    thread = await home.session()
    await home.ask(thread)
    seqs: list[int] = []
    kinds: list[type] = []
    events = home.service.follow(thread, after=3)
    first = await anext(events)
    seqs.append(first.seq or 0)
    receipt = await home.service.submit(thread, "again")
    async with asyncio.timeout(HANG_S):
        async for published in events:
            if published.seq is not None:
                seqs.append(published.seq)
                kinds.append(type(published.event))
            event = published.event
            if isinstance(event, TurnMark) and event.has_stopped and published.turn_id == receipt.turn_id:
                break
    await events.aclose()
    assert seqs == sorted(set(seqs))
    assert kinds.count(AssistantStep) == 3
    assert kinds.count(ToolOutcome) == 2


async def test_a_turn_that_began_before_somebody_looked_is_seen_to_begin(home: Place) -> None:
    """A slow watcher read the record of the beginning and was never told: stream-json had no `turn_started`."""
    home.fake.script({"text": "one"})
    thread = await home.session()
    await home.ask(thread)
    marks: list[str] = []
    events = home.service.follow(thread, after=0)
    async for published in events:
        if isinstance(published.event, TurnMark):
            marks.append(published.event.state)
            if published.event.has_stopped:
                break
    await events.aclose()
    assert marks == ["running", "done"]


async def test_what_another_process_commits_is_seen_too(tmp_path: Path, fake: FakeModels) -> None:
    """SE-33: on SQLite by looking every 250 ms."""
    fake.script({"text": "ok"})
    async with place(tmp_path, fake) as driver:
        thread = await driver.session()
        async with place(tmp_path, fake, settings=changed(parallel_turns=1)) as watcher:
            events = watcher.service.follow(thread, after=0)
            task = asyncio.ensure_future(anext(events))
            await driver.ask(thread)
            first = await asyncio.wait_for(task, HANG_S)
            assert first.seq is not None
            await events.aclose()
            assert (
                await watcher.service.wait((await watcher.service.turns(thread))[0].turn_id)
            ).state == "done"


async def test_a_record_does_not_overtake_the_pieces_of_its_own_message(home: Place) -> None:
    """UI-86: published late, it was read from the journal under another name, and the answer was drawn twice."""
    home.fake.script({"text": "one"})
    thread = await home.session()
    await home.ask(thread)
    step = next(record for record in await home.store.records(thread) if record.type == "assistant")
    live = Live()
    live.publish(Published(thread, step.turn, None, TurnMark("running", head=step.seq - 1)))
    events = follow(home.store, live, thread, after=step.seq - 1)
    piece = Published(thread, step.turn, None, TextLive("one", "m", 0))
    arriving = asyncio.ensure_future(anext(events))
    while not live.viewers(thread):
        await asyncio.sleep(0)
    live.publish(piece)
    assert await arriving == piece
    arriving = asyncio.ensure_future(anext(events))
    await asyncio.wait({arriving}, timeout=2 * POLL_S)  # it has looked into the journal by now
    said = Published(thread, step.turn, step.seq, TextLive("stands for the step as it is published", "m", 3))
    live.publish(said)
    assert await arriving == said
    await events.aclose()
