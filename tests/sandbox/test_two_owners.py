"""One branch, used in turns by two owners that know nothing of each other (D-4, reliability 6).

Each has its own handles, warm sandbox and mount, as two servers on one data directory have. Here they live in
one process, so that every step is certain; real processes alternate in `tests/sessions/test_shared_data.py`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.sandboxes import Bench, bench_of

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace


@asynccontextmanager
async def owners(tmp_path: Path, tier: str, hide: tuple[str, ...] = ()) -> AsyncIterator[tuple[Bench, Bench]]:
    settings = SandboxSettings(tier="copy", minimum="copy") if tier == "copy" else SandboxSettings()
    async with bench_of(
        tmp_path, {"log": "", "d/kept": "1"}, settings=settings, needs=tier, hide=hide
    ) as first:
        data_dir = first.host.data_dir
        host = SandboxHost(data_dir, settings)
        with Workspace(first.root, data_dir=data_dir) as workspace:
            branch = workspace.open(first.branch.id)
            second = Bench(first.root, branch, host)
            try:
                second.opened = await host.sandbox(branch)
                yield first, second
            finally:
                await host.close()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_each_sees_what_the_other_did_with_tools_and_commands(tmp_path: Path, tier: str) -> None:
    """A mount, a copy, layers in memory: all of it may be older than what the other wrote."""
    async with owners(tmp_path, tier) as pair:
        expected = ""
        for number in range(10):
            bench, other = pair[number % 2], pair[(number + 1) % 2]
            if (
                number % 3 == 0
            ):  # else what the other wrote last is in the open layer, below a mount made before
                bench.branch.mark()
            done = await bench.sandbox.run(
                f"cat log; cat open* >&2; echo {number} >> log; rm -f gone; touch made{number}", separate=True
            )
            assert done.stdout == expected
            assert number == 0 or done.stderr == str(number - 1)
            assert set(done.written) == {"/log", f"/made{number}"}
            expected += f"{number}\n"
            bench.branch.mark()  # so that the end of the turn joins layers, in the place of one the other has read
            await bench.branch.write_file(f"f{number}", str(number))
            await bench.branch.write_file("gone", str(number))
            assert (await other.branch.read_file("log"))["content"] == expected
            bench.branch.end_turn(f"t_{number}")
            await bench.branch.write_file("open", str(number))  # not frozen: only the open layer has it
            assert (await other.branch.read_file("open"))["content"] == str(number)
        for bench, other in (pair, pair[::-1]):  # what a mount once looked for in vain
            await bench.sandbox.run("cat late; echo 1 > early")
            await other.branch.write_file("late", "x")
            assert (await bench.sandbox.run("cat late")).output == "x"
            await other.branch.delete("late")
        for bench in pair:
            names = {str(path).strip("/") for path in (await bench.branch.list_files("**"))["files"]}
            assert names >= {f"f{n}" for n in range(10)} | {f"made{n}" for n in range(10)}
        assert pair[0].branch.changes() == pair[1].branch.changes()
        assert pair[0].branch.snapshots() == pair[1].branch.snapshots()
        landed = pair[1].branch.land()
        assert (tmp_path / "ws" / "log").read_text() == expected
        done = await pair[0].sandbox.run("cat log; echo x > after")
        assert done.output == expected
        landed.undo()
        assert (tmp_path / "ws" / "log").read_text() == ""


async def test_none_takes_away_what_hides_files_from_the_others_commands(tmp_path: Path) -> None:
    """Each has its own mask: one for both was removed under the other's mount (WS-9, SB-8; issue 10, point 5).

    It ended with files shown that are hidden, or with no command at all. Any landing could begin it: its
    directory in the workspace is a hidden name that comes and goes.
    """
    async with owners(tmp_path, "overlay", (".env",)) as pair:
        root = tmp_path / "ws"
        (root / ".env").write_text("KEY=1")
        for number, turn in enumerate((0, 0, 1, 0, 1, 1, 0)):
            bench = pair[turn]
            if number in {0, 1, 5}:  # the first has made a mask more than the other
                (root / f"d{number}").mkdir()
                (root / f"d{number}/.env").write_text("KEY=2")
            done = await bench.sandbox.run("cat .env d*/.env; find . -name .env; echo done")
            assert done.exit_code == 0 and done.output.endswith("done\n")
            assert "KEY" not in done.output and "\n./" not in done.output, done.output
