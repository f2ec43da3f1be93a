"""`pip install bowerbird` without an extra: it works, it is light, and what is missing is said in one line (F of the audit)."""

import asyncio
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_models import FakeModels
from support.patience import patience
from support.plain_install import built_wheel, files_of, plain_environment, required
from support.postgres import postgres_server
from support.servers import free_port
from support.terminals import clean_environment

pytestmark = pytest.mark.timeout(patience(120))

MCP = "pip install 'bowerbird[mcp]'"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has what a plain install has."""
    return plain_environment(wheel, tmp_path_factory.mktemp("plain") / "env")


@pytest.fixture
def model() -> Iterator[FakeModels]:
    with FakeModels() as fake:
        yield fake


class Place:
    """A project and a home in which the installed command runs."""

    def __init__(self, python: Path, model: FakeModels, place: Path, **settings: Any) -> None:
        self.command = [str(python), "-m", "bowerbird.cli.main"]
        self.project, home = place / "project", place / "home"
        self.project.mkdir()
        (home / ".bowerbird").mkdir(parents=True)
        file = home / ".bowerbird/config.yaml"
        file.write_text(json.dumps({"memory": {"enabled": False}, **settings}))
        file.chmod(0o600)
        self.environment = clean_environment(
            home, ANTHROPIC_API_KEY="sk-planted-0123456789", ANTHROPIC_BASE_URL=model.anthropic_url
        )

    def run(self, *arguments: str, given: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            [*self.command, *arguments], cwd=self.project, env=self.environment, input=given, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr


SERVER: Mapping[str, Any] = {"files": {"command": "never-started"}}


def test_a_question_is_answered_and_a_server_of_mcp_is_said_to_be_missing(
    python: Path, model: FakeModels, tmp_path: Path
) -> None:
    """PT-18: also with -q, for the answer may lack what those tools would have told."""
    model.script({"text": "hello there"})
    place = Place(python, model, tmp_path, mcp_servers=SERVER)
    code, answer, said = place.run("-q", "hi")
    assert (code, answer) == (0, "hello there\n")
    assert said == f"left out of this turn: files; MCP servers need the extra `mcp`: {MCP}\n"


def test_each_command_about_mcp_says_what_it_needs(python: Path, model: FakeModels, tmp_path: Path) -> None:
    """PT-8, PT-17: one line, and no protocol on standard output."""
    servers = {**SERVER, "far": {"url": "http://127.0.0.1:1/mcp"}}
    place = Place(python, model, tmp_path, mcp_servers=servers)
    for arguments in (("mcp", "test"), ("mcp", "serve"), ("mcp", "login", "far")):
        code, out, said = place.run(*arguments)
        assert code != 0 and out == "" and said.count("\n") == 1 and MCP in said, (arguments, out, said)
    code, listed, _ = place.run("mcp", "list")
    assert code == 0 and "never-started" in listed


def test_doctor_names_what_settings_want_and_what_could_be_added(
    python: Path, model: FakeModels, tmp_path: Path
) -> None:
    """UI-48."""
    _, out, _ = Place(python, model, tmp_path, mcp_servers=SERVER).run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert checks["extra mcp"]["state"] == "degraded" and checks["extra mcp"]["remedy"] == MCP
    assert "push (messages to browsers)" in checks["extras"]["found"] and checks["extras"]["state"] == "ok"


def test_a_server_answers_and_says_in_answers_and_log_what_is_missing(
    python: Path, model: FakeModels, tmp_path: Path
) -> None:
    """SV-1, UI-95, PT-9."""
    place = Place(python, model, tmp_path, mcp_servers=SERVER)
    port = free_port()
    server = subprocess.Popen(
        [*place.command, "serve", "--port", str(port)], cwd=place.project, env=place.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        log = server.stderr.readline() + server.stderr.readline()
        assert "serves" in log
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
            assert http.get("/health").status_code == 200
            assert "<html" in http.get("/").text
            call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            for answer in (http.post("/mcp", json=call), http.get("/api/push/key")):
                assert answer.status_code == 501 and answer.json()["code"] == "extra_missing"
            assert MCP in http.post("/mcp", json=call).json()["detail"]
            assert "bowerbird[push]" in http.get("/api/push/key").json()["detail"]
            model.script({"text": "hello there"})
            session = http.post("/api/chat").json()["conversation_id"]
            said = http.post(f"/api/conversations/{session}/messages?wait=60", json={"content": "hi"}).json()
            assert said["text"] == "hello there"
    finally:
        server.terminate()
        with server.stderr:
            log += server.stderr.read()
        server.wait(30)
    assert log.count(MCP) == 1 and "Traceback" not in log


def test_a_server_that_should_admit_by_sign_in_does_not_start_without_its_library(
    python: Path, model: FakeModels, tmp_path: Path
) -> None:
    """SV-55: else everybody would stand before a locked door."""
    server = {"auth": "oidc", "google_client_id": "x", "allowed_emails": ["ann@example.org"]}
    place = Place(python, model, tmp_path, server=server)
    code, _, said = place.run("serve", "--port", str(free_port()))
    assert code == 78 and said.count("\n") <= 2 and "pip install 'bowerbird[oidc]'" in said


def test_the_symbols_of_a_language_without_its_grammar_are_told_how_to_get_it(
    python: Path, model: FakeModels, tmp_path: Path
) -> None:
    """TO-20: the model is told, and searches instead."""
    place = Place(python, model, tmp_path)
    (place.project / "a.ts").write_text("export class A {}\n")
    (place.project / "a.py").write_text("class A: pass\n")
    calls = [{"name": "list_symbols", "input": {"path": path}} for path in ("a.ts", "a.py")]
    model.script({"tools": calls}, {"text": "done"})
    assert place.run("-q", "go")[0] == 0
    told = json.dumps(model.requests[-1]["messages"])
    assert "pip install 'bowerbird[languages]'" in told and "a.py:1: [class] A" in told


def test_the_extra_for_postgresql_is_all_that_postgresql_needs(
    wheel: Path, model: FakeModels, tmp_path: Path
) -> None:
    """SE-13: with the extra, a turn runs on that database; it ended in an ImportError of what the driver's engine needs."""
    python = plain_environment(wheel, tmp_path / "env", ("postgres",))
    model.script({"text": "hello there"})
    with postgres_server() as server:
        place = Place(python, model, tmp_path, store={"url": asyncio.run(server.empty())})
        code, answer, said = place.run("-q", "hi")
        assert (code, answer, said) == (0, "hello there\n", "")


def test_a_plain_install_is_small(wheel: Path, python: Path) -> None:
    """What few need comes with an extra; 217 MB were on disk before, with the bytecode that pip makes."""
    packages = {one.name: sum(_blocks(path) for _, path in files_of(one)) for one in required(wheel)}
    (own,) = python.parent.parent.glob("lib/python*/site-packages/bowerbird")
    packages["bowerbird"] = sum(_blocks(path) for path in own.rglob("*") if path.is_file())
    total = sum(packages.values())
    largest = sorted(packages.items(), key=lambda row: -row[1])[:8]
    assert total <= 180_000_000, (total, largest)


def _blocks(path: Path) -> int:
    return path.stat().st_blocks * 512
