"""Forks, marks, snapshots, long stacks, the trash, broken records (WS-1, WS-4, WS-40 … WS-44)."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.branches import view_of

from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, NotFound, Stale
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.history.layer_shelf import LAYERS_AFTER, MOST_LAYERS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a").write_bytes(b"1\n2\n3\n")
    (made / "d").mkdir()
    (made / "d" / "x").write_bytes(b"x\n")
    return made


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def branch(workspace: Workspace) -> Branch:
    return workspace.branch("main")


async def read(branch: Branch, path: str) -> bytes:
    return await branch.read_bytes(path)


async def test_a_fork_and_its_parent_never_see_each_others_later_changes(branch: Branch) -> None:
    await branch.write_file("a", "parent\n")
    child = branch.fork("child")
    await branch.write_file("a", "later\n")
    await child.write_file("b", "child\n")
    assert await read(child, "a") == b"parent\n" and await read(branch, "a") == b"later\n"
    assert child.changes().record() == {"written": ["/b"], "deleted": []}
    assert child.parent == {"branch": branch.id, "snapshot": branch.snapshots()[0].id}
    with pytest.raises(NotFound):
        await read(branch, "b")


async def test_rollback_drops_everything_above_a_mark(branch: Branch) -> None:
    await branch.write_file("a", "kept\n")
    mark = branch.mark()
    assert branch.mark() == mark  # nothing changed since
    await branch.delete("d", recursive=True)
    branch.mark()
    await branch.write_file("a", "gone\n")
    branch.rollback(mark)
    assert await read(branch, "a") == b"kept\n" and await read(branch, "d/x") == b"x\n"
    assert branch.changes().record() == {"written": ["/a"], "deleted": []}
    await branch.write_file("z", "new layer, other number\n")
    assert branch.mark() != mark


async def test_a_fork_from_a_dropped_state_keeps_its_files(branch: Branch) -> None:
    """WS-43: a frozen layer goes only when nothing refers to it."""
    mark = branch.mark()
    await branch.write_file("one", "1")
    branch.mark()
    await branch.write_file("two", "2")
    child = branch.fork()
    branch.rollback(mark)
    await branch.write_file("three", "3")
    branch.end_turn("t_1")
    assert set(child.changes().written) == set()
    assert await read(child, "one") == b"1" and await read(child, "two") == b"2"


async def test_marks_of_an_ended_turn_are_stale(branch: Branch) -> None:
    await branch.write_file("a", "1")
    mark = branch.mark()
    await branch.write_file("b", "2")
    branch.end_turn("t_1")
    with pytest.raises(Stale, match="its turn ended"):
        branch.rollback(mark)


async def test_a_turn_becomes_one_snapshot_of_linked_files(branch: Branch, tmp_path: Path) -> None:
    """WS-42."""
    for name in ("a", "b", "c"):
        await branch.bound(turn="t_1").write_file(name, name)
        branch.mark()
    layers = tmp_path / "data/branches" / branch.id / "layers"
    inode = next(layers.glob("*/b")).stat().st_ino
    snapshot = branch.end_turn("t_1")
    assert [p.name for p in layers.iterdir() if p.is_dir()] == [str(snapshot.n)]
    assert (layers / str(snapshot.n) / "b").stat().st_ino == inode
    assert branch.end_turn("t_2").id == snapshot.id  # nothing changed: the one before
    (record,) = branch.snapshots()
    assert record.record() == {
        "id": snapshot.id, "n": snapshot.n, "turn": "t_1", "paths": 3, "bytes": 3,
        "created_at": snapshot.created_at, "live": False,
    }  # fmt: skip


async def test_restore_is_a_new_change_and_reversible(branch: Branch) -> None:
    await branch.write_file("a", "first\n")
    first = branch.end_turn("t_1")
    await branch.delete("d", recursive=True)
    await branch.write_file("a", "second\n")
    await branch.write_file("new", "n\n")
    second = branch.end_turn("t_2")
    seen = await view_of(branch)
    assert set(branch.restore(first.id)) == {"/a", "/d", "/d/x", "/new"}
    assert await read(branch, "a") == b"first\n" and await read(branch, "d/x") == b"x\n"
    assert branch.changes().record() == {"written": ["/a"], "deleted": []}
    branch.restore(second.id)
    assert await view_of(branch) == seen
    assert [row.path for row in branch.diff(since=first.id).written] == ["/a", "/new"]
    with pytest.raises(NotFound, match="no snapshot"):
        branch.restore("s_nothing")


async def test_long_stacks_are_joined_and_nothing_shows_of_it(branch: Branch, tmp_path: Path) -> None:
    """WS-43."""
    snapshots: list[str] = []
    forks: list[tuple[Branch, int]] = []
    for number in range(MOST_LAYERS):
        await branch.write_file(f"f{number % 7}", f"{number}\n")
        if number % 20 == 3:
            await branch.delete("d/x") if number == 3 else await branch.write_file("d/x", f"{number}\n")
        snapshots.append(branch.end_turn(f"t_{number}").id)
        if number % 30 == 10:
            forks.append((branch.fork(), number))
    before, changes = await view_of(branch), branch.changes()
    await branch.write_file("f0", "last\n")
    snapshots.append(branch.end_turn("t_last").id)
    manifest = (tmp_path / "data/branches" / branch.id / "manifest.json").read_text()
    assert manifest.count('"frozen_at"') <= LAYERS_AFTER
    after = await view_of(branch)
    before["/f0"] = after["/f0"]
    assert after == before and branch.changes() == changes
    assert [row.id for row in branch.snapshots()] == snapshots
    for child, number in forks:
        assert await read(child, f"f{number % 7}") == f"{number}\n".encode()
    inside = branch.fork(snapshot=snapshots[12])
    assert await read(inside, "f5") == b"12\n" and await read(inside, "f6") == b"6\n"
    branch.restore(snapshots[12])
    assert await read(branch, "f5") == b"12\n"


async def test_nothing_is_swapped_under_background_processes(branch: Branch) -> None:
    """WS-42."""
    await branch.write_file("a", "before\n")
    first = branch.end_turn("t_1")
    with branch.background():
        await branch.write_file("b", "by the server\n")
        inode = branch.processes().dirs().upper_inode
        mark = branch.mark()
        assert branch.end_turn("t_2").id == first.id
        child = branch.fork()
        assert branch.processes().dirs().upper_inode == inode and branch.mark() == branch.mark() != ""
        assert await read(child, "b") == b"by the server\n"
    assert mark and branch.snapshots()[-1].live is True
    assert branch.changes().record() == {"written": ["/a", "/b"], "deleted": []}


async def test_a_discarded_branch_can_be_restored_and_its_forks_go_on(
    workspace: Workspace, branch: Branch
) -> None:
    """WS-44."""
    await branch.write_file("a", "kept\n")
    child = branch.fork()
    branch.discard()
    assert [row.id for row in workspace.branches()] == [child.id]
    assert [row.id for row in workspace.discarded()] == [branch.id]
    with pytest.raises(NotFound, match="in the trash"):
        workspace.open(branch.id)
    assert await read(child, "a") == b"kept\n"
    again = workspace.restore_discarded(branch.id)
    assert await read(again, "a") == b"kept\n" and workspace.discarded() == []


async def test_the_trash_is_emptied_after_7_days_but_not_under_a_fork(
    workspace: Workspace, branch: Branch
) -> None:
    await branch.write_file("a", "kept\n")
    child, lonely = branch.fork(), workspace.branch()
    branch.discard()
    lonely.discard()
    registry = workspace._shared.registry  # pyright: ignore -- seven days pass by an argument
    soon = time.time()
    assert registry.empty_trash(soon + 6 * 86400) == []
    assert registry.empty_trash(soon + 8 * 86400) == [lonely.id]
    assert await read(child, "a") == b"kept\n"


async def test_a_reopened_child_finds_its_parents_layers(root: Path, tmp_path: Path) -> None:
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await branch.write_file("a", "parent\n")
        child = branch.fork()
        await child.write_file("b", "child\n")
        grandchild = child.fork()
        branch.discard()
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        opened = workspace.open(grandchild.id)
        assert await read(opened, "a") == b"parent\n" and await read(opened, "b") == b"child\n"


async def test_one_corrupt_manifest_is_set_aside_and_the_others_work(root: Path, tmp_path: Path) -> None:
    """Acceptance 14."""
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        broken, fine = workspace.branch("broken"), workspace.branch("fine")
        await broken.write_file("a", "broken\n")
        broken.end_turn("t_1")
        await fine.write_file("a", "fine\n")
    folder = tmp_path / "data/branches" / broken.id
    (folder / "manifest.json").write_text('{"v":1,"id":"b_')
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        assert {row.id: row.damaged for row in workspace.branches()} == {broken.id: True, fine.id: False}
        assert await read(workspace.open(broken.id), "a") == b"broken\n"
        assert await read(workspace.open(fine.id), "a") == b"fine\n"
        assert [p.name for p in folder.glob("manifest.json.corrupt-*")] != []


def test_wrong_directories_and_policies_are_named(root: Path, tmp_path: Path) -> None:
    """WS-1, WS-8."""
    with pytest.raises(InvalidWorkspace, match="workdir does not exist: "):
        Workspace(tmp_path / "none")
    with pytest.raises(InvalidWorkspace, match="workdir is not a directory: "):
        Workspace(root / "a")
    with pytest.raises(InvalidWorkspace, match="inside the data directory"):
        Workspace(root, data_dir=tmp_path)
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        with pytest.raises(InvalidArgument, match="use review, turn or step"):
            workspace.branch(policy="always")
        branch = workspace.branch(policy="turn")
        branch.set_policy("step")
        assert branch.policy == "step"


def test_a_temporary_data_directory_goes_with_its_owner(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WS-1: removed at close, or by a later start when its owner was killed."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    code = "import os, signal, sys; from bowerbird.workspace import Workspace; w = Workspace(sys.argv[1]); "
    code += "w.branch(); os.kill(os.getpid(), signal.SIGKILL)"
    dead = subprocess.run([sys.executable, "-c", code, str(root)], check=False)
    assert dead.returncode == -signal.SIGKILL
    (orphan,) = place.iterdir()
    assert orphan.stat().st_mode & 0o777 == 0o700
    with Workspace(root) as workspace:
        assert list(place.iterdir()) == [workspace.data_dir] and workspace.data_dir != orphan
        with Workspace(root) as other:
            assert other.data_dir != workspace.data_dir  # a living owner's stays
    assert list(place.iterdir()) == []
