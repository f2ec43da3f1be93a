"""What is done to a branch while a process of it runs: the process sees it, and nothing it writes is lost."""

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.abuse import TIERS, Desk, desk_of
from support.patience import HANG_S

from bowerbird.core.errors import BranchBusy, LandingRefused, Stale
from bowerbird.workspace import Branch, Workspace

pytestmark = pytest.mark.timeout(120)
FILES = {"a.txt": "a\n", "d/b.txt": "b\n", "d/gone.txt": "old\n", "keep.txt": "kept\n"}
WAIT = "touch ready; while [ ! -e go ]; do sleep 0.02; done; "


@contextlib.asynccontextmanager
async def beside(desk: Desk, command: str) -> AsyncGenerator[None]:
    """Run a command in the background that says `ready` and writes on when there is a file `go`."""
    running = await desk.sandbox.begin(desk.sandbox.request(WAIT + command, timeout=60))
    try:
        async with asyncio.timeout(HANG_S):
            while await desk.branch.stat("ready") is None:
                await asyncio.sleep(0.01)
        yield
        await desk.branch.write_file("go", "")
        await running.wait()
    finally:
        running.stop("cancel")
        await running.wait()
        await desk.sandbox.end(running)


async def text_of(branch: Branch, path: str) -> str:
    return (await branch.read_file(path))["content"]


@pytest.mark.parametrize("tier", TIERS)
async def test_a_process_sees_what_is_merged_beside_it_and_what_it_writes_later_is_on_the_branch(
    tier: str, tmp_path: Path
) -> None:
    async with desk_of(tmp_path, tier, FILES) as desk:
        fork = desk.branch.fork()
        await fork.write_file("a.txt", "of the fork\n")
        await fork.write_file("new/deep/c.txt", "new\n")
        await fork.delete("d/gone.txt")
        async with beside(desk, "echo two > two; cat a.txt new/deep/c.txt > seen; ls d > listed"):
            merged = desk.branch.merge(fork)
            assert merged.conflicts == () and len(merged.written) >= 2
            assert await text_of(desk.branch, "a.txt") == "of the fork\n"
        assert await text_of(desk.branch, "two") == "two\n"
        assert await text_of(desk.branch, "seen") == "of the fork\nnew\n"
        assert await text_of(desk.branch, "listed") == "b.txt\n"
        assert desk.branch.merge(fork).written == (), "what was merged is remembered"
        desk.branch.land(partial=True)
        assert (desk.root / "a.txt").read_text() == "of the fork\n"
        assert not (desk.root / "d/gone.txt").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_a_fork_whose_own_process_writes_on_is_merged_as_it_is_and_again_later(
    tier: str, tmp_path: Path
) -> None:
    async with desk_of(tmp_path, tier, FILES) as desk:
        trunk = desk.branch
        desk.branch = trunk.fork()
        desk.sandbox = await desk.host.sandbox(desk.branch)
        async with beside(desk, "echo two > two"):
            await desk.branch.write_file("one", "one\n")
            trunk.merge(desk.branch)
            assert await text_of(trunk, "one") == "one\n"
        assert await text_of(desk.branch, "two") == "two\n"
        trunk.merge(desk.branch)
        assert await text_of(trunk, "two") == "two\n"


@pytest.mark.parametrize("how", ["rollback", "restore"])
async def test_going_back_under_a_process_is_refused_and_says_to_stop_it(how: str, tmp_path: Path) -> None:
    async with desk_of(tmp_path, "overlay", FILES) as desk:
        await desk.branch.write_file("a.txt", "first\n")
        mark, snapshot = desk.branch.mark(), desk.branch.end_turn("t_1").id
        await desk.branch.write_file("a.txt", "second\n")
        async with beside(desk, "echo two > two"):
            with pytest.raises(BranchBusy, match="stop it"):
                desk.branch.rollback(mark) if how == "rollback" else desk.branch.restore(snapshot)
            assert await text_of(desk.branch, "a.txt") == "second\n"
        assert await text_of(desk.branch, "two") == "two\n"
        desk.branch.restore(snapshot)
        assert await text_of(desk.branch, "a.txt") == "first\n"


KILLED = """
import asyncio, os, sys
from pathlib import Path
from bowerbird.sandbox.host import SandboxHost
from bowerbird.workspace import Workspace

async def main():
    workspace = Workspace(sys.argv[1], data_dir=sys.argv[2])
    branch = workspace.branch()
    fork = branch.fork()
    for name in ("a.txt", "m.txt", "z.txt"):
        await fork.write_file(name, "of the fork\\n")
    sandbox = await SandboxHost(Path(sys.argv[2])).sandbox(branch)
    await sandbox.background.start("echo one > one; touch ready; sleep 1000")
    while await branch.stat("ready") is None:
        await asyncio.sleep(0.01)
    print(branch.id, fork.id, flush=True)
    def die_at_the_last_file(event, arguments):
        if event == "os.rename" and b"z.txt" in [os.fsencode(a) for a in arguments if isinstance(a, (str, bytes))]:
            os.kill(os.getpid(), 9)
    sys.addaudithook(die_at_the_last_file)
    branch.merge(fork)

asyncio.run(main())
"""


