"""Changes, diff, patches, export (WS-34 … WS-36, WS-39, acceptance 8, 13)."""

import os
import resource
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from support.branches import branch_of, view_of
from support.trees import read_tree, write_tree

from bowerbird.core.errors import Exists, InvalidArgument
from bowerbird.workspace import Branch, WorkspaceLimits

LATIN_1 = "Grüße\r\nWelt".encode("latin-1")


async def test_only_real_changes_are_listed(tmp_path: Path) -> None:
    """WS-34: a touch is no change, and neither is writing back what was there."""
    with branch_of(tmp_path, {"a": "1\n", "b": "2\n", "d/x": "3\n"}) as branch:
        await branch.write_file("a", "1\n")
        await branch.write_file("b", "other\n")
        await branch.write_file("b", "2\n")
        await branch.write_file("new", "n")
        await branch.delete("new")
        assert branch.changes().record() == {"written": [], "deleted": []}
        await branch.delete("d", recursive=True)
        await branch.mkdir("empty")
        await branch.write_file("full/f", "f")
        assert branch.changes().record() == {"written": ["/empty", "/full/f"], "deleted": ["/d", "/d/x"]}


async def test_the_diff_says_kind_mode_flags_and_lines(tmp_path: Path) -> None:
    """WS-35."""
    with branch_of(tmp_path, {"a": "1\n2\n", "old/name": "content of it\n"}) as branch:
        await branch.edit_file("a", "2\n", "two\nthree\n")
        await branch.set_executable("a", True)
        await branch.move("old/name", "new/name")
        await branch.write_file("bin", b"\0\1")
        diff = branch.diff()
        rows = {row.path: row for row in diff.written}
        assert diff.deleted == ("/old/name",)
        assert set(rows) == {"/a", "/bin", "/new/name"}
        changed = rows["/a"]
        assert (changed.kind, changed.type, changed.added, changed.removed) == (
            "modify", "file", 2, 1
        )  # fmt: skip
        assert (changed.mode & 0o111, changed.old_mode & 0o111) == (0o111, 0)
        assert changed.flags == ("exec-bit",) and changed.base == "exact"
        assert changed.hunks[0].text == " 1\n-2\n+two\n+three\n"
        assert rows["/new/name"].renamed_from == "/old/name"
        assert rows["/bin"].binary and rows["/bin"].hunks == ()
        assert [row.path for row in branch.diff(["new"]).written] == ["/new/name"]


async def test_hunk_text_is_bounded(tmp_path: Path) -> None:
    with branch_of(tmp_path) as branch:
        await branch.write_file("big", "a line of it\n" * 100_000)
        await branch.write_file("small", "s\n")
        rows = {row.path: row for row in branch.diff().written}
        assert rows["/big"].hunks is None and rows["/big"].truncated is True
        assert rows["/big"].added == 100_000


async def test_a_patch_gives_the_branch_byte_for_byte(tmp_path: Path) -> None:
    """Acceptance 13: with binary, mode, link, type and name changes."""
    files = {
        "text": "1\n2\n3", "latin": LATIN_1, "bin": b"\0old", "run": "#!/bin/sh\n", "gone": "g\n",
        "file_to_dir": "f\n", "dir_to_file/x": "x\n", "with space": "s\n", "empty": "",
    }  # fmt: skip
    with branch_of(tmp_path, files) as branch:
        await branch.write_file("text", "1\nzwei\n3\n")
        await branch.write_file("latin", LATIN_1.replace(b"Welt", b"World"))
        await branch.write_file("bin", b"\0new\xff")
        await branch.set_executable("run", True)
        await branch.delete("gone")
        await branch.delete("file_to_dir")
        await branch.write_file("file_to_dir/inner", "i\n")
        await branch.delete("dir_to_file", recursive=True)
        await branch.write_file("dir_to_file", "now a file\n")
        await branch.write_file("with space", "S\n")
        await branch.write_file("ünïcode\tname", "u\n")
        await branch.delete("empty")
        with branch._state.writing() as stack:  # pyright: ignore -- no file tool makes links
            stack.put_symlink("/link", "text")
        patch = branch.unified()
        target = write_tree(tmp_path / "copy", files)
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=target, check=True)
        branch.export(tmp_path / "out", "dir")
        assert read_tree(target) == read_tree(tmp_path / "out")
        with pytest.raises(InvalidArgument, match="context"):
            branch.unified(context=-1)


