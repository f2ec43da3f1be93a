"""Sparse checkouts whose patterns the agent lifts, and linked working trees that its git no longer finds."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    yield made
    made.close()


def test_commits_of_files_beside_a_sparse_checkout_land_and_come_back(project: GitProject) -> None:
    """The branch had moved, the landing said that it stays, and the undo left it there."""
    project.write("left/x.txt", "x\n")
    project.git("add", ".")
    project.git("commit", "-qm", "left")
    project.git("sparse-checkout", "set", "--no-cone", "/*", "!left")
    assert not (project.root / "left").exists()
    before = project.git("rev-parse", "HEAD")
    branch = project.workspace.branch()
    project.agent(
        branch, ["sparse-checkout", "disable"], ("left/x.txt", "agent\n"), ["commit", "-qam", "by the agent"]
    )
    landing = branch.land(commits="fast_forward", accept=["*"])
    [ref] = landing.history[0].refs
    assert (ref.state, ref.said) == ("moved", "") and landing.history[0].notes == ()
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert (project.root / "left/x.txt").read_text() == "agent\n"
    assert project.git("status", "--porcelain") == ""
    landing.undo()
    assert project.git("rev-parse", "HEAD") == before and project.git("status", "--porcelain") == ""


def test_a_working_tree_that_is_pruned_on_the_branch_stays_the_users_without_a_word(
    project: GitProject,
) -> None:
    """`git gc` prunes what it does not find, and a branch is shown no other working tree."""
    project.git("worktree", "add", "-q", str(project.base / "other"), "-b", "other")
    branch = project.workspace.branch()
    shutil.move(project.base / "other", project.base / "hidden")
    project.agent(branch, ["worktree", "prune"], ("a.txt", "A\n"))
    shutil.move(project.base / "hidden", project.base / "other")
    assert [one.worktrees for one in branch.git_story().repositories] == [("-other",)]
    landing = branch.land()
    assert ([entry.path for entry in landing.entries], landing.refused) == (["/a.txt"], ())
    assert project.git("status", "--porcelain", at=project.base / "other") == ""
