"""Writing, deleting, moving (WS-8, WS-9, WS-21 … WS-25, WS-30, WS-61)."""

import os
import subprocess

import pytest
from support.branches import branch_of

from bowerbird.core.errors import (
    Hidden,
    InvalidArgument,
    InvalidWorkspace,
    LimitExceeded,
    NotFound,
    ReadOnly,
    WorkspaceError,
)
from bowerbird.workspace.registry.limits import WorkspaceLimits
from bowerbird.workspace.workspace import Workspace


@pytest.mark.parametrize(
    ("limits", "over"),
    [
        ({"write_mb": 1}, lambda branch: branch.write_file("g", "y" * 1_100_000)),
        ({"edit_mb": 1}, lambda branch: branch.edit_file("big", "x", "y", replace_all=True)),
        ({"changed_bytes": 1_000_000}, lambda branch: branch.write_file("g", "y" * 1_100_000)),
        ({"changed_bytes": 1_000_001}, lambda branch: branch.move("big", "moved")),
        ({"changed_paths": 3}, lambda branch: branch.write_file("g", "x")),
        ({"changed_paths": 4}, lambda branch: branch.move("big", "g")),
        ({"depth": 4}, lambda branch: branch.write_file("a/b/c/d/e", "x")),
    ],
)
async def test_limits_name_setting_and_value_and_change_nothing(tmp_path, limits, over):
    """WS-61"""
    [(name, value)] = limits.items()
    with branch_of(tmp_path, {"big": "x" * 1_100_000}, limits=WorkspaceLimits(**limits)) as branch:
        for number in range(3):
            await branch.write_file(f"f{number}", "x")
        before = branch.changes()
        with pytest.raises(LimitExceeded, match=f"workspace.{name} = {value}"):
            await over(branch)
        assert branch.changes() == before


async def test_what_is_replaced_or_rolled_back_no_longer_counts(tmp_path):
    """WS-61"""
    with branch_of(tmp_path, limits=WorkspaceLimits(changed_bytes=1_000_000)) as branch:
        mark = branch.mark()
        for _ in range(5):
            await branch.write_file("f", "x" * 600_000)
        with pytest.raises(LimitExceeded):
            await branch.write_file("g", "x" * 600_000)
        branch.rollback(mark)
        await branch.write_file("g", "x" * 600_000)
    with pytest.raises(InvalidArgument, match="depth is 0"):
        WorkspaceLimits(depth=0)


async def test_hidden_paths_do_not_exist_and_cannot_be_made(tmp_path):
    """WS-9"""
    files = {"secrets/key": "needle", "a/.env": "needle", "b.txt": "needle", "c/secrets/x": "needle"}
    with branch_of(tmp_path, files, hide=["/secrets/**", ".env", "c/secrets"]) as branch:
        assert (await branch.list_files(include_ignored=True))["files"] == ["/b.txt"]
        assert (await branch.search_files("needle"))["total"] == 1
        assert (await branch.ls("a"))["entries"] == []
        for path in ("secrets/key", "a/.env", "c/secrets/x"):
            with pytest.raises(NotFound):
                await branch.read_file(path)
            for call in (branch.write_file(path, "x"), branch.delete(path), branch.move("b.txt", path)):
                with pytest.raises(Hidden):
                    await call
        assert branch.fork().hide == ("/secrets/**", ".env", "c/secrets")


async def test_private_paths_are_readable_but_are_no_change(tmp_path):
    """WS-9"""
    with branch_of(tmp_path, {"f": "x"}) as branch:
        branch.write_private("inputs/data.json", '{"a": 1}')
        assert (await branch.read_file("inputs/data.json"))["content"] == '{"a": 1}'
        assert (await branch.search_files('"a"'))["total"] == 1
        assert branch.changes().record() == {"written": [], "deleted": []} and branch.journal() == []
        child = branch.fork()
        assert (await child.read_file("inputs/data.json"))["size"] == 8
        await child.write_file("inputs/data.json", "{}")
        await child.write_file("inputs/more", "x")
        assert child.changes().written == ("/inputs/more",)


