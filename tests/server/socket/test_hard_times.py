"""What keeps a server alive: signals, a full disk, a lost directory, a database that is away (reliability 9, 11, 12)."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.databases import postgres
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S, patience
from support.postgres import PostgresServer, postgres_server
from support.servers import free_port

__all__ = ("postgres",)

pytestmark = pytest.mark.timeout(patience(36))


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_everything_in_order(tmp_path: Path, fake: FakeModels, sent: signal.Signals) -> None:
    """Reliability 9: SIGTERM left the reserve, -wal and -shm, and ended with the signal instead of 0."""
    settings = {
        "agent": {"workspace": str(tmp_path / "ws"), "data_dir": str(tmp_path / "data")},
        "provider": {"name": "anthropic", "base_url": fake.anthropic_url, "api_key": "sk-ant-0123456789"},
        "store": {"min_free_mb": 1},
    }
    (tmp_path / "ws").mkdir()
    (tmp_path / "config.yaml").write_text(json.dumps(settings))
    (tmp_path / "config.yaml").chmod(0o600)
    port = free_port()
    command = [sys.executable, "-m", "bowerbird", "--config", str(tmp_path / "config.yaml"), "serve"]
    server = subprocess.Popen(
        [*command, "--port", str(port)],
        cwd=tmp_path, stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    try:
        until = time.monotonic() + HANG_S
        while time.monotonic() < until:
            try:
                made = httpx.post(
                    f"http://127.0.0.1:{port}/api/chat", json={}, timeout=HANG_S, trust_env=False
                )
                break
            except httpx.TransportError:
                time.sleep(0.05)
        assert made.status_code == 200
        assert [path.name for path in (tmp_path / "data").glob("reserve.*")] == [f"reserve.{server.pid}"]
        server.send_signal(sent)
        _, said = server.communicate(timeout=HANG_S)
        assert server.returncode == 0, said.decode()[-2000:]
    finally:
        server.kill()
        server.wait()
    left = {path.name for path in (tmp_path / "data").iterdir()}
    assert not {name for name in left if name.startswith("reserve.") or name.endswith(("-wal", "-shm"))}


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (errno.ENOSPC, 507, "storage_full"),
        (errno.EDQUOT, 507, "storage_full"),
        (errno.EMFILE, 503, "overloaded"),
    ],
)
async def test_what_the_system_refuses_is_named(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, number: int, status: int, code: str
) -> None:
    """Reliability 11, 12: a new conversation on a full disk was a 500."""
    from bowerbird.workspace.tree.manifest import ManifestFile

    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(ManifestFile, "save", full)
        told = await server.http.post("/api/chat", json={})
    assert (told.status_code, told.json()["code"]) == (status, code)
    assert (await server.http.post("/api/chat", json={})).status_code == 200


@pytest.mark.parametrize("made_again", [False, True])
async def test_a_lost_data_directory_is_named_and_nothing_is_acknowledged(
    tmp_path: Path, fake: FakeModels, made_again: bool
) -> None:
    """Reliability 12: every call was a 500 with a traceback, readiness too.

    What writes into the directory in the background may make it again, empty.
    """
    async with live_server(tmp_path, fake, store={"min_free_mb": 1}) as server:
        conversation = await server.conversation()
        server.context.data_dir.rename(tmp_path / "elsewhere")  # at once: the server may be writing into it
        if made_again:
            server.context.data_dir.mkdir()
        ready = await server.http.get("/health/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
        assert "data_gone" in ready.json()["detail"]
        said = await server.http.post(f"/api/conversations/{conversation}/messages", json={"content": "x"})
        assert said.status_code == 503
        assert "data directory is gone" in said.json()["detail"]


async def test_files_of_a_lost_data_directory_are_not_said_to_be_missing_in_the_workspace(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Reliability 12: the diff was a 500 with a traceback, the landing a conflict about a file named "lock"."""
    write = {"name": "write_file", "input": {"path": "made.txt", "content": "x"}}
    fake.script({"tools": [write]}, {"text": "Made."})
    async with live_server(tmp_path, fake, store={"min_free_mb": 1}) as server:
        session = await server.conversation()
        place = f"/api/conversations/{session}"
        told = await server.http.post(f"{place}/messages?wait=60", json={"content": "x"})
        assert told.json()["text"] == "Made."
        server.context.data_dir.rename(tmp_path / "elsewhere")
        for answer in (await server.http.get(f"{place}/diff"), await server.http.post(f"{place}/land")):
            assert (answer.status_code, answer.json()["code"]) == (503, "data_gone"), answer.text


@pytest.fixture
def restless(postgres: PostgresServer) -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


async def test_reads_are_answered_while_the_database_is_away(
    tmp_path: Path, fake: FakeModels, restless: PostgresServer
) -> None:
    """Reliability 12, team 22: `GET /api/conversations` hung for as long as PostgreSQL was away."""
    async with live_server(tmp_path, fake, store={"url": await restless.database()}) as server:
        await server.conversation()
        await asyncio.to_thread(restless.stop, crash=True)
        begun = time.monotonic()
        away = await server.http.get("/api/conversations", timeout=HANG_S)
        assert (away.status_code, away.headers.get("retry-after")) == (503, "2")
        assert time.monotonic() - begun < patience(6)
        await asyncio.to_thread(restless.start)
        back = await server.http.get("/api/conversations", timeout=HANG_S)
        assert back.status_code == 200
