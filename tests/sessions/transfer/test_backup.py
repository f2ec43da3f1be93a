"""D-21: a backup taken while turns run comes back whole, from either database into either."""

import asyncio
import fcntl
import os
import shutil
import sqlite3
import sys
from functools import partial
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place, writes
from support.stores import URL, opened

from bowerbird.agent.limits import Limits
from bowerbird.app.own import make_data_dir
from bowerbird.core.errors import Exists, NotFound, StoreCorrupt, StoreError
from bowerbird.core.ids import ulid
from bowerbird.sessions.transfer.backup import DATABASE, FILES, RECORD, is_backup, make_backup, restore_backup
from bowerbird.store import Store
from bowerbird.workspace.raw_copy import make_equal

STEPS = 6


def _step(body: dict[str, object], _n: int) -> dict[str, object]:
    """Each session writes numbered files, one call after the other, with a little time between."""
    done = sum(1 for message in body["messages"] if message["role"] == "assistant")  # type: ignore[index, attr-defined]
    if done >= STEPS:
        return {"text": "finished", "ttft_s": 0.02}
    return {**writes(f"f{done}.txt", str(done)), "ttft_s": 0.02}


async def _restored(backup: Path, data: Path, url: str = URL) -> None:
    data.parent.mkdir(exist_ok=True)
    await restore_backup(backup, data, partial(Store.open, url, data_dir=data))


async def test_turns_that_run_during_a_backup_are_whole_in_it(
    home: Place, fake: FakeModels, tmp_path: Path
) -> None:
    """Restored elsewhere, every accepted message is answered once and its files are those of its record."""
    fake.answer(_step)
    rested = await home.session()
    await home.ask(rested)
    threads = [await home.session() for _ in range(4)]
    turns = [(await home.service.submit(thread, "go")).turn_id for thread in threads]
    await home.until(lambda: home.bodies(threads[0], "tool_outcome"))
    record = await make_backup(home.store, tmp_path / "backup", "test")
    for turn in turns:
        await home.service.wait(turn)
    assert record.sessions == 5 and not record.refused and is_backup(tmp_path / "backup")

    await _restored(tmp_path / "backup", tmp_path / "other" / "data")
    (tmp_path / "other" / "project").mkdir()
    async with place(tmp_path / "other", fake) as other:
        for thread in [rested, *threads]:
            turn = (await other.service.turns(thread))[-1]
            if turn.state == "failed":
                assert thread in record.working, "only a session that never rested waits for a person"
                await other.service.resume(turn_id=turn.turn_id)
            async with asyncio.timeout(HANG_S):
                ended = await other.service.wait(turn.turn_id)
            assert ended.state == "done"
            outcomes = await other.bodies(thread, "tool_outcome")
            # A file may be newer in the backup than the record of who wrote it: then it is said to be there.
            assert len(outcomes) == STEPS
            told = [str(o["content"]) for o in outcomes if o["status"] != "ok"]
            assert all("you have not read" in each for each in told), told
            branch = await other.service.branch(thread)
            assert sorted(branch.changes().written) == [f"/f{n}.txt" for n in range(STEPS)]


async def test_what_the_kernel_keeps_of_a_mount_is_in_no_backup(
    home: Place, fake: FakeModels, tmp_path: Path
) -> None:
    """Only root could read it: every backup of an ordinary user ended with code 3."""
    fake.script(writes("a.txt", "a"), {"text": "ok"})
    thread = await home.session()
    await home.ask(thread)
    branch = (await home.service.branch(thread)).id
    (home.data / "branches" / branch / "work" / "work" / "inner").mkdir(parents=True)
    record = await make_backup(home.store, tmp_path / "backup", "test")
    kept = tmp_path / "backup" / "files" / "branches" / branch
    assert not record.refused and kept.is_dir() and not (kept / "work" / "work").exists()


