"""GI-20, D-2: who watches a project hears of a landing what an editor's atomic save would tell, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.watching import watching

from bowerbird.workspace import Branch, Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    (made / "src").mkdir(parents=True)
    for name in ("a.txt", "src/b.txt", "gone.txt", "mode.sh"):
        (made / name).write_text("old\n")
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    return made


async def changed(branch: Branch) -> None:
    await branch.write_file("a.txt", "new\n")
    await branch.write_file("src/b.txt", "new\n")
    await branch.write_file("made.txt", "made\n")
    await branch.delete("gone.txt")


def of_an_editor(root: Path) -> list[tuple[str, str]]:
    """Save a file as editors do that keep the old one until the new one is whole, both outside of the project."""
    beside = root.parent / "beside"
    beside.mkdir()
    (beside / "new").write_text("saved\n")
    with watching(root) as watch:
        (root / "a.txt").rename(beside / "backup")
        (beside / "new").rename(root / "a.txt")
        return watch.heard()


async def test_a_watcher_hears_saves_of_the_files_that_land_and_of_nothing_else(root: Path, tmp_path: Path):
    """It heard of the hidden place in the project, and last of each replaced file that it went."""
    saved = of_an_editor(root)
    assert saved == [("moved_from", "a.txt"), ("moved_to", "a.txt")]
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await changed(branch)
        with watching(root) as watch:
            landing = branch.land()
            heard = watch.heard()
            assert [event for event in heard if event[1] == "a.txt"] == saved
            assert sorted(heard) == sorted([
                *saved, ("moved_from", "src/b.txt"), ("moved_to", "src/b.txt"), ("moved_to", "made.txt"),
                ("moved_from", "gone.txt"),
            ]), heard  # fmt: skip
            workspace.undo(landing.id)
            back = watch.heard()
            assert [event for event in back if event[1] == "src/b.txt"][-1] == ("moved_to", "src/b.txt")
            assert {path for _, path in back} == {"a.txt", "src/b.txt", "made.txt", "gone.txt"}, back
    assert list(root.rglob(".bowerbird-l_*")) == []


async def test_without_a_git_directory_the_last_word_of_each_file_is_that_it_came(tmp_path: Path):
    """Then the hidden place stands in the workspace; files are heard of as before."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await branch.write_file("a.txt", "new\n")
        with watching(root) as watch:
            branch.land()
            heard = watch.heard()
    assert [event for event in heard if event[1] == "a.txt"] == [
        ("moved_from", "a.txt"),
        ("moved_to", "a.txt"),
    ]
    assert list(root.iterdir()) == [root / "a.txt"]


@pytest.mark.parametrize("git", ["file", "link", "closed"])
async def test_a_git_directory_that_cannot_hold_the_place_stops_no_landing(
    root: Path, tmp_path: Path, git: str
):
    """A worktree's `.git` is a file; a link may lead to another file system; another's may not be written."""
    if git == "closed" and os.getuid() == 0:
        (root / ".git").chmod(0o2755)  # root writes everywhere; new files of a setgid directory get its group
    elif git == "closed":
        (root / ".git").chmod(0o555)
    else:
        (root / ".git").rename(tmp_path / "elsewhere")
        if git == "file":
            (root / ".git").write_text(f"gitdir: {tmp_path}/elsewhere\n")
        else:
            (root / ".git").symlink_to(tmp_path / "elsewhere")
    try:
        with Workspace(root, data_dir=tmp_path / "data") as workspace:
            branch = workspace.branch()
            await changed(branch)
            branch.land()
    finally:
        if git == "closed":
            (root / ".git").chmod(0o755)
    assert ((root / "a.txt").read_text(), (root / "made.txt").read_text()) == ("new\n", "made\n")
    assert list(root.rglob(".bowerbird-l_*")) == []
