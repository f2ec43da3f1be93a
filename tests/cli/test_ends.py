"""A turn that a limit ended is told as that, and how it goes on, wherever it is shown."""

import json

import pytest
from support.desk import Desk

LOOK = {"tools": [{"name": "read_file", "input": {"path": "a.txt"}}]}


@pytest.fixture
def ended(desk: Desk) -> Desk:
    desk.fake.script(LOOK, {"text": "So far I looked."})
    code, out, err = desk.run("run", "--max-turns", "1", "look at it")
    assert code == 5 and "So far I looked." in out and "continue with: bowerbird run --resume" in err
    return desk


def test_a_list_of_sessions_says_stopped_and_not_done(ended: Desk) -> None:
    [row] = json.loads(ended.ok("sessions", "--json"))
    assert (row["status"], row["stop_reason"]) == ("done", "max_turns")
    assert " stopped " in ended.ok("sessions") and " done " not in ended.ok("sessions")
    assert ended.ok("show").splitlines()[1].startswith("stopped: every model call that it may make is made")


def test_a_list_says_done_again_once_it_has_gone_on(ended: Desk) -> None:
    ended.fake.script({"text": "It says one, two, three."})
    ended.ok("run", "--resume", "go on")
    [row] = json.loads(ended.ok("sessions", "--json"))
    assert row["stop_reason"] == "end_turn" and " done " in ended.ok("sessions")


def test_a_conversation_says_which_limit_and_how_to_go_on(desk: Desk) -> None:
    desk.fake.script(LOOK, {"text": "So far I looked."})
    with desk.terminal("run", "--max-turns", "1", columns=100) as chat:
        chat.wait_for("lists commands")
        chat.send("look at it\r")
        chat.wait_for("stopped: every model call that it may make is made")
        chat.wait_for('say "go on"')
