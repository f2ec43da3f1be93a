"""Issue 12, bad input: whatever is wrong with a repository is named, and files land all the same."""

import asyncio
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject
from support.patience import HANG_S

from bowerbird.workspace import Branch, Workspace


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


async def lands_with(branch: Branch, project: GitProject, trouble: str) -> None:
    """The file lands, the trouble is named in the story and in the landing, and the user's repository is whole."""
    (told,) = branch.git_story().repositories
    assert trouble in " ".join(told.troubles)
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    assert trouble in " ".join(landing.history[0].troubles)
    assert (project.root / "a.txt").read_text() == "A\n"
    assert project.git("log", "-1", "--format=%s") == "first"
    assert project.git("fsck", "--full") == ""


async def test_a_ref_that_points_nowhere(branch: Branch, project: GitProject) -> None:
    await branch.write_file(".git/refs/heads/main", "1" * 40 + "\n")
    await lands_with(branch, project, "refs/heads/main points to 111111111111, which is not there")


async def test_a_ref_that_is_no_ref(branch: Branch, project: GitProject) -> None:
    await branch.write_file(".git/refs/heads/odd", "nonsense\n")
    assert "refs/heads/odd points nowhere" in branch.git_story().repositories[0].troubles
    assert branch.land().history[0].refs[0].state == "arrived"


async def test_missing_objects(branch: Branch, project: GitProject) -> None:
    new = branch.git_story().repositories[0].refs[0].new or ""
    (tree,) = await asyncio.to_thread(project.agent, branch, ["rev-parse", f"{new}^{{tree}}"])
    await branch.delete(f".git/objects/{tree[:2]}/{tree[2:]}")
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    assert "refs/heads/main" in landing.history[0].troubles[0]
    assert (
        f"object {tree[:12]} is missing or damaged, and with it commits of the agent"
        in landing.history[0].troubles[0]
    )
    assert project.git("fsck", "--full") == "" and project.git("log", "-1", "--format=%s") == "first"


@pytest.mark.parametrize("what", ["HEAD^{tree}", "HEAD:b.txt", "HEAD"])
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_objects_that_the_users_own_repository_lacks_are_named_with_what_to_do(
    branch: Branch, project: GitProject, what: str, how: str
) -> None:
    name = project.git("rev-parse", what)
    file = project.root / f".git/objects/{name[:2]}/{name[2:]}"
    kept = file.read_bytes()
    file.unlink()
    if how == "empty":
        file.touch()
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    said = " ".join(landing.history[0].troubles)
    assert f"your own repository at {project.root} is damaged: object {name[:12]}" in said, said
    assert f"`git -C {project.root} fsck`" in said and "fetch --refetch" in said
    file.unlink(missing_ok=True)
    file.write_bytes(kept)
    assert branch.land(commits="fast_forward").history[0].refs[0].state == "moved", "once it is whole again"
    assert project.git("log", "-1", "--format=%s") == "by the agent"


async def test_an_object_that_lies_about_its_name(branch: Branch, project: GitProject) -> None:
    """The receiving side names objects by their content."""
    new = branch.git_story().repositories[0].refs[0].new or ""
    old = project.git("rev-parse", "HEAD")
    other = (project.root / f".git/objects/{old[:2]}/{old[2:]}").read_bytes()
    await branch.write_file(f".git/objects/{new[:2]}/{new[2:]}", other)
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"] and landing.history[0].troubles
    assert project.git("fsck", "--full") == "" and project.git("log", "-1", "--format=%s") == "first"


