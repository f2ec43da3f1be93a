"""A data directory that may not be written any more under a running server: said, and over when it may (SV-1, SE-59)."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.servers import begin, free_port, say
from support.terminals import COMMAND, clean_environment

pytestmark = pytest.mark.timeout(patience(60))

# The superuser, too, is kept out by a file's mode without these.
RIGHTS = "-dac_override,-dac_read_search,-fowner"
LIKE_ANYBODY = ["setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}"] if os.geteuid() == 0 else []


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "data"
    yield made
    subprocess.run(["chmod", "-R", "u+w", str(made)], check=True)


def test_what_cannot_be_kept_is_refused_with_the_reason_until_it_can(tmp_path: Path, data: Path) -> None:
    """It was a 500 with a traceback in the log, and a server that called itself ready."""
    if LIKE_ANYBODY and shutil.which("setpriv") is None:
        pytest.skip("the superuser may write everywhere, and setpriv is missing here")
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    port = free_port()
    with FakeModels() as fake:
        environment = clean_environment(
            tmp_path / "home",
            ANTHROPIC_API_KEY="sk-planted-0123456789",
            ANTHROPIC_BASE_URL=fake.anthropic_url,
        )
        server = subprocess.Popen(
            [*LIKE_ANYBODY, *COMMAND, "--data-dir", str(data), "serve", "--port", str(port)],
            cwd=tmp_path / "project", env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stderr is not None
        try:
            assert "serves" in server.stderr.readline()
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S, trust_env=False) as client:
                conversation = begin(client)
                assert say(client, conversation, "hello")["state"] == "done"
                subprocess.run(["chmod", "-R", "a-w", str(data)], check=True)
                refused = client.post("/api/chat")
                assert refused.status_code == 503 and refused.json()["code"] == "no_access"
                assert "permission denied" in refused.json()["detail"]
                ready = client.get("/health/ready")
                assert ready.status_code == 503 and "data directory" in ready.json()["detail"]
                assert client.get("/api/conversations").status_code == 200
                subprocess.run(["chmod", "-R", "u+w", str(data)], check=True)
                assert say(client, begin(client), "hello")["state"] == "done"
                assert client.get("/health/ready").status_code == 200
        finally:
            server.terminate()
            with server.stderr:
                log = server.stderr.read()
            server.wait(HANG_S)
    assert "Traceback" not in log and str(data) in log


def refused(serve: list[str], place: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Start a server that cannot run."""
    project = place / "project"
    return subprocess.run(
        serve, cwd=project, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )


def test_a_database_of_somebody_else_is_named_at_the_start(tmp_path: Path, data: Path) -> None:
    """The superuser made a token before the server's user started it; it was "cannot listen on 127.0.0.1"."""
    if LIKE_ANYBODY and shutil.which("setpriv") is None:
        pytest.skip("the superuser may read everything, and setpriv is missing here")
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    environment = clean_environment(tmp_path / "home", ANTHROPIC_API_KEY="sk-planted-0123456789")
    bowerbird = [*LIKE_ANYBODY, *COMMAND, "--data-dir", str(data)]
    subprocess.run(
        [*bowerbird, "token", "create", "ann"],
        cwd=tmp_path / "project",
        env=environment,
        check=True,
        capture_output=True,
    )
    (data / "agent.db").chmod(0)
    serve = [*bowerbird, "serve", "--port", str(free_port())]
    done = refused(serve, tmp_path, environment)
    assert done.returncode == 1 and f"{data}/agent.db: Permission denied" in done.stderr
    assert "listen" not in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    environment = clean_environment(tmp_path / "home", ANTHROPIC_API_KEY="sk-planted-0123456789")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serve = [*COMMAND, "serve", "--port", str(port)]
        done = refused(serve, tmp_path, environment)
    assert done.returncode == 1 and f"cannot listen on 127.0.0.1:{port}" in done.stderr
