"""What is kept and for how long; what deleting leaves (SE-48, SE-49)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.sessions import Place, changed, place, writes

from bowerbird.app import session_settings
from bowerbird.config import load_settings
from bowerbird.core.errors import SessionError, UnknownSession
from bowerbird.core.timestamps import to_iso
from bowerbird.sessions.upkeep.retention import Removed, tidy
from bowerbird.sessions.upkeep.trash import Trash
from bowerbird.store.rows.retention import finished_before, roll_up_usage
from bowerbird.store.rows.turns import TurnRow, insert_turn, snapshots


async def later(home: Place, days: float) -> Removed:
    """Tidy up as if `days` had gone by."""
    now = datetime.now(UTC) + timedelta(days=days)
    context = home.service._context
    return await tidy(
        home.store, context.audit, home.service.settings, home.service.delete, now, branches=context.branches
    )


async def counts(home: Place, *tables: str) -> list[int]:
    return [
        int(
            await home.store.read(lambda c, t=table: c.exec_driver_sql(f"SELECT count(*) FROM {t}").scalar())
            or 0
        )
        for table in tables
    ]


async def test_nothing_young_is_removed(home: Place) -> None:
    home.fake.script({"text": "ok"})
    await home.ask(await home.session())
    assert await later(home, 0) == Removed()
    assert await later(home, 89) == Removed()


async def test_finished_rows_lose_their_detail_and_sums_stay(home: Place) -> None:
    """SE-48: what was spent counts for ever, the rows of each call do not."""
    home.fake.script({"text": "ok"})
    thread = await home.session()
    await home.ask(thread)
    await home.ask(thread)
    before = await home.service.tokens(thread)
    done = await later(home, 91)
    assert (done.rows, done.usage) == (2, 2)
    after = await home.service.tokens(thread)
    assert (after.input_tokens, after.output_tokens) == (before.input_tokens, before.output_tokens)
    assert await counts(home, "inbox", "usage") == [0, 1]
    assert await later(home, 92) == Removed()
    assert (await home.ask(thread)).state == "done"


async def test_what_is_much_goes_in_batches_and_sums_stay(home: Place) -> None:
    """Team 15: 68,000 rows went in one transaction; nobody else could write for nine seconds."""
    home.fake.script({"text": "ok"})
    threads = [await home.session() for _ in range(5)]
    for thread in threads:
        await home.ask(thread)
        await home.ask(thread)

    async def spent() -> list[tuple[int, float | None]]:
        found = [await home.service.tokens(thread) for thread in threads]
        return [(tokens.input_tokens + tokens.output_tokens, tokens.cost) for tokens in found]

    before = await spent()
    late = to_iso(datetime.now(UTC) + timedelta(days=1))
    passes = [await home.store.write(lambda c: roll_up_usage(c, late, 2)) for _ in range(4)]
    assert passes == [4, 4, 2, 0]
    passes = [await home.store.write(lambda c: finished_before(c, late, late, 4)) for _ in range(4)]
    assert passes == [4, 4, 2, 0]
    assert await spent() == before
    assert await counts(home, "inbox", "usage") == [0, 5]


async def test_a_deleted_session_is_forgotten_when_it_can_no_longer_be_restored(home: Place) -> None:
    """SE-49: no row and no file of it is left; what a fork needs stays until the fork is gone."""
    home.fake.script(writes("a", "1"), {"text": "ok"})
    thread = await home.session()
    await home.ask(thread)
    child = (await home.service.fork(thread)).thread_id
    await home.service.delete(thread)
    assert (await later(home, 6)).forgotten == 0
    assert (await later(home, 8)).forgotten == 0  # the fork stands on it
    assert [m.content for m in await home.service.messages(child)] == ["go", "ok"]
    await home.service.delete(child)
    assert (await later(home, 8)).forgotten == 1
    assert (await later(home, 8)).forgotten == 1
    tables = ("sessions", "turns", "journal", "effects", "inbox", "snapshots", "usage", "leases")
    assert await counts(home, *tables) == [0] * len(tables)
    assert list((home.data / "sessions").glob("*")) == []
    with pytest.raises(UnknownSession):
        await home.service.restore(thread)


async def test_sessions_that_nobody_uses_are_deleted_only_if_settings_say_so(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-48: `retention.sessions_days`, 0 = keep."""
    fake.script({"text": "ok"})
    async with place(tmp_path, fake, settings=changed(sessions_days=30)) as home:
        await home.ask(await home.session())
        assert (await later(home, 29)).deleted == 0
        assert (await later(home, 31)).deleted == 1
        assert await home.service.list() == []


async def test_old_snapshots_are_thinned_and_forks_keep_theirs(home: Place) -> None:
    """SE-48: the last 50 turns, then every tenth, and what forks began at."""
    home.fake.script({"text": "ok"})
    thread = await home.session()
    first = await home.ask(thread)
    child = await home.service.fork(thread, first.turn_id)

    def many(connection: object) -> None:
        for n in range(2, 81):
            turn = TurnRow(turn_id=f"t_{n:03}", thread_id=thread, n=n, state="done")
            insert_turn(connection, turn)  # type: ignore[arg-type]
            row = {"snapshot_id": f"s_{n:03}", "thread_id": thread, "turn_id": turn.turn_id, "seq": 100 + n,
                   "branch_id": "b", "paths": 0, "bytes": 0, "created_at": "x"}  # fmt: skip
            connection.execute(snapshots.insert().values(**row))  # type: ignore[attr-defined]

    await home.store.write(many)
    assert (await later(home, 0)).snapshots == 26
    left = await home.store.read(lambda c: [row.turn_id for row in c.execute(snapshots.select()).all()])
    assert {"t_010", "t_020", "t_030", "t_031", "t_080", first.turn_id} <= set(left)
    assert "t_029" not in left
    assert child.turns == 1


