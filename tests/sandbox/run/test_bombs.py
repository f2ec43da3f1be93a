"""D-8, finding security 6: whatever way a command takes memory, disk and files, it is ended, and nothing stays.

The sizes are small; `benchmarks/bombs.py` measures by how much the limits are overshot.
"""

import asyncio
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest
from support.abuse import TIERS, desk_of
from support.bombs import BOMBS, MIB, program
from support.patience import HANG_S

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.sandbox.run import watch
from bowerbird.sandbox.run.gauges import MemoryGauge, disk_gauge
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.warm_sandbox import Usage, WarmSandbox

pytestmark = pytest.mark.timeout(300)
LIMITS = RunLimits(
    memory_bytes=256 * MIB, pids=64, disk_bytes=64 * MIB, file_bytes=48 * MIB, disk_files=4_000
)
CASES = [(name, tier) for name, bomb in BOMBS.items() for tier in bomb.tiers if bomb.reason is not None]
MOST = {"empty-files": 60_000}


@pytest.mark.parametrize(("name", "tier"), CASES)
async def test_a_bomb_is_ended_and_nothing_of_it_stays(tmp_path, name: str, tier: str):
    bomb = BOMBS[name]
    async with desk_of(tmp_path, tier, {"a": "1"}, limits=LIMITS) as desk:
        await desk.run("echo before > before; echo mine > $HOME/mine")
        result = await desk.python(program(bomb), MOST.get(name, 900 * MIB), timeout=200)
        assert "GOT IT ALL" not in result.output
        assert (result.reason, result.exit_code) == (bomb.reason, 137), result
        assert result.oom == (bomb.reason == "memory")
        if bomb.reason == "disk":
            assert (result.written, result.deleted) == ([], [])
            assert result.note is not None and "taken back" in result.note
            assert desk.branch.changes().record() == {"written": ["/before"], "deleted": []}
            used, entries = desk.branch.processes().disk_used()
            assert used < 8 * MIB and entries < 100
        again = await desk.run("cat before $HOME/mine a; ls")
        assert (again.output, again.reason) == ("before\nmine\n1a\nbefore\n", None)
        await desk.assert_usable()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["socket-buffers", "memory-file-in-socket"])
async def test_what_others_give_back_meanwhile_hides_no_bomb(tmp_path, monkeypatch, name: str, tier: str):
    """Two such commands at once hid each other: the machine's own figures stood still while one grew."""
    still = MemoryGauge(available=1 << 40, shared=1 << 40, kernel=1 << 40)
    monkeypatch.setattr(watch, "memory_gauge", lambda: still)
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        result = await desk.python(program(BOMBS[name]), 900 * MIB, timeout=200)
        assert (result.reason, result.exit_code) == ("memory", 137), result


async def test_a_look_that_fails_does_not_end_the_watch(tmp_path, monkeypatch):
    looks = iter([True])
    usage = WarmSandbox.usage

    async def once_unable(sandbox: WarmSandbox, **how: bool) -> Usage:
        if next(looks, False):
            raise SandboxUnavailable("the sandbox refused: for once")
        return await usage(sandbox, **how)

    monkeypatch.setattr(WarmSandbox, "usage", once_unable)
    async with desk_of(tmp_path, "copy", limits=LIMITS) as desk:
        result = await desk.python(program(BOMBS["socket-buffers"]), 900 * MIB, timeout=200)
        assert (result.reason, result.exit_code) == ("memory", 137), result
        assert list(looks) == []


@pytest.mark.parametrize("tier", TIERS)
async def test_room_is_not_reserved_at_a_stroke_and_programs_write_instead(tmp_path, tier: str):
    """`fallocate` took 19 GB in 0.3 s: it is unknown here, as on file systems without it; so are its other names."""
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        result = await desk.python(program(BOMBS["fallocate"]), 40 * MIB)
        assert result.exit_code == 3 and "RESERVED" not in result.output
        answers = {row.split()[-1] for row in result.output.splitlines()}
        assert answers == {str(errno.EOPNOTSUPP)}, result.output
        written = await desk.python(
            "import ctypes, os\n"
            "f = os.open('f', os.O_CREAT | os.O_RDWR)\n"
            "os.posix_fallocate(f, 0, 1 << 20)\n"
            "holes = ctypes.CDLL(None).fallocate(f, 3, ctypes.c_long(0), ctypes.c_long(1 << 19))\n"
            "print(os.stat('f').st_size, os.stat('f').st_blocks >= 1024, holes)\n"
        )
        assert written.output == "1048576 True 0\n", "the C library writes instead; giving room back works"


