"""Turns that begin in the transaction that accepts their message (SE-17, 22, 23, 28)."""

import asyncio
import contextlib
from pathlib import Path

from sqlalchemy import Connection, select
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, changed, place

from bowerbird.sessions.inbox.accept import Accepted, Offered
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.turn.begin_on_accept import EarlyStarts
from bowerbird.store import Store
from bowerbird.store.rows.turns import TurnRow, get_turn
from bowerbird.store.sql.tables import leases


async def turn_row(store: Store, turn_id: str) -> TurnRow:
    def get(connection: Connection) -> TurnRow:
        return get_turn(connection, turn_id)

    return await store.read(get)


async def held(store: Store) -> list[str]:
    def get(connection: Connection) -> list[str]:
        return list(connection.scalars(select(leases.c.thread_id).where(leases.c.holder.is_not(None))))

    return await store.read(get)


def offer(thread: str, text: str = "go") -> Offered:
    body = {"content": [{"type": "text", "text": text}]}
    return Offered(thread, "cli", f"key of {text}", "message", {}, body, text)


async def accept_early(home: Place, early: EarlyStarts, thread: str, room: int = 1) -> Accepted:
    return await early.accept(home.service._context, offer(thread), room)


async def test_a_receipt_for_a_session_at_rest_finds_its_turn_begun(home: Place) -> None:
    """SE-17, SE-22: one commit for both."""
    home.fake.script({"hang": True})
    thread = await home.session()
    receipt = await home.service.submit(thread, "go")
    row = await turn_row(home.store, receipt.turn_id)
    assert (row.state, row.attempt) == ("running", 1)
    records = await home.service.history(thread)
    assert [record.type for record in records][:2] == ["turn_started", "user"]
    await home.service.cancel(thread)


async def test_a_turn_that_nobody_drives_is_queued_again_and_no_attempt_is_counted(home: Place) -> None:
    """SE-23, SE-34: say because the process is about to end."""
    home.fake.script({"text": "Here I am."})
    thread, early = await home.session(), EarlyStarts()
    accepted = await accept_early(home, early, thread)
    assert accepted.wake is not None
    assert (await turn_row(home.store, accepted.receipt.turn_id)).state == "running"
    await early.put_back(home.store)
    row = await turn_row(home.store, accepted.receipt.turn_id)
    assert (row.state, row.attempt) == ("queued", 0)


async def test_what_another_process_took_meanwhile_is_not_put_back(home: Place) -> None:
    """SE-28."""
    thread, early = await home.session(), EarlyStarts()
    accepted = await accept_early(home, early, thread)
    turn = accepted.receipt.turn_id

    def take_over(connection: Connection) -> None:
        from bowerbird.store.rows.turns import update_turn

        update_turn(connection, turn, epoch=get_turn(connection, turn).epoch + 1)

    await home.store.write(take_over)
    await early.put_back(home.store)
    assert (await turn_row(home.store, turn)).state == "running"


async def test_without_room_a_message_is_accepted_and_its_turn_waits(home: Place) -> None:
    """SE-18: a lease is taken for no more turns than may run."""
    first, second, early = await home.session(), await home.session(), EarlyStarts()
    one = await early.accept(home.service._context, offer(first, "1"), 1)
    two = await early.accept(home.service._context, offer(second, "2"), 1)
    assert (await turn_row(home.store, one.receipt.turn_id)).state == "running"
    assert (await turn_row(home.store, two.receipt.turn_id)).state == "queued"


async def test_no_more_leases_are_held_than_turns_may_run(tmp_path: Path, fake: FakeModels) -> None:
    """SE-18, SE-28."""
    fake.script(*[{"hang": True}] * 6)
    async with place(tmp_path, fake, settings=changed(parallel_turns=2)) as home:
        threads = [await home.session() for _ in range(6)]
        await asyncio.gather(*(home.service.submit(thread, "go") for thread in threads))

        async def two_run() -> bool:
            return fake.request_count == 2

        await home.until(two_run)
        assert len(await held(home.store)) == 2


async def test_a_submit_that_is_cancelled_after_its_commit_has_its_turn_driven(home: Place) -> None:
    """SE-17: an accepted message is answered at once, also when nobody waits for the receipt."""
    home.fake.script({"text": "done"})
    thread = await home.session()
    task = asyncio.create_task(home.service.submit(thread, "go"))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    async def answered() -> bool:
        return "turn_ended" in await home.types(thread)

    await home.until(answered)
    records = await home.service.history(thread)
    assert [record.type for record in records] == ["turn_started", "user", "assistant", "turn_ended"]


async def test_a_large_message_begins_by_the_longer_way(home: Place) -> None:
    """SE-13: what belongs into the blobs is written there before the commit."""
    home.fake.script({"text": "Long."})
    thread, text = await home.session(), "x" * 300_000
    turn = await home.ask(thread, text)
    assert turn.state == "done"
    [body] = await home.bodies(thread, "user")
    assert body["content"][0]["text"] == text


async def test_an_answer_whose_end_a_shutdown_cuts_off_is_not_asked_for_again(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-34: it waited to be recorded with the end of its turn."""
    fake.script({"text": "Said once."}, {"text": "Said again."})
    reached = asyncio.Event()

    class Hangs(SessionPart):
        async def turn_ended(self, branch_id: str) -> None:
            reached.set()
            await asyncio.Event().wait()

    async with place(tmp_path, fake, parts=lambda _: [Hangs()]) as home:
        thread = await home.session()
        receipt = await home.service.submit(thread, "go")
        await asyncio.wait_for(reached.wait(), HANG_S)
        await home.service.stop(0.0)
    async with place(tmp_path, fake) as home:
        turn = await home.service.wait(receipt.turn_id)
        assert (turn.state, fake.request_count) == ("done", 1)
        [said] = await home.bodies(thread, "assistant")
        assert said["content"] == [{"type": "text", "text": "Said once."}]