async def test_a_damaged_pack(branch: Branch, project: GitProject) -> None:
    await asyncio.to_thread(project.agent, branch, ["gc", "-q"])
    (told,) = branch.git_story().repositories
    names = [entry["name"] for entry in (await branch.ls(".git/objects/pack"))["entries"]]
    (name,) = [f".git/objects/pack/{name}" for name in names if name.endswith(".pack")]
    assert told.refs[0].commits == 1
    data = bytearray(await branch.read_bytes(name))
    data[len(data) // 2] ^= 0xFF
    await branch.write_file(name, bytes(data))
    await lands_with(branch, project, "git index-pack")


async def test_a_broken_index_and_a_lock_on_the_branch_are_nothing_to_us(
    branch: Branch, project: GitProject
) -> None:
    await branch.write_file(".git/index", "broken")
    await branch.write_file(".git/index.lock", "")
    await branch.write_file(".git/HEAD.lock", "")
    assert branch.land(commits="fast_forward").history[0].refs[0].state == "moved"
    assert project.git("status", "--porcelain") == ""


async def test_alternates_and_hooks_and_filters_of_the_branch_are_not_obeyed(
    branch: Branch, project: GitProject
) -> None:
    """Hooks that hang, alternates to nowhere, configuration that runs programs."""
    mark = project.base / "RAN"
    hook = f"#!/bin/sh\ntouch {mark}\nsleep 1000\n"
    for name in ("reference-transaction", "post-index-change", "post-merge", "pre-auto-gc"):
        await branch.write_file(f".git/hooks/{name}", hook)
        await branch.set_executable(f".git/hooks/{name}", True)
    config = await branch.read_bytes(".git/config")
    await branch.write_file(".git/config", config + f'[core]\n\tfsmonitor = "touch {mark}"\n'.encode())
    await branch.write_file(".git/info/attributes", "* filter=f\n")
    await branch.write_file(".git/objects/info/alternates", "/nowhere\n")
    landing = branch.land(commits="fast_forward")
    assert landing.history[0].refs[0].state == "moved" and not mark.exists()
    assert {row.path for row in landing.refused} >= {"/.git/config", "/.git/objects/info/alternates"}


async def test_hooks_of_the_user_that_hang_are_not_run(branch: Branch, project: GitProject) -> None:
    hook = project.root / ".git/hooks/reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {project.base}/RAN\nsleep 1000\n")
    hook.chmod(0o755)
    began = time.monotonic()
    assert branch.land(commits="fast_forward").history[0].refs[0].state == "moved"
    assert time.monotonic() - began < HANG_S and not (project.base / "RAN").exists()


async def test_a_lock_of_the_users_git_is_waited_for_and_said(branch: Branch, project: GitProject) -> None:
    """GI-6."""
    (project.root / ".git/index.lock").touch()
    landing = branch.land(commits="fast_forward")
    (ref,) = landing.history[0].refs
    assert (ref.state, ref.said) == ("stays", "another git holds index.lock")
    assert landing.history[0].notes == ("git's index was not refreshed: another git holds index.lock",)
    assert (project.root / "a.txt").read_text() == "A\n"
    (project.root / ".git/index.lock").unlink()
    assert project.git("status", "--short") == "M a.txt"


def test_a_refresh_that_is_left_out_is_said_by_landing_and_undo(project: GitProject) -> None:
    """GI-6: nothing but a file landed, and the repository has filters of its own."""
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"))
    project.git("config", "filter.f.clean", "touch /tmp/never")
    landing = branch.land()
    said = (
        "git's index was not refreshed: this repository has filters of its own, and comparing would run them"
    )
    assert [one.notes for one in landing.history] == [(said,)]
    assert list(landing.record()["history"][0]["notes"]) == [said]
    assert [one.notes for one in landing.undo().history] == [(said,)]


def test_what_a_killed_landing_left_of_a_quarantine_goes_at_the_next_start(
    branch: Branch, project: GitProject
) -> None:
    """GI-3: the repository of our own around new objects is temporary, also where nobody ends its block."""
    left = project.base / "data/branches" / branch.id / "quarantine-left"
    (left / "objects/info").mkdir(parents=True)
    project.workspace.close()
    Workspace(project.root, data_dir=project.base / "data").close()
    assert left.exists()  # so young, it may be another process's, about to be locked
    os.utime(left, (0, 0))
    Workspace(project.root, data_dir=project.base / "data").close()
    assert not left.exists()


