"""GI-3, GI-5, GI-8: commits of a branch land through git, and no command takes a commit out of the user's reach."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject

from bowerbird.cli.review.git_lines import history_lines
from bowerbird.workspace import Branch, Workspace


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    yield made
    made.close()


@pytest.fixture
def branch(project: GitProject) -> Branch:
    """With one commit of the agent that changes a.txt."""
    made = project.workspace.branch()
    project.agent(made, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
    return made


def test_commits_arrive_beside_the_users_branch(project: GitProject, branch: Branch) -> None:
    landing = branch.land(session="s_1")
    kept = "refs/bowerbird/s_1/heads/main"
    assert project.git("log", "-1", "--format=%s %an", kept) == "by the agent agent"
    assert project.git("log", "-1", "--format=%s") == "first"
    assert project.git("status", "--short") == "M a.txt"
    assert "session s_1" in project.git("reflog", "show", kept)
    assert project.git("fsck", "--full", "--strict") == ""
    (one,) = landing.history
    assert [(r.ref, r.state, r.kept_as) for r in one.refs] == [("refs/heads/main", "arrived", kept)]
    assert landing.record()["history"][0]["refs"][0]["commands"][0] == f"git merge {kept}"
    assert branch.git_story().repositories[0].refs[0].landed
    assert branch.land(session="s_1").history == ()  # there is nothing more to bring


def test_a_branchs_name_begins_no_command_of_its_own(project: GitProject) -> None:
    """Whoever pastes the commands that a landing names runs them in a shell; git allows `;`, `$` and `'` there."""
    branch = project.workspace.branch()
    name = "x;touch${IFS}PWNED;'`touch${IFS}PWNED`"
    project.agent(branch, ["checkout", "-q", "-b", name], ("a.txt", "A\n"), ["commit", "-qam", "odd"])
    landing = branch.land(session="s_1").record()
    (row,) = [ref for one in landing["history"] for ref in one["refs"] if ref["ref"] == f"refs/heads/{name}"]
    project.git("checkout", "-q", ".")
    for command in row["commands"]:
        subprocess.run(
            ["bash", "-c", command], cwd=project.root, env=project.environment("user"), check=False, capture_output=True,
        )  # fmt: skip
    assert project.git("log", "-1", "--format=%s") == "odd"
    assert not list(project.base.rglob("PWNED"))


def test_a_branch_that_did_not_move_follows(project: GitProject, branch: Branch) -> None:
    landing = branch.land(commits="fast_forward")
    assert landing.history[0].refs[0].state == "moved"
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert project.git("status", "--porcelain") == "" and project.git("diff-files") == ""
    assert "fast-forward" in project.git("reflog", "-1")
    landing.undo()
    assert project.git("log", "-1", "--format=%s") == "first"
    assert project.git("status", "--porcelain") == "" and project.git("diff-files") == ""
    assert (project.root / "a.txt").read_text() == "a\n"
    branch.land(commits="fast_forward")
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["two\nlines", "end ", 'a "quoted" one', "x:y=z", "back\\slash"])
def test_a_workspace_may_have_any_name(tmp_path: Path, name: str) -> None:
    """GI-3, GI-10: the objects that a branch borrows were not found below a name of two lines."""
    (tmp_path / name).mkdir()
    project = GitProject(tmp_path / name)
    try:
        made = project.workspace.branch()
        project.agent(made, ("a.txt", "A\n"), ["commit", "-qam", "by the agent"])
        landing = made.land(commits="fast_forward")
        assert [ref.state for ref in landing.history[0].refs] == ["moved"]
        assert project.git("log", "--format=%s").split("\n") == ["by the agent", "first"]
        assert project.git("fsck", "--full", "--strict") == ""
    finally:
        project.close()


def test_the_first_commits_of_a_repository_follow_with_the_index_and_back(tmp_path: Path) -> None:
    """GI-3: of a repository without a commit the branch moved, and its index said that every file was deleted."""
    project = GitProject(tmp_path)
    shutil.rmtree(project.root / ".git")
    project.git("init", "-q", "-b", "main")
    project.git("add", "b.txt")
    branch = project.workspace.branch()
    project.agent(
        branch, ["add", "."], ["commit", "-qm", "root"], ("a.txt", "A\n"), ["commit", "-qam", "second"]
    )
    landing = branch.land(commits="fast_forward")
    assert landing.history[0].refs[0].state == "moved", landing.history
    assert project.git("log", "--format=%s") == "second\nroot"
    assert project.git("status", "--porcelain") == "" and project.git("diff-files") == ""
    undone = landing.undo()
    assert undone.history[0].refs[0].state == "moved", undone.history
    assert project.git("rev-parse", "--verify", "-q", "main", fails=True) == ""
    assert (project.root / "a.txt").read_text() == "a\n" and (project.root / "b.txt").exists()
    assert project.git("status", "--porcelain") == "?? a.txt\n?? b.txt"
    project.close()


def test_later_commits_of_the_branch_follow_too(project: GitProject, branch: Branch) -> None:
    branch.land(commits="fast_forward")
    branch.begin_turn()
    project.agent(branch, ("b.txt", "B\n"), ["commit", "-qam", "again"])
    branch.land(commits="fast_forward")
    assert project.git("log", "-2", "--format=%s") == "again\nby the agent"
    assert project.git("status", "--porcelain") == ""


def test_commits_alone_land_and_come_back(project: GitProject) -> None:
    branch = project.workspace.branch()
    project.agent(branch, ("a.txt", "A\n"))
    branch.land()
    project.agent(branch, ["commit", "-qam", "of what landed"])
    landing = branch.land(commits="fast_forward")
    assert landing.entries == () and landing.history[0].refs[0].state == "moved"
    assert project.git("status", "--porcelain") == ""
    landing.undo()
    assert project.git("log", "-1", "--format=%s") == "first"
    assert project.git("status", "--short") == "M a.txt"


def test_a_commit_of_the_user_stays_whatever_lands(project: GitProject, branch: Branch) -> None:
    """Projects 1: `land --force` made the user's commit unreachable, reflog included."""
    project.write("f.txt", "f\n")
    project.git("add", ".")
    project.git("commit", "-qm", "by the user")
    landing = branch.land(force=True, commits="fast_forward", session="s_1")
    (ref,) = landing.history[0].refs
    assert (ref.state, ref.said) == ("stays", "it has moved on in your repository")
    assert [c.split()[1] for c in landing.record()["history"][0]["refs"][0]["commands"]] == [
        "merge", "cherry-pick", "rebase"
    ]  # fmt: skip
    assert project.git("log", "-1", "--format=%s") == "by the user"
    assert project.git("status", "--short") == "M a.txt"
    project.git("commit", "-qam", "mine, too")
    landing.undo(force=True)
    assert project.git("log", "-1", "--format=%s") == "mine, too"
    assert (project.root / "a.txt").read_text() == "a\n"


