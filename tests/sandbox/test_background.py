"""SB-37, DE-27 … DE-30: commands that go on beside the conversation."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from support.patience import HANG_S
from support.sandboxes import bench_of

from bowerbird.core.errors import BranchBusy, InvalidArgument, LimitExceeded
from bowerbird.sandbox.background_record import OUTPUT_BYTES, BackgroundFile, BackgroundRun
from bowerbird.sandbox.host import SandboxHost
from bowerbird.workspace import Workspace

WAIT_FOR_GO = "until [ -e go ]; do sleep 0.01; done"
CHILD = """
import asyncio, sys
from pathlib import Path
from bowerbird.sandbox.host import SandboxHost
from bowerbird.workspace import Workspace

async def main():
    workspace = Workspace(sys.argv[1], data_dir=sys.argv[2])
    branch = workspace.branch()
    sandbox = await SandboxHost(Path(sys.argv[2])).sandbox(branch)
    task = await sandbox.background.start("echo begun; echo kept > kept.txt; echo ready; sleep 1000")
    while "ready" not in sandbox.background.poll(task)["output"]:
        await asyncio.sleep(0.01)
    print(branch.id, task, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_run_goes_on_while_other_commands_come_and_go_and_is_told_at_its_end(tmp_path):
    async with bench_of(tmp_path, {"a": "1"}) as bench:
        runs = bench.sandbox.background
        line = f"{WAIT_FOR_GO}; echo got $(cat go); echo made > made.txt"
        task = await runs.start(line)
        assert task.startswith("bg_") and runs.running == (task,)
        # The foreground command sees and changes the same files meanwhile.
        assert (await bench.sandbox.run("cat a; echo now > go.tmp; mv go.tmp go")).output == "1"
        await bench.until(lambda: bool(bench.ended))
        row = runs.poll(task)
        assert (row["status"], row["exit_code"], row["tail"]) == ("completed", 0, "got now\n")
        assert row["spill"] == f"/run/bowerbird/out/{task}.txt"
        assert "/made.txt" in bench.branch.changes().written
        [told] = bench.ended
        assert told.notification() == {
            "task_id": task, "status": "completed", "result": "got now",
            "command": line[:80],
        }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "timeout", "state", "code"),
    [
        pytest.param("exit 3", 60, "error", 3, id="error"),
        pytest.param("sleep 1000", 0.2, "timeout", 124, id="timeout"),
        pytest.param("echo ok", 60, "completed", 0, id="completed"),
    ],
)
async def test_the_state_says_how_a_run_ended(tmp_path, command, timeout, state, code):
    async with bench_of(tmp_path) as bench:
        task = await bench.sandbox.background.start(command, timeout=timeout)
        await bench.until(lambda: bool(bench.ended))
        row = bench.sandbox.background.poll(task)
        assert (row["status"], row["exit_code"]) == (state, code)


async def test_stop_kills_the_whole_tree_and_only_it(tmp_path):
    async with bench_of(tmp_path) as bench:
        runs = bench.sandbox.background
        other = await runs.start("sleep 1000")
        task = await runs.start("setsid sleep 1000 & (sleep 1000 &) ; echo up; sleep 1000")
        row = await runs.stop(task)
        assert row["status"] == "killed"
        assert runs.running == (other,)
        assert runs.untold() == [], "whoever stops a run knows of its end"
        with pytest.raises(InvalidArgument, match=other):
            runs.poll("bg_unknown")
        await runs.stop(other)
        listed = await bench.sandbox.run("ls /proc | grep -c '^[0-9]'")
        assert int(listed.output) < 10


async def test_eight_run_at_once_and_a_ninth_is_refused(tmp_path):
    async with bench_of(tmp_path) as bench:
        runs = bench.sandbox.background
        started = await asyncio.gather(*(runs.start("sleep 1000") for _ in range(9)), return_exceptions=True)
        refused = [e for e in started if isinstance(e, BaseException)]
        assert len(runs.running) == 8
        [error] = refused
        assert isinstance(error, LimitExceeded) and runs.running[0] in str(error)
        await runs.stop(runs.running[0])
        await runs.start("true")


async def test_output_is_bounded_and_whole_under_one_name_for_commands_and_file_tools(tmp_path):
    async with bench_of(tmp_path) as bench:
        runs = bench.sandbox.background
        task = await runs.start("seq 1 100000")
        await bench.until(lambda: bool(bench.ended))
        row = runs.poll(task)
        assert len(row["output"].encode()) <= OUTPUT_BYTES and row["truncated"]
        assert row["output"].startswith("1\n2\n") and row["tail"].endswith("99999\n100000\n")
        assert len(row["tail"].encode()) <= 500
        path = row["spill"]
        assert path in row["output"]
        read = await bench.branch.read_file(path, 50_000, 1)
        assert read["content"] == "50000\n"
        found = await bench.branch.search_files("^77777$", path)
        assert [(m["path"], m["line"]) for m in found["matches"]] == [(path, 77777)]
        seen = await bench.sandbox.run(f"tail -n 1 {path}; : > {path}")
        assert seen.output.startswith("100000\n") and "Read-only" in seen.output


