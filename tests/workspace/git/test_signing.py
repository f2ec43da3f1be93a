"""GI-9: where the user signs commits, those of the agent are made again as they land, signed."""

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_project import GitProject
from support.patience import HANG_S

from bowerbird.workspace import Branch, HistoryRules, Landing, Workspace

AGENT = "agent <agent@example.org>"
COMMIT = ["commit", "-qam"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitProject]:
    made = GitProject(tmp_path)
    for name, value in made.environment("user").items():
        monkeypatch.setenv(name, value)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"user@example.org {key.with_suffix('.pub').read_text()}")
    for setting in (
        ("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgsign", "true"),
        ("gpg.ssh.allowedSignersFile", str(signers)),
    ):  # fmt: skip
        made.git("config", *setting)
    yield made
    made.close()


def begun(project: GitProject, rules: HistoryRules | None = None) -> Branch:
    """Return a branch of the workspace as it is opened with some rules."""
    project.close()
    data = project.base / "data"
    project.workspace = Workspace(project.root, data_dir=data, git=rules or HistoryRules())
    return project.workspace.branch()


def landed(branch: Branch, commits: str = "fast_forward", *, own: bool = True) -> Landing:
    return branch.land(commits=commits, session="s_1", own_git=own)  # pyright: ignore[reportArgumentType]


def shown(project: GitProject, form: str, *which: str) -> list[str]:
    return project.git("log", f"--format={form}", *which).splitlines()


def notes(landing: Landing) -> str:
    return "; ".join(note for one in landing.history for note in one.notes)


def test_new_commits_are_signed_one_by_one_and_that_is_said(project: GitProject) -> None:
    branch = begun(project)
    steps = (("a.txt", "A\n"), [*COMMIT, "one\n\nBecause."], ("b.txt", "B\n"), [*COMMIT, "two"])
    project.agent(branch, *steps, ["tag", "-a", "-m", "t", "v1"], who="user")
    landing = landed(branch)
    assert "2 commits are signed with your key, and have new ids" in notes(landing)
    assert shown(project, "%G? %s %an %cn") == ["G two user user", "G one user user", "N first user user"]
    assert project.git("log", "-1", "--skip=1", "--format=%B") == "one\n\nBecause.\n\nBowerbird-Session: s_1"
    assert project.git("status", "--short") == "" and project.git("fsck", "--no-dangling") == ""
    tag = next(ref for one in landing.history for ref in one.refs if ref.ref == "refs/tags/v1")
    assert project.git("rev-parse", f"{tag.kept_as}^{{commit}}") == project.git("rev-parse", "main")


def test_the_next_landing_goes_on_from_the_signed_ones_and_undo_takes_them_back(project: GitProject) -> None:
    branch = begun(project)
    before = project.git("rev-parse", "HEAD")
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], who="user")
    first = landed(branch)
    signed = project.git("rev-parse", "HEAD")
    assert not branch.has_new_commits and not landed(branch).history
    branch.begin_turn()
    project.agent(branch, ("a.txt", "AA\n"), [*COMMIT, "two"], who="user")
    second = landed(branch)
    assert "1 commit is signed with your key" in notes(second)
    assert shown(project, "%G? %s") == ["G two", "G one", "N first"]
    assert project.git("rev-parse", "HEAD~1") == signed
    second.undo()
    first.undo()
    assert project.git("rev-parse", "HEAD") == before and project.git("status", "--short") == ""
    landed(branch)
    assert shown(project, "%G? %s") == ["G two", "G one", "N first"]


def test_another_session_that_went_on_from_them_finds_the_same_signed_ones(project: GitProject) -> None:
    branch = begun(project)
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], who="user")
    fork = branch.fork()
    landed(branch)
    project.agent(fork, ("b.txt", "B\n"), [*COMMIT, "two"], who="user")
    landing = fork.land(commits="fetch", session="s_2", own_git=True)
    assert shown(project, "%G? %s", "refs/bowerbird/s_2/heads/main") == ["G two", "G one", "N first"]
    assert landing.history[0].refs[0].base == project.git("rev-parse", "main")


def test_the_agents_own_identity_is_kept_and_the_user_signs(project: GitProject) -> None:
    branch = begun(project, HistoryRules(agent_identity=AGENT))
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"])
    landed(branch)
    assert shown(project, "%GS %an %ce", "-1") == ["user@example.org agent agent@example.org"]


def test_commits_of_somebody_else_stay_as_they_are(project: GitProject) -> None:
    branch = begun(project)
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"])
    landing = landed(branch)
    assert "1 commit is not signed: the committer is somebody else" in notes(landing)
    assert shown(project, "%G? %s", "-1") == ["N one"]


