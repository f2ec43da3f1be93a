"""GI-2, GI-3: what happened in git on the branch, in the terminal: told, landed, taken back."""

import json

import pytest
from support.git_project import GitProject


@pytest.fixture
def committed(desk, written, tmp_path):
    """A session that changed a file, made two commits, a stash, and touched git's configuration."""
    place = tmp_path / "git"
    place.mkdir()
    project = GitProject(place, desk.project, desk.home / ".bowerbird/data")
    desk.edit(written("c.txt", "c\n"))
    desk.ok("begin", "-q")
    (info,) = project.workspace.branches()
    branch = project.workspace.open(info.id)
    project.agent(
        branch,
        ("a.txt", "A\n"), ["add", "a.txt"], ["commit", "-qm", "change a"], ["add", "."], ["commit", "-qm", "add c"],
        ("b.txt", "B\n"), ["stash"], ["config", "core.pager", "cat"],
    )  # fmt: skip
    project.close()
    return desk, project


def test_the_review_in_the_terminal_tells_commits_beside_files(committed):
    desk, _ = committed
    counts = desk.ok("diff", "--stat")
    assert "git: main: 2 commits\n" in counts and " add c\n" in counts and " change a\n" in counts
    assert "git: stash/0: 1 commit, created" in counts and "2 files" in counts
    assert "git: .git/config modified, lands with --accept" in counts and "objects" not in counts
    code, patch, told = desk.run("diff")
    assert code == 0 and ".git/" not in patch and "git: main: 2 commits" in told
    data = json.loads(desk.ok("diff", "--json"))
    (row,) = data["git"]
    assert [ref["ref"] for ref in row["refs"]] == ["refs/heads/main", "stash/0"]
    assert row["refs"][0]["commits"] == 2
    assert "+\tpager = cat" in desk.ok("diff", ".git/config")


def test_commits_land_beside_the_users_branch_or_move_it(committed):
    desk, project = committed
    code, out, err = desk.run("land", "--yes")
    assert code == 3 and "landed 2 changes" in out  # the configuration stays
    assert "your main stays; what came is refs/bowerbird/" in err and "git merge refs/bowerbird/" in err
    assert ".git/config: flagged: git-exec" in err
    assert project.git("log", "-1", "--format=%s") == "first"
    code, out, err = desk.run("land", "--yes", "--commits", "fast-forward")
    assert "main is at" in err and project.git("log", "-2", "--format=%s") == "add c\nchange a"
    assert project.git("status", "--porcelain") == ""
    desk.ok("undo")
    assert project.git("log", "-1", "--format=%s") == "first"


def test_a_branch_follows_commits_whose_files_landed_before(committed):
    """GI-3: what landed is a change in git's eyes, so that `git merge` refuses it; the line says what to do."""
    desk, project = committed
    code, _, err = desk.run("land", "--yes", "--accept", ".git/config")
    assert code == 0 and "bowerbird land --commits fast-forward moves your branch" in err
    assert "stash/0 came as refs/bowerbird/" in err and "your stash" not in err
    assert desk.run("land", "--yes")[2] == "there are no changes to land; nothing landed\n"
    code, _, err = desk.run("land", "--yes", "--commits", "fast-forward")
    assert code == 0 and "main is at" in err and project.git("log", "-1", "--format=%s") == "add c"
    assert project.git("status", "--porcelain") == ""
    again = desk.run("land", "--yes", "--commits", "fast-forward")
    assert again == (0, "", "there are no changes to land; nothing landed\n"), (
        "twice is not more, at both doors"
    )
    code, out, _ = desk.run("land", "--yes", "--commits", "fast-forward", "--json")
    said = json.loads(out)
    assert (code, said["code"]) == (0, "nothing_to_land") and "nothing to land" in said["detail"]
    desk.ok("undo")
    assert project.git("log", "-1", "--format=%s") == "first" and project.git("status", "--porcelain") != ""


def test_a_users_commit_survives_force(committed):
    """Projects 1."""
    desk, project = committed
    project.write("f.txt", "f\n")
    project.git("add", ".")
    project.git("commit", "-qm", "mine")
    _, out, err = desk.run("land", "--yes", "--force", "--commits", "fast_forward")
    assert "landed 2 changes" in out and "your main stays: it has moved on in your repository" in err
    assert project.git("log", "-1", "--format=%s") == "mine"


def test_settings_say_how_commits_land(committed):
    """CF-87, GI-3: `git.land`."""
    desk, project = committed
    settings = desk.home / ".bowerbird/config.yaml"
    settings.write_text("git: {land: never}\n")
    desk.stop_server()
    desk.run("land", "--yes", "a.txt")
    assert project.git("for-each-ref", "refs/bowerbird") == ""
    settings.write_text("git: {land: fast_forward}\n")
    desk.stop_server()
    _, _, err = desk.run("land", "--yes")
    assert "main is at" in err and project.git("log", "-1", "--format=%s") == "add c"