async def test_a_note_that_cannot_be_kept_fails_no_landing(
    branch: Branch, project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GI-6: it has landed; an error would say that it has not."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("bowerbird.workspace.git.landed_history.write_history", full)
    project.git("config", "filter.x.clean", "cat")
    assert branch.land().state == "done"
    assert (project.root / "a.txt").read_text() == "A\n"


async def test_a_broken_index_of_the_user_keeps_the_branch_where_it_is(
    branch: Branch, project: GitProject
) -> None:
    (project.root / ".git/index").write_bytes(b"broken")
    (ref,) = branch.land(commits="fast_forward").history[0].refs
    assert ref.state == "stays" and "index" in ref.said
    assert (project.root / "a.txt").read_text() == "A\n"
    assert project.git("rev-parse", "main") == project.git("rev-parse", f"{ref.id}~")


async def test_a_history_over_the_limit_is_named(branch: Branch, project: GitProject) -> None:
    from bowerbird.workspace import HistoryRules

    with Workspace(project.root, data_dir=project.base / "data", git=HistoryRules(most_bytes=100)) as small:
        landing = small.open(branch.id).land()
    assert "git.max_bytes" in landing.history[0].troubles[0]
    assert (project.root / "a.txt").read_text() == "A\n"


async def test_very_many_refs_are_cut_and_counted(branch: Branch, project: GitProject) -> None:
    new = branch.git_story().repositories[0].refs[0].new
    lines = "".join(f"{new} refs/heads/n/{number:06}\n" for number in range(100_000))
    await branch.write_file(".git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n" + lines)
    (told,) = branch.git_story().repositories
    assert len(told.refs) <= 2_000 and "98,001 of 100,001 changed refs are left out" in told.troubles


async def test_a_git_file_that_points_outside(project: GitProject) -> None:
    branch = project.workspace.branch()
    outside = project.base / "outside"
    project.git("clone", "-q", str(project.root), str(outside))
    await branch.write_file("sub/.git", f"gitdir: {outside}/.git\n")
    await branch.write_file("sub/x.txt", "x\n")
    landing = branch.land()
    assert [entry.path for entry in landing.entries] == ["/sub/x.txt"]
    assert [(row.path, row.reason) for row in landing.refused] == [("/sub/.git", "flagged: git-dir")]
    assert not os.path.lexists(project.root / "sub/.git")


def test_alternates_of_the_user_to_nowhere(project: GitProject) -> None:
    """Git of the user's own repository prints an error for them at every command."""
    info = project.root / ".git/objects/info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text("/nowhere/objects\n")
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    assert landing.history[0].refs[0].state == "moved"
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert project.git("status", "--porcelain") == ""


def test_missing_objects_of_the_user(project: GitProject) -> None:
    """Commits that would stand on what is not there stay on the branch, named; the user's branch does not move."""
    head = project.git("rev-parse", "HEAD")
    blob = project.git("rev-parse", "HEAD:b.txt")
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    (project.root / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    assert (
        landing.history[0].refs == ()
        and "refs/heads/main: your own repository" in landing.history[0].troubles[0]
    )
    assert (project.root / "a.txt").read_text() == "A\n" and project.git("rev-parse", "main") == head


def test_refs_of_the_user_that_point_nowhere(project: GitProject) -> None:
    """A branch of the user's that is broken is named by where it points, stays as it is, and stops no commits."""
    (project.root / ".git/refs/heads/broken").write_text("1" * 40 + "\n")
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    landing = branch.land(commits="fast_forward")
    assert [entry.path for entry in landing.entries] == ["/a.txt"]
    assert landing.history[0].notes == ("a ref of yours points to 111111111111, which is not there",)
    assert project.git("log", "-1", "--format=%s", "main") == "by the agent"
    assert project.git("status", "--porcelain") == ""
    assert (project.root / ".git/refs/heads/broken").read_text() == "1" * 40 + "\n"


def test_a_hundred_thousand_refs_of_the_user(project: GitProject) -> None:
    """They are read, not listed: only what the branch changed is told, and its commit lands."""
    head = project.git("rev-parse", "HEAD")
    lines = "".join(f"{head} refs/tags/n/{number:06}\n" for number in range(100_000))
    (project.root / ".git/packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + lines)
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    (told,) = branch.git_story().repositories
    assert [ref.ref for ref in told.refs] == ["refs/heads/main"] and told.troubles == ()
    landing = branch.land(commits="fast_forward")
    assert landing.history[0].refs[0].state == "moved"
    assert project.git("log", "-1", "--format=%s") == "by the agent"
