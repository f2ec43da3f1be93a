"""A branch on disk: layers, manifest, bases, lock, journal, crashes (WS-3 … WS-7, WS-37, WS-59)."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.branches import branch_of, view_of
from support.trees import read_tree, write_tree

from bowerbird.core.errors import BranchBusy, InvalidWorkspace
from bowerbird.workspace.capture import Capture
from bowerbird.workspace.journal import Journal, Step
from bowerbird.workspace.layers import Storage, make_whiteout, probe_storage
from bowerbird.workspace.manifest import ManifestFile
from bowerbird.workspace.nodes import Entry
from bowerbird.workspace.orig import OrigStore
from bowerbird.workspace.workspace import Workspace

TREE = {"a/x": "1", "a/y": "2", "b/z/w": "3", "top": "4"}


def directory_of(tmp_path: Path, branch_id: str) -> Path:
    return tmp_path / "data/branches" / branch_id


# ---------------------------------------------------------------- form on disk


async def test_layers_have_the_form_of_the_kernels_overlay(tmp_path):
    """WS-3: whiteouts are devices 0:0, a replaced directory is opaque, all is private to the user."""
    with branch_of(tmp_path, TREE) as branch:
        if branch._state.storage.reason:
            pytest.skip(branch._state.storage.reason)
        await branch.delete("top")
        await branch.delete("a", recursive=True)
        await branch.write_file("a/new", "5")
        here = directory_of(tmp_path, branch.id)
        assert stat.S_IMODE(here.stat().st_mode) == 0o700
        assert {p.name for p in here.iterdir()} >= {
            "manifest.json",
            "lock",
            "open",
            "work",
            "layers",
            "orig",
            "steps",
            "landings",
        }
        top = (here / "open/top").lstat()
        assert stat.S_ISCHR(top.st_mode) and top.st_rdev == 0
        assert os.getxattr(here / "open/a", "user.overlay.opaque") == b"y"
        branch.mark()
        assert (here / "layers/1/a/new").read_text() == "5" and list((here / "open").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_the_kernels_own_overlay_shows_the_same_tree(tmp_path):
    """WS-3: mounted with userxattr, read-only, the layers make exactly the merged view."""
    with branch_of(tmp_path, TREE | {"c/d/e": "6", "m/n": "7"}) as branch:
        if branch._state.storage.reason:
            pytest.skip(branch._state.storage.reason)
        await branch.delete("a", recursive=True)
        await branch.write_file("a/only", "x")
        branch.mark()
        await branch.move("b", "moved")
        await branch.edit_file("moved/z/w", "3", "three")
        child = branch.fork()
        await child.delete("top")
        await child.set_executable("a/only", True)
        child.mark()
        await child.delete("c/d/e")
        await child.mkdir("b/again")
        await child.delete("a", recursive=True)
        await child.mkdir("a")
        stack = child._state.stack
        lower = ":".join(str(path) for path in (stack.open_layer.path, *stack.lower_dirs))
        target = tmp_path / "mounted"
        target.mkdir()
        mount = ["mount", "-t", "overlay", "overlay", "-o", f"ro,userxattr,lowerdir={lower}", str(target)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("this system does not let tests mount an overlay")
        try:
            kernel = read_tree(target)
        finally:
            subprocess.run(["umount", target], check=True)
        ours = await view_of(child)
        assert {path: kind for path, (kind, _) in ours.items()} == {
            p: kind for p, (kind, _, _) in kernel.items()
        }
        assert {p: v for p, (kind, v) in ours.items() if kind == "file"} == {
            p: (mode, data) for p, (kind, mode, data) in kernel.items() if kind == "file"
        }


async def test_a_filesystem_without_whiteouts_keeps_deletions_in_json(tmp_path, monkeypatch):
    """WS-3: everything works, and the reason is kept for the tier's status."""
    missing = Storage(False, "no devices here")
    monkeypatch.setattr("bowerbird.workspace.registry.probe_storage", lambda directory: missing)
    with branch_of(tmp_path, TREE) as branch:
        await branch.delete("a", recursive=True)
        await branch.write_file("a/new", "5")
        await branch.delete("top")
        await branch.write_file("top", "again")
        await branch.delete("top")
        mark = branch.mark()
        layers = directory_of(tmp_path, branch.id) / "layers"
        assert json.loads((layers / "1.json").read_text()) == {"deleted": ["/top"], "opaque": ["/a"]}
        child = branch.fork()
        await child.delete("a", recursive=True)
        await child.mkdir("a")
        assert sorted(await view_of(child)) == ["/a", "/b", "/b/z", "/b/z/w"]
        assert sorted(await view_of(branch)) == ["/a", "/a/new", "/b", "/b/z", "/b/z/w"]
        await branch.delete("b", recursive=True)
        branch.rollback(mark)
        assert sorted(await view_of(branch)) == ["/a", "/a/new", "/b", "/b/z", "/b/z/w"]
        step = branch.bound("t_1", "c")
        await step.delete("a", recursive=True)
        await step.write_file("a/b", "x")
        branch.rollback(step.call_mark())
        assert sorted(await view_of(branch)) == ["/a", "/a/new", "/b", "/b/z", "/b/z/w"]
        await branch.write_file("b/z/w", "new")
        assert branch.changes() == {"written": ["/a/new", "/b/z/w"], "deleted": ["/a/x", "/a/y", "/top"]}