def test_undo_leaves_a_ref_where_the_user_has_gone_on(project: GitProject, branch: Branch) -> None:
    """GI-5."""
    landing = branch.land(commits="fast_forward")
    project.write("f.txt", "f\n")
    project.git("add", ".")
    project.git("commit", "-qm", "by the user")
    undone = landing.undo()
    (ref,) = undone.history[0].refs
    assert (ref.state, ref.said) == ("stays", "it has moved on in your repository")
    assert project.git("log", "-2", "--format=%s") == "by the user\nby the agent"
    assert (project.root / "a.txt").read_text() == "a\n"


def test_two_sessions_that_both_commit_land_one_after_the_other(project: GitProject, branch: Branch) -> None:
    """GI-8; projects 2c."""
    other = project.workspace.branch()
    project.agent(other, ("b.txt", "B\n"), ["commit", "-qam", "by the other"])
    first = branch.land(commits="fast_forward", session="s_1")
    second = other.land(commits="fast_forward", session="s_2")
    assert first.refused == () == second.refused
    assert [entry.path for entry in second.entries] == ["/b.txt"]
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert project.git("log", "-1", "--format=%s", "refs/bowerbird/s_2/heads/main") == "by the other"
    assert project.git("status", "--short") == "M b.txt"


def test_nothing_moves_while_files_of_its_commits_stay(project: GitProject, branch: Branch) -> None:
    project.agent(branch, ("b.txt", "B\n"), ["commit", "-qam", "second"])
    (ref,) = branch.land(["a.txt"], commits="fast_forward").history[0].refs
    assert (ref.state, ref.said) == ("stays", "files of its commits did not land: b.txt")
    branch.land(commits="fast_forward")
    assert project.git("log", "-1", "--format=%s") == "second"
    assert project.git("status", "--porcelain") == ""


