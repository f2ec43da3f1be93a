"""What arrives in the user's repository stays there while their git deletes what nothing leads to."""

import os
import shutil
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


@pytest.fixture
def branch(project: GitProject) -> Branch:
    made = project.workspace.branch()
    project.agent(made, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    return made


COLLECTS = """#!/bin/sh
case "$*" in *"update-ref --create-reflog"*) "{git}" gc -q --prune=now;; esac
exec "{git}" "$@"
"""


def test_the_user_may_collect_garbage_while_commits_arrive(
    project: GitProject, branch: Branch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects that nothing leads to yet were deleted: the commits did not land, or a ref led to nothing."""
    wrapper = tmp_path / "bin/git"
    wrapper.parent.mkdir()
    wrapper.write_text(COLLECTS.replace("{git}", shutil.which("git") or ""))
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    landing = branch.land(commits="fast_forward")
    monkeypatch.undo()
    [one] = landing.history
    assert (one.troubles, [ref.state for ref in one.refs]) == ((), ["moved"])
    assert project.git("fsck", "--full") == ""
    project.git("gc", "-q", "--prune=now")
    assert project.git("log", "-1", "--format=%H") == one.refs[0].id
    assert not list((project.root / ".git/objects/pack").glob("*.keep"))


def test_a_pack_that_a_killed_landing_kept_is_let_go(project: GitProject, branch: Branch) -> None:
    kept = project.root / ".git/objects/pack/pack-1.keep"
    own = kept.with_name("pack-2.keep")
    kept.write_text("bowerbird is landing\n")
    own.write_text("mine\n")
    os.utime(kept, (0, 0))
    branch.land(commits="fetch")
    assert not kept.exists() and own.exists()
