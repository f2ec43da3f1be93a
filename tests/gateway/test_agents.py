"""Agents run commands of the host through a gateway: `host_execute` in whole turns (TO-46, AS-57)."""

import json

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.gateways import OTHER, TOKEN


@pytest.fixture
def desk(tmp_path, gateway):
    """A project whose settings know the gateway of these tests."""
    with FakeModels() as fake, Desk(tmp_path, fake) as made:
        settings = made.home / ".bowerbird" / "config.yaml"
        settings.parent.mkdir()
        bridges = {
            "tools": {"token": TOKEN, "approval": "allow"},
            "other": {"token": OTHER},
            "1password": {"token": "t0ken-of-nobody-here"},
        }
        section = {"enabled": True, "url": f"unix:{gateway.socket}", "bridges": bridges}
        settings.write_text(json.dumps({"gateway": section}))
        settings.chmod(0o600)
        yield made


def call(bridge, command, **more):
    return {"name": "host_execute", "input": {"bridge": bridge, "command": command, **more}}


def result(desk, *calls):
    """Return what the model is told of its calls, and how the run ended."""
    desk.fake.script({"tools": list(calls)}, {"text": "done"})
    code, _, err = desk.run("run", "do it")
    return str(desk.fake.requests[-1]["messages"][-1]["content"]), code, err


def test_an_allowed_bridge_runs_without_a_question(desk):
    """TO-46: words, no shell; the outcome of a failure is told whole."""
    said, code, err = result(desk, call("tools", "echo '$HOME;' a|b"))
    assert code == 0 and "$HOME; a|b" in said, (said, err)
    said, _, _ = result(desk, call("tools", "sh -c 'echo out; echo err >&2; exit 3'"))
    assert "exit code 3" in said and "err" in said and "stdout:" in said
    said, _, _ = result(desk, call("tools", "sleep 20", timeout=1))
    assert "its time was over" in said
    said, _, _ = result(desk, call("tools", "sh -c true"))
    assert "(no output)" in said


def test_other_bridges_ask_and_some_are_not_for_agents(desk):
    """AS-57: without a person the call is denied and the run says so (exit code 4)."""
    said, code, _ = result(desk, call("other", "echo hi"))
    assert code == 4 and "hi" not in said.replace("which", "")
    said, _, _ = result(desk, call("tools", "git push"))
    assert "does not allow 'git'" in said
    said, code, _ = result(desk, call("1password", "op read x"))
    assert code in (0, 4) and "op read" not in said


def test_a_bridge_of_people_is_refused_even_where_it_would_be_allowed(desk, gateway):
    """AS-57."""
    settings = desk.home / ".bowerbird" / "config.yaml"
    bridges = {
        "claude-code": {"token": TOKEN, "approval": "allow"},
        "nowhere": {"token": OTHER, "approval": "allow"},
    }
    section = {"enabled": True, "url": f"unix:{gateway.socket}", "bridges": bridges}
    settings.write_text(json.dumps({"gateway": section}))
    said, _, _ = result(desk, call("claude-code", "echo hi"))
    assert "not for agents; bridges: nowhere" in said
    said, _, _ = result(desk, call("nowhere", "echo hi"))
    assert "refused it (403)" in said
    section["url"] = "http://127.0.0.1:9"
    settings.write_text(json.dumps({"gateway": section}))
    said, _, _ = result(desk, call("nowhere", "echo hi"))
    assert "cannot be reached" in said and OTHER not in said


def test_no_gateway_no_tool(desk):
    """TO-46: offered only where one is configured; a bridge without a token is named at the start."""
    assert "host_execute" in desk.ok("tools")
    settings = desk.home / ".bowerbird" / "config.yaml"
    settings.write_text(json.dumps({"gateway": {"enabled": True, "bridges": {"a": {}}}}))
    code, _, err = desk.run("tools")
    assert code == 78 and "gateway.bridges.a.token" in err
    settings.write_text(json.dumps({"gateway": {"enabled": False, "bridges": {"a": {}}}}))
    assert "host_execute" not in desk.ok("tools")
