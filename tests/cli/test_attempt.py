"""`bowerbird attempt` and `bowerbird subagents …` as people use them (DE-21; issue 5, must-show 3)."""

import json
import time
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird.workspace import Workspace


def answers(models: FakeModels) -> None:
    """Attempt 0 writes the wrong file, attempt 1 what the check wants."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if any(m["role"] == "assistant" for m in body["messages"]):
            return {"text": "done"}
        path = "right.txt" if "main_sub1." in str(body["system"]) else "wrong.txt"
        return {"tools": [{"name": "write_file", "input": {"path": path, "content": "x\n"}}]}

    models.answer(answer)


def test_a_tournament_is_run_reviewed_and_its_winner_taken(desk: Desk, models: FakeModels) -> None:
    answers(models)
    check = ("--check", "test -e right.txt")
    code, out, err = desk.run("attempt", "make it right", "-n", "2", *check, "--json")
    if "checks cannot run here" in err:
        pytest.skip(err)
    assert code == 0, err
    result = json.loads(out)
    assert result["winner"] == "subagent_1"
    assert [row["handle"] for row in result["ranking"]] == ["subagent_1", "subagent_0"]
    session = result["conversation_id"]
    assert desk.ok("sessions").split()[0] == session

    listed = desk.ok("subagents", "list", session)
    assert desk.ok("subagents", "list") == listed, "UI-45: the newest of the directory needs no name"
    assert "subagent_0" in listed and "subagent_1" in listed and "finished" in listed
    assert "+x" in desk.ok("subagents", "show", session, "subagent_1")
    assert desk.ok("subagents", "show", session, "subagent_1", "right.txt") == "x\n"
    assert desk.ok("subagents", "merge", session, "subagent_1") == "written: right.txt\n"
    assert "nothing to merge" in desk.run("subagents", "merge", session, "subagent_1")[2]
    assert desk.ok("subagents", "discard", session, "subagent_0") == "discarded subagent_0\n"
    code, _, err = desk.run("subagents", "merge", session, "subagent_0")
    assert code == 2 and "unknown subagent handle: 'subagent_0'" in err
    assert not (desk.project / "right.txt").exists()
    desk.ok("land", session, "--yes")
    assert (desk.project / "right.txt").exists() and not (desk.project / "wrong.txt").exists()


def test_nobody_wins_and_that_is_the_exit_code(desk: Desk, models: FakeModels) -> None:
    answers(models)
    code, out, err = desk.run("attempt", "make it right", "--n", "2", "--check", "echo seen; false")
    if "checks cannot run here" in err:
        pytest.skip(err)
    assert code == 1
    assert "no attempt passed all checks" in out and "  seen" in out
    assert "failed before too" in out


def test_attempts_that_name_their_model_need_no_key_of_another(desk: Desk, models: FakeModels) -> None:
    """Issue 13, point 2: `attempt --model local:…` asked for a key of the provider of the settings."""
    answers(models)
    named = ("--model", "anthropic:claude-sonnet-4-5", "--check", "test -e right.txt")
    without_key = desk.environment | {"LLM_PROVIDER": "openai"}
    code, out, err = desk.run("attempt", "make it right", "-n", "2", *named, env=without_key)
    if "checks cannot run here" in err:
        pytest.skip(err)
    assert code == 0, err
    assert "subagent_1" in out


def test_what_cannot_be_a_tournament_is_wrong_usage(desk: Desk) -> None:
    code, _, err = desk.run("attempt", "x", "--n", "9", "--check", "true")
    assert code == 2 and "use 2 to 8" in err
    assert "no checks" in desk.run("attempt", "x")[2]


def test_what_a_killed_tournament_made_for_its_checks_goes_and_its_attempts_stay(
    desk: Desk, models: FakeModels
) -> None:
    answers(models)
    if desk.is_server:
        pytest.skip("the process that is killed is the command's own")
    with desk.start("attempt", "make it right", "-n", "2", "--check", "sleep 60") as process:
        end = time.monotonic() + HANG_S
        with Workspace(desk.project, data_dir=desk.home / ".bowerbird/data") as workspace:
            while len(made := {row.name for row in workspace.branches()} & {"check", "baseline"}) < 2:
                if process.poll() is not None:
                    pytest.skip("checks cannot run here")
                assert time.monotonic() < end, made
                time.sleep(0.05)
        process.kill()
    with Workspace(desk.project, data_dir=desk.home / ".bowerbird/data") as workspace:
        registry = workspace._shared.registry  # pyright: ignore -- a minute passes by an argument
        assert registry.remove_left(time.time() + 100)
        left = {row.name for row in workspace.branches()}
    assert not left & {"check", "baseline"} and {"main_sub0", "main_sub1"} <= left
    listed = desk.ok("subagents", "list")
    assert "subagent_0" in listed and "subagent_1" in listed
    desk.ok("subagents", "discard", desk.ok("sessions").split()[0], "subagent_0")
