"""Deleting a session while a turn begins or runs (SE-49)."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from sqlalchemy import select
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place, writes

from bowerbird.core.errors import InvalidWorkspace, UnknownSession
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.sql.tables import inbox, journal, turns


@pytest.mark.parametrize("seed", range(12))
async def test_a_turn_that_begins_while_its_session_is_deleted_does_nothing_afterwards(
    home: Place, seed: int
) -> None:
    """Whichever comes first: once it is deleted, nobody drives it and nothing is added to it."""
    chance = random.Random(seed)
    home.fake.script(writes("a.txt", "x"), writes("b.txt", "x"), {"text": "done"})
    thread = await home.session()
    branch = (await home.service.get(thread)).branch_id
    for number in range(3):
        await home.service.submit(thread, f"message {number}")
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    await asyncio.sleep(chance.choice((0, 0, 0.002, 0.01, 0.05)))
    async with asyncio.timeout(HANG_S):
        await home.service.delete(thread)
    deleted = now_iso()
    with pytest.raises(UnknownSession):
        await home.service.get(thread)
    assert await home.store.read(lambda c: lease_is_free(c, thread))
    rows = await home.store.read(lambda c: c.execute(select(turns.c.state)).scalars().all())
    assert set(rows) <= {"done", "cancelled"}, rows
    left = await home.store.read(lambda c: c.execute(select(inbox.c.state)).scalars().all())
    assert set(left) <= {"done", "cancelled"}, left
    assert (home.data / "branches" / str(branch) / "discarded_at").exists()
    await asyncio.sleep(0.05)
    late = await home.store.read(
        lambda c: c.execute(select(journal.c.type).where(journal.c.at > deleted)).scalars().all()
    )
    assert late == []


async def test_deleting_cancels_what_waits_behind_a_running_turn(home: Place) -> None:
    home.fake.script({"hang": True})
    thread = await home.session()
    first = await home.service.submit(thread, "hangs")
    await home.fake.wait_requests(1)
    second = await home.service.submit(thread, "waits")
    async with asyncio.timeout(HANG_S):
        await home.service.delete(thread)
    for receipt in (first, second):
        assert (await home.service.turn(receipt.turn_id)).state == "cancelled"
    assert home.fake.request_count == 1


async def test_a_session_whose_directory_is_gone_is_deleted_whole(tmp_path: Path, fake: FakeModels) -> None:
    """SE-49: the deletion was reported as failed, the session was gone, and its branch was kept for ever."""
    (tmp_path / "project").mkdir()
    gone = tmp_path / "gone"
    gone.mkdir()
    fake.script(writes("a.txt", "x"), {"text": "done"})
    async with place(tmp_path, fake) as first:
        thread = await first.session(workspace=str(gone))
        await first.ask(thread)
        branch = str((await first.service.get(thread)).branch_id)
    shutil.rmtree(gone)
    async with place(tmp_path, fake) as home:
        discarded = home.data / "branches" / branch / "discarded_at"
        await home.service.delete(thread)
        assert discarded.exists()
        with pytest.raises(InvalidWorkspace):
            await home.service.restore(thread)
        with pytest.raises(UnknownSession):
            await home.service.get(thread)  # it was not brought back by halves
        gone.mkdir()
        assert (await home.service.restore(thread)).status == "idle"
        assert not discarded.exists()