def test_the_probe_leaves_nothing_behind(tmp_path):
    """WS-3"""
    first = probe_storage(tmp_path)
    assert first == probe_storage(tmp_path) and bool(first.reason) != first.kernel_form
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- manifest


async def test_a_manifest_has_the_specified_keys_and_is_never_half_written(tmp_path):
    """WS-4"""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("n", "12345")
        branch.end_turn("t_1")
        data = json.loads((directory_of(tmp_path, branch.id) / "manifest.json").read_text())
        assert list(data) == [
            "v", "id", "name", "workspace", "parent", "policy", "hide", "private", "layers", "open", "merged",
            "created_at",
        ]  # fmt: skip
        [layer] = data["layers"]
        assert (layer["n"], layer["turn"], layer["paths"], layer["bytes"]) == (1, "t_1", 1, 5)
        assert layer["snapshot"].startswith("s_") and data["workspace"] == str(tmp_path / "ws")


async def test_a_corrupt_manifest_is_set_aside_and_rebuilt_and_harms_no_other(tmp_path):
    """WS-4, acceptance 14"""
    write_tree(tmp_path / "ws", TREE)
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        broken, other = workspace.branch("broken", hide=["h"]), workspace.branch("other")
        for branch in (broken, other):
            await branch.write_file("n", "frozen")
            branch.mark()
            await branch.delete("top")
        ids = (broken.id, other.id)
    manifest = directory_of(tmp_path, ids[0]) / "manifest.json"
    for damage in (b"", b'{"v": 1, "id": ', b"[]", b'{"v": 99}', os.urandom(200)):
        manifest.write_bytes(damage)
        with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
            branch = workspace.open(ids[0])
            assert branch.read_overlay("n") == b"frozen"
            assert branch.changes() == {"written": ["/n"], "deleted": ["/top"]}
            assert branch.hide == ("h",)
            damaged = {info.id: info.damaged for info in workspace.branches()}
            assert damaged == {ids[0]: True, ids[1]: False}
            assert workspace.open(ids[1]).changes() == branch.changes()
    assert len(list(manifest.parent.glob("manifest.json.corrupt-*"))) == 5


# ---------------------------------------------------------------- bases


async def test_a_base_is_what_stood_there_before_the_first_change(tmp_path):
    """WS-6: bytes, mode and type; the user's later edits do not touch it."""
    with branch_of(tmp_path, TREE) as branch:
        ws, stack = tmp_path / "ws", branch._state.stack
        (ws / "top").chmod(0o600)
        (ws / "link").symlink_to("top")
        await branch.write_file("top", "mine")
        await branch.write_file("top", "mine again")
        await branch.delete("link")
        await branch.delete("a", recursive=True)
        await branch.write_file("new", "x")
        (ws / "top").write_text("user's")
        (ws / "a/later").write_text("user's")
        top = stack.base("/top")
        assert top.entry and top.entry.source and not top.uncertain
        assert (top.entry.mode, top.entry.source.read_text()) == (0o600, "4")
        assert stack.base("/link").entry.target == "top"
        assert stack.base("/a/x").entry.source.read_text() == "1"
        assert stack.base("/new").entry is None
        assert stack.base("/b/z/w").entry.layer is None
        await branch.write_file("a/fresh", "x")
        assert stack.base("/a/fresh").entry is None


