"""A branch on disk: layers, manifest, bases, lock, journal, crashes (WS-3 … WS-7, WS-37, WS-59)."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.branches import branch_of, view_of
from support.patience import HANG_S

from bowerbird.core.errors import BranchBusy, InvalidWorkspace
from bowerbird.workspace.history.branch_journal import Journal, Step
from bowerbird.workspace.tree.manifest import ManifestFile
from bowerbird.workspace.workspace import Workspace

TREE = {"a/x": "1", "a/y": "2", "b/z/w": "3", "top": "4"}


def directory_of(tmp_path: Path, branch_id: str) -> Path:
    return tmp_path / "data/branches" / branch_id


async def test_another_process_writes_between_our_changes_but_not_during_a_turn(tmp_path):
    """WS-7, D-4, reliability 6: the lock was kept for five minutes after the last change."""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("n", "one")
        with branch.lock.pin("drives a turn on it"):
            done = _in_another_process(
                tmp_path,
                branch.id,
                "print((await b.read_file('n'))['content']); await b.write_file('n', 'x')",
            )
        assert done.stdout.strip() == "one"
        assert "BranchBusy" in done.stderr and "fork the branch" in done.stderr
        await branch.write_file("n", "two")
        branch.mark()
        await branch.write_file("m", "three")
        done = _in_another_process(tmp_path, branch.id, "print(b.changes().written, b.read_overlay('n'))")
        assert done.stdout.strip() == "('/m', '/n') b'two'"
        assert _in_another_process(tmp_path, branch.id, "await b.write_file('n', 'x')").returncode == 0
        assert (await branch.read_file("n"))["content"] == "x"


async def test_layers_that_another_process_joined_are_read_again(tmp_path):
    """D-4: a joined layer stands in the place of one that this process has in memory."""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("n", "1")
        branch.mark()
        await branch.write_file("m", "2")
        branch.mark()
        assert branch.read_overlay("n") == b"1"
        _in_another_process(tmp_path, branch.id, "await b.write_file('o', '3'); b.end_turn('t_1')")
        assert [branch.read_overlay(name) for name in "nmo"] == [b"1", b"2", b"3"]
        await branch.write_file("p", "4")
        branch.end_turn("t_2")
        assert branch.changes().record() == {"written": ["/m", "/n", "/o", "/p"], "deleted": []}


async def test_two_handles_of_one_process_write_and_see_each_other(tmp_path):
    """WS-7: one writer *process*."""
    with (
        branch_of(tmp_path, TREE) as branch,
        Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as second,
    ):
        other = second.open(branch.id)
        await branch.write_file("n", "1")
        await other.write_file("m", "2")
        branch.mark()
        await other.edit_file("n", "1", "3")
        assert (await branch.read_file("n"))["content"] == "3"
        assert (
            branch.changes().record() == other.changes().record() == {"written": ["/m", "/n"], "deleted": []}
        )


async def test_readers_always_see_one_state_while_the_branch_is_frozen_and_rolled_back(tmp_path):
    """WS-7: readers take no lock; a file is never missing, old bytes never come back."""
    with branch_of(tmp_path, {"f": "0"}) as branch:
        await branch.write_file("f", "1")
        stop = asyncio.Event()

        async def read() -> list[int]:
            seen: list[int] = []
            while not stop.is_set():
                seen.append(int((await branch.read_file("f"))["content"]))
            return seen

        readers = [asyncio.create_task(read()) for _ in range(3)]
        for number in range(2, 60):
            await asyncio.to_thread(branch._state.stack.lookup, "/f")
            await branch.write_file("f", str(number))
            mark = await asyncio.to_thread(branch.mark)
            await branch.write_file("other", "x")
            await asyncio.to_thread(branch.rollback, mark)
        stop.set()
        # Each by itself: what two of them read at the same time may be told in either order.
        for seen in await asyncio.gather(*readers):
            assert seen == sorted(seen) and seen[-1] <= 59
        assert branch.changes().written == ("/f",)


def test_the_lock_is_not_inherited_by_a_forked_process(tmp_path):
    from bowerbird.workspace.registry.lock import WriterLock

    lock = WriterLock(tmp_path / "lock")
    pin = lock.pin("tests it")
    child = os.fork()
    if child == 0:
        try:
            lock.pin("tests it, too", wait_s=0)
        except BranchBusy:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    pin.release()


async def test_the_journal_tells_who_did_what_in_order(tmp_path):
    """WS-37"""
    with branch_of(tmp_path, TREE) as branch:
        step = branch.bound("t_1", "call_1")
        await step.write_file("d/n", "12")
        await step.edit_file("top", "4", "44")
        await step.move("top", "moved")
        await step.set_executable("moved", True)
        await step.delete("a", recursive=True)
        await branch.mkdir("e")
        rows = branch.journal()
        assert [(row["seq"], row["action"], row["path"]) for row in rows] == [
            (1, "mkdir", "/d"), (2, "write", "/d/n"), (3, "write", "/top"), (4, "rename", "/moved"),
            (5, "chmod", "/moved"), (6, "delete", "/a/y"), (7, "delete", "/a/x"), (8, "rmdir", "/a"),
            (9, "mkdir", "/e"),
        ]  # fmt: skip
        assert {(row["turn"], row["call"], row["via"]) for row in rows[:8]} == {("t_1", "call_1", "tool")}
        assert (rows[1]["kind"], rows[1]["size"], rows[2]["kind"]) == ("create", 2, "modify")
        assert (rows[3]["src"], rows[3]["size"]) == ("/top", 2)
        rows[0]["path"] = rows[8]["turn"] = "changed by the caller"
        assert (branch.journal()[0]["path"], branch.journal()[8]["turn"]) == ("/d", None)
        assert branch.journal().dropped == 0


def test_the_journal_is_bounded_durable_and_survives_a_torn_line(tmp_path, monkeypatch):
    """WS-37"""
    monkeypatch.setattr("bowerbird.workspace.history.branch_journal.KEPT", 10)
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for number in range(40):
        journal.append([Step("write", f"/{number}")], turn=None, call=None)
    journal.close()
    assert [row["seq"] for row in Journal(path).records()] == list(range(31, 41))
    assert Journal(path).records().dropped == 30
    assert path.read_text().count("\n") <= 16
    with path.open("a") as file:
        file.write('{"seq": 41, "at')
    again = Journal(path)
    again.append([Step("delete", "/x")], turn="t", call="c", via="merge")
    assert [row["seq"] for row in again.records()][-2:] == [40, 41]
    again.close()


# ---------------------------------------------------------------- crashes

_CHILD = """
import asyncio, sys
from bowerbird.workspace.workspace import Workspace
async def main():
    with Workspace(sys.argv[1] + "/ws", data_dir=sys.argv[1] + "/data") as workspace:
        b = workspace.open(sys.argv[2])
{body}
asyncio.run(main())
"""


def _in_another_process(tmp_path: Path, branch_id: str, body: str) -> "subprocess.CompletedProcess[str]":
    code = _CHILD.format(body="\n".join(f"        {line}" for line in body.split("\n")))
    return subprocess.run(
        [sys.executable, "-c", code, tmp_path, branch_id],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )


async def test_after_kill_9_every_write_is_whole_or_absent(tmp_path):
    """WS-59: a child writes, moves and deletes for ever and is killed at random instants."""
    import random

    body = """
