"""Settings of MCP servers and the commands that edit them (PT-17, CF-50, SV-63)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.mcp_servers import raw_spec

from bowerbird.app.features.mcp import server_specs
from bowerbird.config import inspect_settings, load_settings


def loaded(directory: Path, entry: dict[str, Any], name: str = "x", **env: str) -> Any:
    (directory / "config.yaml").write_text(json.dumps({"mcp_servers": {name: entry}}))
    return inspect_settings(env=env, cwd=directory, home=directory, config_path="config.yaml")


def test_an_entry_has_the_defaults_of_the_chapter(tmp_path: Path) -> None:
    """PT-17."""
    [spec] = server_specs(loaded(tmp_path, {"command": "npx", "args": ["-y", "s"]}).settings)
    assert (spec.transport, spec.command, spec.args) == ("stdio", "npx", ("-y", "s"))
    assert (spec.start_timeout_s, spec.call_timeout_s, spec.approval) == (10, 60, "ask")
    assert (spec.trusted, spec.sampling, spec.sandbox, spec.allow, spec.deny) == (False, False, False, (), ())


def test_every_key_of_an_entry_reaches_its_server(tmp_path: Path) -> None:
    """PT-17, CF-87; what each of them then does is tested beside this file."""
    entry: dict[str, Any] = {
        "command": "x", "args": ["-a"], "env": {"E": "1"}, "cwd": str(tmp_path), "start_timeout": 3,
        "call_timeout": 4, "tools": {"allow": ["a", "b"], "deny": ["b"]}, "approval": {"a": "allow"},
        "trusted": True, "sampling": True, "sandbox": True,
    }  # fmt: skip
    [spec] = server_specs(loaded(tmp_path, entry).settings)
    assert (spec.env, spec.cwd, spec.start_timeout_s, spec.call_timeout_s) == (
        {"E": "1"},
        str(tmp_path),
        3,
        4,
    )
    assert (spec.offers("a"), spec.offers("b"), spec.approval_of("a")) == (True, False, "allow")
    assert (spec.trusted, spec.sampling, spec.sandbox) == (True, True, True)


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://x.example/mcp"}, "streamable_http"),
        ({"url": "https://x.example/mcp", "transport": "http"}, "streamable_http"),
        ({"url": "https://x.example/mcp", "type": "http"}, "streamable_http"),
        ({"url": "https://x.example/mcp", "type": "sse"}, "sse"),
        ({"command": "x", "type": "stdio"}, "stdio"),
    ],
)
def test_other_spellings_are_accepted(tmp_path: Path, entry: dict[str, Any], transport: str) -> None:
    """PT-17: `type` and `http`; `sse` works and warns."""
    found = loaded(tmp_path, entry)
    assert not found.errors and server_specs(found.settings)[0].transport == transport
    assert bool(found.warnings) == (transport == "sse")


def test_tokens_come_from_variables_and_become_headers(tmp_path: Path) -> None:
    """PT-17, CF-4, CF-50."""
    entry = {"url": "https://x.example/mcp", "headers": {"X-Key": "${K}"}, "authorization_token": "${T}"}
    [spec] = server_specs(loaded(tmp_path, entry, K="key-1", T="token-1").settings)
    assert spec.headers == {"X-Key": "key-1", "Authorization": "Bearer token-1"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param({}, "needs one of command and url (got neither)", id="neither"),
        pytest.param({"command": "x", "url": "https://x.example"}, "(got both)", id="both"),
        pytest.param({"command": "x", "transport": "http"}, "mcp_servers.x.url", id="other-one"),
        pytest.param({"command": "x", "comand": "y"}, "mcp_servers.x.comand", id="unknown"),
        pytest.param({"url": "https://x.example", "mode": "remote"}, "remote is refused", id="remote"),
        pytest.param(
            {"url": "https://x.example", "authorization_token": "t", "headers": {"authorization": "b"}},
            "given twice", id="two-tokens",
        ),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_an_error_naming_server_and_key(tmp_path: Path, entry: Any, said: str) -> None:
    """PT-17, SV-63."""
    errors = loaded(tmp_path, entry).errors
    assert [error for error in errors if said in error and "mcp_servers.x" in error], errors


def test_a_disabled_server_is_not_started(tmp_path: Path) -> None:
    assert server_specs(loaded(tmp_path, {"command": "x", "enabled": False}).settings) == []


def test_a_servers_file_of_the_project_is_not_read(tmp_path: Path) -> None:
    """PT-17: server files found inside a workspace are never started."""
    (tmp_path / "config.yaml").write_text("{}")
    (tmp_path / "mcp_servers.json").write_text('{"servers": {"planted": {"command": "x"}}}')
    options: dict[str, Any] = {
        "env": {},
        "cwd": tmp_path,
        "home": tmp_path / "home",
        "config_path": "config.yaml",
    }
    there = load_settings(workspace=tmp_path, **options)
    assert there.settings.mcp_servers == {} and "bowerbird mcp import" in " ".join(there.notes)
    (tmp_path / "sub").mkdir()
    elsewhere = load_settings(workspace=tmp_path / "sub", **options)
    assert set(elsewhere.settings.mcp_servers) == {"planted"}


# ---------------------------------------------------------------- commands


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with FakeModels() as fake:
        yield Desk(tmp_path, fake)


def servers_file(desk: Desk) -> Path:
    return desk.home / ".bowerbird" / "mcp_servers.json"


def test_a_server_is_added_listed_tested_and_removed(desk: Desk, tmp_path: Path) -> None:
    """PT-17, PT-24: what it said on stderr is shown by `mcp test`."""
    spec = raw_spec(tmp_path / "notes")
    desk.ok("mcp", "add", "--env", "API_TOKEN=planted-0123456789", "raw", "--", spec.command, *spec.args)
    file = servers_file(desk)
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["servers"]["raw"]["command"] == spec.command
    listed = desk.ok("mcp", "list")
    assert listed.startswith("raw") and "stdio" in listed and "planted" not in listed
    [row] = json.loads(desk.ok("mcp", "list", "--json"))
    assert (row["approval"], row["trusted"], row["from"]) == ("ask", False, str(file))
    assert not (tmp_path / "notes").exists()
    code, out, err = desk.run("mcp", "test", "raw")
    assert (
        code == 0
        and "raw: raw 1, protocol 2025-11-25, 13 tools" in out
        and "mcp__raw__echo  [outside]" in out
    )
    assert "| raw server is up" in out and "a tool is left out: odd" in err
    assert desk.run("mcp", "add", "raw", "--", "other")[0] == 1
    desk.ok("mcp", "remove", "raw")
    assert json.loads(file.read_text()) == {"servers": {}}
    code, _, err = desk.run("mcp", "remove", "raw")
    assert code == 1 and "raw is not in" in err


def test_a_server_that_cannot_start_fails_the_test_with_its_last_words(desk: Desk) -> None:
    desk.ok("mcp", "add", "gone", "--", "no-such-program-here")
    code, out, _ = desk.run("mcp", "test")
    assert code == 1 and "cannot run no-such-program-here: No such file or directory" in out
    [result] = json.loads(desk.run("mcp", "test", "--json")[1])
    assert result["ok"] is False and "no-such-program-here" in result["stderr"]


def test_servers_that_several_terminals_add_at_once_are_all_there(desk: Desk) -> None:
    """Each read the file, and the last to write took the others' servers out, though they were "added"."""
    desk.ok("mcp", "add", "gone", "--", "x")
    names = [f"s{number}" for number in range(6)]
    calls = [["mcp", "add", name, "--", "x"] for name in names] + [["mcp", "remove", "gone"]]
    for process in [desk.start(*call) for call in calls]:
        assert (
            process.communicate(timeout=60)[1].startswith((b"added", b"removed")) and process.returncode == 0
        )
    assert sorted(row["name"] for row in json.loads(desk.ok("mcp", "list", "--json"))) == names


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("a b", "--", "x"), 78, "not a server name", id="name"),
        pytest.param(("x",), 78, "got neither", id="neither"),
        pytest.param(("--url", "https://x.example", "x", "--", "y"), 78, "got both", id="both"),
        pytest.param(("--url", "nonsense", "x"), 78, "http", id="url"),
        pytest.param(("--env", "NOVALUE", "x", "--", "y"), 2, "NAME=VALUE", id="env"),
    ],
)
def test_a_wrong_server_is_not_added(desk: Desk, arguments: tuple[str, ...], code: int, said: str) -> None:
    got, _, err = desk.run("mcp", "add", *arguments)
    assert (got, said in err) == (code, True), err
    assert not servers_file(desk).exists() and not list(desk.home.glob(".bowerbird/.mcp*"))