async def test_what_a_process_changes_gets_its_base_at_capture(tmp_path):
    """WS-6: uncertain when the user changed the file after the command began."""
    with branch_of(tmp_path, TREE) as branch:
        stack = branch._state.stack
        upper = stack.open_layer.path
        started = time.time_ns()
        (upper / "top").write_text("by a command")
        (upper / "made").write_text("x")
        (upper / "a").mkdir()
        (upper / "b").mkdir()
        make_whiteout(upper / "b/z")
        (tmp_path / "ws/top").write_text("user's")
        with branch._state.writing():
            first = Capture(stack, started, {})
            told = first.run()
            assert first.based == ["/b/z", "/b/z/w", "/made", "/top"]
            assert (told.written, told.deleted) == (("/made", "/top"), ("/b/z", "/b/z/w"))
            again = Capture(stack, started, first.told)
            assert (again.run().written, again.based) == ((), [])
        assert stack.base("/top").uncertain and not stack.base("/b/z/w").uncertain
        assert stack.base("/made").entry is None
        assert stack.base("/b/z/w").entry.source.read_text() == "3"
        assert branch.changes() == {"written": ["/made", "/top"], "deleted": ["/b/z", "/b/z/w"]}


def test_the_index_of_bases_stays_short_and_survives_a_torn_line(tmp_path):
    """WS-6, WS-59"""
    (tmp_path / "orig").mkdir()
    store = OrigStore(tmp_path / "orig")
    entry = Entry("file", 0o644, 1, 0, 0, source=tmp_path / "kept")
    (tmp_path / "kept").write_text("x")
    store.save("/stays", entry, tmp_path / "kept", uncertain=True)
    for _ in range(800):
        store.save("/goes", entry, tmp_path / "kept")
        store.forget(["/goes"])
    index = tmp_path / "orig/index.jsonl"
    assert index.read_text().count("\n") < 1100
    assert len(list((tmp_path / "orig").iterdir())) == 2
    with index.open("a") as file:
        file.write('["/torn", "fi')
    again = OrigStore(tmp_path / "orig")
    again.save("/after", None, None)
    store.refresh()
    for one in (store, again, OrigStore(tmp_path / "orig")):
        assert set(one.paths()) == {"/stays", "/after"}
        assert one.get("/stays").uncertain and one.get("/stays").entry.source.read_text() == "x"
    store.close()
    again.close()


# ---------------------------------------------------------------- lock, journal


async def test_another_process_cannot_write_the_branch_but_reads_it(tmp_path):
    """WS-7"""
    with branch_of(tmp_path, TREE) as branch:
        await branch.write_file("n", "one")
        done = _in_another_process(
            tmp_path, branch.id, "print((await b.read_file('n'))['content']); await b.write_file('n', 'x')"
        )
        assert done.stdout.strip() == "one"
        assert "BranchBusy" in done.stderr and "fork the branch" in done.stderr
        await branch.write_file("n", "two")
        branch.mark()
        await branch.write_file("m", "three")
        done = _in_another_process(tmp_path, branch.id, "print(b.changes()['written'], b.read_overlay('n'))")
        assert done.stdout.strip() == "['/m', '/n'] b'two'"
        branch_id = branch.id
    assert _in_another_process(tmp_path, branch_id, "await b.write_file('n', 'x')").returncode == 0


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
        assert branch.changes() == other.changes() == {"written": ["/m", "/n"], "deleted": []}


async def test_readers_always_see_one_state_while_the_branch_is_frozen_and_rolled_back(tmp_path):
    """WS-7: readers take no lock; a file is never missing, old bytes never come back."""
    with branch_of(tmp_path, {"f": "0"}) as branch:
        await branch.write_file("f", "1")
        stop = asyncio.Event()
        seen: list[int] = []

        async def read() -> None:
            while not stop.is_set():
                seen.append(int((await branch.read_file("f"))["content"]))

        readers = [asyncio.create_task(read()) for _ in range(3)]
        for number in range(2, 60):
            await asyncio.to_thread(branch._state.stack.lookup, "/f")
            await branch.write_file("f", str(number))
            mark = await asyncio.to_thread(branch.mark)
            await branch.write_file("other", "x")
            await asyncio.to_thread(branch.rollback, mark)
        stop.set()
        await asyncio.gather(*readers)
        assert seen == sorted(seen) and seen[-1] <= 59
        assert branch.changes()["written"] == ["/f"]


def test_the_lock_is_not_inherited_by_a_forked_process(tmp_path):
    from bowerbird.workspace.lock import WriterLock

    lock = WriterLock(tmp_path / "lock")
    lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            lock.acquire()
        except BranchBusy:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    lock.release()


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
    monkeypatch.setattr("bowerbird.workspace.journal.KEPT", 10)
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
        timeout=60,
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
            assert branch.diff()["written"] is not None
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
        assert branch.changes()["written"] == ["/n"]
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