async def test_the_data_directory_inside_the_workspace_is_masked(tmp_path):
    """WS-8"""
    ws = tmp_path / "ws"
    (ws / "var").mkdir(parents=True)
    (ws / "f").write_text("needle")
    with Workspace(ws, data_dir=ws / "var/data") as workspace:
        branch = workspace.branch()
        await branch.write_file("g", "needle")
        assert (await branch.list_files(include_ignored=True))["files"] == ["/f", "/g"]
        assert (await branch.search_files("needle", include_ignored=True))["total"] == 2
        with pytest.raises(NotFound):
            await branch.ls("var/data")
        for call in (branch.write_file("var/data/x", "x"), branch.delete("var", recursive=True)):
            with pytest.raises(ReadOnly):
                await call
    with pytest.raises(InvalidWorkspace):
        Workspace(ws / "var", data_dir=ws)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_a_read_only_mount_below_the_workspace_is_read_but_not_written(tmp_path):
    """WS-8"""
    with branch_of(tmp_path, {"mnt/": "", "f": "x"}) as branch:
        target = tmp_path / "ws/mnt"
        if not _system("mount", "-t", "tmpfs", "none", target):
            pytest.skip("this system does not let tests mount")
        try:
            (target / "inside").write_text("x")
            assert _system("mount", "-o", "remount,ro", target)
            assert (await branch.read_file("mnt/inside"))["content"] == "x"
            for call in (branch.write_file("mnt/new", "x"), branch.delete("mnt/inside")):
                with pytest.raises(ReadOnly):
                    await call
            await branch.write_file("g", "x")
        finally:
            assert _system("umount", target)


def _system(*command: object) -> bool:
    return subprocess.run([str(part) for part in command], check=False, capture_output=True).returncode == 0


async def test_a_branch_of_nothing_works_like_any_other(tmp_path):
    """WS-1"""
    with Workspace() as workspace:
        branch = workspace.branch()
        assert branch.root is None
        await branch.write_file("a/b.py", "print(1)\n")
        assert (await branch.search_files("print"))["total"] == 1
        assert (await branch.ls())["total"] == 1
        assert branch.changes().written == ("/a/b.py",)
        child = branch.fork()
        await child.edit_file("a/b.py", "1", "2")
        assert (await branch.read_file("a/b.py"))["content"] == "print(1)\n"


async def test_a_vanished_workspace_fails_reads_but_keeps_the_changes(tmp_path):
    """WS-60"""
    with branch_of(tmp_path, {"f": "x", "g": "y"}) as branch:
        await branch.write_file("f", "mine")
        (tmp_path / "ws").rename(tmp_path / "elsewhere")
        with pytest.raises(InvalidWorkspace, match="workdir does not exist"):
            await branch.read_file("g")
        assert branch.read_overlay("f") == b"mine"
        assert branch.changes().written == ("/f",)
        (tmp_path / "elsewhere").rename(tmp_path / "ws")
        assert (await branch.read_file("g"))["content"] == "y"


async def test_what_the_system_refuses_is_an_error_to_act_on(tmp_path, monkeypatch):
    """WS-59: a full disk leaves no torn file."""
    import errno

    from bowerbird.workspace.tree import handles

    with branch_of(tmp_path, {"f": "old"}) as branch:
        await branch.write_file("g", "first")
        real = os.fsync

        def full(fd: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(LimitExceeded, match="disk"):
            await branch.write_file("g", "second")
        monkeypatch.setattr(os, "fsync", real)
        assert handles.ABSENT and await branch.read_bytes("g") == b"first"
        assert list((tmp_path / "data/branches" / branch.id / "work").iterdir()) == []
        with pytest.raises(WorkspaceError):
            await branch.read_file("nope")
