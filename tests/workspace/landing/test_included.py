"""GI-7: what stays on the branch by itself, and landing it with the rest."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.core.errors import LandingRefused
from bowerbird.workspace import Branch, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> Iterator[Branch]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


async def test_what_is_included_lands_with_the_rest(branch: Branch, root: Path) -> None:
    """GI-7: a directory takes what it holds, and a folded row says how much stays."""
    (root / ".gitignore").write_bytes(b"build/\n*.log\n")
    for name, text in (("build/a/out", "12345"), ("build/b", "1"), ("src/run.log", "123"), ("src/a.py", "a")):
        await branch.write_file(name, text)
    plan = branch.plan_landing()
    assert [row.record() for row in plan.folded] == [
        {"path": "/build/", "files": 2, "bytes": 6}, {"path": "/src/", "files": 1, "bytes": 3},
    ]  # fmt: skip
    included = branch.plan_landing(include=["build"])
    assert [row.path for row in included.folded] == ["/src/"]
    with pytest.raises(LandingRefused, match="nothing: unchanged"):
        branch.land(include=["nothing"])
    branch.land(include=["build"], plan=included.id)
    assert (root / "build/a/out").exists() and (root / "build/b").exists() and (root / "src/a.py").exists()
    assert not (root / "src/run.log").exists()
    branch.land(include=["/"])
    assert (root / "src/run.log").exists()


async def test_a_tracked_file_is_not_folded_whatever_ignore_files_say(branch: Branch, root: Path) -> None:
    """GI-7: it lands, so the review shows it."""
    (root / ".gitignore").write_bytes(b"kept/*\n")
    (root / "kept").mkdir()
    (root / "kept/tracked").write_bytes(b"1")
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["git", "-C", root, "add", "-f", "kept/tracked"], check=True)
    await branch.write_file("kept/tracked", "2")
    (row,) = branch.plan_landing().entries
    assert not row.ignored
