"""A branch on disk: layers, manifest, bases, lock, journal, crashes (WS-3 … WS-7, WS-37, WS-59)."""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from support.branches import branch_of, view_of
from support.trees import read_tree, write_tree

from bowerbird.workspace.processes.capture import Capture
from bowerbird.workspace.tree.fork_point import OrigStore
from bowerbird.workspace.tree.layers import Storage, make_whiteout, probe_storage
from bowerbird.workspace.tree.nodes import Entry
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
    monkeypatch.setattr("bowerbird.workspace.registry.registry.probe_storage", lambda directory: missing)
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
        assert branch.changes().record() == {
            "written": ["/a/new", "/b/z/w"],
            "deleted": ["/a/x", "/a/y", "/top"],
        }


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
            assert branch.changes().record() == {"written": ["/n"], "deleted": ["/top"]}
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
        assert (top.entry.mode, Path(top.entry.source).read_text()) == (0o600, "4")
        assert stack.base("/link").entry.target == "top"
        assert Path(stack.base("/a/x").entry.source).read_text() == "1"
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
        assert Path(stack.base("/b/z/w").entry.source).read_text() == "3"
        assert branch.changes().record() == {"written": ["/made", "/top"], "deleted": ["/b/z", "/b/z/w"]}


def test_the_index_of_bases_stays_short_and_survives_a_torn_line(tmp_path):
    """WS-6, WS-59"""
    (tmp_path / "orig").mkdir()
    store = OrigStore(tmp_path / "orig")
    entry = Entry("file", 0o644, 1, 0, 0, source=f"{tmp_path}/kept")
    (tmp_path / "kept").write_text("x")
    store.save("/stays", entry, f"{tmp_path}/kept", uncertain=True)
    for _ in range(800):
        store.save("/goes", entry, f"{tmp_path}/kept")
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
        assert one.get("/stays").uncertain and Path(one.get("/stays").entry.source).read_text() == "x"
    store.close()
    again.close()


# ---------------------------------------------------------------- lock, journal
