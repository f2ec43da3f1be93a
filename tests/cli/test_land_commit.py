"""GI-9, UI-78: `land --commit`, its undo, and the same in the chat, by this machine's git and through a server."""

import json

import pytest
from support.git_project import GitProject


@pytest.fixture
def ready(desk, written, tmp_path, monkeypatch):
    """A session that changed a.txt and made c.txt."""
    place = tmp_path / "git"
    place.mkdir()
    project = GitProject(place, desk.project, desk.home / ".bowerbird/data")
    project.git("config", "user.name", "Ann")
    project.git("config", "user.email", "ann@example.org")
    desk.edit(written("a.txt", "A\n"), written("c.txt", "c\n"))
    desk.ok("begin", "-q")
    yield desk, project
    project.close()


def test_a_landing_is_a_commit_and_its_undo_another(ready):
    desk, project = ready
    project.write("b.txt", "mine\n")
    code, out, err = desk.run("land", "--yes", "-m", "Change a, add c")
    assert code == 0 and "landed 2 changes" in out, err
    head = project.git("rev-parse", "HEAD")
    assert f"committed {head[:12]} on main: Change a, add c" in err
    body = project.git("log", "-1", "--format=%an: %B")
    assert body.startswith("Ann: Change a, add c\n\nBowerbird-Session: ")
    assert project.git("show", "--name-only", "--format=") == "a.txt\nc.txt"
    assert project.git("status", "--short") == "M b.txt"
    (row,) = json.loads(desk.ok("landings", "--json"))
    assert row["history"][0]["commit"]["id"] == head
    code, _, err = desk.run("undo")
    assert code == 0 and f"commit {head[:12]} on main stays" in err
    desk.ok("land", "--yes", "a.txt")
    assert project.git("status", "--short") == "M b.txt\n D c.txt"


def test_an_undo_commits_the_revert_where_it_is_asked_to(ready):
    desk, project = ready
    desk.ok("land", "--yes", "--commit")
    head = project.git("rev-parse", "HEAD")
    assert project.git("log", "-1", "--format=%s")
    desk.ok("undo", "--commit")
    body = project.git("log", "-1", "--format=%B")
    assert body.startswith('Revert "') and f"This reverts commit {head}." in body
    assert project.git("status", "--short") == "" and project.git("diff", "HEAD~2", "--stat") == ""


def test_a_hook_decides_only_where_the_person_sits(ready):
    desk, project = ready
    hook = project.root / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'no ticket number' >&2\nexit 1\n")
    hook.chmod(0o755)
    code, out, err = desk.run("land", "--yes", "--commit")
    assert "landed 2 changes" in out
    if desk.is_server:
        assert code == 0 and "no hook of yours ran" in err
        assert project.git("status", "--short") == ""
    else:
        assert code == 3 and "nothing was committed: git commit: no ticket number" in err
        assert project.git("status", "--short") == "M a.txt\n?? c.txt"


def test_in_the_middle_of_a_merge_nothing_lands(ready):
    desk, project = ready
    project.git("checkout", "-qb", "other")
    project.git("commit", "-q", "--allow-empty", "-m", "other")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "--no-commit", "other")
    code, _, err = desk.run("land", "--yes", "--commit")
    assert code != 0 and "in the middle of a merge" in err and "Traceback" not in err
    assert (project.root / "a.txt").read_text() == "a\n"
