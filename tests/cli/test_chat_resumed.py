"""A chat that is resumed while its turn is not over: it goes on in sight, here or where it runs (UI-72)."""

import json

import pytest

CALL = {"tools": [{"name": "bash", "input": {"command": "echo made > made.txt"}}]}


def session_of(desk) -> str:
    [session] = json.loads(desk.ok("sessions", "--json"))
    return session["id"]


def kill(chat) -> None:
    chat.process.kill()
    chat.process.wait()


def test_a_turn_whose_terminal_was_killed_goes_on_in_sight(here):
    """It ran, and was paid for, behind a prompt that showed nothing of it and that Ctrl+C did not stop."""
    here.fake.script({"hang": True}, {"text": "Made after all."}, {"hang": True})
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("make it\r")
        here.fake.wait_requests(1)
        kill(chat)
    with here.terminal(f"--resume={session_of(here)}") as chat:
        chat.wait_for("> make it")
        chat.wait_for("Made after all.")
        chat.wait_for("ctx ·")
        chat.send("once more\r")
        here.fake.wait_requests(3)
        kill(chat)
    with here.terminal(f"--resume={session_of(here)}") as chat:
        here.fake.wait_requests(4)
        chat.wait_for("Ctrl+C stops")
        chat.send("\x03")
        chat.wait_for("feedback>")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_question_from_before_is_put_to_whoever_resumes(here, answer):
    here.fake.script(CALL, {"text": "So be it."})
    with here.terminal("--approval") as chat:
        chat.wait_for("lists commands")
        chat.send("make it\r")
        chat.wait_for("d details")
        kill(chat)
    with here.terminal(f"--resume={session_of(here)}") as chat:
        chat.wait_for("The agent asks to run:")
        chat.wait_for("answer>")
        chat.send(f"{answer}\r")
        chat.wait_for("So be it.")
        chat.wait_for("ctx ·")
    assert ("made.txt" in here.ok("diff", "--stat")) == (answer == "y")


def test_a_question_of_the_agent_is_not_put_where_nobody_can_answer(here):
    """It was told "no tool is named 'ask_user'" of the tool that it had just called."""
    here.fake.script(
        {"tools": [{"name": "ask_user", "input": {"question": "Which colour?"}}]}, {"text": "Red, then."}
    )
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("paint it\r")
        chat.wait_for("Which colour?")
        kill(chat)
    assert "Red, then." in here.ok("resume", session_of(here), "-q")
    told = str(here.fake.requests[-1]["messages"][-1]["content"])
    assert "nobody can answer questions in this run; decide yourself" in told and "no tool" not in told


def test_a_turn_of_another_terminal_is_followed_and_not_ended_by_leaving(here):
    here.fake.script(CALL, {"text": "So be it."})
    with here.terminal("--approval") as first:
        first.wait_for("lists commands")
        first.send("make it\r")
        first.wait_for("d details")
        session = session_of(here)
        with here.terminal(f"--resume={session}") as second:
            second.wait_for("The agent asks to run:")
            second.wait_for("answer>")
            second.send("\x04")
            second.wait_for(f"the turn is not over; go on with: bowerbird resume {session}")
            assert second.wait() == 0
        with here.terminal(f"--resume={session}") as second:
            second.wait_for("answer>")
            second.send("y\r")
            second.wait_for("So be it.")
        first.wait_for("So be it.")
        first.wait_for("ctx ·")
