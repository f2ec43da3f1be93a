"""DE-29: ends of background commands as rows, on both databases: told once, whatever dies in between."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.fake_models import FakeModels
from support.sessions import Place, place

from bowerbird.agent.turn import TurnRun
from bowerbird.core.events import BackgroundResult, Injected
from bowerbird.sessions import SessionService, TurnContext
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.turn.approver_and_inbox import DoorInbox
from bowerbird.sessions.turn.background_notices import (
    MOST_IN_A_ROW,
    CommandEnd,
    CommandNotices,
    StoredNotices,
)
from bowerbird.store.rows.notifications import mark_delivered, pending_notifications


@pytest.fixture
async def told(tmp_path: Path, fake: FakeModels, database_url: str) -> AsyncIterator[Place]:
    """A service whose turns are told of what is in the store."""

    class Tells(SessionPart):
        def __init__(self, service: SessionService) -> None:
            self.store = service.store

        async def join(self, run: TurnRun, context: TurnContext) -> TurnRun:
            return msgspec.structs.replace(
                run, notices=StoredNotices(self.store, context.session.thread_id, context.inbox)
            )

    async with place(tmp_path, fake, url=database_url, parts=lambda service: (Tells(service),)) as home:
        yield home


def desk_of(home: Place) -> CommandNotices:
    return CommandNotices(home.store, home.service.live, lambda turn: home.service.resume(turn.turn_id))


def end(thread: str, number: int = 1, **more: Any) -> CommandEnd:
    task = f"bg_{number:026d}"
    body = {"task_id": task, "status": "completed", "command": "true", "result": "ok"}
    return CommandEnd(thread, task, body, f'<background_result task_id="{task}"/>', **more)


async def injected(home: Place, thread: str) -> list[list[str]]:
    return [body["ids"] for body in await home.bodies(thread, "injected")]


async def test_an_end_is_shown_at_once_and_told_with_the_next_turn_only(
    told: Place, fake: FakeModels
) -> None:
    fake.script({"text": "a"})
    thread, desk = await told.session(), desk_of(told)
    with told.service.subscribe(thread) as events:
        for _ in range(2):  # a sandbox may report twice, say after a restart
            await desk.ended(end(thread))
        events.close()
        shown = [p.event async for p in events]
    assert shown == [BackgroundResult((end(thread).body,))]
    assert await told.types(thread) == []
    for _ in range(2):
        await told.ask(thread)
    assert await injected(told, thread) == [[end(thread).task_id]]
    assert await told.store.read(lambda c: pending_notifications(c, thread)) == []


async def test_what_is_on_record_but_not_marked_is_not_told_again(told: Place, fake: FakeModels) -> None:
    """A process died between the record and the mark (AG-39)."""
    fake.script({"text": "a"})
    thread, desk = await told.session(), desk_of(told)
    await desk.ended(end(thread, 1))
    await told.ask(thread)
    await desk.ended(end(thread, 2))
    [row] = await told.store.read(lambda c: pending_notifications(c, thread))

    def unmark(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE notifications SET state = 'pending'")

    await told.store.write(unmark)
    inbox = DoorInbox(told.store, "t_none")
    notices = StoredNotices(told.store, thread, inbox)
    [news] = await notices.poll()
    assert isinstance(news, Injected) and news.ids == (row.key,)
    assert [r.key for r in await told.store.read(lambda c: pending_notifications(c, thread))] == [row.key]
    await notices.told()
    assert await StoredNotices(told.store, thread, inbox).poll() == []


async def test_an_idle_session_is_woken_once_and_not_without_end(told: Place, fake: FakeModels) -> None:
    fake.script({"text": "a"})
    thread, desk = await told.session(), desk_of(told)
    for number in range(1, MOST_IN_A_ROW + 3):
        await desk.ended(end(thread, number, wakes=True))
        await told.until(lambda: idle(told, thread))
    turns = await told.service.turns(thread)
    assert [turn.kind for turn in turns] == ["background"] * MOST_IN_A_ROW
    assert await desk.wake_idle(thread) is None
    await told.ask(thread)
    assert await injected(told, thread) == [
        [end(thread, number).task_id] for number in range(1, MOST_IN_A_ROW + 3)
    ]
    await desk.ended(end(thread, 99, wakes=True))  # a person spoke: it begins anew
    await told.until(lambda: idle(told, thread))
    assert (await told.service.turns(thread))[-1].kind == "background"
    await desk.aclose()


async def idle(home: Place, thread: str) -> bool:
    return all(turn.state not in ("queued", "running") for turn in await home.service.turns(thread))


async def test_a_busy_session_is_not_woken_before_its_turn_ends(told: Place, fake: FakeModels) -> None:
    """What comes too late for a turn's model starts one of its own."""
    fake.script({"text": "a", "ttft_s": 0.4}, {"text": "b"})
    thread, desk = await told.session(), desk_of(told)
    receipt = await told.service.submit(thread, "go")
    await fake.wait_requests(1)
    await desk.ended(end(thread, 1, wakes=True))
    assert [turn.kind for turn in await told.service.turns(thread)] == ["user"]
    await told.service.wait(receipt.turn_id)
    await told.until(lambda: _two(told, thread))
    await told.until(lambda: idle(told, thread))
    await desk.aclose()
    assert [turn.kind for turn in await told.service.turns(thread)] == ["user", "background"]
    assert len(await injected(told, thread)) == 1


async def _two(home: Place, thread: str) -> bool:
    return len(await home.service.turns(thread)) == 2


async def test_turns_that_a_dead_process_did_not_start_are_started(told: Place, fake: FakeModels) -> None:
    fake.script({"text": "a"})
    thread, first = await told.session(), desk_of(told)
    first.quiet()  # it is about to end
    await first.ended(end(thread, 1, wakes=True))
    assert await told.service.turns(thread) == []
    await desk_of(told).start()
    await told.until(lambda: idle(told, thread))
    assert [turn.kind for turn in await told.service.turns(thread)] == ["background"]


async def test_what_the_model_knows_is_shown_and_not_told(told: Place, fake: FakeModels) -> None:
    fake.script({"text": "a"})
    thread, desk = await told.session(), desk_of(told)
    with told.service.subscribe(thread) as events:
        await desk.ended(end(thread, 1, wakes=True, known=True))
        events.close()
        assert len([p async for p in events]) == 1
    await told.ask(thread)
    assert await injected(told, thread) == []
    await desk.ended(end("no such session"))  # its session was deleted meanwhile
    await told.store.write(lambda c: mark_delivered(c, thread, ["unknown"]))


async def test_a_subagent_s_session_is_not_woken(told: Place, fake: FakeModels) -> None:
    fake.script({"text": "a"})
    thread, desk = await told.session(kind="subagent"), desk_of(told)
    await desk.ended(end(thread, 1, wakes=True))
    assert await told.service.turns(thread) == []
