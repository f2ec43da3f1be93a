"""One driver per session: shutdown, lost leases, processes side by side (SE-18, 28, 29, 31, 34)."""

import asyncio
import base64
import time
from pathlib import Path

import pytest
from support.agent_turns import results
from support.fake_models import FakeModels
from support.patience import patience
from support.pictures import png
from support.sessions import Place, changed, gapless, place, writes

from bowerbird.core.errors import TurnRunning
from bowerbird.sessions.dispatch.dispatcher import TurnRef
from bowerbird.sessions.parts import SessionPart
from bowerbird.store.rows.leases import take_lease
from bowerbird.store.sql.tables import leases
from bowerbird.tools import Tool, ToolContext


async def started(home: Place, text: str = "go") -> tuple[str, str]:
    thread = await home.session()
    receipt = await home.service.submit(thread, text)
    await home.fake.wait_requests(1)
    return thread, receipt.turn_id


async def test_a_shutdown_reaches_a_steps_end_and_the_next_process_goes_on(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-34."""
    fake.script({**writes("a.txt", "x"), "ttft_s": 0.2}, {"text": "ok"})
    async with place(tmp_path, fake) as home:
        thread, turn_id = await started(home)
    assert fake.request_count == 1
    async with place(tmp_path, fake) as home:
        turn = await home.service.wait(turn_id)
        assert (turn.state, turn.attempt) == ("done", 1)  # nothing died, so no attempt is counted
        assert fake.request_count == 2
        records = await home.service.history(thread)
        assert gapless(records)
        assert len(await home.bodies(thread, "tool_outcome")) == 1


async def test_a_shutdown_ends_within_the_grace_whatever_hangs(tmp_path: Path, fake: FakeModels) -> None:
    """SE-34."""
    fake.script({"hang": True})
    async with place(tmp_path, fake, settings=changed(grace_s=0.3)) as home:
        thread, turn_id = await started(home)
        begun = time.monotonic()
        await home.service.stop()
        assert time.monotonic() - begun < patience(2.3)
    fake.script({"text": "ok"})
    async with place(tmp_path, fake) as home:
        turn = await home.service.wait(turn_id)
        assert turn.state == "done"
        assert await home.types(thread) == ["turn_started", "user", "assistant", "turn_ended"]


class Listens(SessionPart):
    """A part that hears what happens to branches."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def turn_ended(self, branch_id: str) -> None:
        self.told.append(("turn_ended", branch_id))

    async def rolled_back(self, branch_id: str) -> None:
        self.told.append(("rolled_back", branch_id))


async def test_whoever_keeps_names_of_a_branch_hears_of_turn_ends_and_rollbacks(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SB-44: a call is cut off by a shutdown, its changes are taken back and it runs again."""
    begun = asyncio.Event()
    wait = [True]

    async def build(context: ToolContext) -> str:
        """Build.

        Returns:
            Nothing of note.
        """
        await context.files.write_file("built.txt", "x")
        if wait.pop():
            wait.append(False)
            begun.set()
            await asyncio.Event().wait()
        return "built"

    fake.script({"tools": [{"name": "build", "input": {}}]}, {"text": "ok"})
    tools = [Tool(build, effect="branch", needs_approval=False)]
    settings = changed(grace_s=0.1)
    async with place(tmp_path, fake, settings=settings, tools=tools, parts=lambda _: (Listens(),)) as home:
        thread, turn_id = await started(home)
        await begun.wait()
        await home.service.stop()
        assert home.service.part(Listens).told == []
    async with place(tmp_path, fake, tools=tools, parts=lambda _: (Listens(),)) as home:
        assert (await home.service.wait(turn_id)).state == "done"
        branch = await home.service.branch(thread)
        assert home.service.part(Listens).told == [("rolled_back", branch.id), ("turn_ended", branch.id)]
        assert branch.changes().written == ("/built.txt",)


async def test_an_image_read_in_a_session_is_a_blob_of_the_store_and_reaches_the_provider(
    home: Place,
) -> None:
    """TO-11, MO-7."""
    picture = png()
    (home.project / "cat.png").write_bytes(picture)
    home.fake.script({"tools": [{"name": "read_file", "input": {"path": "cat.png"}}]}, {"text": "a cat"})
    thread = await home.session()
    assert (await home.ask(thread)).state == "done"
    [result] = results(home.fake.requests[1])
    [image] = [part for part in result["content"] if part["type"] == "image"]
    assert image["source"] == {
        "type": "base64", "media_type": "image/png", "data": base64.b64encode(picture).decode()
    }  # fmt: skip
    [outcome] = await home.bodies(thread, "tool_outcome")
    assert home.store.blobs.get(outcome["blob"]) == picture


async def test_no_turn_starts_during_a_shutdown(tmp_path: Path, fake: FakeModels) -> None:
    """SE-34."""
    fake.script({"text": "ok"})
    async with place(tmp_path, fake) as home:
        thread = await home.session()
        await home.service.stop()
        receipt = await home.service.submit(thread, "later")
        assert (await home.service.turn(receipt.turn_id)).state == "queued"
    async with place(tmp_path, fake) as home:
        assert (await home.service.wait(receipt.turn_id)).state == "done"


async def test_a_driver_whose_lease_is_taken_stops_and_records_nothing_more(home: Place) -> None:
    """SE-28: an append with an old epoch fails; that driver sends nothing."""
    home.fake.script({"text": "from the old driver", "ttft_s": 0.4})
    thread, turn_id = await started(home)
    await home.store.write(lambda c: take_lease(c, thread, "another", 600, dead=lambda _: True))
    before = await home.types(thread)

    async def let_go() -> bool:
        return not home.service._drivers

    await home.until(let_go)
    assert await home.types(thread) == before == ["turn_started", "user"]
    assert (await home.service.turn(turn_id)).state == "running"
    with pytest.raises(TurnRunning):
        await home.service.resume(turn_id)


@pytest.mark.parametrize("swept", [False, True], ids=["the driver is first", "the sweep is first"])
async def test_a_lease_that_only_a_set_clock_has_ended_goes_on(home: Place, swept: bool) -> None:
    """SE-28, SE-29: the database's clock jumps ahead in the middle of an answer; the model is not asked twice."""
    home.fake.script({**writes("a.txt", "x"), "ttft_s": 0.4}, {"text": "ok", "ttft_s": 0.4})
    thread, turn_id = await started(home)
    for n in (1, 2):
        await home.fake.wait_requests(n)
        ended = "2000-01-01T00:00:00.000000+00:00"
        await home.store.write(lambda c, at=ended: c.execute(leases.update().values(expires_at=at)))
        if swept:
            await home.service._dispatcher._sweep()
    turn = await home.service.wait(turn_id)
    assert (turn.state, turn.attempt, home.fake.request_count) == ("done", 1, 2)
    assert gapless(await home.service.history(thread))


async def test_a_turn_submitted_twice_to_the_dispatcher_is_driven_once(home: Place) -> None:
    """SE-30: idempotent per (turn, attempt)."""
    home.fake.script({"text": "ok", "ttft_s": 0.1})
    thread, turn_id = await started(home)
    for attempt in (0, 0, 1, 2):
        await home.service._dispatcher.submit(TurnRef(thread, turn_id, attempt))
    assert (await home.service.wait(turn_id)).state == "done"
    assert home.fake.request_count == 1


async def test_two_services_on_one_file_share_the_work_and_hear_each_others_signals(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-31, SE-30."""
    fake.script({"text": "a b c", "deltas": 3, "hang_after": 1}, {"text": "next"})
    async with place(tmp_path, fake) as driver, place(tmp_path, fake) as other:
        thread, turn_id = await started(driver)
        owners = await other.service._dispatcher.owners()
        assert len(owners) == 2
        queued = await other.service.submit(thread, "queued elsewhere")
        await asyncio.sleep(0.05)
        assert (await other.service.turn(queued.turn_id)).state == "queued"
        await other.service.cancel(thread)
        assert (await other.service.wait(turn_id)).state == "cancelled"
        assert (await other.service.wait(queued.turn_id)).state == "done"
        assert gapless(await other.service.history(thread))


async def test_at_most_so_many_turns_run_at_once(tmp_path: Path, fake: FakeModels) -> None:
    """SE-18: limits.parallel_turns."""
    fake.script({"text": "ok", "ttft_s": 0.1})
    async with place(tmp_path, fake, settings=changed(parallel_turns=2)) as home:
        receipts = [await home.service.submit(await home.session(), "go") for _ in range(4)]
        turns = [await home.service.wait(receipt.turn_id) for receipt in receipts]
    spans = [(turn.started_at or "", turn.ended_at or "") for turn in turns]
    for moment, _ in spans:
        assert sum(begun <= moment < ended for begun, ended in spans) <= 2


async def test_starting_and_stopping_without_a_message_asks_no_model(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Acceptance 11."""
    for _ in range(5):
        async with place(tmp_path, fake) as home:
            await home.session()
    assert fake.request_count == 0
