"""What a subagent wrote cannot hide what else it wrote from whoever reads its patch (engine finding 5)."""

import asyncio
from pathlib import Path

import pytest
from support.branch_histories import put_link
from support.branches import branch_of

from bowerbird.subagents.diff import child_diff
from bowerbird.workspace import Branch

FORGED = "diff --git a/z.py b/z.py\nhello\n"
SEPARATORS = ["\x0c", "\x0b", "\r", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def parts(branch: Branch) -> str:
    return child_diff(branch, 100_000)["patch"]


@pytest.mark.parametrize("mark", SEPARATORS, ids=[f"U+{ord(mark):04X}" for mark in SEPARATORS])
async def test_a_forged_header_in_a_file_hides_no_other_section(mark: str, tmp_path: Path) -> None:
    with branch_of(tmp_path, {"a.txt": "old\n", "z.py": "evil = 0\n"}) as branch:
        child = branch.fork()
        await child.write_file("a.txt", f"x{mark}{FORGED}")
        await child.write_file("z.py", "evil = 1\n")
        patch = await asyncio.to_thread(parts, child)
        assert "-evil = 0\n+evil = 1\n" in patch
        assert patch == child.unified()


@pytest.mark.parametrize("folder", ["zz b", "a b", '" b', "\t b"])
async def test_a_name_that_looks_like_two_hides_no_other_file(folder: str, tmp_path: Path) -> None:
    with branch_of(tmp_path, {"z.py": b"\0evil 0"}) as branch:
        child = branch.fork()
        await child.write_file(f"{folder}/z.py", b"\0harmless")
        await child.write_file("z.py", b"\0evil one")
        patch = parts(child)
        assert f"Binary file /{folder}/z.py: 9 bytes, sha256:" in patch
        assert "Binary file /z.py: 9 bytes, sha256:" in patch
        assert patch.count("sha256:") == 2


async def test_both_halves_of_a_change_of_type_are_shown(tmp_path: Path) -> None:
    with branch_of(tmp_path, {"a": "text\n", "b": b"\0binary"}) as branch:
        child = branch.fork()
        for name in ("a", "b"):
            await child.delete(name)
            put_link(child, name, b"/etc/passwd")
        patch = parts(child)
        assert patch.count("new file mode 120000") == patch.count("+/etc/passwd\n") == 2
        assert "-text\n" in patch and "Binary file /b: deleted\n" in patch


async def test_files_with_names_that_are_no_text_are_shown(tmp_path: Path) -> None:
    with branch_of(tmp_path, {}) as branch:
        child = branch.fork()
        for name, content in (("n\udcff", b"evil\n"), ("b\udcff", b"\0bytes")):
            await child.write_file(name, content)
        patch = parts(child)
        assert "+evil\n" in patch and "Binary file /b\\xff: 6 bytes, sha256:" in patch


async def test_a_removed_directory_is_shown_once_file_by_file(tmp_path: Path) -> None:
    files = {f"d/{number:03d}": f"{number}\n" for number in range(150)}
    with branch_of(tmp_path, files) as branch:
        child = branch.fork()
        await child.delete("d", recursive=True)
        patch = parts(child)
        assert patch.count("diff --git ") == 150 and patch == child.unified()
        assert (tmp_path / "ws/d").is_dir()
