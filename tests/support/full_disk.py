"""A session service on a disk of its own that really gets full (SE-61, acceptance 10).

Run as a program in a user and mount namespace of its own: `full_disk.py DIRECTORY MIN_FREE_MB`. It mounts a
small tmpfs, so that nobody else's disk is filled, and writes what it saw as JSON to standard output.
"""

import asyncio
import ctypes
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place, writes

from bowerbird.core.errors import BowerbirdError

SIZE_MB = 48
ALONE = ["unshare", "--user", "--map-root-user", "--mount"]


def can_mount() -> bool:
    """Whether a disk of one's own can be made here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


def mount_small(directory: Path) -> None:
    """Mount a tmpfs that only this process and its children see."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={SIZE_MB}m,mode=0700".encode()
    if libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "a tmpfs cannot be mounted here")


def fill(directory: Path) -> Path:
    """Write until nothing more fits."""
    filler = directory / "filler"
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    os.write(descriptor, b"x" * size)
            except OSError:
                continue
    finally:
        os.close(descriptor)
    return filler


async def said(work: Any) -> str:
    """Return the name of the error that `work` raises, "" for none."""
    try:
        await work
    except (BowerbirdError, OSError) as error:
        return type(error).__name__
    return ""


def directories(home: Place) -> set[str]:
    """Return the directories of branches."""
    return {path.name for path in (home.data / "branches").iterdir()}


async def scenario(home: Place, disk: Path) -> dict[str, Any]:
    """Fill the disk in the middle of a turn, look around, make room, go on."""
    fake, service, seen = home.fake, home.service, dict[str, Any]()
    other = await home.session()
    fake.script({"text": "fine"})
    await home.ask(other, "before")
    unwanted = await home.session()
    filler = fill(disk)
    await service.delete(unwanted)
    seen["deleted"] = await said(service.get(unwanted))
    filler.unlink()
    service.store.space.is_low()  # as the next input does: the reserve is set aside again
    thread = await home.session()
    fake.script(writes("a.txt", "a\n"), {**writes("b.txt", "b" * 200_000), "ttft_s": 0.3})
    first = fake.request_count
    receipt = await service.submit(thread, "go")
    await fake.wait_requests(first + 2)
    filler = fill(disk)
    async with asyncio.timeout(HANG_S):
        turn = await service.wait(receipt.turn_id)
    seen["turn"] = [turn.state, (turn.error or {}).get("type"), (turn.error or {}).get("message")]
    fill(disk)  # what the reserve gave back, too
    seen["submit"] = await said(service.submit(other, "during"))
    before = directories(home)
    seen["begun"] = []
    for room in (0, 8192, 8192, 8192):  # none for a branch; for that, and none for its session
        os.truncate(filler, filler.stat().st_size - room)
        seen["begun"].append(await said(home.session()))
    seen["branches"] = len(directories(home) - before) - seen["begun"].count("")
    seen["read"] = [r.type for r in await service.history(other)][-1]
    seen["turns"] = len(await service.turns(other))
    filler.unlink()
    fake.script({**writes("b.txt", "b" * 200_000)}, {"text": "done"})
    await service.resume(turn.turn_id)
    async with asyncio.timeout(HANG_S):
        turn = await service.wait(turn.turn_id)
    seen["resumed"] = [turn.state, turn.stop_reason]
    branch = await service.branch(thread)
    seen["files"] = [branch.read_overlay("a.txt") == b"a\n", branch.read_overlay("b.txt") == b"b" * 200_000]
    fake.script({"text": "after"})
    seen["other"] = (await home.ask(other, "after")).state
    seqs = [r.seq for r in await service.history(thread)]
    seen["gapless"] = seqs == list(range(1, len(seqs) + 1))
    return seen


async def main(directory: Path, min_free_mb: int) -> None:
    with FakeModels() as fake:
        async with place(directory, fake, store_options={"min_free_mb": min_free_mb}) as home:
            seen = await scenario(home, directory)
        async with place(directory, fake, store_options={"min_free_mb": min_free_mb}) as again:
            seen["reopened"] = (await again.ask(await again.session(), "hello")).state
    database = sqlite3.connect(directory / "data" / "agent.db")
    seen["integrity"] = database.execute("PRAGMA integrity_check").fetchone()[0]
    database.close()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    mount_small(Path(sys.argv[1]))
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