def test_importing_shows_and_asks_and_takes_no_trust_along(desk: Desk) -> None:
    """PT-17: entries of a project's file are copied after they were shown, never with their own `trusted`."""
    foreign = {
        "tracker": {
            "type": "http",
            "url": "https://x.example/mcp",
            "headers": {"Authorization": "Bearer ${T}"},
        },
        "files": {
            "command": "server-files",
            "args": ["/"],
            "trusted": True,
            "approval": "allow",
            "disabled": False,
        },
    }
    source = desk.project / ".mcp.json"
    source.write_text(json.dumps({"mcpServers": foreign}))
    code, out, err = desk.run("mcp", "import", str(source))
    assert code == 2 and "--yes" in err and not servers_file(desk).exists()
    assert "command: server-files" in out and "Authorization=********" in out
    assert "left out: trusted, approval, disabled" in out
    code, _, err = desk.run("mcp", "import", "--yes", str(source))
    assert code == 78 and "the variable T is not defined" in err and not servers_file(desk).exists()
    desk.environment["T"] = "token-0123456789"
    desk.ok("mcp", "import", "--yes", str(source))
    kept = json.loads(servers_file(desk).read_text())["servers"]
    assert set(kept) == {"tracker", "files"} and set(kept["files"]) == {"command", "args"}
    code, out, err = desk.run("mcp", "import", "--yes", str(source))
    assert code == 1 and "nothing to copy" in err and out.count("the name is taken") == 2


def test_a_file_without_servers_is_refused(desk: Desk) -> None:
    (desk.project / "x.json").write_text("{}")
    assert desk.run("mcp", "import", "x.json")[0] == 1
    (desk.project / "x.json").write_text("not json")
    code, _, err = desk.run("mcp", "import", "x.json")
    assert code == 78 and "is not JSON" in err