@pytest.mark.parametrize(("limit", "value"), [("max_records", 3), ("max_bytes", 300)])
async def test_a_session_that_is_full_says_so_and_a_fork_goes_on(
    tmp_path: Path, fake: FakeModels, limit: str, value: int
) -> None:
    """SE-48."""
    fake.script({"text": "ok"})
    async with place(tmp_path, fake, settings=changed(**{limit: value})) as home:
        thread = await home.session()
        await home.ask(thread)
        with pytest.raises(SessionError, match="most a session may have"):
            await home.service.submit(thread, "more")
        child = await home.service.fork(thread)
        assert (await home.ask(child.thread_id)).state == "done"


async def test_the_disk_of_a_deleted_session_is_freed_when_it_can_no_longer_be_restored(home: Place) -> None:
    """SE-48, SE-49, WS-44: its layers go with its rows, unless a fork stands on them."""
    home.fake.script(writes("big.txt", "x" * 100_000), {"text": "ok"})
    thread = await home.session()
    await home.ask(thread)
    child = (await home.service.fork(thread)).thread_id
    branches = {t: str((await home.service.get(t)).branch_id) for t in (thread, child)}
    await home.service.delete(thread)
    assert (await later(home, 6)).branches == 0
    assert (await later(home, 8)).branches == 0  # the fork stands on it
    branch = await home.service.branch(child)
    assert branch.read_overlay("big.txt") == b"x" * 100_000
    await home.service.delete(child)
    assert (await later(home, 8)).branches == 1  # a parent whose rows are there could be restored
    assert (await later(home, 8)).branches == 1
    assert [
        p for p in (home.data / "branches").iterdir() if any(b in p.name for b in branches.values())
    ] == []


async def test_a_date_of_discarding_that_was_cut_short_keeps_nothing_for_ever(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Reliability 10: an empty `discarded_at` ended retention for good."""
    fake.script(writes("a.txt", "x"), {"text": "ok"})
    async with place(tmp_path, fake) as home:
        thread = await home.session()
        await home.ask(thread)
        branch = home.data / "branches" / str((await home.service.get(thread)).branch_id)
        await home.service.delete(thread)
        (branch / "discarded_at").write_text("")
        assert (await later(home, 8)).branches == 1
        assert not branch.exists()


async def test_branches_are_kept_as_long_as_their_session_can_be_restored(
    tmp_path: Path, fake: FakeModels
) -> None:
    """`retention.deleted_days` above the trash's own 7 days, over a restart."""
    settings = changed(deleted_days=30)
    fake.script(writes("a.txt", "x"), {"text": "ok"})
    async with place(tmp_path, fake, settings=settings) as home:
        thread = await home.session()
        await home.ask(thread)
        branch = home.data / "branches" / str((await home.service.get(thread)).branch_id)
        await home.service.delete(thread)
    (branch / "discarded_at").write_text("2020-01-01T00:00:00.000000+00:00")
    async with place(tmp_path, fake, settings=settings) as home:
        assert (await later(home, 29)).branches == 0
        await home.service.restore(thread)
        assert (await home.service.branch(thread)).read_overlay("a.txt") == b"x"


async def test_zero_days_keep_for_ever(tmp_path: Path, fake: FakeModels) -> None:
    """`retention`: "0 = forever". What was deleted and discarded went for good at the next look."""
    fake.script(writes("a.txt", "x"), {"text": "ok"}, writes("b.txt", "x"), {"text": "ok"})
    async with place(tmp_path, fake, settings=changed(deleted_days=0, detail_days=0)) as home:
        gone, stays = await home.session(), await home.session()
        await home.ask(gone)
        await home.ask(stays)
        discarded = await home.service.review.discard(stays)
        await home.service.delete(gone)
        before = await counts(home, "inbox", "usage")
        assert await later(home, 5000) == Removed()
        assert await counts(home, "inbox", "usage") == before
        trash = Trash(home.service, home.service._context.branches)
        assert {(entry.kind, entry.until) for entry in await trash.entries()} == {
            ("session", None), ("changes", None)
        }  # fmt: skip
        await trash.restore(gone)
        await trash.restore(str(discarded.branch))
        assert (await home.service.branch(gone)).read_overlay("a.txt") == b"x"
        assert (await home.service.branch(stays)).read_overlay("b.txt") == b"x"


async def test_parts_of_a_day_count(tmp_path: Path, fake: FakeModels) -> None:
    """Half a day was none: what was deleted went at once, and sessions to be kept half a day stayed for ever."""
    given = {"deleted_days": 0.5, "detail_days": 0.5, "sessions_days": 0.5}
    keys: dict[str, Any] = {f"retention.{name}": days for name, days in given.items()}
    keys |= {"inbox.dedupe_days": 0.01, "approval.expiry_days": 0.25, "dispatch.lease_s": 1.5}
    settings = session_settings(load_settings(keys | {"dispatch.heartbeat_s": 0.5}).settings)
    assert (settings.dedupe_days, settings.approval_expiry_days, settings.lease_s) == (0.01, 0.25, 1.5)
    fake.script({"text": "ok"})
    async with place(tmp_path, fake, settings=settings) as home:
        await home.ask(thread := await home.session())
        await home.service.delete(thread)
        assert (await later(home, 0.4)).forgotten == 0
        assert (await later(home, 0.6)).forgotten == 1
