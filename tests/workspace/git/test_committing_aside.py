"""UI-78, GI-9: `land --branch NAME` commits on another git branch and touches no file of the user's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace import Branch, CommittingAside, Landing

TEN = "".join(f"line {number}\n" for number in range(10))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    for name, value in made.environment("user").items():
        monkeypatch.setenv(name, value)
    made.write("ten.txt", TEN)
    made.git("add", ".")
    made.git("commit", "-qm", "ten lines")
    yield made
    made.close()


def edited(project: GitProject, *files: tuple[str, str] | list[str]) -> Branch:
    branch = project.workspace.branch()
    project.agent(branch, *files)
    return branch


def on(branch: Branch, name: str = "agent/work", *, own: bool = True, **how: object) -> Landing:
    commit = CommittingAside("Do it\n\nBecause.", "s_1", name, own=own)
    return branch.land(commit=commit, **how)  # pyright: ignore[reportArgumentType]


def mine(project: GitProject) -> tuple[str, ...]:
    """Everything of the user's that must stay: files, index, what is checked out, its branch."""
    return (
        project.git("status", "--short", "--branch"),
        project.git("diff"),
        project.git("diff", "--cached"),
        project.git("rev-parse", "HEAD"),
        project.git("ls-files", "-s"),
    )


def test_the_changes_are_one_commit_beside_everything_of_the_users(project: GitProject) -> None:
    branch = edited(project, ("a.txt", "A\n"), ("new/c.txt", "c\n"), ("later.txt", "later\n"))
    project.write("b.txt", "mine\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    before = mine(project)
    landing = on(branch, paths=["a.txt", "new"])
    assert mine(project) == before
    commit = landing.history[0].commit
    assert landing.kind == "commit" and commit is not None and commit.branch == "agent/work"
    assert commit.id == project.git("rev-parse", "agent/work")
    assert project.git("log", "-1", "--format=%an %cn: %B", "agent/work").split("\n\n") == [
        "user user: Do it", "Because.", "Bowerbird-Session: s_1",
    ]  # fmt: skip
    assert project.git("show", "--name-status", "--format=", "agent/work") == "M\ta.txt\nA\tnew/c.txt"
    assert project.git("rev-parse", "agent/work^") == project.git("rev-parse", "HEAD")
    # Nothing has landed: it stays on the agent's branch, and there is nothing to undo.
    assert {"/a.txt", "/later.txt", "/new/c.txt"} <= set(branch.changes().paths)
    assert project.workspace.landings() == []
    assert project.git("fsck", "--full", "--strict") == ""


def test_the_next_one_is_one_more_commit_there(project: GitProject) -> None:
    branch = edited(project, ("a.txt", "A\n"))
    first = on(branch).history[0].commit
    project.agent(branch, ("a.txt", "AA\n"), ("d.txt", "d\n"))
    second = on(branch).history[0].commit
    assert first is not None and second is not None and second.id is not None
    assert project.git("rev-parse", "agent/work^") == first.id
    assert project.git("show", "agent/work:a.txt") == "AA"
    again = on(branch).history[0].commit
    assert again is not None and again.id is None and "has all of it already" in again.said


def test_the_user_goes_on_and_takes_it_when_they_like(project: GitProject) -> None:
    branch = edited(project, ("ten.txt", TEN.replace("line 1\n", "agent\n")))
    project.write("ten.txt", TEN.replace("line 8\n", "mine\n"))
    on(branch)
    assert project.git("show", "agent/work:ten.txt") == TEN.replace("line 1\n", "agent\n").strip()
    assert (project.root / "ten.txt").read_text() == TEN.replace("line 8\n", "mine\n")
    project.git("commit", "-qam", "mine")
    project.git("merge", "-q", "--no-edit", "agent/work")
    both = TEN.replace("line 1\n", "agent\n").replace("line 8\n", "mine\n")
    assert (project.root / "ten.txt").read_text() == both


def test_deletions_and_a_directory_for_a_file(project: GitProject) -> None:
    branch = edited(project, ["mv", "b.txt", "moved.txt"], ["rm", "-q", "a.txt"], ("a.txt/inner", "x\n"))
    before = mine(project)
    on(branch)
    assert mine(project) == before
    assert project.git("ls-tree", "-r", "--name-only", "agent/work").splitlines() == [
        "a.txt/inner", "moved.txt", "ten.txt",
    ]  # fmt: skip


def test_what_the_agent_took_back_and_what_others_committed_there(project: GitProject) -> None:
    """The next commit is the way from the session's last one, merged into what stands there by now."""
    branch = edited(project, ("ten.txt", TEN.replace("line 1\n", "agent\n")), ("gone.txt", "gone\n"))
    on(branch)
    project.git("switch", "-q", "agent/work")
    project.write("ten.txt", TEN.replace("line 1\n", "agent\n").replace("line 8\n", "reviewer\n"))
    project.git("commit", "-qam", "by a reviewer")
    project.git("switch", "-q", "main")
    project.agent(branch, ("ten.txt", TEN.replace("line 1\n", "agent\n").replace("line 4\n", "more\n")))
    branch.revert(["gone.txt"])
    made = on(branch).history[0].commit
    assert made is not None and made.id is not None, made
    wanted = TEN.replace("line 1\n", "agent\n").replace("line 4\n", "more\n")
    assert project.git("show", "agent/work:ten.txt") == wanted.replace("line 8\n", "reviewer\n").strip()
    assert project.git("ls-tree", "--name-only", "agent/work", "gone.txt") == ""


def test_chosen_paths_leave_what_was_committed_before(project: GitProject) -> None:
    branch = edited(project, ("a.txt", "A\n"), ("b.txt", "B\n"))
    on(branch, paths=["a.txt"])
    on(branch, paths=["b.txt"])
    assert project.git("diff", "--name-only", "main", "agent/work").split() == ["a.txt", "b.txt"]


def test_rules_of_the_repository_for_line_ends_apply(project: GitProject) -> None:
    project.write(".gitattributes", "*.txt text eol=crlf\n")
    project.git("add", ".")
    project.git("commit", "-qm", "line ends")
    on(edited(project, ("c.txt", "one\r\ntwo\r\n")))
    assert project.git("cat-file", "-s", "agent/work:c.txt") == "8"


def test_what_cannot_be_told_apart_is_refused_and_nothing_is_made(project: GitProject) -> None:
    branch = edited(project, ("ten.txt", TEN.replace("line 5\n", "agent\n")), ("own.txt", "agent\n"))
    project.git("branch", "agent/work")
    project.git("switch", "-q", "agent/work")
    project.write("ten.txt", TEN.replace("line 5\n", "theirs\n"))
    project.git("commit", "-qam", "there")
    project.git("switch", "-q", "main")
    before = project.git("for-each-ref")
    with pytest.raises(LandingRefused, match=r"nothing was committed: ten\.txt: "):
        on(branch)
    assert project.git("for-each-ref") == before


@pytest.mark.parametrize("name", ["-d", "a..b", "x.lock", "a b", "HEAD~1", "/x", "a\nb", ""])
def test_what_is_no_name_of_a_branch_is_refused(project: GitProject, name: str) -> None:
    before = project.git("for-each-ref")
    with pytest.raises(InvalidArgument, match="cannot be the name"):
        on(edited(project, ("a.txt", "A\n")), name)
    assert project.git("for-each-ref") == before


def test_what_is_checked_out_anywhere_never_moves(project: GitProject, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", "-b", "elsewhere", str(tmp_path / "tree"))
    branch = edited(project, ("a.txt", "A\n"))
    for name in ("main", "elsewhere"):
        with pytest.raises(InvalidArgument, match=f"the git branch {name} is checked out"):
            on(branch, name)
    project.git("switch", "-q", "--detach")
    made = on(branch).history[0].commit
    assert made is not None and made.id is not None


def test_a_repository_in_the_middle_of_a_rebase_is_no_matter(project: GitProject) -> None:
    """Nothing of it is touched, so it need not be finished first."""
    branch = edited(project, ("a.txt", "A\n"))
    (project.root / ".git/MERGE_HEAD").write_text(project.git("rev-parse", "HEAD") + "\n")
    made = on(branch).history[0].commit
    assert made is not None and made.id is not None


def test_signatures_of_the_user_are_made_and_a_server_makes_none(project: GitProject, tmp_path: Path) -> None:
    key = tmp_path / "signer"
    key.write_text('#!/bin/sh\ncat > /dev/null\necho "[GNUPG:] SIG_CREATED " >&2\necho SIGNATURE\n')
    key.chmod(0o755)
    project.git("config", "gpg.program", str(key))
    project.git("config", "commit.gpgsign", "true")
    branch = edited(project, ("a.txt", "A\n"))
    on(branch, "signed")
    assert "SIGNATURE" in project.git("cat-file", "commit", "signed")
    made = on(branch, "unsigned", own=False).history[0].commit
    assert made is not None and "nothing was signed" in made.notes[-1]
    assert "SIGNATURE" not in project.git("cat-file", "commit", "unsigned")


def test_below_the_top_and_sparse_and_from_the_first_commit(project: GitProject) -> None:
    project.write("deep/x.txt", "x\n")
    project.git("add", ".")
    project.git("commit", "-qm", "deep")
    project.git("sparse-checkout", "set", "--no-cone", "/*.txt")
    on(edited(project, ("a.txt", "A\n")))
    assert project.git("diff", "--stat", "main", "agent/work", "--", "deep") == ""
    assert project.git("show", "--name-only", "--format=", "agent/work") == "a.txt"
    project.git("sparse-checkout", "disable")
    project.git("checkout", "-q", "--orphan", "empty")
    project.git("rm", "-rfq", "--cached", ".")
    on(edited(project, ("n.txt", "n\n")), "first")
    assert project.git("ls-tree", "-r", "--name-only", "first") == "n.txt"