import itertools
print("ready", flush=True)
for n in itertools.count():
    await b.write_file("f/a", f"{n}\\n" * 20000)
    await b.edit_file("f/b", "x", f"{n}x", replace_all=True) if n else await b.write_file("f/b", "x" * 1000)
    await b.move("d", "e") if n % 2 == 0 else await b.move("e", "d")
    await b.delete("g", True)
    await b.write_file("g/h/i", "whole")
    b.mark() if n % 3 == 0 else None
    b.rollback(b.mark()) if n % 7 == 0 else None
"""
    with branch_of(tmp_path, {"d/one": "1", "d/sub/two": "2", "g/h/i": "whole", "f/b": "x"}) as branch:
        branch_id = branch.id
    rng = random.Random(5)
    code = _CHILD.format(body="\n".join(f"        {line}" for line in body.strip().split("\n")))
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", code, tmp_path, branch_id], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.0, 0.15))  # noqa: ASYNC251  # the instant of the kill is what is tested
            child.send_signal(signal.SIGKILL)
        with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
            branch = workspace.open(branch_id)
            view = await view_of(branch)
            if "/f/a" in view:
                lines = set(view["/f/a"][1][1].split())
                assert len(lines) == 1 and view["/f/a"][1][1].count(b"\n") == 20000
            assert "/g" not in view or view["/g/h/i"][1][1] == b"whole"
            for place in ("/d", "/e"):
                if place in view:
                    assert {p for p in view if p.startswith(place)} == {
                        place,
                        f"{place}/one",
                        f"{place}/sub",
                        f"{place}/sub/two",
                    }
            assert "/d" in view or "/e" in view
            assert branch.diff().written is not None
            if "/d" in view and "/e" in view:
                await branch.delete("e", True)  # a move was cut between its two halves
            if "/d" not in view:
                await branch.move("e", "d")
            if "/g" not in view:
                await branch.write_file("g/h/i", "whole")
            await branch.write_file("last", "x")  # the first write sweeps what the kill left
            assert list((directory_of(tmp_path, branch_id) / "work").iterdir()) == []


async def test_a_seal_that_was_cut_is_completed_when_the_branch_is_opened(tmp_path):
    """WS-59: the layer was renamed, the manifest not yet written."""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("n", "x")
        branch_id = branch.id
    here = directory_of(tmp_path, branch_id)
    (here / "open").rename(here / "layers/1")
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        branch = workspace.open(branch_id)
        assert branch.changes().written == ("/n",)
        await branch.write_file("m", "y")
        branch.mark()
        assert [layer.n for layer in ManifestFile(here).load().layers] == [1, 2]


def test_a_missing_workspace_and_a_file_are_told_apart(tmp_path):
    """WS-1"""
    with pytest.raises(InvalidWorkspace, match="workdir does not exist: "):
        Workspace(tmp_path / "nope")
    (tmp_path / "f").write_text("")
    with pytest.raises(InvalidWorkspace, match="workdir is not a directory: "):
        Workspace(tmp_path / "f")
