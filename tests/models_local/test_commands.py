"""A command that the task names needs no model: it is run, and its exit code says what came of it (D-23)."""

from typing import Any

import pytest
from support.local_talk import SPECS, asked, called

from bowerbird.models.local.changing import Call, Say
from bowerbird.models.local.commands import command_move
from bowerbird.models.local.situation import read_situation

TASK = "Run the tests with `python3 -m unittest -q` and say whether they pass."
OFFERED = frozenset(tool.name for tool in SPECS)


def move(*results: dict[str, Any], task: str = TASK, is_error: bool = False) -> Any:
    ran = [m for data in results for m in called("bash", {"command": "x"}, "…", data=data, is_error=is_error)]
    return command_move(read_situation(asked(*ran, task=task)), OFFERED)


@pytest.mark.parametrize(
    "task", [TASK, "run `python3 -m unittest -q`", "Run `python3 -m unittest -q`, do they pass?"]
)
def test_the_command_is_run_first_and_as_it_stands(task: str):
    assert move(task=task) == Call("bash", {"command": "python3 -m unittest -q"})
    assert command_move(read_situation(asked(task=task)), OFFERED - {"bash"}) is None


def test_what_came_of_it_is_said_from_the_exit_code_and_the_last_lines():
    assert move({"exit_code": 0, "output": ".....\nRan 12 tests in 0.004s\n\nOK\n"}) == Say(
        "`python3 -m unittest -q` succeeded: Ran 12 tests in 0.004s, OK"
    )
    assert move({"exit_code": 1, "output": "tests passed"}) == Say(
        "`python3 -m unittest -q` failed with exit code 1: tests passed"
    )
    assert move({"exit_code": 0, "output": ""}, task="Run `true`.") == Say("`true` succeeded")


def test_a_command_that_was_refused_was_not_run():
    assert move({}, is_error=True) == Say("I could not run `python3 -m unittest -q`: …")


@pytest.mark.parametrize(
    "task", ["Run `wc -l a.py` and tell me how many lines it has.", "Run `ls`: which is newest?"]
)
def test_what_else_is_asked_about_it_is_answered_by_the_model(task: str):
    assert isinstance(move(task=task), Call)
    assert move({"exit_code": 0, "output": "7 a.py"}, task=task) is None


@pytest.mark.parametrize(
    "task",
    [
        "Do not run `make deploy`; what does it do?",
        "What happens when I run `make deploy`?",
        "Run `make test`, but not before I say so.",
        "Explain why people never run `make deploy` twice.",
    ],
)
def test_a_command_that_is_only_spoken_of_is_not_run(task: str):
    assert move(task=task) is None


def test_nothing_is_said_of_a_command_without_an_exit_code():
    assert move({"exit_code": None, "output": "", "timed_out": True}) is None
    assert move(task="What does `run()` do?") is None
    assert move(task="Fix the port, then run `make test`.") is None
