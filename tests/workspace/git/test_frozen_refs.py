"""GI-3, GI-4: a branch with an index of its own keeps the refs that belong to it, whatever the user commits."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject

from bowerbird.workspace import Branch


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    yield made
    made.close()


def user_commits(project: GitProject, name: str = "b.txt") -> None:
    project.write(name, "by the user\n")
    project.git("add", ".")
    project.git("commit", "-qm", "by the user")


@pytest.mark.parametrize("packed", [False, True])
def test_a_commit_of_the_user_between_staging_and_committing_is_not_taken_back(
    project: GitProject, packed: bool
) -> None:
    """The agent stages, the user commits beside it, the agent commits: its commit took the user's change back."""
    if packed:
        project.git("pack-refs", "--all")
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["add", "a.txt"])
    user_commits(project)
    branch.begin_turn()
    project.agent(branch, ["commit", "-qm", "by the agent"])
    (ref,) = branch.land(commits="fast_forward", session="s").history[0].refs
    assert (ref.state, ref.said) == ("stays", "it has moved on in your repository")
    assert project.git("log", "-1", "--format=%s") == "by the user"
    changed = project.git("diff", "--name-only", f"{ref.kept_as}~", ref.kept_as)
    assert changed == "a.txt"
    project.git("commit", "-qam", "what landed")
    project.git("merge", "-q", "-m", "together", ref.kept_as)
    assert (project.root / "b.txt").read_text() == "by the user\n"
    assert project.git("show", "HEAD:a.txt") == "A"


def test_what_the_user_switches_to_is_not_what_the_branch_commits_on(project: GitProject) -> None:
    project.git("branch", "other")
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["add", "."])
    project.git("switch", "-q", "other")
    user_commits(project)
    said = project.agent(
        branch, ["symbolic-ref", "HEAD"], ["commit", "-qm", "by the agent"], ["log", "--format=%s"]
    )
    assert said[0] == "refs/heads/main" and said[2] == "by the agent\nfirst"
    assert branch.git_story().repositories[0].refs[0].ref == "refs/heads/main"


def test_a_branch_that_only_looked_follows_the_user(project: GitProject) -> None:
    """`git status` writes an index, too: that is nothing of the agent's own."""
    branch = project.workspace.branch()
    touched(branch, project)
    user_commits(project, "new.txt")
    branch.begin_turn()
    said = project.agent(branch, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"], ["log", "--format=%s"])
    assert said[1] == "by the agent\nby the user\nfirst"
    (ref,) = branch.land(commits="fast_forward").history[0].refs
    assert ref.state == "moved"
    assert project.git("show", "--name-only", "--format=") == "a.txt"
    assert project.git("status", "--porcelain") == ""


def touched(branch: Branch, project: GitProject) -> None:
    """Give a branch an index of its own that says the same."""
    index = (project.root / ".git/index").read_bytes()
    asyncio.run(branch.write_file(".git/index", index + b"\0"))
    asyncio.run(branch.write_file(".git/index", index))
    assert [str(p) for p in branch.changes().paths] == []


def test_refs_that_are_kept_are_no_change_and_go_with_a_rollback(project: GitProject) -> None:
    branch = project.workspace.branch()
    mark = branch.mark()
    project.agent(branch, ["add", "-A"], ("a.txt", "A\n"), ["add", "a.txt"])
    assert branch.changes().paths == ("/a.txt",)
    assert branch.git_story().repositories == () or not branch.git_story().repositories[0].refs
    branch.rollback(mark)
    user_commits(project)
    said = project.agent(branch, ["log", "--format=%s"])
    assert said == ["by the user\nfirst"]
