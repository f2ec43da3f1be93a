"""GI-7: what stays on the branch by itself, and landing it with the rest."""

import subprocess
import sys
from collections.abc import Callable, Iterator
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
        {"path": "/build/", "files": 2, "bytes": 6}, {"path": "/src/run.log", "files": 1, "bytes": 3},
    ]  # fmt: skip
    included = branch.plan_landing(include=["build"])
    assert [row.path for row in included.folded] == ["/src/run.log"]
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
    assert [row.path for row in branch.plan_landing().entries] == ["/kept/tracked"]


def _calls_of(work: Callable[[], object]) -> int:
    """How many Python calls a piece of work makes: its cost on a machine of any speed."""
    calls = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def _ignored_files(branch: Branch, names: range) -> None:
    view = branch.processes()
    above = view.dirs().upper / "build" / "deep"
    above.mkdir(parents=True, exist_ok=True)
    for name in names:
        (above / f"f{name}").write_bytes(b"12")
    view.capture()
    branch.end_turn(f"t{names.stop}")


async def test_the_number_of_ignored_files_costs_next_to_nothing(branch: Branch, root: Path) -> None:
    """GI-7, projects finding 8: 70,000 of them cost minutes, since each was planned, compared and shown."""
    (root / ".gitignore").write_bytes(b"build/\n")
    (root / "build/deep").mkdir(parents=True)
    for name in range(400):
        (root / f"build/deep/f{name}").write_bytes(b"1")
    subprocess.run(["git", "init", "-q", root], check=True)
    await branch.write_file("a.py", "a")

    def looks() -> None:
        assert [row.path for row in branch.plan_landing().entries] == ["/a.py"]
        assert [row.path for row in branch.diff(ignored=False).written] == ["/a.py"]
        assert branch.changes(ignored=False).paths == ("/a.py",)
        assert not branch.git_story().repositories

    _ignored_files(branch, range(100))
    looks()
    few = _calls_of(looks)
    _ignored_files(branch, range(100, 500))
    looks()
    assert (_calls_of(looks) - few) / 400 < 100, "four looks, at what was there and at what is new"
    (row,) = branch.diff(ignored=False).folded
    assert (row.path, row.files, row.size) == ("/build/", 500, 1000)
    assert "build" in branch.unified(["build/deep/f1"]) and "build" not in branch.unified(ignored=False)


async def test_what_an_ignored_directory_holds_is_told_apart(branch: Branch, root: Path) -> None:
    """GI-7: what is tracked in it lands, a repository in it is history, what goes from it is folded, too."""
    (root / ".gitignore").write_bytes(b"build/\nvendor/\n")
    (root / "build").mkdir()
    for name in ("tracked", "gone"):
        (root / "build" / name).write_bytes(b"1")
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["git", "-C", root, "add", "-f", "build/tracked"], check=True)
    subprocess.run(["git", "init", "-q", root / "vendor/inner"], check=True)
    await branch.write_file("build/tracked", "2")
    await branch.write_file("build/out", "123")
    await branch.delete("build/gone")
    await branch.write_file("vendor/inner/.git/refs/heads/x", "0" * 39 + "1\n")
    await branch.write_file("vendor/inner/a", "1")
    plan = branch.plan_landing()
    assert [row.path for row in plan.entries] == ["/build/tracked"]
    rows = {row.path: (row.files, row.size) for row in plan.folded}
    assert rows == {"/build/": (2, 3), "/vendor/": (1, 1)}
    assert [one.path for one in branch.git_story().repositories] == ["/vendor/inner/.git"]
    branch.land(["build"])
    assert (root / "build/out").exists() and not (root / "build/gone").exists()
    branch.land(["/vendor", "/"])
    assert (root / "vendor/inner/a").exists()


async def test_a_directory_that_holds_only_what_stays_is_no_unknown_path(branch: Branch, root: Path) -> None:
    """GI-7: naming what lies around it names nothing of it, and is no mistake either."""
    (root / "src").mkdir()
    await branch.write_file("src/__pycache__/a.pyc", "c")
    await branch.write_file("b", "b")
    branch.land(["src", "b"])
    assert (root / "b").exists() and not (root / "src/__pycache__").exists()
