"""A server that may open few files: idle conversations give theirs back, and what fails says why (reliability 12)."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.servers import free_port

pytestmark = pytest.mark.timeout(patience(60))


@pytest.fixture
def fake() -> Generator[FakeModels]:
    with FakeModels() as models:
        yield models


class Small:
    """A real server with a low limit of open files, and what its process has open."""

    def __init__(self, process: "subprocess.Popen[bytes]", client: httpx.Client, fake: FakeModels) -> None:
        self.process, self.client, self.fake = process, client, fake

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def settled(self) -> int:
        """How many are open once what the last turn used has been closed."""
        counts = [self.open_files]
        while len(counts) < 20 or min(counts[-10:]) < min(counts[:-10]):
            time.sleep(0.1)
            counts.append(self.open_files)
        return min(counts)

    def allow(self, files: int) -> None:
        """Let it have so many open from now on."""
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (files, 256))

    def conversation(self) -> str:
        made = self.client.post("/api/chat", json={})
        assert made.status_code == 200, made.text
        return made.json()["conversation_id"]

    def turn(self, conversation: str, *commands: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Let the agent run commands at once; returns the turn and the results of its calls."""
        self.fake.script(
            {"tools": [{"name": "bash", "input": {"command": c}} for c in commands]}, {"text": "done"}
        )
        path = f"/api/conversations/{conversation}/messages"
        ended = self.client.post(f"{path}?wait=30", json={"content": "go"})
        assert ended.status_code == 200, ended.text
        rows = self.client.get(path, params={"limit": 200}).json()["messages"]
        mine = [row for row in rows if row["turn_id"] == ended.json()["turn_id"]]
        return ended.json(), [call for row in mine for call in row.get("tool_calls", ())]

    def failures(self, conversation: str, *commands: str) -> list[str]:
        """Let the agent run commands at once; returns what was said of each thing that failed."""
        self.fake.reset()
        self.fake.script(
            {"tools": [{"name": "bash", "input": {"command": c}} for c in commands]}, {"text": "done"}
        )
        path = f"/api/conversations/{conversation}/messages"
        ended = self.client.post(f"{path}?wait=30", json={"content": "go"})
        rows = self.client.get(path, params={"limit": 200})
        texts = [each.json()["detail"] for each in (ended, rows) if each.status_code != 200]
        if ended.status_code == 200 and ended.json()["error"] is not None:
            texts.append(ended.json()["error"]["message"])
        calls = (
            []
            if rows.status_code != 200
            else [c for r in rows.json()["messages"] for c in r.get("tool_calls", ())]
        )
        return texts + [call["result"] for call in calls if call["status"] == "error"]


@contextmanager
def served(tmp_path: Path, fake: FakeModels, files: int) -> Generator[Small]:
    (tmp_path / "ws").mkdir()
    settings = {
        "agent": {
            "workspace": str(tmp_path / "ws"),
            "data_dir": str(tmp_path / "data"),
            "llm_max_retries": 0,
        },
        "provider": {"name": "anthropic", "base_url": fake.anthropic_url, "api_key": "sk-ant-0123456789"},
        "store": {"min_free_mb": 1},
    }
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "bowerbird", "--config", str(config), "serve", "--port", str(port)]
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command],
            cwd=tmp_path, stdout=log, stderr=log, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S, trust_env=False) as client:
            until = time.monotonic() + HANG_S
            while True:
                try:
                    client.get("/health/ready").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert time.monotonic() < until and process.poll() is None, (tmp_path / "log").read_text()
                    time.sleep(0.05)
            yield Small(process, client, fake)
    finally:
        process.terminate()
        process.wait(HANG_S)


def test_conversations_beyond_the_limit_work_like_the_first(tmp_path: Path, fake: FakeModels) -> None:
    """Reliability 12: each conversation kept about seven descriptors; the 15th of a server with 128 failed."""
    with served(tmp_path, fake, 96) as server:
        conversations = [server.conversation() for _ in range(16)]
        for number, conversation in enumerate(conversations):
            ended, calls = server.turn(conversation, f"echo {number} > number")
            assert (ended["state"], [call["status"] for call in calls]) == ("done", ["ok"]), (
                number,
                ended,
                calls,
            )
            assert server.open_files <= 96
        # What was closed opens again, with all that was done there.
        ended, calls = server.turn(conversations[0], "cat number")
        assert (ended["state"], calls[0]["result"]) == ("done", "0")
        assert "96 files open" in (tmp_path / "log").read_text()


def test_a_lack_of_descriptors_is_said_in_words_and_passes(tmp_path: Path, fake: FakeModels) -> None:
    """Reliability 12: turns failed with a raw `[Errno 24]`; the server lives, and keeps nothing open after it."""
    with served(tmp_path, fake, 256) as server:
        conversation = server.conversation()
        server.turn(conversation, "true")
        failed: list[str] = []
        open_files, spare = server.settled(), 6
        while not failed:
            # How many a turn needs beyond what is kept open is not promised: fewer, until they do not suffice.
            few, spare = open_files + spare, spare - 1
            server.allow(few)
            failed = server.failures(conversation, *["true"] * 8)
        assert "Errno 24" not in "".join(failed)
        for each in failed:
            assert f"as many files open as it may ({few})" in each and "ulimit -n" in each
        assert server.client.get("/health/live").status_code == 200
        server.allow(256)
        fake.reset()
        ended, calls = server.turn(conversation, "echo alive")
        assert (ended["state"], calls[0]["result"]) == ("done", "alive")
