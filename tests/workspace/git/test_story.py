"""GI-2: what happened in git on a branch is told as history, beside the files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    yield made
    made.close()


def test_commits_of_the_agent_are_told_with_their_subjects(project: GitProject) -> None:
    branch = project.workspace.branch()
    project.agent(
        branch,
        ("a.txt", "A\n"), ["commit", "-qam", "second"], ("c.txt", "c\n"), ["add", "."], ["commit", "-qm", "third"],
    )  # fmt: skip
    (told,) = branch.git_story().repositories
    (ref,) = told.refs
    assert (told.path, ref.ref, ref.change, ref.commits) == ("/.git", "refs/heads/main", "moved", 2)
    assert [commit.subject for commit in ref.subjects] == ["third", "second"]
    assert ref.old == project.git("rev-parse", "main") and not ref.landed
    assert branch.changes().paths == ("/a.txt", "/c.txt")


def test_branches_tags_stashes_and_settings_are_told(project: GitProject) -> None:
    project.git("branch", "old")
    branch = project.workspace.branch()
    project.agent(
        branch,
        ["switch", "-qc", "feature"], ("a.txt", "A\n"), ["commit", "-qam", "second"], ["tag", "v1"],
        ("b.txt", "B\n"), ["stash"], ("b.txt", "BB\n"), ["stash", "push", "-m", "named"], ["branch", "-D", "old"],
        ["config", "core.pager", "cat"], ["commit", "-q", "--amend", "-m", "third"],
    )  # fmt: skip
    (told,) = branch.git_story().repositories
    refs = {ref.ref: ref for ref in told.refs}
    assert told.head == ("refs/heads/main", "refs/heads/feature")
    assert refs["refs/heads/feature"].change == "created" and refs["refs/heads/feature"].commits == 1
    assert refs["refs/heads/old"].change == "deleted"
    assert refs["refs/tags/v1"].commits == 1
    assert "named" in refs["stash/1"].subjects[0].subject
    assert [(s.path, s.change) for s in told.settings] == [("/.git/config", "modified")]
    assert told.troubles == ()


def test_an_amended_commit_is_a_rewritten_branch(project: GitProject) -> None:
    branch = project.workspace.branch()
    project.agent(branch, ["commit", "-q", "--amend", "-m", "other words"])
    (told,) = branch.git_story().repositories
    assert [(r.change, r.commits) for r in told.refs] == [("rewritten", 1)]


def test_a_status_of_the_agent_is_nothing_to_tell(project: GitProject) -> None:
    """Projects 2: a `git status` that rewrites the index."""
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["add", "a.txt"], ["status"])
    assert branch.git_story().repositories == () and branch.changes().paths == ("/a.txt",)


def test_a_packed_repository_with_many_refs_is_told_by_what_changed(project: GitProject) -> None:
    at = project.git("rev-parse", "HEAD")
    lines = "".join(f"{at} refs/heads/n/{number:05}\n" for number in range(5_000))
    (project.root / ".git/packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + lines)
    assert project.git("for-each-ref", "--count=1", "refs/heads/n") != ""
    branch = project.workspace.branch()
    project.agent(
        branch,
        ["branch", "one"],
        ["pack-refs", "--all"],
        ["branch", "-D", "one"],
        ["branch", "two"],
        ["gc", "-q"],
    )
    (told,) = branch.git_story().repositories
    assert [(r.ref, r.change) for r in told.refs] == [("refs/heads/two", "created")]


def test_a_worktree_of_the_agent_is_one_thing_to_accept(project: GitProject) -> None:
    """GI-2: its index and logs are derived; six lines said what one does."""
    branch = project.workspace.branch()
    project.agent(branch, ["worktree", "add", "-q", "inside", "-b", "side"], ["config", "core.pager", "cat"])
    told = next(one for one in branch.git_story().repositories if one.path == "/.git")
    assert [(one.path, one.change) for one in told.settings] == [
        ("/.git/config", "modified"), ("/.git/worktrees/inside", "created"),
    ]  # fmt: skip
    refused = branch.land(partial=True, accept=["/.git/config"]).refused
    assert "/.git/worktrees/inside" in [row.path for row in refused]
    branch.land(partial=True, accept=["/.git/worktrees/inside"])
    assert (project.root / ".git/worktrees/inside/HEAD").is_file()
