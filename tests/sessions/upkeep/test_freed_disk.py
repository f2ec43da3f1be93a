"""What nobody can go back to leaves the disk (reliability 10)."""

import asyncio
import fcntl
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.sessions import Place, writes

from bowerbird.sessions.upkeep import retention
from bowerbird.sessions.upkeep.forgetting import forget, free_blobs
from bowerbird.sessions.upkeep.retention import Removed, tidy
from bowerbird.store.journal.blobs import Blobs
from bowerbird.workspace.history import layer_shelf

LARGE = "one large message " * 20_000


async def later(home: Place, days: float) -> Removed:
    now = datetime.now(UTC) + timedelta(days=days)
    context = home.service._context
    return await tidy(
        home.store, context.audit, home.service.settings, home.service.delete, now, branches=context.branches
    )


def stored(home: Place) -> set[str]:
    """The blobs, made as old as those of yesterday."""
    found = {path for path in (home.data / "blobs").glob("*") if not path.name.startswith(".")}
    for path in found:
        os.utime(path, (time.time() - 86_400,) * 2)
    return {path.name for path in found}


async def test_a_blob_goes_with_the_last_session_that_names_it(home: Place) -> None:
    home.fake.script({"text": "ok"})
    first, second = await home.session(), await home.session()
    for thread in (first, second):
        await home.ask(thread, LARGE)
    shared = stored(home)
    assert shared
    await home.ask(first, LARGE + "and its own")
    own = stored(home) - shared
    assert own
    await home.service.delete(first)
    assert (await later(home, 8)).blobs == len(own)
    assert stored(home) == shared
    assert (await home.ask(second)).state == "done"
    await home.service.delete(second)
    assert (await later(home, 16)).blobs == len(shared)
    assert stored(home) == set() and not (home.data / "blobs.unreferenced").exists()


async def test_a_session_is_not_forgotten_while_another_process_looks_for_blobs_in_use(home: Place) -> None:
    """Who had looked through the rows dropped what was noted meanwhile: the blob stayed on the disk for ever."""
    home.fake.script({"text": "ok"})
    thread = await home.session()
    await home.ask(thread, LARGE)
    own = stored(home)
    other = os.open(home.data, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    forgetting = asyncio.create_task(forget(home.store, home.service._context.audit, [thread]))
    await asyncio.wait({forgetting}, timeout=0.5)
    assert not forgetting.done() and not (home.data / "blobs.unreferenced").exists()
    os.close(other)
    await forgetting
    assert await free_blobs(home.store) == len(own) and stored(home) == set()


async def test_bytes_stored_again_a_moment_ago_stay(home: Place) -> None:
    """The record that names them may not be written yet."""
    home.fake.script({"text": "ok"})
    thread = await home.session()
    await home.ask(thread, LARGE)
    (name,) = stored(home)
    home.store.blobs.put((home.data / "blobs" / name).read_bytes())
    await home.service.delete(thread)
    assert (await later(home, 8)).blobs == 0
    assert stored(home) == {name}
    assert (await later(home, 9)).blobs == 1, "later it goes: it stayed noted"


def test_a_removal_that_was_killed_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = Blobs(tmp_path)
    name = blobs.put(b"bytes").removeprefix("sha256:")
    os.utime(tmp_path / name, (0, 0))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", killed)
        blobs.remove(name, time.time())
    assert not blobs.has(name)
    blobs.remove_leftovers()
    assert blobs.get(name) == b"bytes"


async def test_layers_of_thinned_snapshots_leave_the_disk(
    home: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of old snapshots went; their layers stayed for ever."""
    monkeypatch.setattr(layer_shelf, "MOST_LAYERS", 4)
    monkeypatch.setattr(layer_shelf, "LAYERS_AFTER", 2)
    thread = await home.session()
    for turn in range(1, 15):
        home.fake.script(writes("f.txt", f"{turn}\n"), {"text": "ok"})
        await home.ask(thread)
    row = await home.service.get(thread)
    layers = home.data / "branches" / str(row.branch_id) / "layers"

    def count() -> int:
        return len([path for path in layers.iterdir() if path.name.isdecimal()])

    before = count()
    monkeypatch.setattr(retention, "NEWEST_SNAPSHOTS", 3)
    monkeypatch.setattr(retention, "EVERY_TENTH", 5)
    done = await later(home, 1)
    assert done.snapshots == 9 and count() <= before - 5
    assert (await later(home, 1)).snapshots == 0
    turns = {turn.n: turn.turn_id for turn in await home.service.turns(thread)}
    fork = await home.service.fork(thread, turns[10])
    branch = await home.service._context.branches.of(await home.service.get(fork.thread_id))
    assert (await branch.read_file("f.txt"))["content"] == "10\n"
