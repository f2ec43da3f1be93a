"""Memory over HTTP and on the command line, written by a real server (SE-44, SV-62, UI-47)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from support.patience import HANG_S
from support.servers import begin, say, serve, until

from bowerbird.sessions.upkeep.memory_rewriting import Remembering


def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
    """Remembers what was said last, and says hello to everything else."""
    if "You keep the memory" in json.dumps(body.get("system") or ""):
        text = str(body["messages"][-1]["content"])
        return {"text": "Likes spaces." if "spaces" in text else "Likes tabs."}
    return {"text": "hello"}


def versions(client: httpx.Client) -> list[dict[str, Any]]:
    found = client.get("/api/memory/versions")
    assert found.status_code == 200, found.text
    return list(found.json())


def memory_command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bowerbird", "memory", *arguments, "--data-dir", str(directory / "data")],
        cwd=directory / "ws", env={"HOME": str(directory), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


def test_what_was_said_is_remembered_in_the_next_conversation_and_can_be_taken_back(tmp_path: Path) -> None:
    flags = {"memory.enabled": True, "memory.idle_s": 0.2}
    with serve(tmp_path, flags=flags) as server, server.http as client:
        server.fake.answer(answer)
        assert versions(client) == []
        first = begin(client)
        say(client, first, "I like tabs")
        [version] = until(lambda: versions(client), "a memory")
        assert (version["text"], version["bytes"], version["current"]) == ("Likes tabs.", 11, True)
        copy = tmp_path / "ws" / ".agent" / "memory.md"
        until(copy.exists, "its copy")
        assert copy.read_text() == "Likes tabs.\n"
        second = begin(client)
        say(client, second, "now I like spaces")
        mine = [r for r in server.fake.requests if "now I like spaces" in str(r["messages"])]
        assert "Likes tabs." in json.dumps(mine[0]["system"])
        until(lambda: len(versions(client)) == 2, "a newer memory")
        assert [v["text"] for v in versions(client)] == ["Likes spaces.", "Likes tabs."]
        back = client.post("/api/memory/restore", json={"version": version["id"]})
        assert back.status_code == 200, back.text
        assert back.json()["text"] == "Likes tabs."
        assert [v["current"] for v in versions(client)] == [True, False, False]
        assert copy.read_text() == "Likes tabs.\n"
        quiet = server.fake.request_count
        assert client.post("/api/memory/restore", json={"version": 10**9}).status_code == 404
        assert client.post("/api/memory/restore", json={"version": "x"}).status_code == 422
        assert server.fake.request_count == quiet
    listed = memory_command(tmp_path, "log", "--json")
    assert [row["text"] for row in json.loads(listed.stdout)] == [
        "Likes tabs.",
        "Likes spaces.",
        "Likes tabs.",
    ]
    spaces = json.loads(listed.stdout)[1]["id"]
    assert memory_command(tmp_path, "log", str(spaces)).stdout == "Likes spaces.\n"
    restored = memory_command(tmp_path, "restore", str(spaces))
    assert restored.returncode == 0, restored.stderr
    assert "Likes spaces." in memory_command(tmp_path, "log").stdout.splitlines()[0]
    assert memory_command(tmp_path, "restore", "99999").returncode == 2


def test_without_memory_nothing_is_asked_and_nothing_kept(tmp_path: Path) -> None:
    with (
        serve(tmp_path, flags={"memory.enabled": False, "memory.idle_s": 0.1}) as server,
        server.http as client,
    ):
        server.fake.answer(answer)
        say(client, begin(client), "I like tabs")
        assert server.run(server.serving.application.sessions.part(Remembering).look()) == 0
        assert versions(client) == []
        assert server.fake.request_count == 1


def test_a_fact_that_leaves_no_room_for_older_ones_says_which_are_forgotten(tmp_path: Path) -> None:
    """The memory holds 4,096 bytes; of 300 facts the first 120 were gone, and each had been answered as kept."""
    with (
        serve(tmp_path, flags={"memory.enabled": True, "memory.idle_s": 3_600}) as server,
        server.http as client,
    ):

        def remember(fact: str) -> list[str]:
            answer = client.post("/api/memory", json={"text": fact})
            assert answer.status_code == 200, answer.text
            return answer.json()["forgotten"]

        facts = [f"{number} {'x' * 990}" for number in range(5)]
        assert [remember(fact) for fact in facts] == [[], [], [], [], facts[:1]]
        assert versions(client)[0]["text"] == "\n".join(facts[1:])