def test_branches_tags_and_stashes_arrive(project: GitProject) -> None:
    branch = project.workspace.branch()
    project.agent(
        branch,
        ["switch", "-qc", "feature"], ("a.txt", "A\n"), ["commit", "-qam", "on it"], ["tag", "-m", "t", "v1"],
        ("b.txt", "B\n"), ["stash"], ("b.txt", "BB\n"), ["stash"],
    )  # fmt: skip
    landing = branch.land(commits="fast_forward", session="s")
    assert landing.history[0].troubles == ()
    assert project.git("for-each-ref", "--format=%(refname)").split() == [
        "refs/bowerbird/s/heads/feature", "refs/bowerbird/s/stash/0", "refs/bowerbird/s/stash/1",
        "refs/bowerbird/s/tags/v1", "refs/heads/feature", "refs/heads/main", "refs/tags/v1",
    ]  # fmt: skip
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert project.git("fsck", "--full") == ""
    landing.undo()
    assert "refs/heads/feature" not in project.git("for-each-ref", "--format=%(refname)").split()


def test_history_never_lands_where_that_is_set(project: GitProject, branch: Branch) -> None:
    assert branch.land(commits="never").history == ()
    assert project.git("for-each-ref", "refs/bowerbird") == ""


def test_a_deleted_branch_or_repository_of_the_agent_stays_the_users(project: GitProject) -> None:
    project.git("branch", "mine")
    branch = project.workspace.branch()
    project.agent(branch, ["branch", "-D", "mine"], ("a.txt", "A\n"))
    branch.land(force=True, accept=["*"], commits="fast_forward")
    assert project.git("rev-parse", "mine") == project.git("rev-parse", "main")


@pytest.mark.parametrize("point", ["applying", "settle", "done"])
def test_a_landing_that_is_killed_ends_whole_or_not_at_all(
    project: GitProject, branch: Branch, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between objects, refs and files: the next start finishes it, or nothing happened but objects."""

    class Killed(BaseException):
        pass

    def kill(name: str) -> None:
        if name == point:
            raise Killed

    from bowerbird.workspace.landing import apply, landings

    monkeypatch.setattr(apply.Applier, "_give_back", lambda *_: (_ for _ in ()).throw(Killed()))
    monkeypatch.setattr(apply, "discard", lambda *_: None)
    monkeypatch.setattr(landings, "no_checkpoint", kill)
    with pytest.raises(Killed), Workspace(project.root, data_dir=project.base / "data") as dying:
        dying._shared.landings.checkpoint = kill  # pyright: ignore[reportPrivateUsage]
        dying.open(branch.id).land(commits="fast_forward", session="s")
    monkeypatch.undo()
    with Workspace(project.root, data_dir=project.base / "data") as again:
        again.finish_landings()
        landed = (project.root / "a.txt").read_text() == "A\n"
        assert landed == (point != "applying")
        assert project.git("log", "-1", "--format=%s") == ("by the agent" if landed else "first")
        assert (
            project.git("status", "--porcelain") == ""
            and project.git("fsck", "--full", "--no-dangling") == ""
        )
        again.open(branch.id).land(commits="fast_forward", session="s")
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert project.git("status", "--porcelain") == ""


def test_a_new_repository_that_was_used_since_stays_at_an_undo(project: GitProject) -> None:
    """GI-4: an undo, forced or not, never takes commits away."""
    branch = project.workspace.branch()
    sub = ["-C", "sub"]
    project.agent(
        branch,
        ("sub/x.txt", "x\n"),
        [*sub, "init", "-q"],
        [*sub, "add", "."],
        [*sub, "commit", "-qm", "in it"],
    )
    assert branch.git_story().repositories[0].is_new
    landing = branch.land(accept=["sub/.git"])
    for missing in ("refs/heads", "refs/tags", "objects/info", "objects/pack"):
        (project.root / "sub/.git" / missing).mkdir(parents=True, exist_ok=True)
    (project.root / "sub/y.txt").write_text("y\n")
    project.git(*sub, "add", ".")
    project.git(*sub, "commit", "-qm", "of the user")
    undone = landing.undo(force=True)
    assert project.git(*sub, "log", "--format=%s") == "of the user\nin it"
    assert [(row.path, row.reason) for row in undone.refused] == [("/sub/.git", "git-moved")]
    assert not (project.root / "sub/x.txt").exists()


def test_a_large_file_arrives_as_a_pack(project: GitProject, branch: Branch) -> None:
    """Unpacking would compress it again, for longer than git is given."""
    (project.base / "large").write_bytes(os.urandom(17 * 1024**2))
    quick = ["-c", "core.compression=0"]
    project.agent(
        branch, [*quick, "hash-object", "-w", str(project.base / "large")],
        ["update-index", "--add", "--cacheinfo", f"100644,{project.git('hash-object', '../large')},large.bin"],
        [*quick, "commit", "-qm", "large"],
    )  # fmt: skip
    (ref,) = branch.land(commits="fetch").history[0].refs
    assert project.git("cat-file", "-s", f"{ref.kept_as}:large.bin") == str(17 * 1024**2)
    assert list((project.root / ".git/objects/pack").glob("*.pack"))


def test_what_brings_in_commits_of_a_submodule_is_said_for_that_repository(project: GitProject) -> None:
    """GI-3: `git merge refs/…` at the top brought in the ref of that name of the workspace's own repository."""
    sub = project.base / "sub"
    sub.mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "s"]):
        project.git("-C", str(sub), *words)
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "lib/sub")
    project.git("commit", "-qm", "with sub")
    branch = project.workspace.branch()
    project.agent(branch, ["-C", "lib/sub", "commit", "-q", "--allow-empty", "-m", "in sub"])
    history = branch.land(session="s_1", partial=True).record()["history"]
    [row] = [one for one in history if one["repository"] != "/.git"]
    assert history_lines([row])[0].startswith("your main in .git/modules/lib/sub stays")
    words = next(ref["commands"][0] for ref in row["refs"] if ref["ref"] == "refs/heads/main").split()[1:]
    project.git(*words, "--ff-only")
    assert project.git("-C", "lib/sub", "log", "-1", "--format=%s") == "in sub"
    assert project.git("log", "-1", "--format=%s") == "with sub"


