"""The assistant's own files: out of commits, their landed versions, on a real server and command line (AS-43)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.patience import HANG_S
from support.servers import begin, say, serve

ON = {"memory.enabled": True, "memory.idle_s": 600, "workspace.landing": "turn"}


def git(place: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "user.name", "Ann")
    git(place, "config", "user.email", "ann@example.org")
    (place / "a.txt").write_text("a\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bowerbird", *arguments, "--data-dir", str(directory / "data")],
        cwd=directory / "ws", env={"HOME": str(directory), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


def writing(path: str, *texts: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for text in texts:
        steps += [
            {"tools": [{"name": "write_file", "input": {"path": path, "content": text}}]},
            {"text": "done"},
        ]
    return steps


def test_memory_that_is_not_tracked_is_excluded_by_one_landing_that_can_be_undone(
    tmp_path: Path, repository: Path
) -> None:
    """AS-43."""
    exclude = repository / ".git" / "info" / "exclude"
    before = exclude.read_text()
    for _ in range(2):  # the second start finds it done
        with serve(tmp_path, flags=ON) as server, server.http as client:
            found = [row for row in client.get("/api/landings").json() if row["door"] == "start"]
            assert [row["actor"] for row in found] == ["bowerbird"]
    assert exclude.read_text() == before + "/MEMORY.md\n"
    (repository / "MEMORY.md").write_text("private\n")
    git(repository, "add", "-A")
    assert git(repository, "status", "--short") == ""
    undone = command(tmp_path, "undo", found[0]["id"])
    assert undone.returncode == 0, undone.stderr
    assert exclude.read_text() == before


def test_memory_that_is_tracked_stays_as_it_was_in_every_commit(tmp_path: Path, repository: Path) -> None:
    """AS-43: neither a commit of the user's nor one that a landing makes takes what it became."""
    (repository / "MEMORY.md").write_text("old\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    with serve(tmp_path, flags={**ON, "workspace.landing": "review"}) as server, server.http as client:
        assert git(repository, "ls-files", "-v", "MEMORY.md") == "S MEMORY.md\n"
        calls = [
            {"name": "read_file", "input": {"path": "MEMORY.md"}},
            {"name": "write_file", "input": {"path": "MEMORY.md", "content": "new\n"}},
            {"name": "write_file", "input": {"path": "b.txt", "content": "b\n"}},
        ]
        server.fake.script({"tools": calls}, {"text": "done"})
        say(client, begin(client), "remember")
    landed = command(tmp_path, "land", "--commit", "-m", "third", "--yes")
    assert landed.returncode == 0, landed.stderr
    assert (repository / "MEMORY.md").read_text() == "new\n"
    assert git(repository, "show", "HEAD:MEMORY.md") == "old\n"
    assert git(repository, "log", "-1", "--format=%s", "--", "b.txt") == "third\n"
    git(repository, "commit", "-qam", "fourth", "--allow-empty")
    assert git(repository, "show", "HEAD:MEMORY.md") == "old\n"


def test_landed_versions_are_listed_and_one_is_landed_again(tmp_path: Path) -> None:
    """AS-43: the newest 20, over HTTP and on the command line; a version comes back as a landing."""
    with serve(tmp_path, flags=ON) as server, server.http as client:
        session = begin(client)
        server.fake.script(*writing("MEMORY.md", *(f"version {number}\n" for number in range(21))))
        for _ in range(21):
            say(client, session, "remember")
        found = client.get("/api/memory/files").json()
        assert [row["text"] for row in found] == [f"version {n}\n" for n in range(20, 0, -1)]
        back = client.post("/api/memory/files/restore", json={"landing": found[7]["landing"]})
        assert back.status_code == 200, back.text
        assert (server.workspace / "MEMORY.md").read_text() == "version 13\n"
        for wrong, status in (
            ({"landing": "l_none"}, 404), ({"landing": "x", "path": "../x"}, 422), ({"landing": 1}, 422),
            ({"landing": found[7]["landing"]}, 422), ({"landing": found[0]["landing"], "path": "a.txt"}, 422),
        ):  # fmt: skip
            answer = client.post("/api/memory/files/restore", json=wrong)
            assert answer.status_code == status, (wrong, answer.text)
        assert client.get("/api/memory/files", params={"path": "/etc/passwd"}).status_code == 422
    listed = command(tmp_path, "memory", "log", "--path", "MEMORY.md", "--json")
    rows = json.loads(listed.stdout)
    assert (rows[0]["text"], rows[0]["door"], len(rows)) == ("version 13\n", "web", 20)
    restored = command(tmp_path, "memory", "restore", rows[1]["landing"], "--path", "MEMORY.md")
    assert restored.returncode == 0, restored.stderr
    assert (tmp_path / "ws" / "MEMORY.md").read_text() == "version 20\n"
    shown = command(tmp_path, "memory", "log", rows[0]["landing"], "--path", "MEMORY.md")
    assert shown.stdout == "version 13\n"


def test_a_skill_comes_back_as_it_was_with_what_was_added_since_gone(tmp_path: Path) -> None:
    """AS-43: versions of skills; files that a later landing added go, those it removed come back."""

    def skill(name: str, text: str) -> dict[str, Any]:
        return {"name": "write_file", "input": {"path": f"skills/greet/{name}", "content": text}}

    head = "---\nname: greet\ndescription: Greets.\n---\n"
    with serve(tmp_path, flags={**ON, "workspace.landing": "review"}) as server, server.http as client:
        session = begin(client)
        gone = {"name": "delete_file", "input": {"path": "skills/greet/one.md"}}
        server.fake.script(
            {"tools": [skill("SKILL.md", head + "Hi."), skill("one.md", "1")]}, {"text": "done"},
            {"tools": [skill("SKILL.md", head + "Hello."), skill("two.md", "2"), gone]}, {"text": "done"},
        )  # fmt: skip
        for _ in range(2):
            say(client, session, "write it")
            landed = client.post(f"/api/conversations/{session}/land", json={"accept": ["*"]})
            assert landed.status_code == 200, landed.text
        skills = server.workspace / "skills" / "greet"
        assert {path.name for path in skills.iterdir()} == {"SKILL.md", "two.md"}
        found = client.get("/api/memory/files", params={"path": "skills/greet"}).json()
        assert len(found) == 2 and "skills/greet/one.md" in found[1]["paths"]
        wanted = {"landing": found[1]["landing"], "path": "skills/greet"}
        back = client.post("/api/memory/files/restore", json=wanted)
        assert back.status_code == 200, back.text
        assert {path.name: path.read_text() for path in skills.iterdir()} == {
            "SKILL.md": head + "Hi.", "one.md": "1",
        }  # fmt: skip
