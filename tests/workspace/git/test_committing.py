"""GI-9, UI-78: what lands becomes one commit of the user's own git; index and other edits of theirs stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace import Branch, Committing, CommittingAside, Landing

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


def edited(project: GitProject, *files: tuple[str, str]) -> Branch:
    branch = project.workspace.branch()
    project.agent(branch, *files)
    return branch


def landed(branch: Branch, message: str = "Do it", *, own: bool = True, **how: object) -> Landing:
    return branch.land(commit=Committing(message, "s_1", own=own), **how)  # pyright: ignore[reportArgumentType]


def test_exactly_the_landed_paths_become_one_commit(project: GitProject) -> None:
    branch = edited(project, ("a.txt", "A\n"), ("new/c.txt", "c\n"), ("later.txt", "later\n"))
    project.write("b.txt", "mine\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    landing = landed(branch, "Change a\n\nBecause.", paths=["a.txt", "new"])
    assert project.git("log", "-1", "--format=%B%n%an").split("\n\n") == [
        "Change a", "Because.", "Bowerbird-Session: s_1", "user",
    ]  # fmt: skip
    assert project.git("show", "--name-status", "--format=") == "M\ta.txt\nA\tnew/c.txt"
    assert project.git("status", "--short").splitlines() == ["M b.txt", "A  staged.txt"]
    commit = landing.history[0].commit
    assert commit is not None and (commit.branch, commit.subject) == ("main", "Change a")
    assert commit.id == project.git("rev-parse", "HEAD") and not commit.said
    assert landing.record()["history"][0]["commit"]["id"] == commit.id
    assert branch.changes().paths == ("/later.txt",)


def test_edits_of_the_user_in_a_landed_file_are_in_no_commit(project: GitProject) -> None:
    branch = edited(project, ("ten.txt", TEN.replace("line 1\n", "agent\n")))
    staged = TEN.replace("line 9\n", "staged\n")
    project.write("ten.txt", staged)
    project.git("add", "ten.txt")
    project.write("ten.txt", staged.replace("line 5\n", "mine\n"))
    landed(branch)
    assert project.git("show", "HEAD:ten.txt") + "\n" == TEN.replace("line 1\n", "agent\n")
    assert project.git("show", ":ten.txt") + "\n" == staged.replace("line 1\n", "agent\n")
    both = staged.replace("line 5\n", "mine\n").replace("line 1\n", "agent\n")
    assert (project.root / "ten.txt").read_text() == both


@pytest.mark.parametrize("staged", [False, True])
def test_what_cannot_be_told_apart_is_refused_before_anything_lands(
    project: GitProject, staged: bool
) -> None:
    project.write("a.txt", "mine\n")
    if staged:
        project.git("add", "a.txt")
    branch = edited(project, ("a.txt", "mine and the agent's\n"), ("b.txt", "B\n"))
    with pytest.raises(LandingRefused, match=r"a\.txt: you have edits there"):
        landed(branch)
    assert project.git("log", "-1", "--format=%s") == "ten lines"
    assert (project.root / "b.txt").read_text() == "b\n"


def test_a_file_of_the_users_that_is_in_no_commit_is_not_slipped_in(project: GitProject) -> None:
    project.write("notes.txt", "mine\n")
    branch = edited(project, ("notes.txt", "mine\nand more\n"))
    with pytest.raises(LandingRefused, match="in no commit yet"):
        landed(branch)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(["checkout", "-q", "--detach"], "HEAD is detached", id="detached"),
        pytest.param(["bisect", "start"], "", id="bisect-is-no-obstacle"),
        pytest.param(["merge", "--no-ff", "--no-commit", "other"], "in the middle of a merge", id="merge"),
        pytest.param(["rebase", "--exec", "false", "HEAD~1"], "in the middle of a rebase", id="rebase"),
    ],
)
def test_a_repository_in_the_middle_of_something_is_left_alone(
    project: GitProject, spoil: list[str], said: str
) -> None:
    project.git("checkout", "-qb", "other", "HEAD~1")
    project.write("other.txt", "other\n")
    project.git("add", ".")
    project.git("commit", "-qm", "other")
    project.git("checkout", "-q", "main")
    branch = edited(project, ("a.txt", "A\n"))
    project.git(*spoil, fails=True)
    if not said:
        assert landed(branch).history[0].commit is not None
        return
    with pytest.raises(InvalidArgument, match=said):
        landed(branch)
    assert (project.root / "a.txt").read_text() == "a\n"


def hook(project: GitProject, name: str, text: str) -> None:
    path = project.root / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_hooks_of_the_user_apply_and_may_say_no(project: GitProject) -> None:
    hook(project, "pre-commit", "git diff --cached --name-only; echo 'the linter says no' >&2; exit 1")
    branch = edited(project, ("a.txt", "A\n"), ("c.txt", "c\n"))
    landing = landed(branch)
    commit = landing.history[0].commit
    assert landing.state == "done" and commit is not None and commit.id is None
    assert "the linter says no" in commit.said
    assert project.git("status", "--short").splitlines() == ["M a.txt", "?? c.txt"]
    assert project.git("log", "-1", "--format=%s") == "ten lines"


def test_what_a_hook_changes_is_in_the_index_too(project: GitProject) -> None:
    hook(project, "pre-commit", "echo formatted > a.txt; git add a.txt")
    landed(edited(project, ("a.txt", "A\n")))
    assert project.git("show", "HEAD:a.txt") == "formatted"
    assert project.git("status", "--short") == ""


def test_a_server_runs_no_hook_of_a_repository(project: GitProject) -> None:
    hook(project, "pre-commit", "exit 1")
    commit = landed(edited(project, ("a.txt", "A\n")), own=False).history[0].commit
    assert commit is not None and commit.id is not None and "no hook of yours ran" in commit.notes[0]
    assert project.git("status", "--short") == ""
    project.git("config", "filter.x.clean", "touch ../ran; cat")
    with pytest.raises(InvalidArgument, match="this repository has filters"):
        landed(edited(project, ("a.txt", "AA\n")), own=False)


def test_signatures_of_the_user_are_made(project: GitProject, tmp_path: Path) -> None:
    key, said = tmp_path / "signer", tmp_path / "signed"
    key.write_text(f'#!/bin/sh\ncat > {said}\necho "[GNUPG:] SIG_CREATED " >&2\necho SIGNATURE\n')
    key.chmod(0o755)
    project.git("config", "gpg.program", str(key))
    project.git("config", "commit.gpgsign", "true")
    landed(edited(project, ("a.txt", "A\n")))
    assert "SIGNATURE" in project.git("cat-file", "commit", "HEAD")
    assert "Bowerbird-Session: s_1" in said.read_text()


def test_modes_links_and_deletions_are_committed(project: GitProject) -> None:
    branch = project.workspace.branch()
    project.agent(branch, ("run.sh", "#!/bin/sh\n"), ["mv", "b.txt", "moved.txt"])
    landed(branch)
    assert project.git("show", "--name-status", "--format=", "--no-renames").splitlines() == [
        "D\tb.txt", "A\tmoved.txt", "A\trun.sh",
    ]  # fmt: skip
    assert project.git("status", "--short") == ""


def test_an_ignored_file_that_lands_is_in_no_commit(project: GitProject) -> None:
    project.write(".gitignore", "*.log\n")
    project.git("add", ".")
    project.git("commit", "-qm", "ignore")
    landing = landed(edited(project, ("a.txt", "A\n"), ("x.log", "x\n")), include=["x.log"])
    commit = landing.history[0].commit
    assert commit is not None and commit.notes == ("x.log is ignored by git: it landed, and is in no commit",)
    assert project.git("show", "--name-only", "--format=") == "a.txt"


@pytest.mark.parametrize("aside", [False, True])
def test_a_file_of_a_submodule_lands_and_is_in_no_commit(
    project: GitProject, tmp_path: Path, aside: bool
) -> None:
    other = tmp_path / "other"
    project.git("init", "-q", str(other))
    (other / "o.txt").write_text("o\n")
    project.git("-C", str(other), "add", ".")
    project.git("-C", str(other), "commit", "-qm", "one")
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    project.git("commit", "-qm", "with a submodule")
    branch = edited(project, ("a.txt", "A\n"), ("lib/o.txt", "O\n"), ("lib/new.txt", "n\n"))
    kind = (
        CommittingAside("Do it", "s_1", "aside", own=True) if aside else Committing("Do it", "s_1", own=True)
    )
    commit = branch.land(commit=kind).history[0].commit
    assert commit is not None
    ends = "it is in no commit" if aside else "it landed, and is in no commit"
    said = f"is in another repository, a submodule perhaps: {ends}"
    assert set(commit.notes) >= {f"lib/o.txt {said}", f"lib/new.txt {said}"}
    made = project.git("show", "--name-only", "--format=", "aside" if aside else "HEAD")
    assert made == "a.txt"
    assert ((project.root / "lib/o.txt").read_text() == "O\n") != aside


def test_undo_can_be_a_commit_too(project: GitProject) -> None:
    landing = landed(edited(project, ("a.txt", "A\n"), ("c.txt", "c\n")))
    project.write("b.txt", "mine\n")
    undone = landing.undo(commit=Committing('Revert "Do it"', "s_1", own=True))
    commit = undone.history[0].commit
    assert commit is not None and commit.subject == 'Revert "Do it"'
    assert project.git("diff", "HEAD~2", "HEAD", "--stat") == ""
    assert project.git("status", "--short") == "M b.txt"
    assert project.git("fsck", "--full", "--strict") == ""


def test_the_first_commit_of_a_repository(project: GitProject) -> None:
    project.git("checkout", "-q", "--orphan", "empty")
    project.git("rm", "-rfq", "--cached", ".")
    landed(edited(project, ("c.txt", "c\n")))
    assert project.git("ls-tree", "-r", "--name-only", "HEAD") == "c.txt"


def test_a_commit_and_a_fast_forward_are_two_ways(project: GitProject) -> None:
    with pytest.raises(InvalidArgument, match="both would move your branch"):
        landed(edited(project, ("a.txt", "A\n")), commits="fast_forward")


@pytest.mark.parametrize("what", ["HEAD^{tree}", "HEAD"])
def test_a_damaged_repository_is_named_with_what_to_do(project: GitProject, what: str) -> None:
    """Issue 12, bad input: git's own words alone said neither which repository nor what helps."""
    branch = edited(project, ("a.txt", "A\n"))
    name = project.git("rev-parse", what)
    (project.root / f".git/objects/{name[:2]}/{name[2:]}").unlink()
    try:
        commit = landed(branch).history[0].commit
        said = commit.said if commit is not None else ""
    except InvalidArgument as error:
        said = str(error)
    assert f"your repository at {project.root} is damaged: `git -C {project.root} fsck`" in said, said
    if (project.root / "a.txt").read_text() == "a\n":
        branch.land()
    assert (project.root / "a.txt").read_text() == "A\n", "the file lands anyway"
