"""GI-9, UI-78: `land --commit`, its undo, and the same in the chat, by this machine's git and through a server."""

import json

import pytest
from support.git_project import GitProject
from support.project_work import bash


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


def test_git_without_a_name_is_told_so_and_nothing_lands(ready):
    """A fresh machine: it was "found no git repository that it can use here", and six lines of git's."""
    desk, project = ready
    project.git("config", "user.useConfigOnly", "true")
    project.git("config", "--unset", "user.email")
    code, _, err = desk.run("land", "--yes", "-m", "Change a, add c")
    assert code == 2 and "git config --global user.email" in err and "no git repository" not in err
    assert project.git("status", "--short") == ""


def test_an_undo_commits_the_revert_where_it_is_asked_to(ready):
    desk, project = ready
    desk.ok("land", "--yes", "--commit")
    head = project.git("rev-parse", "HEAD")
    assert project.git("log", "-1", "--format=%s")
    desk.ok("undo", "--commit")
    body = project.git("log", "-1", "--format=%B")
    assert body.startswith('Revert "') and f"This reverts commit {head}." in body


def test_an_undo_takes_yes_as_land_and_discard_do(ready):
    """GI-9: a script that says --yes everywhere met "no such option" at its last step."""
    desk, project = ready
    desk.ok("land", "--yes")
    assert "took " in desk.ok("undo", "--yes")
    desk.ok("land", "--yes", "--commit")
    desk.ok("undo", "-y")
    assert project.git("log", "-1", "--format=%s").startswith('Revert "')
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


def test_a_commit_on_another_branch_touches_no_file(ready):
    """UI-78: `--branch NAME`; what was committed waits on the agent's branch as before."""
    desk, project = ready
    project.write("b.txt", "mine\n")
    head = project.git("rev-parse", "HEAD")
    code, out, err = desk.run("land", "--yes", "--branch", "agent/a", "-m", "Change a")
    assert code == 0 and "committed 2 changes on agent/a; no file of yours changed" in out, err
    assert "undo" not in err and "Change a" in err
    assert project.git("show", "--name-only", "--format=%s", "agent/a").split() == [
        "Change", "a", "a.txt", "c.txt",
    ]  # fmt: skip
    assert project.git("rev-parse", "HEAD") == head and project.git("status", "--short") == "M b.txt"
    assert json.loads(desk.ok("landings", "--json")) == []
    assert "a.txt" in desk.ok("diff", "--stat")
    again = json.loads(desk.run("land", "--yes", "--branch", "agent/a", "--json")[1])
    assert again["kind"] == "commit" and "has all of it already" in again["history"][0]["commit"]["said"]
    code, _, err = desk.run("land", "--yes", "--branch", "main")
    assert code != 0 and "checked out" in err
    code, _, err = desk.run("land", "--yes", "--branch", "x", "--commits", "fetch")
    assert code != 0 and "either --branch or --commits" in err
    desk.ok("land", "--yes")
    for name in ("a.txt", "c.txt"):
        assert (project.root / name).read_text().strip() == project.git("show", f"agent/a:{name}")


def test_links_and_modes_are_committed_on_another_branch(desk, tmp_path):
    place = tmp_path / "git"
    place.mkdir()
    project = GitProject(place, desk.project, desk.home / ".bowerbird/data")
    project.git("config", "user.name", "Ann")
    project.git("config", "user.email", "ann@example.org")
    desk.edit(bash("ln -s a.txt link; chmod +x a.txt; rm b.txt"))
    desk.ok("begin", "-q")
    desk.ok("land", "--yes", "--branch", "more")
    rows = [row.split(None, 3) for row in project.git("ls-tree", "more").splitlines()]
    assert {row[3]: row[0] for row in rows} == {"a.txt": "100755", "link": "120000"}
    assert project.git("status", "--short") == ""
    project.close()


@pytest.fixture
def small(desk):
    """A small model in the settings, before anything starts."""
    desk.environment["COMPACT_MODEL"] = "anthropic:claude-haiku-4-5"


def test_the_small_model_writes_the_message_where_none_is_given(small, ready, models):
    """UI-78: it sees what is committed and no more; its call is in the books; where it fails, the title is the message."""
    desk, project = ready
    models.script({"text": "```\nChange a.\n\nIt is one letter.\n```"})
    before = len(models.requests)
    assert desk.run("land", "--yes", "--commit", "a.txt")[0] == 0
    (asked,) = models.requests[before:]
    assert asked["model"] == "claude-haiku-4-5" and "+A" in str(asked["messages"])
    assert "c.txt" not in str(asked["messages"]) and not asked.get("tools")
    assert project.git("log", "-1", "--format=%B").startswith(
        "Change a\n\nIt is one letter.\n\nBowerbird-Session: "
    )
    assert "claude-haiku-4-5" in desk.ok("usage", "--by", "model", "--json")
    models.script({"status": 400, "body": {"type": "error", "error": {"type": "x", "message": "no"}}})
    assert desk.run("land", "--yes", "--commit")[0] == 0
    assert project.git("log", "-1", "--format=%s") == "begin"


def test_a_question_that_is_wider_than_the_screen_is_seen(ready):
    """UI-56: in 60 columns nothing was asked, and the chat stood on an empty screen until a key was pressed."""
    desk, project = ready
    desk.ok("land", "--yes", "--commit")
    with desk.terminal("--resume=", columns=60) as chat:
        chat.wait_for("a.txt")
        chat.send("/undo\r")
        chat.wait_for("Commit the revert, too?")
        chat.send("y\r")
        chat.wait_for("bring it back with")
        chat.send("\x04")
        chat.wait()
    assert project.git("log", "-1", "--format=%s").startswith('Revert "')