@pytest.mark.parametrize("tier", TIERS)
async def test_what_others_wrote_meanwhile_is_never_taken_back(tmp_path, tier: str):
    """A tool's change beside the command is its own call: its outcome was told, so it stays."""
    async with desk_of(tmp_path, tier, {"a": "1"}, limits=LIMITS) as desk:
        run = desk.sandbox.background
        task = await run.start(
            "touch up; until [ -e go ]; do sleep 0.02; done; head -c 90M /dev/zero | split -b 8M"
        )
        while await desk.branch.stat("/up") is None:
            pass
        await desk.branch.write_file("by-a-tool", "told\n")
        await desk.branch.write_file("go", "")
        while task in run.running:
            await desk.branch.stat("/up")
        assert run.poll(task)["status"] == "error"
        assert (await desk.branch.read_file("by-a-tool"))["content"] == "told\n"
        assert "/xaa" in desk.branch.changes().written, "and so does the rest, which cannot be told apart"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_burst_that_ends_by_itself_is_over_the_limit_all_the_same(tmp_path, monkeypatch, tier: str):
    """Also when others give back as much meanwhile, so that the file system shows nothing of it."""
    if _counts_writes(tmp_path):
        monkeypatch.setattr(watch, "disk_gauge", partial(lambda still, _: still, disk_gauge(tmp_path)))
    limits = msgspec.structs.replace(LIMITS, disk_bytes=8 * MIB, file_bytes=32 * MIB)
    async with desk_of(tmp_path, tier, limits=limits) as desk:
        result = await desk.run("head -c 7M /dev/zero > a; head -c 7M /dev/zero > b")
        assert result.reason == "disk" and desk.branch.changes().written == ()
        await desk.assert_usable()


def _counts_writes(directory: Path) -> bool:
    """Whether the kernel counts what is written here; on disks in memory it does not."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_oublock
    (directory / "written").write_bytes(bytes(MIB))
    return resource.getrusage(resource.RUSAGE_SELF).ru_oublock > before


IN_A_SOCKET = (
    "import os, socket, sys, time\n"
    "near, far = socket.socketpair()\n"
    "kept = os.memfd_create('m') if sys.argv[1] == 'memory' else os.open('f', os.O_CREAT | os.O_RDWR)\n"
    "if sys.argv[1] == 'disk': os.unlink('f')\n"
    "os.write(kept, bytes(1 << 20)); socket.send_fds(near, [b'x'], [kept]); os.close(kept)\n"
    "open('up', 'w').close()\n"
    "while not os.path.exists('go'): time.sleep(0.02)\n"
    "time.sleep(0.6); print('unharmed')\n"
)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("held", "others"), [("disk", "memory"), ("memory", "disk")])
async def test_what_others_take_meanwhile_ends_no_command(tmp_path, tier: str, held: str, others: str):
    """D-8: the machine's figures say when to look; what is in a socket is counted by what it is, so the reason
    is the branch's own. A neighbour that fills memory or the disk ended commands that had a file on its way."""
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        run = desk.sandbox.background
        with desk.sandbox.shown_file("held.py", IN_A_SOCKET) as path:
            task = await run.start(["python3", path, held])
            while await desk.branch.stat("/up") is None and task in run.running:
                await asyncio.sleep(0.01)
            other = (
                os.memfd_create("m") if others == "memory" else os.open(tmp_path, os.O_TMPFILE | os.O_RDWR)
            )
            try:
                for _ in range(100):
                    os.write(other, bytes(4 * MIB))
                await desk.branch.write_file("go", "")
                await run.finished()
            finally:
                os.close(other)
        row = run.poll(task)
        assert (row["status"], row["output"]) == ("completed", "unharmed\n"), row


NEARLY_FULL = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.abuse import desk_of
from support.full_disk import mount_small
from bowerbird.core.errors import SandboxUnavailable

WRITES = (
    "import time\\nwith open('f', 'wb', 0) as file:\\n    try:\\n"
    "        for _ in range(100): file.write(bytes(1 << 20)); time.sleep(0.05)\\n"
    "    except OSError: pass\\n    time.sleep(600)\\n"
)

async def main():
    place = Path(sys.argv[2])
    mount_small(place)
    async with desk_of(place, sys.argv[3], {"a": "1"}) as desk:
        try:
            await desk.run("echo mine > mine")
        except SandboxUnavailable:
            sys.exit("no such tier")
        ended = await desk.python(WRITES, timeout=600)
        again = await desk.run("cat mine; ls")
        full = await desk.run("head -c 90000000 /dev/zero > torn; true")
        after = await desk.run("cat mine; ls")
    print(json.dumps([ended.reason, ended.note, ended.written, again.output]))
    print(json.dumps([full.reason, full.note, full.written, after.output]))

asyncio.run(main())
"""


ALONE = ["unshare", "--user", "--map-root-user", "--mount"]


def can_mount() -> bool:
    """Whether a disk of one's own can be made here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("tier", ["copy", "overlay"])
def test_a_command_that_fills_the_disk_is_ended_and_says_what_to_do(tmp_path, tier):
    """D-8, law 7: the server's own database needs the last of it; the text names the way out.

    One that ends by itself before the watch sees it leaves torn files, which are taken back as well.
    """
    if not can_mount():
        pytest.skip("this host gives no user namespaces: no disk of one's own can be filled")
    words = [sys.executable, "-c", NEARLY_FULL, str(Path(__file__).parents[2]), str(tmp_path), tier]
    ran = subprocess.run([*ALONE, *words], capture_output=True, text=True, timeout=HANG_S * 5, check=False)
    if "no such tier" in ran.stderr:
        pytest.skip(f"this host does not give the tier {tier} in a namespace of one's own")
    assert ran.returncode == 0, ran.stderr
    for line in ran.stdout.splitlines()[-2:]:
        reason, note, written, after = json.loads(line)
        assert (reason, written, after) == ("disk", [], "mine\na\nmine\n")
        assert "MiB left: make room (`bowerbird disk`" in note and "taken back" in note