async def test_bad_input_starts_nothing(tmp_path):
    async with bench_of(tmp_path) as bench:
        runs = bench.sandbox.background
        for command, timeout in (("", 1), ("true", 0), ("true", float("nan")), ("a\0b", 1)):
            with pytest.raises(InvalidArgument):
                await runs.start(command, timeout=timeout)
        assert runs.poll_all() == []


async def test_a_branch_is_held_until_the_end_and_then_frozen_with_the_turn(tmp_path):
    """WS-42."""
    async with bench_of(tmp_path, {"a": "1"}) as bench:
        task = await bench.sandbox.background.start(f"echo one > one; {WAIT_FOR_GO}; echo two > two")
        assert bench.branch.process_mark() is None, "nothing is frozen under a process"
        waiting = bench.branch.end_turn("t_1")
        assert waiting.turn != "t_1"
        await bench.sandbox.run("touch go")
        await bench.until(lambda: bool(bench.ended))
        assert bench.sandbox.background.poll(task)["status"] == "completed"
        last = bench.branch.snapshots()[-1]
        assert last.turn == "t_1" and last.live
        assert bench.branch.process_mark() is not None


async def test_a_killed_server_leaves_lost_runs_with_their_output_told_once(tmp_path):
    """SB-37, DE-30: real kill -9; no process of the run lives a second later."""
    async with bench_of(tmp_path):
        pass  # skips where no sandbox can be had
    data, root = tmp_path / "data", tmp_path / "ws"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(root), str(data), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    branch_id, task = (await asyncio.wait_for(child.stdout.readline(), HANG_S)).decode().split()
    child.send_signal(signal.SIGKILL)
    await child.wait()
    await _gone(data)
    with Workspace(root, data_dir=data) as workspace:
        branch = workspace.open(branch_id)
        assert SandboxHost.had_background(branch)
        host = SandboxHost(data)
        try:
            runs = (await host.sandbox(branch)).background
            [lost] = runs.untold()
            assert (lost.task_id, lost.state, lost.output) == (task, "lost", "begun\nready\n")
            runs.mark_told([task])
            assert await branch.read_bytes("kept.txt") == b"kept\n"
        finally:
            await host.close()
        assert BackgroundFile(data / "branches" / branch_id / "background.json").load()[0].told


async def _gone(data: Path) -> None:
    """Wait until no process has mounts of `data`; at most a second."""
    async with asyncio.timeout(1):
        while any(_uses(pid, str(data)) for pid in os.listdir("/proc") if pid.isdigit()):
            await asyncio.sleep(0.02)


def _uses(pid: str, data: str) -> bool:
    try:
        return data in Path(f"/proc/{pid}/mountinfo").read_text() and pid != str(os.getpid())
    except OSError:
        return False


async def test_an_orderly_end_kills_runs_and_the_next_process_finds_them_lost(tmp_path):
    async with bench_of(tmp_path) as bench:
        await bench.sandbox.background.start("echo begun; touch up; sleep 1000")
        await bench.shows("up")
        await bench.host.close()
        again = SandboxHost(tmp_path / "data")
        try:
            [run] = (await again.sandbox(bench.branch)).background.untold()
            assert (run.state, run.output) == ("lost", "begun\n")
        finally:
            await again.close()


def test_a_broken_record_counts_as_none_and_old_ends_are_forgotten(tmp_path):
    path = tmp_path / "background.json"
    path.write_text("{")
    file = BackgroundFile(path)
    assert file.load() == []
    runs = [BackgroundRun(f"bg_{n}", "x", "completed", "", 1, told=n != 0) for n in range(150)]
    file.save(runs)
    kept = [run.task_id for run in file.load()]
    assert len(kept) == 101 and kept[0] == "bg_0" and kept[-1] == "bg_149"


async def test_what_needs_a_quiet_branch_is_refused_or_waits_as_asked(tmp_path):
    """DE-31."""
    async with bench_of(tmp_path, {"a": "1"}) as bench:
        await bench.host.background_over(bench.branch.id)
        runs = bench.sandbox.background
        task = await runs.start(f"{WAIT_FOR_GO}; echo made > made.txt")
        with pytest.raises(BranchBusy, match=task):
            await bench.host.background_over(bench.branch.id)
        waiting = asyncio.create_task(bench.host.background_over(bench.branch.id, wait=True))
        await bench.sandbox.run("touch go")
        async with asyncio.timeout(HANG_S):
            await waiting
        assert runs.poll(task)["status"] == "completed"
        assert "/made.txt" in bench.branch.changes().written


async def test_whoever_stops_a_run_knows_of_its_end(tmp_path):
    """DE-28: its end is reported as told."""
    async with bench_of(tmp_path, {}) as bench:
        runs = bench.sandbox.background
        task = await runs.start("sleep 1000")
        assert (await runs.stop(task))["status"] == "killed"
        assert runs.untold() == [] and [run.told for run in bench.ended] == [True]