async def test_a_session_that_never_rests_waits_for_a_person_after_a_restore(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Its branch may be further than its record: nothing runs a second time by itself."""
    fake.answer(lambda body, n: writes(f"f{n}.txt", str(n)))
    async with place(tmp_path / "a", fake, limits=Limits(max_iterations=100_000)) as home:
        thread = await home.session()
        turn = (await home.service.submit(thread, "go")).turn_id
        await home.until(lambda: home.bodies(thread, "tool_outcome"))
        for _ in range(20):  # on a busy machine the turn may write nothing just while one is made
            record = await make_backup(home.store, tmp_path / "backup", "test", force=True)
            if record.working:
                break
        await home.service.cancel(thread)
    assert record.working == (thread,)
    await _restored(tmp_path / "backup", tmp_path / "b" / "data")
    async with place(tmp_path / "b", fake) as other:
        (found,) = await other.service.turns(thread)
        assert (found.turn_id, found.state) == (turn, "failed")
        assert "backup" in found.error["message"]
        assert (await other.service.branch(thread)).changes().written
        fake.script({"text": "finished"})
        await other.service.resume(turn_id=turn)
        async with asyncio.timeout(HANG_S):
            assert (await other.service.wait(turn)).state == "done"


async def test_a_backup_of_one_database_fills_the_other(
    postgres_url: str, fake: FakeModels, tmp_path: Path
) -> None:
    """Rows keep their numbers and PostgreSQL counts on after them."""
    fake.answer(_step)
    async with place(tmp_path / "a", fake) as first:
        parent = await first.session(title="parent")
        await first.ask(parent)
        child = (await first.service.fork(parent)).thread_id
        await make_backup(first.store, tmp_path / "one", "test")
    await _restored(tmp_path / "one", tmp_path / "b" / "data", postgres_url)
    async with place(tmp_path / "b", fake, url=postgres_url) as second:
        assert (await second.service.get(child)).thread_id == child
        await second.ask(parent, "more")  # new rows of usage do not meet the old ones' numbers
        with pytest.raises(Exists, match="holds sessions already"):
            await _restored(tmp_path / "one", tmp_path / "c" / "data", postgres_url)
        assert not (tmp_path / "c" / "data" / "branches").exists(), "a refused restore left files"
        await make_backup(second.store, tmp_path / "two", "test")
    await _restored(tmp_path / "two", tmp_path / "d" / "data")
    async with place(tmp_path / "d", fake) as third:
        assert [turn.state for turn in await third.service.turns(parent)] == ["done", "done"]


KILLED = """
import asyncio, sys
from pathlib import Path
from bowerbird.sessions.transfer.backup import restore_backup

async def opened():
    print("files are in place", flush=True)
    await asyncio.sleep(3600)

asyncio.run(restore_backup(Path(sys.argv[1]), Path(sys.argv[2]), opened))
"""


async def test_a_restore_that_is_killed_leaves_nothing_that_opens_and_is_run_again(
    home: Place, tmp_path: Path
) -> None:
    """D-21: its directory looked like a healthy one without sessions, and a server served that."""
    thread = await home.session()
    await home.ask(thread)
    await make_backup(home.store, tmp_path / "backup", "test")
    data = tmp_path / "other" / "data"
    data.parent.mkdir()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "backup"), str(data)]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None and await asyncio.wait_for(child.stdout.readline(), HANG_S)
    child.kill()
    await child.wait()
    (data.parent / f".data.{ulid()}").mkdir()  # as one that was killed earlier leaves
    with pytest.raises(StoreError, match="was not finished"):
        make_data_dir(str(data))
    await _restored(tmp_path / "backup", data)
    assert make_data_dir(str(data)) == data
    assert [path.name for path in data.parent.iterdir()] == ["data"]
    (data.parent / "project").mkdir()
    async with place(data.parent, home.fake) as other:
        assert (await other.service.get(thread)).thread_id == thread


async def test_what_a_killed_backup_left_goes_with_the_next_and_nothing_else_does(
    home: Place, tmp_path: Path
) -> None:
    """D-21: each left a hidden copy of the database behind."""
    await home.ask(await home.session())
    left, whole, living = (tmp_path / f".backup.{ulid()}" for _ in range(3))
    for place_ in (left, whole, living):
        (place_ / "files").mkdir(parents=True)
    (whole / "backup.json").write_text("{}")
    other = tmp_path / ".backup.mine"
    other.mkdir()
    lock = os.open(living, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await make_backup(home.store, tmp_path / "backup", "test")
    finally:
        os.close(lock)
    assert not left.exists() and all(kept.is_dir() for kept in (whole, living, other, tmp_path / "backup"))


async def test_what_is_no_whole_backup_is_refused_and_nothing_changes(home: Place, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no session"):
        await make_backup(home.store, tmp_path / "backup", "test")
    home.fake.script(writes("a.txt", "a"), {"text": "ok"})
    await home.ask(await home.session())
    backup = tmp_path / "backup"
    await make_backup(home.store, backup, "test")
    data = tmp_path / "new" / "data"

    async def refused(broken: Path, error: type[Exception]) -> None:
        with pytest.raises(error):
            await _restored(broken, data)
        assert not data.exists()

    for name, harm in {
        "no record": lambda b: (b / RECORD).unlink(),
        "torn record": lambda b: (b / RECORD).write_text("{"),
        "lost file": lambda b: next((b / FILES).rglob("a.txt")).unlink(),
        "short file": lambda b: next((b / FILES).rglob("a.txt")).write_text(""),
        "damaged database": lambda b: (b / DATABASE).write_bytes(b"\0" * 5000),
    }.items():
        broken = tmp_path / name
        shutil.copytree(backup, broken, symlinks=True)
        harm(broken)
        await refused(broken, NotFound if name == "no record" else StoreCorrupt)
    with pytest.raises(Exists, match="not empty"):
        await _restored(backup, home.data)


async def test_only_an_earlier_backup_is_ever_replaced(home: Place, tmp_path: Path) -> None:
    """D-21: no --force deletes a stranger's directory."""
    home.fake.script({"text": "ok"})
    await home.ask(await home.session())
    backup = tmp_path / "backup"
    await make_backup(home.store, backup, "test")
    with pytest.raises(Exists, match="--force"):
        await make_backup(home.store, backup, "test")
    (backup / "thesis.tex").write_text("years of work")
    with pytest.raises(Exists, match="not a backup"):
        await make_backup(home.store, backup, "test", force=True)
    assert (backup / "thesis.tex").read_text() == "years of work"
    (backup / "thesis.tex").unlink()
    await make_backup(home.store, backup, "test", force=True)
    for place_of in (home.data, home.data / "inside", tmp_path):
        with pytest.raises(Exists):
            await make_backup(home.store, place_of, "test", force=True)
    assert home.data.is_dir()


async def test_the_copy_is_private_and_one_file(tmp_path: Path, fake: FakeModels) -> None:
    async with opened(tmp_path / "data") as store, place(tmp_path, fake) as home:
        fake.script({"text": "ok"})
        await home.ask(await home.session())
        await make_backup(store, tmp_path / "backup", "test")
    assert sorted(os.listdir(tmp_path / "backup")) == [DATABASE, RECORD, FILES]
    for name in (DATABASE, RECORD):
        assert (tmp_path / "backup" / name).stat().st_mode & 0o077 == 0
    with sqlite3.connect(f"file:{tmp_path / 'backup' / DATABASE}?mode=ro", uri=True) as rows:
        assert rows.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_directory_is_copied_as_it_lies_and_again_only_what_changed(tmp_path: Path) -> None:
    """Links, hard links, holes, modes, extended attributes, names that are no UTF-8."""
    source, target = tmp_path / "a", tmp_path / "b"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_text("one")
    (source / "sub" / "same").hardlink_to(source / "sub" / "file")
    (source / "link").symlink_to("sub/file")
    (source / "dangling").symlink_to("/nowhere")
    os.mkfifo(source / "pipe")
    with (source / "holes").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(32 << 20)
        file.write(b"middle")
    os.close(os.open(os.fsencode(source) + b"/\xff", os.O_CREAT | os.O_WRONLY, 0o640))
    os.setxattr(source / "sub", "user.overlay.opaque", b"y")
    (source / "sub").chmod(0o550)
    first = make_equal(source, target)
    assert not first.refused
    assert (target / "sub" / "file").stat().st_ino == (target / "sub" / "same").stat().st_ino
    assert str((target / "dangling").readlink()) == "/nowhere" and (target / "pipe").is_fifo()
    assert (target / "holes").read_bytes() == (source / "holes").read_bytes()
    assert (target / "holes").stat().st_blocks < 1000
    assert os.getxattr(target / "sub", "user.overlay.opaque") == b"y"
    assert (target / "sub").stat().st_mode == (source / "sub").stat().st_mode
    assert os.path.lexists(os.fsencode(target) + b"/\xff")
    assert make_equal(source, target).changed == 0
    (source / "sub").chmod(0o750)
    (source / "sub" / "file").unlink()
    (source / "link").unlink()
    (source / "link").mkdir()
    (source / "link" / "now a directory").touch()
    assert make_equal(source, target).changed == 3
    assert sorted(os.listdir(target)) == sorted(os.listdir(source))
    assert os.listdir(target / "sub") == ["same"]