async def test_a_merge_cut_by_a_kill_beside_a_process_left_nothing_and_can_be_made_again(
    tmp_path: Path,
) -> None:
    async with desk_of(tmp_path, "overlay", FILES):
        pass  # skips where no sandbox can be had
    words = [sys.executable, "-c", KILLED, str(tmp_path / "ws"), str(tmp_path / "data")]
    died = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
    assert died.returncode == -9, died.stderr
    trunk_id, fork_id = died.stdout.split()
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        trunk = workspace.open(trunk_id)
        assert await text_of(trunk, "a.txt") == "a\n"
        assert await trunk.stat("m.txt") is None
        assert await text_of(trunk, "one") == "one\n", "what the process wrote before stays"
        assert set(trunk.merge(fork_id).written) == {"/a.txt", "/m.txt", "/z.txt"}


WRITER = """
n=0
while [ ! -e stop ]; do
  n=$((n+1)); echo $n >> NAME.log; mkdir -p NAME/$((n % 3)); echo $n > NAME/$((n % 3))/$n
  [ $((n % 5)) = 0 ] && echo $n > NAME.tmp && mv NAME.tmp NAME.last
  sleep 0.01
done
echo $n
"""


async def one_history(place: Path, tier: str, seed: int) -> list[str]:
    """Let two processes write while everything else is done to their branch; return what was refused."""
    chance, refused = random.Random(seed), list[str]()
    async with desk_of(place, tier, FILES) as desk:
        runs = desk.sandbox.background
        tasks = {name: await runs.start(WRITER.replace("NAME", name), timeout=60) for name in ("p", "q")}
        snapshot, mark = desk.branch.end_turn("t_0").id, desk.branch.mark()
        wanted: dict[str, str] = {}

        async def forked(number: int) -> None:
            fork = desk.branch.fork()
            for name in chance.sample(("a.txt", "d/b.txt", f"n{number}.txt", f"e{number}/f.txt"), 2):
                await fork.write_file(name, f"{number}\n")
                await asyncio.sleep(chance.random() / 50)
                wanted[name] = f"{number}\n"
            merged = await asyncio.to_thread(desk.branch.merge, fork, force=True)
            assert merged.skipped == ()

        async def saved(number: int) -> None:
            (desk.root / f"user{number}.txt").write_text("the user's\n")
            await desk.branch.write_file("tool.txt", f"{number}\n")
            wanted["tool.txt"] = f"{number}\n"

        async def landed(number: int) -> None:
            with contextlib.suppress(LandingRefused):
                await asyncio.to_thread(desk.branch.land, partial=True)
            desk.branch.begin_turn()

        async def froze(number: int) -> None:
            desk.branch.mark()
            await asyncio.to_thread(desk.branch.end_turn, f"t_{number}")

        async def went_back(number: int) -> None:
            if tier == "overlay":  # in a copy, what is taken back is taken back from the process, too
                with pytest.raises(BranchBusy, match="stop it"):
                    desk.branch.restore(snapshot) if chance.random() < 0.5 else desk.branch.rollback(mark)

        for number in range(10):
            await asyncio.sleep(chance.random() / 20)
            try:
                await chance.choice((forked, forked, saved, landed, froze, went_back))(number)
            except (Stale, BranchBusy) as error:
                refused.append(str(error))
        await desk.branch.write_file("stop", "")
        for name, task in tasks.items():
            async with asyncio.timeout(HANG_S):
                while runs.poll(task)["status"] == "running":
                    await asyncio.sleep(0.01)
            count = int(runs.poll(task)["output"])
            assert (await text_of(desk.branch, f"{name}.log")).split() == [str(n + 1) for n in range(count)]
            for n in range(1, count + 1):
                assert await text_of(desk.branch, f"{name}/{n % 3}/{n}") == f"{n}\n"
            if count >= 5:
                assert await text_of(desk.branch, f"{name}.last") == f"{count - count % 5}\n"
        for name, text in wanted.items():
            assert await text_of(desk.branch, name) == text
        seen = await desk.run("cat p.log q.log " + " ".join(wanted))
        assert seen.exit_code == 0
    return refused


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tier", TIERS)
async def test_nothing_that_processes_write_is_lost_whatever_is_done_to_their_branch(
    tier: str, seed: int, tmp_path: Path
) -> None:
    assert await one_history(tmp_path, tier, seed) == [], "only going back is refused"


async def test_a_merge_that_fails_half_way_beside_a_process_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_of(tmp_path, "overlay", FILES) as desk:
        fork = desk.branch.fork()
        for name in ("a.txt", "m.txt", "z.txt"):
            await fork.write_file(name, "of the fork\n")
        async with beside(desk, "echo two > two"):
            from bowerbird.workspace.processes import live_layer

            put = live_layer.LiveLayer.put

            def put_late(self, path, *args, **options):
                if path == "/z.txt":
                    raise OSError(28, "No space left on device")
                return put(self, path, *args, **options)

            monkeypatch.setattr(live_layer.LiveLayer, "put", put_late)
            with pytest.raises(OSError, match="No space"):
                desk.branch.merge(fork)
            monkeypatch.undo()
            assert await text_of(desk.branch, "a.txt") == "a\n"
            assert await desk.branch.stat("m.txt") is None
            assert set(desk.branch.merge(fork).written) == {"/a.txt", "/m.txt", "/z.txt"}
        assert await text_of(desk.branch, "two") == "two\n"
