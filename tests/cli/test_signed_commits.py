"""GI-9: `git.agent_identity` and `git.resign`, from the agent's command to the user's log."""

import subprocess

from support.git_project import GitProject
from support.project_work import bash


def test_an_agent_commits_under_its_own_name_and_the_user_signs_where_they_sit(desk, tmp_path):
    place = tmp_path / "git"
    place.mkdir()
    project = GitProject(place, desk.project, desk.home / ".bowerbird/data")
    project.close()
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"ann@example.org {key.with_suffix('.pub').read_text()}")
    for setting in (
        ("user.name", "Ann"), ("user.email", "ann@example.org"), ("gpg.format", "ssh"), ("user.signingKey", str(key)),
        ("commit.gpgsign", "true"), ("gpg.ssh.allowedSignersFile", str(signers)),
    ):  # fmt: skip
        project.git("config", *setting)
    settings = desk.home / ".bowerbird/config.yaml"
    settings.write_text("git: {agent_identity: 'Robot <robot@example.org>', land: fast_forward}\n")
    desk.edit(bash("echo A > a.txt; git commit -qam 'change a'"))
    desk.ok("begin", "-q")
    code, _, err = desk.run("land", "--yes")
    assert code == 0 and "main is at" in err, err
    if desk.is_server:
        assert "1 commit is not signed: a server runs no program of yours" in err
        assert project.git("log", "-1", "--format=%G? %an %ce") == "N Robot robot@example.org"
    else:
        assert "1 commit is signed with your key, and has a new id" in err
        assert project.git("log", "-1", "--format=%G? %GS %an %ce").split() == [
            "G", "ann@example.org", "Robot", "robot@example.org",
        ]  # fmt: skip
        assert "Bowerbird-Session: " in project.git("log", "-1", "--format=%B")


def test_an_identity_that_git_cannot_read_is_named(here):
    settings = here.home / ".bowerbird/config.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("git: {agent_identity: Robot}\n")
    code, _, err = here.run("sessions")
    assert code != 0 and "git.agent_identity" in err and "Name <address>" in err
