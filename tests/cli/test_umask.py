"""The user's umask holds for what the agent makes, in every tier and by every tool (GI-17)."""

import json
import os
import stat
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.project_work import Work, bash

TOOLS = [
    bash("echo new > by_command.txt; mkdir made; echo new > made/inner.txt"),
    {"name": "write_file", "input": {"path": "own/by_tool.txt", "content": "new"}},
]
FILES = ("by_command.txt", "made/inner.txt", "own/by_tool.txt")


def _modes(root: Path, *names: str) -> dict[str, str]:
    return {name: f"{stat.S_IMODE((root / name).stat().st_mode):o}" for name in names}


@pytest.mark.parametrize(
    ("umask", "tier", "file", "directory"),
    [
        (0o077, "overlay", "600", "700"),
        (0o077, "copy", "600", "700"),
        (0o002, "overlay", "664", "775"),
        (0, "overlay", "664", "775"),
    ],
)
def test_what_the_agent_makes_has_the_permissions_that_the_user_gives(
    tmp_path: Path, models: FakeModels, umask: int, tier: str, file: str, directory: str
) -> None:
    """GI-17: files were open to everybody under a strict umask, and closed to the group of a shared project.

    With none at all, everybody could have replaced the data directory.
    """
    before = os.umask(umask)
    try:
        (tmp_path / "project").mkdir(mode=0o755)
        (tmp_path / "home").mkdir(mode=0o755)
        work = Work(tmp_path, models, tmp_path)
        work.environment["BOWERBIRD_SANDBOX__TIER"] = tier
        work.do("Make them.", [TOOLS])
        work.command("land", "--yes")
    finally:
        os.umask(before)
    assert _modes(work.project, *FILES) == dict.fromkeys(FILES, file)
    assert _modes(work.project, "made", "own") == dict.fromkeys(("made", "own"), directory)
    work.command("undo")
    assert not any((work.project / name).exists() for name in FILES)
    made = (tmp_path / "home/.bowerbird/data").rglob("*")
    assert [path for path in made if not path.is_symlink() and path.stat().st_mode & 0o002] == []


def test_a_file_that_is_changed_keeps_its_permissions(tmp_path: Path, models: FakeModels) -> None:
    """GI-17: also where the umask would give others."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "open.txt").write_text("one\n")
    (project / "open.txt").chmod(0o644)
    before = os.umask(0o077)
    try:
        work = Work(tmp_path, models, tmp_path)
        change = {"name": "edit_file", "input": {"path": "open.txt", "old": "one", "new": "two"}}
        work.do("Change it.", [[change], [bash("echo three >> open.txt")]])
        work.command("land", "--yes")
    finally:
        os.umask(before)
    assert (project / "open.txt").read_text() == "two\nthree\n"
    assert _modes(project, "open.txt") == {"open.txt": "644"}
    assert json.loads(work.command("diff", "--json"))["written"] == []