async def test_a_tar_holds_changes_and_whiteouts(tmp_path: Path) -> None:
    """WS-39."""
    with branch_of(tmp_path, {"a": "1\n", "d/x": "x\n", "d/y": "y\n", "f": "f\n"}) as branch:
        await branch.write_file("a", "2\n")
        await branch.delete("d", recursive=True)
        await branch.delete("f")
        await branch.mkdir("f")
        branch.export(tmp_path / "out.tar", "tar")
        with tarfile.open(tmp_path / "out.tar") as archive:
            assert sorted(archive.getnames()) == [".wh.d", "a", "f", "f/.wh..wh..opq"]
            member = archive.extractfile("a")
            assert member is not None and member.read() == b"2\n"


async def test_a_directory_export_is_the_view_and_refuses_a_full_directory(tmp_path: Path) -> None:
    with branch_of(tmp_path, {"a": "1\n", "d/x": "x\n"}) as branch:
        await branch.write_file("d/new", "n\n")
        branch.export(tmp_path / "out", "dir")
        assert set(read_tree(tmp_path / "out")) == set(await view_of(branch))
        with pytest.raises(Exists, match="not an empty directory"):
            branch.export(tmp_path / "out", "dir")
        branch.export(tmp_path / "out.patch")
        assert (tmp_path / "out.patch").read_text() == branch.unified()


async def test_a_directory_export_that_fails_half_way_leaves_nothing_and_can_be_made_again(
    tmp_path: Path,
) -> None:
    with branch_of(tmp_path, {"a": "1\n", "d/x": "x\n", "z": "large" * 100_000}) as branch:
        (tmp_path / "kept").mkdir()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        for place in ("out", "kept"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
            try:
                with pytest.raises(OSError):
                    branch.export(tmp_path / place, "dir")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert not (tmp_path / "out").exists() and os.listdir(tmp_path / "kept") == []
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
        for place in ("out", "kept"):
            branch.export(tmp_path / place, "dir")
            assert set(read_tree(tmp_path / place)) == set(await view_of(branch))


@pytest.mark.parametrize("form", ["tar", "dir"])
async def test_of_exports_to_one_place_at_once_each_is_whole_or_refused(
    tmp_path: Path, form: Literal["tar", "dir"]
) -> None:
    with branch_of(tmp_path, {}) as branch:
        for number in range(60):
            await branch.write_file(f"d/f{number}", "x" * 20_000)

        def export() -> bool:
            try:
                branch.export(tmp_path / "out", form)
            except Exists:
                return False
            return True

        with ThreadPoolExecutor(6) as threads:
            done = [each.result() for each in [threads.submit(export) for _ in range(18)]]
        assert sum(done) == (18 if form == "tar" else 1)
        if form == "tar":
            with tarfile.open(tmp_path / "out") as archive:
                assert sum(member.isfile() for member in archive) == 60
        else:
            assert len(os.listdir(tmp_path / "out/d")) == 60
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


async def test_sparse_and_special_files_cost_nothing(tmp_path: Path) -> None:
    """Acceptance 8."""
    write_tree(tmp_path / "ws", {"a": "1\n"})
    with (tmp_path / "ws" / "huge").open("wb") as handle:
        handle.truncate(1 << 40)
    os.mkfifo(tmp_path / "ws" / "pipe")
    with branch_of(tmp_path, limits=WorkspaceLimits(changed_bytes=1 << 42)) as branch:
        await branch.set_executable("huge", True)
        await branch.write_file("a", "2\n")
        child = branch.fork()
        await child.write_file("a", "3\n")
        assert branch.merge(child).written == ("/a",)
        rows = {row.path: row for row in branch.diff().written}
        assert rows["/huge"].hunks is None and rows["/a"].added == 1


async def test_names_that_are_not_utf_8_are_shown_and_carried(tmp_path: Path) -> None:
    """WS-14."""
    with branch_of(tmp_path) as branch:
        await name_it(branch)
        (row,) = branch.diff().written
        assert row.path == "/new\nline\\xff" and row.path_b64 == "L25ldwpsaW5l/w=="
        landing = branch.land()
        assert landing.entries[0].path_b64 == "L25ldwpsaW5l/w=="
        assert b"new\nline\xff" in os.listdir(os.fsencode(tmp_path / "ws"))
        landing.undo()
        assert os.listdir(tmp_path / "ws") == []


async def name_it(branch: Branch) -> None:
    await branch.write_file({"b64": "bmV3CmxpbmX/"}, "x\n")
