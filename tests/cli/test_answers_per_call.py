"""Answers to several calls, and a command that is edited, at a terminal (UI-71)."""

from typing import Any

import pytest

from bowerbird.cli.turn.answer import Answer
from bowerbird.cli.turn.dialogue import Dialogue
from bowerbird.core.events import ApprovalRequest, CallAnswer
from bowerbird.sessions.inbox.answers import check_decision


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "input": {"command": command}}


def asked(*commands: str) -> Dialogue:
    tools = tuple({"id": f"c{at}", **bash(command)} for at, command in enumerate(commands))
    return Dialogue(ApprovalRequest("r", "approval", tuple(str(t["id"]) for t in tools), tools))


def test_one_word_is_for_all_and_a_number_for_one():
    """UI-71: an answer per call; what is left open is asked on."""
    assert asked("a", "b").reply("y") == Answer("approve")
    assert asked("a", "b").reply("n no") == Answer("deny", "no")
    dialogue = asked("a", "b", "c")
    assert dialogue.reply("2 n too risky") == ["1 ? · 2 no · 3 ? · y or n for the rest"]
    assert dialogue.reply("9 y") == ["There are 3 calls: 1 to 3."]
    assert dialogue.reply("e") == ["Say which: 1 e … 3 e"]
    assert dialogue.reply("1 e") == [] and dialogue.text == "a"
    assert dialogue.reply("") == ["Nothing was changed; the question stands."]
    assert dialogue.reply("1 e ls -l") == ["1 yes, as ls -l · 2 no · 3 ? · y or n for the rest"]
    answer = dialogue.reply("y")
    assert answer == Answer("approve", None, {
        "c0": CallAnswer("approve", command="ls -l"), "c1": CallAnswer("deny", "too risky"),
        "c2": CallAnswer("approve"),
    })  # fmt: skip
    both = asked("a", "b")
    both.reply("1 n")
    assert both.reply("2 n") == Answer("deny", None, {"c0": CallAnswer("deny"), "c1": CallAnswer("deny")})


def test_a_call_without_a_command_is_not_edited_and_an_unchanged_one_runs_as_it_is():
    """UI-71."""
    tools = ({"id": "c", "name": "write_file", "input": {"path": "a"}},)
    plain = Dialogue(ApprovalRequest("r", "approval", ("c",), tools))
    assert plain.reply("e") == ["This call runs no command that could be edited."]
    same = asked("a")
    assert same.reply("e") == [] and same.reply("a") == Answer("approve")


def test_an_edited_command_runs_and_the_screen_says_so(desk, models):
    """UI-71: by each client; the line of the call and its result name the one that ran."""
    models.reset()
    with desk.terminal("--approval", columns=110) as chat:
        chat.wait_for("lists commands")
        desk.edit(bash("echo first > one"), bash("echo second > two"), answer="Done.")
        chat.send("change\r")
        chat.wait_for("1 bash echo first")
        chat.wait_for("e edit the command")
        chat.send("1 e\r")
        chat.wait_for("run instead> echo first > one")
        chat.send("\x15echo edited | tee one\r")
        chat.wait_for("y or n for the rest")
        chat.send("n not that\r")
        chat.wait_for("✓ bash echo edited | tee one")
        chat.wait_for("Done.")
        chat.send("\x04")
        chat.wait()
    assert "+edited" in desk.ok("diff") and "second" not in desk.ok("diff")
    assert "What ran: echo edited | tee one" in str(models.requests[-1])


@pytest.mark.parametrize("last", ["all", "a", "y", "n"])
@pytest.mark.parametrize("first", ["1 n", "1 e echo safe"])
def test_what_was_said_of_one_call_stands_whatever_is_said_of_the_rest(first: str, last: str) -> None:
    """`1 n` and then `all` ran the call that the screen had shown as denied."""
    rules = {"rules": ["bash(rm *)"]}
    tools = tuple({"id": i, "name": "bash", "input": {"command": f"rm {i}"}, **rules} for i in ("c1", "c2"))
    dialogue = Dialogue(ApprovalRequest("r", "approval", ("c1", "c2"), tools))
    assert not isinstance(dialogue.reply(first), Answer)
    answer = dialogue.reply(last)
    assert isinstance(answer, Answer)
    said = answer.calls["c1"]
    assert (said.decision, said.command) == (("deny", None) if first == "1 n" else ("approve", "echo safe"))
    check_decision(ApprovalRequest("r", "approval", ("c1", "c2"), tools), answer.decision, answer.calls)
