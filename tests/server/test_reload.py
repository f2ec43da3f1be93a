"""Loading the settings again while the server runs (CF-13, CF acceptance 10)."""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.servers import begin, free_port, say, until

from bowerbird.config import load_settings
from bowerbird.config.changes import changed_keys
from bowerbird.config.sources import note_initialised

SERVER = Path(__file__).parent.parent / "support" / "mcp_servers.py"
READ = {"tools": [{"name": "list_files", "input": {}}]}


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


def write(directory: Path, fake: FakeModels, more: str = "") -> None:
    (directory / "config.yaml").write_text(
        f"provider: {{name: anthropic, api_key: planted-0123456789, base_url: {fake.anthropic_url}}}\n"
        f"memory: {{enabled: false}}\nsandbox: {{tier: none}}\nstore: {{min_free_mb: 0}}\n{more}"
    )
    (directory / "config.yaml").chmod(0o600)
    note_initialised(directory, directory)  # as `config init` does (D-17)


def command(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bowerbird.cli.main", *arguments], cwd=directory, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(directory)},
    )  # fmt: skip


@contextmanager
def serving(directory: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], httpx.Client, list[str]]]:
    """A server of the directory's settings, a client, and what it said once it has ended."""
    process, said = command(directory, "serve", "--port", str(port)), list[str]()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S, trust_env=False) as http:

            def up() -> bool:
                assert process.poll() is None, process.communicate()[0]
                with contextlib.suppress(httpx.TransportError):
                    return http.get("/health").status_code == 200
                return False

            until(up, "it serves", 60)
            yield process, http, said
        process.terminate()
        said.append(process.communicate(timeout=HANG_S)[0])
    finally:
        process.kill()
        process.communicate()


def calls_in_a_turn(http: httpx.Client, fake: FakeModels) -> int:
    """How often the model is asked in a turn that would never end."""
    before = fake.request_count
    say(http, begin(http), "go on")
    return fake.request_count - before


def test_a_signal_applies_what_can_be_applied_and_a_broken_file_nothing(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Acceptance 10: old values with a broken file; with a good one MAX_TURNS changes for the next turn."""
    write(tmp_path, fake, "agent: {max_turns: 2}\n")
    fake.script(READ)
    with serving(tmp_path, free_port()) as (process, http, said):
        before = calls_in_a_turn(http, fake)
        write(tmp_path, fake, "agent: {max_turns: zero}\nserver: {port: 77777}\n")
        process.send_signal(signal.SIGHUP)
        refused = http.post("/api/config/reload")
        assert refused.status_code == 409 and len(refused.json()["errors"]) >= 2
        assert "planted" not in refused.text and str(tmp_path) not in refused.text
        assert calls_in_a_turn(http, fake) == before and process.poll() is None
        write(tmp_path, fake, "agent: {max_turns: 4}\nserver: {port: 9999}\nlogging: {level: INFO}\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: calls_in_a_turn(http, fake) == before + 2, "the next turn has the new limit", 60)
        # The signal has applied everything: asked again, nothing differs but what waits for a restart.
        assert http.post("/api/config/reload").json()["restart"] == []
    assert "agent.max_turns" in said[0] and "the running ones stay" in said[0]
    assert "Traceback" not in said[0] and "planted" not in said[0]


def test_the_command_says_what_applies_and_what_needs_a_restart(tmp_path: Path, fake: FakeModels) -> None:
    port = free_port()
    write(tmp_path, fake, f"server: {{port: {port}}}\n")
    fake.script({"text": "hello"})
    with serving(tmp_path, port) as (_, http, _):
        assert http.get("/health").json()["model"] == "claude-sonnet-5"
        page = {"Origin": "https://pages.example"}
        assert http.get("/health", headers=page).status_code == 403
        more = f"server: {{port: {port}, host: localhost, origins: ['https://pages.example']}}\n"
        more += (
            "agent: {temperature: 0.3, thinking_effort: max, max_teammates: 1}\nbudgets: {session_usd: 3}\n"
        )
        more += "providers: {extra: {base_url: 'http://127.0.0.1:9'}}\nskills: {enabled: false}\n"
        write(tmp_path, fake, more)
        asked = command(tmp_path, "config", "reload")
        told, _ = asked.communicate(timeout=HANG_S)
        assert asked.returncode == 0, told
        lines = told.splitlines()
        assert "applies from the next turn: agent.temperature" in lines
        assert "applies from the next turn: providers.extra.base_url" in lines
        assert "applies from the next turn: agent.max_teammates" in lines
        assert "needs a restart: server.host" in lines
        assert "applies from the next turn: server.origins" in lines
        assert http.get("/health", headers=page).status_code == 200
        assert http.get("/api/skills").json() == []
        assert http.get(f"/api/conversations/{begin(http)}").json()["thinking_effort"] == "max"
        fake.without.add("no temperature")
        say(http, begin(http), "hi")
        assert fake.requests[-1]["temperature"] == 0.3
        server = f"mcp_servers: {{demo: {{command: '{sys.executable}', args: ['{SERVER}']}}}}\n"
        write(tmp_path, fake, more + server)
        assert "mcp_servers.demo.command" in http.post("/api/config/reload").json()["applied"]
        say(http, begin(http), "and now")
        assert any("demo" in tool["name"] for tool in fake.requests[-1]["tools"])
        write(tmp_path, fake, more + "sandbox: {tier: none}\n")  # twice the same key
        broken = command(tmp_path, "config", "reload")
        told, _ = broken.communicate(timeout=HANG_S)
        assert broken.returncode == 78 and "nothing was changed" in told


def test_a_server_whose_terminal_is_closed_ends_as_at_any_signal(tmp_path: Path, fake: FakeModels) -> None:
    """UI-46: the SIGHUP of a terminal that is gone is no wish for new settings."""
    write(tmp_path, fake, "logging: {level: INFO}\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bowerbird.cli.main", "serve", "--port", str(free_port())], cwd=tmp_path,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call, then exec
    )  # fmt: skip
    os.close(theirs)
    said = bytearray()

    def says(text: bytes) -> bool:
        said.extend(os.read(ours, 65_536))
        return text in said

    try:
        until(lambda: says(b"serves http://"), "it serves", 60)
        write(tmp_path, fake, "logging: {level: INFO}\nagent: {max_turns: 7}\n")
        process.send_signal(signal.SIGHUP)  # the terminal is there
        until(lambda: says(b"agent.max_turns"), "it loads its settings again", 60)
    finally:
        os.close(ours)
    try:
        process.wait(HANG_S)
    finally:
        process.kill()
        process.wait()


def test_a_server_that_is_not_there_is_said(tmp_path: Path, fake: FakeModels) -> None:
    asked = command(tmp_path, "config", "reload", "--server", f"http://127.0.0.1:{free_port()}")
    told, _ = asked.communicate(timeout=HANG_S)
    assert asked.returncode == 1 and "no server answers" in told and "Traceback" not in told


def test_changed_keys_are_named_with_their_real_names(tmp_path: Path) -> None:
    def loaded(**flags: object) -> object:
        return load_settings(flags, env={}, cwd=tmp_path / "here", home=tmp_path, kind="serve").settings

    old, new = loaded(), loaded(**{"mcp_servers": {"files": {"command": "x"}}, "provider.api_key": "k"})
    names = [info.name for info in changed_keys(old, new)]  # type: ignore[arg-type]
    assert "mcp_servers.files.command" in names and "provider.api_key" in names
    assert changed_keys(old, old) == []  # type: ignore[arg-type]
