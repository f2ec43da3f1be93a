"""D-21: a name stands for a whole copy at every moment, and two at once are one after the other, or refused."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place
from support.stores import URL

from bowerbird.core.errors import Exists
from bowerbird.sessions.transfer.backup import is_backup, make_backup, restore_backup
from bowerbird.sessions.transfer.exporting import MARK, export_state
from bowerbird.store import Store
from bowerbird.workspace.filled_beside import give_name


@pytest.fixture
async def home(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Place]:
    """Sessions in a SQLite file, so that another process opens them by its directory alone."""
    async with place(tmp_path, fake) as made:
        yield made


REPLACED = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from bowerbird.sessions.transfer.backup import make_backup
from bowerbird.sessions.transfer.exporting import export_state
from bowerbird.store import Store

what, data, target, fatal = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
seen = 0

def counted(real):
    def call(*arguments, **options):
        global seen
        if str(target) in str(arguments[0]) or f".{target.name}." in str(arguments[0]):
            seen += 1
            if seen == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return call

Path.rename, shutil.rmtree = counted(Path.rename), counted(shutil.rmtree)

async def main():
    store = await Store.open("sqlite+aiosqlite:///agent.db", data_dir=data)
    if what == "backup":
        await make_backup(store, target, "test", force=True)
    else:
        await export_state(store, target, force=True)
    await store.aclose()

asyncio.run(main())
"""


def deaths(what: str, data: Path, target: Path) -> Iterator[None]:
    """Replace `target` by processes that die a step later each time, until one comes to its end."""
    for fatal in range(1, 20):
        command = [sys.executable, "-c", REPLACED, what, str(data), str(target), str(fatal)]
        code = subprocess.run(command, check=False, timeout=HANG_S).returncode
        yield
        if code == 0:
            return
        assert code == -signal.SIGKILL
    pytest.fail("no process came to its end")


async def test_a_backup_that_is_replaced_is_there_whoever_is_killed(home: Place, tmp_path: Path) -> None:
    await home.ask(await home.session())
    backup = tmp_path / "backup"
    await make_backup(home.store, backup, "test")
    for _ in deaths("backup", home.data, backup):
        assert is_backup(backup)
    await make_backup(home.store, backup, "test", force=True)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".backup.")] == []


async def test_an_export_that_is_replaced_is_there_whoever_is_killed(home: Place, tmp_path: Path) -> None:
    await home.ask(await home.session())
    export = tmp_path / "export"
    await export_state(home.store, export)
    for _ in deaths("export", home.data, export):
        assert (export / MARK).is_file()
    await export_state(home.store, export, force=True)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".export.")] == []


def test_of_two_that_make_the_same_directory_the_second_replaces_nothing(tmp_path: Path) -> None:
    made, target = tmp_path / ".export.new", tmp_path / "export"
    for directory in (made, target):
        directory.mkdir()
    (made / "mine").touch()
    (target / "of the first").touch()
    with pytest.raises(Exists, match="meanwhile"):
        give_name(made, target, replaces=False)
    assert os.listdir(target) == ["of the first"] and os.listdir(made) == ["mine"]
    (target / "of the first").unlink()
    give_name(made, target, replaces=False)
    assert os.listdir(target) == ["mine"]


RESTORES = """
import asyncio, sys
from pathlib import Path
from bowerbird.sessions.transfer.backup import restore_backup
from bowerbird.store import Store

async def opened():
    print("files are in place", flush=True)
    sys.stdin.readline()
    return await Store.open("sqlite+aiosqlite:///agent.db", data_dir=Path(sys.argv[2]))

asyncio.run(restore_backup(Path(sys.argv[1]), Path(sys.argv[2]), opened))
"""


async def test_a_second_restore_into_one_directory_leaves_the_first_alone(
    home: Place, tmp_path: Path
) -> None:
    """It took what the first had brought so far for what a killed one left, and removed it."""
    thread = await home.session()
    await home.ask(thread)
    backup, data = tmp_path / "backup", tmp_path / "other" / "data"
    await make_backup(home.store, backup, "test")
    data.parent.mkdir()
    first = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RESTORES, str(backup), str(data),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert first.stdin is not None and first.stdout is not None
    assert await asyncio.wait_for(first.stdout.readline(), HANG_S)
    with pytest.raises(Exists, match="another restore"):
        await restore_backup(backup, data, partial(Store.open, URL, data_dir=data))
    first.stdin.write(b"\n")
    assert await asyncio.wait_for(first.wait(), HANG_S) == 0
    assert sorted(os.listdir(data.parent)) == ["data"] and ".agent.db" not in os.listdir(data)
    assert (data / "sessions" / f"{thread}.jsonl").is_file()