@pytest.mark.parametrize(
    ("rules", "own", "why"),
    [
        (HistoryRules(resign=False), True, "git.resign is false"),
        (HistoryRules(), False, "a server runs no program of yours"),
    ],
)
def test_commits_land_as_they_are_where_they_are_not_signed_and_that_is_said(
    project: GitProject, rules: HistoryRules, own: bool, why: str
) -> None:
    branch = begun(project, rules)
    said = project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], ["rev-parse", "HEAD"], who="user")
    landing = landed(branch, own=own)
    assert f"1 commit is not signed: {why}" in notes(landing)
    assert project.git("rev-parse", "HEAD") == said[-1]


def test_a_key_that_does_not_sign_keeps_nothing_from_landing(project: GitProject) -> None:
    branch = begun(project)
    (project.base / "key").unlink()
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], who="user")
    landing = landed(branch)
    assert "the commits are not signed: git commit-tree: " in notes(landing)
    assert (project.root / "a.txt").read_text() == "A\n"
    assert shown(project, "%G? %s") == ["N one", "N first"]


def test_a_real_gpg_key_signs(project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GI-9: with gpg's own agent, in a home of its own (a short path: its socket has to fit)."""
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    with tempfile.TemporaryDirectory(prefix="gpg", dir="/tmp") as home:
        monkeypatch.setenv("GNUPGHOME", home)
        who = "user <user@example.org>"
        made = [
            "gpg",
            "--batch",
            "--quiet",
            "--passphrase",
            "",
            "--quick-generate-key",
            who,
            "ed25519",
            "sign",
        ]
        subprocess.run(made, check=True, capture_output=True)
        try:
            for setting in ("gpg.format", "user.signingKey"):
                project.git("config", "--unset", setting)
            branch = begun(project)
            project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], who="user")
            assert "1 commit is signed with your key" in notes(landed(branch))
            asked = ["git", "-C", str(project.root), "log", "-1", "--format=%G? %GS"]
            assert subprocess.check_output(asked, text=True).strip() in (f"G {who}", f"U {who}")
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], check=True)


LAND = """
import os, sys
from pathlib import Path
from bowerbird.workspace import Workspace
root, data, branch, told = sys.argv[1:]
Path(told).write_text(str(os.getpid()))
with Workspace(Path(root), data_dir=Path(data)) as workspace:
    workspace.open(branch).land(commits="fast_forward", session="s_1", own_git=True)
"""


def test_a_landing_that_is_killed_while_it_signs_has_landed_nothing_and_lands_whole_afterwards(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first of two signatures; before or after, never between."""
    branch = begun(project)
    steps = (("a.txt", "A\n"), [*COMMIT, "one"], ("b.txt", "B\n"), [*COMMIT, "two"])
    project.agent(branch, *steps, who="user")
    before = project.git("rev-parse", "HEAD")
    signer, told, once = tmp_path / "signer", tmp_path / "pid", tmp_path / "once"
    signer.write_text(
        f'#!/bin/sh\nif mkdir "{once}" 2>/dev/null; then exec ssh-keygen "$@"; fi\n'
        f'[ -e "{told}" ] && kill -9 "$(cat "{told}")" && rm "{told}" && exit 1\nexec ssh-keygen "$@"\n'
    )
    signer.chmod(0o755)
    (tmp_path / "global").write_text(f'[gpg "ssh"]\n\tprogram = "{signer}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    branch_id = branch.id
    project.close()
    words = [sys.executable, "-c", LAND, str(project.root), str(project.base / "data"), branch_id, str(told)]
    done = subprocess.run(words, check=False, timeout=HANG_S)
    assert done.returncode == -signal.SIGKILL and once.is_dir()
    assert project.git("rev-parse", "HEAD") == before and (project.root / "a.txt").read_text() != "A\n"
    project.workspace = Workspace(project.root, data_dir=project.base / "data")
    landing = landed(project.workspace.open(branch_id))
    assert "2 commits are signed with your key" in notes(landing)
    assert shown(project, "%G? %s") == ["G two", "G one", "N first"]
    assert project.git("status", "--short") == "" and project.git("fsck", "--no-dangling") == ""


def test_a_signer_that_the_repository_names_does_not_run(project: GitProject, tmp_path: Path) -> None:
    """An agent can write the repository's configuration; who signs is the user's to say."""
    signer, told = tmp_path / "signer", tmp_path / "ran"
    signer.write_text(f'#!/bin/sh\ntouch "{told}"\nexec ssh-keygen "$@"\n')
    signer.chmod(0o755)
    branch = begun(project)
    project.agent(branch, ("a.txt", "A\n"), [*COMMIT, "one"], who="user")
    project.git("config", "gpg.ssh.program", str(signer))
    landed = branch.land(own_git=True)
    assert not told.exists()
    assert "not signed" in str(landed.history), landed
