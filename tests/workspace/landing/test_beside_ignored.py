"""Ignored files hold up no landing of what lies beside them, and a moved file is no ignored one."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.workspace import Branch, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = write_tree(
        tmp_path / "ws",
        {
            ".gitignore": "__pycache__/\nbuild/\n**/tmp/*\n", "pkg/a.py": "a = 1\n", "pkg/b.py": "b = 2\n",
            "pkg/__pycache__/a.pyc": "x", "pkg/in/build/out.o": "o", "pkg/in/c.py": "c = 3\n",
            "tests/tmp/keep.txt": "kept by git\nin\nthis repository\n", "tests/one.py": "one = 1\n",
        },
    )  # fmt: skip
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["add", "-f", "tests/tmp/keep.txt"],
        ["commit", "-qm", "one"],
    ):
        subprocess.run([*git, *words], cwd=made, check=True, capture_output=True)
    return made


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> Iterator[Branch]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


@pytest.mark.parametrize("how", ["renamed", "deleted"])
async def test_a_directory_with_ignored_files_is_renamed_or_deleted_around_them(branch, root, how):
    if how == "renamed":
        await branch.move("pkg", "new")
    else:
        await branch.delete("pkg", recursive=True)
    await branch.write_file("tests/one.py", "one = 2\n")
    landing = branch.land()
    assert {row.reason for row in landing.refused} == {"holds_ignored"}
    left = sorted(str(p.relative_to(root)) for p in (root / "pkg").rglob("*") if p.is_file())
    assert left == ["pkg/__pycache__/a.pyc", "pkg/in/build/out.o"]
    assert (root / "tests/one.py").read_text() == "one = 2\n"
    assert (root / "new/in/c.py").exists() == (how == "renamed")
    assert not (root / "new/__pycache__").exists()


@pytest.mark.parametrize("edited", [False, True], ids=["as it was", "and edited"])
async def test_a_tracked_file_that_moves_to_an_ignored_name_lands_there(branch, root, edited):
    await branch.move("tests", "checks")
    if edited:
        await branch.edit_file("checks/tmp/keep.txt", "in\n", "IN\n")
    await branch.write_file("checks/tmp/made.txt", "ignored\n")
    branch.land()
    assert (root / "checks/tmp/keep.txt").read_text() == (
        "kept by git\nIN\nthis repository\n" if edited else "kept by git\nin\nthis repository\n"
    )
    assert not (root / "tests").exists() and not (root / "checks/tmp/made.txt").exists()