def test_a_submodules_own_branch_follows_with_its_index_and_back(project: GitProject) -> None:
    """GI-3 within a submodule: its git directory lies in the workspace's, its files do not."""
    sub = project.base / "sub"
    sub.mkdir()
    (sub / "s.txt").write_text("s\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "s"]):
        project.git("-C", str(sub), *words)
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "lib/sub")
    project.git("commit", "-qm", "with sub")
    branch = project.workspace.branch()
    project.agent(
        branch,
        ("lib/sub/s.txt", "S\n"),
        ["-C", "lib/sub", "commit", "-qam", "in sub"],
        ["commit", "-qam", "up"],
    )
    landing = branch.land(commits="fast_forward", partial=True)
    assert {(one.repository, r.state) for one in landing.history for r in one.refs if r.ref.endswith("/main")} == {
        ("/.git", "moved"), ("/.git/modules/lib/sub", "moved")
    }, landing.history  # fmt: skip
    assert project.git("-C", "lib/sub", "log", "-1", "--format=%s") == "in sub"
    assert project.git("-C", "lib/sub", "status", "--porcelain") == ""
    assert project.git("-C", "lib/sub", "diff-files") == "" and project.git("status", "--porcelain") == ""
    landing.undo()
    assert project.git("-C", "lib/sub", "log", "-1", "--format=%s") == "s"
    assert project.git("-C", "lib/sub", "status", "--porcelain") == ""
    assert (
        project.git("status", "--porcelain") == "" and project.git("log", "-1", "--format=%s") == "with sub"
    )


def test_a_submodule_that_names_other_files_is_left_alone(project: GitProject) -> None:
    """Its configuration may name any directory: only one whose `.git` names it back is its own."""
    sub = project.base / "sub"
    sub.mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "s"]):
        project.git("-C", str(sub), *words)
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "lib/sub")
    project.git("commit", "-qm", "with sub")
    project.git("-C", "lib/sub", "config", "core.worktree", str(project.root))
    branch = project.workspace.branch()
    project.agent(branch, ["-C", "lib/sub", "--work-tree=.", "commit", "-q", "--allow-empty", "-m", "in sub"])
    history = branch.land(commits="fast_forward", partial=True).history
    [ref] = [
        r for one in history if one.repository != "/.git" for r in one.refs if r.ref == "refs/heads/main"
    ]
    assert (ref.state, ref.said) == ("stays", "its files are not where its own configuration says")
