"""The recipes for contributors, followed in a copy of the source; what comes of them works at every door (issue 11,
point 7)."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.recipes import ROOT, copy_of_source, follow, recipes
from support.servers import free_port

FILES = {
    "A tool": 1, "A model provider": 1, "A rule of what is sent to a model": 1, "A landing rule": 1,
    "A WebSocket event": 3, "A REST route": 2, "A slash command": 2, "A setting": 3, "A field per turn": 4,
    "A feature of sessions": 2, "A subagent role": 1,
}  # fmt: skip
TYPES = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("types_script", sys.argv[1])
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
print(script.frames_text())
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source in which every recipe was followed."""
    copy = copy_of_source(tmp_path_factory.mktemp("recipes") / "copy")
    for steps in recipes().values():
        follow(steps, copy)
    return copy / "src"


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


@pytest.fixture
def desk(tmp_path: Path, source: Path, models: FakeModels) -> Iterator[Desk]:
    with Desk(tmp_path, models) as desk:
        desk.environment["PYTHONPATH"] = str(source)
        yield desk


def run(desk: Desk, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Both outputs of a command; a process of its own, because the copy is not this one's source."""
    process = desk.start(*arguments)
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == code, err
    return out.decode(), err.decode()


def python(desk: Desk, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=desk.environment, text=True, capture_output=True, check=True,
        timeout=HANG_S,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def server(desk: Desk) -> Iterator[str]:
    """The address of a server of the changed source."""
    port = free_port()
    process = desk.start("serve", "--port", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + HANG_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(HANG_S)


def got(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=HANG_S) as answer:
        return json.load(answer)


def told(request: dict[str, Any]) -> str:
    """What the results of tools in a request's last message say."""
    return json.dumps(request["messages"][-1]["content"], ensure_ascii=False)


# ---------------------------------------------------------------- the page


def test_no_recipe_needs_more_files_than_it_should() -> None:
    files = {title: len({step.file for step in steps}) for title, steps in recipes().items()}
    assert files == FILES


def test_contributing_names_each_recipe_with_its_files() -> None:
    rows = re.findall(
        r"^\| \[([^\]]+)\]\([^)]*#([\w-]+)\) \| (.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M
    )
    named = {
        title: {f"src/bowerbird/{file}" for file in re.findall(r"`([^`]+)`", files)}
        for title, _, files in rows
    }
    assert named == {title: {step.file for step in steps} for title, steps in recipes().items()}
    assert all(anchor == title.lower().replace(" ", "-") for title, anchor, _ in rows)


# ---------------------------------------------------------------- what comes of them


def test_a_tool_and_a_rule_of_what_is_sent(desk: Desk, models: FakeModels) -> None:
    (desk.project / "a.txt").write_text("long line of text\n" * 10)
    read = {"tools": [{"name": "read_file", "input": {"path": "a.txt"}}]}
    count = {"tools": [{"name": "count_words", "input": {"text": "a b c"}}]}
    models.script(read, read, count, {"text": "done"})
    own = desk.home / ".bowerbird"
    own.mkdir(exist_ok=True)
    (own / "config.yaml").write_text("agent: {keep_results: 0}\n")
    assert run(desk, "count the words")[0] == "done\n"
    offered = {tool["name"]: tool for tool in models.requests[0]["tools"]}
    assert offered["count_words"]["description"] == "Count the words of a text."
    assert '\\"result\\":3' in told(models.requests[-1])
    assert "[Previous: used read_file. " in json.dumps(models.requests[-1]["messages"])


def test_a_feature_of_sessions(desk: Desk, models: FakeModels) -> None:
    """House R2: one module and one line."""
    models.script({"text": "done"})
    run(desk, "hi")
    assert f"Today is {datetime.now(UTC):%A}." in json.dumps(models.requests[0]["system"])


def test_a_model_provider(desk: Desk, models: FakeModels) -> None:
    models.script({"text": "hello"})
    desk.environment |= {
        "ACME_API_KEY": "key-of-acme-0123",
        "BOWERBIRD_PROVIDERS__ACME__BASE_URL": models.openai_url,
    }
    assert run(desk, "--model", "acme:model-1", "hi")[0] == "hello\n"
    assert models.headers[0]["authorization"] == "Bearer key-of-acme-0123"
    assert models.requests[0]["model"] == "model-1"


def test_a_landing_rule(desk: Desk) -> None:
    desk.edit({"name": "write_file", "input": {"path": "precious.txt", "content": "x"}})
    run(desk, "write it")
    process = desk.start("land", "--yes")
    out, err = process.communicate(timeout=HANG_S)
    assert b"precious.txt: flagged: login" in out + err
    assert not (desk.project / "precious.txt").exists()
    assert "ours" in python(desk, "-m", "bowerbird.workspace.marks.page")


def test_a_websocket_event_is_at_every_door(desk: Desk, models: FakeModels, server: str) -> None:
    """House R3: terminals here and over a server draw it; manual, page and AsyncAPI are made from it."""
    models.script({"text": "here"}, {"text": "there"})
    assert "the sky over Paris: rain" in run(desk, "hi")[1]
    assert "the sky over Paris: rain" in run(desk, "--server", server, "hi")[1]
    manual = python(desk, "-m", "bowerbird.core.wire.reference")
    assert "### `weather`" in manual and "what it is like there." in manual
    types = python(desk, "-c", TYPES, str(ROOT / "scripts" / "build_web_types.py"))
    assert "export interface Weather {" in types and 'weather: "the sky over {place}: {sky}"' in types


def test_a_rest_route_and_a_field_per_turn(
    desk: Desk, models: FakeModels, source: Path, request: Any
) -> None:
    """The turn before the field was there has none; the one after it says where it came from."""
    models.script({"text": "four words are here"})
    del desk.environment["PYTHONPATH"]
    run(desk, "hi")  # by the source as it is: the database is of the number before
    desk.environment["PYTHONPATH"] = str(source)
    server = request.getfixturevalue("server")
    [session] = got(f"{server}/api/conversations")
    here = f"{server}/api/conversations/{session['id']}"
    run(desk, "--server", server, "--resume", session["id"], "and again")
    assert [turn["door"] for turn in got(f"{here}/turns")["turns"]] == [None, "web"]
    assert got(f"{here}/words") == {"words": 11}
    described = got(f"{server}/openapi.json")
    assert "/api/conversations/{conversation_id}/words" in described["paths"]
    assert "door" in described["components"]["schemas"]["TurnRow"]["required"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        got(f"{server}/api/conversations/nobody/words")


def test_a_slash_command(desk: Desk) -> None:
    with desk.terminal(columns=100) as terminal:
        terminal.wait_for("lists commands")
        terminal.send("/help\r")
        terminal.wait_for("the id of this session")
        terminal.send("/id\r")
        terminal.wait_for("this session is ")


def test_a_setting(desk: Desk, models: FakeModels) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"y" * 1000)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name there
            """Say nothing on standard error."""

    with HTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{site.server_port}"
        desk.environment |= {
            "BOWERBIRD_WEB__FETCH_CHARS": "120", "BOWERBIRD_WEB__ALLOW_HOSTS": json.dumps([host]),
        }  # fmt: skip
        fetch = {"name": "web_fetch", "input": {"url": f"http://{host}/"}}
        models.script({"tools": [fetch]}, {"text": "read"})
        run(desk, "read it")
        site.shutdown()
    assert "y" * 120 in told(models.requests[-1]) and "y" * 121 not in told(models.requests[-1])
    assert "Longest text of a page" in run(desk, "config", "explain", "web.fetch_chars")[0]
    desk.environment["BOWERBIRD_WEB__FETCH_CHARS"] = "99"
    assert "web.fetch_chars" in "".join(run(desk, "config", "check", code=78))


def test_a_subagent_role(desk: Desk, models: FakeModels) -> None:
    def play(request: dict[str, Any], number: int) -> dict[str, Any]:
        if number == 0:
            wanted = {"description": "d", "prompt": "look closely", "agent_type": "review"}
            return {"tools": [{"name": "task", "input": wanted}]}
        return {"text": "no fault"}

    models.answer(play)
    assert run(desk, "review it")[0] == "no fault\n"
    lead, child = models.requests[:2]
    assert "- review: finding faults in a change" in json.dumps(lead["system"])
    assert "look closely" in json.dumps(child["messages"])
    tools = {tool["name"] for tool in child["tools"]}
    assert "read_file" in tools and "write_file" not in tools
