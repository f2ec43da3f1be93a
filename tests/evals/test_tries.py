"""How a try can end, by whom it is made, and how many run at once."""

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from evals.conftest import MODEL, Evals
from support.fake_models import FakeModels
from support.patience import HANG_S, patience

CHECK = 'grep -qx two a.txt || { echo "a.txt says $(cat a.txt)"; exit 7; }\n'
RIGHT = "echo two > a.txt"

pytestmark = pytest.mark.timeout(patience(120))


def test_right_wrong_crashing_and_late_tries_are_told_apart(evals: Evals, models: FakeModels) -> None:
    for name in ("right", "wrong", "crash", "late", "slow-check"):
        check = "sleep 60\n" if name == "slow-check" else CHECK
        evals.task(
            name, check, time_s=3.0 if name == "late" else 60.0, check_s=2.0 if name == "slow-check" else 30.0
        )

    def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
        said = json.dumps(body["messages"])
        if "Do crash." in said:
            return {
                "status": 400,
                "body": {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": "no such thing"},
                },
            }
        if "Do late." in said:
            return {"hang": True}
        if any(message["role"] == "assistant" for message in body["messages"]):
            return {"text": "Done."}
        return {
            "tools": [
                {"name": "bash", "input": {"command": RIGHT if "Do right." in said else "echo three > a.txt"}}
            ]
        }

    models.answer(answer)
    found = evals.judge(code=3)
    tries = {t["task"]: t for t in found["tries"]}
    assert {name: t["state"] for name, t in tries.items()} == {
        "right": "right", "wrong": "wrong", "crash": "failed", "late": "timeout", "slow-check": "wrong",
    }  # fmt: skip
    assert tries["wrong"]["reason"] == "the check ended with exit code 7"
    assert tries["wrong"]["output"] == "a.txt says three\n"
    assert "no such thing" in tries["crash"]["reason"] and "stopped after 3 s" in tries["late"]["reason"]
    assert tries["slow-check"]["reason"] == "the check ran out of time"
    assert tries["right"]["steps"] == 3 and tries["right"]["calls"] == 2
    (total,) = found["summary"]
    assert (total["right"], total["tries"]) == (1, 5)
    # What was wrong can be looked at: the branch is that of a session whose directory stays.
    assert "+three" in evals.ok("diff", tries["wrong"]["session"])
    page = (evals.project / "eval-suite.html").read_text()
    assert "a.txt says three" in page and "1 of 5" in page


def test_a_failed_try_is_made_again_and_a_judged_one_is_not(evals: Evals, models: FakeModels) -> None:
    evals.task("one", CHECK)
    models.script({"status": 401, "body": "{}"})
    assert evals.judge(code=3)["tries"][0]["state"] == "failed"
    models.script({"tools": [{"name": "bash", "input": {"command": RIGHT}}]}, {"text": "Done."})
    assert [t["state"] for t in evals.judge()["tries"]] == ["right"]
    assert len(list((evals.project.parent / "tmp").glob("*"))) == 1, "only what failed keeps its directory"
    before = models.request_count
    assert [t["state"] for t in evals.judge()["tries"]] == ["right"]
    assert models.request_count == before and "1 of 1 tries are in" in evals.told
    models.script({"text": "Done."})
    assert [t["state"] for t in evals.judge("--again")["tries"]] == ["wrong"]
    assert len(evals.judge("--n", "3")["tries"]) == 3
    (evals.suite / "one/check.sh").write_text("! " + CHECK.partition(" ||")[0] + " && [ -e b.txt ]\n")
    models.script({"tools": [{"name": "bash", "input": {"command": "touch b.txt"}}]}, {"text": "Done."})
    found = evals.judge()
    assert [t["state"] for t in found["tries"]] == ["right"], "a task that was changed is tried anew"


def test_what_git_ignores_would_not_land_and_does_not_count(
    evals: Evals, commands: Callable[..., None]
) -> None:
    files = {"a.txt": "one\n", ".gitignore": "*.out\n"}
    evals.task("kept", "[ -e made.out ] || [ -e made.txt ]\n", files=files)
    evals.task("ignored", "[ -e made.out ]\n", files=files)
    commands({"Do kept.": "touch made.txt", "Do ignored.": "touch made.out"})
    assert {t["task"]: t["state"] for t in evals.judge()["tries"]} == {"kept": "right", "ignored": "wrong"}


def test_one_task_can_be_a_suite_whatever_its_files_are(evals: Evals, commands: Callable[..., None]) -> None:
    place = evals.task("one", CHECK, files={"a.txt": "one\n", "task.toml": "name = 'not a task'\n"})
    commands({"Do one.": RIGHT})
    assert [t["state"] for t in evals.judge(suite=place)["tries"]] == ["right"]


def test_the_answer_is_there_for_the_check(evals: Evals, commands: Callable[..., None]) -> None:
    evals.task("say", 'grep -qx "forty-two ä" "$ANSWER"\n', answer="forty-two ä")
    commands({}, answer="forty-two ä")
    assert evals.judge()["tries"][0]["state"] == "right"


def test_tries_run_beside_each_other_and_each_alone_on_its_files(evals: Evals, models: FakeModels) -> None:
    for name in ("one", "two", "three"):
        evals.task(name, f'[ "$(ls)" = "a.txt\n{name}" ]\n')

    def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
        said = json.dumps(body["messages"])
        if any(message["role"] == "assistant" for message in body["messages"]):
            return {"text": "Done."}
        name = next(name for name in ("one", "two", "three") if f"Do {name}." in said)
        return {"ttft_s": 1.5, "tools": [{"name": "bash", "input": {"command": f"touch {name}"}}]}

    models.answer(answer)
    found = evals.judge("--n", "2", "--jobs", "6")
    assert [(t["task"], t["number"], t["state"]) for t in found["tries"]] == [
        (name, n, "right") for name in ("one", "three", "two") for n in (1, 2)
    ]
    assert max(models.times[:6]) - min(models.times[:6]) < 1.5 * 5, "they waited for each other"
    assert [(row["task"], row["right"], row["tries"]) for row in found["summary"][0]["tasks"]] == [
        ("one", 2, 2), ("three", 2, 2), ("two", 2, 2),
    ]  # fmt: skip


def test_after_kill_9_it_goes_on_where_it_was(
    evals: Evals, models: FakeModels, commands: Callable[..., None]
) -> None:
    for name in ("a", "b", "c", "d"):
        evals.task(name, CHECK)
    report = evals.project / "eval-suite.json"
    commands(dict.fromkeys(("Do a.", "Do b.", "Do c.", "Do d."), RIGHT))
    with evals.start("eval", str(evals.suite), "--model", MODEL, "--jobs", "1") as process:
        end = time.monotonic() + HANG_S
        while not report.exists() or len(json.loads(report.read_text())["tries"]) < 2:
            if process.poll() is not None:
                told = process.communicate()[1].decode()
                assert "commands cannot run" in told, told
                pytest.skip(told)
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    kept = json.loads(report.read_text())["tries"]
    asked = models.request_count
    found = evals.judge("--jobs", "1")
    assert [(t["task"], t["state"]) for t in found["tries"]] == [(name, "right") for name in "abcd"]
    assert [t for t in found["tries"] if t in kept] == kept, "finished tries were made again"
    assert models.request_count - asked == 2 * (4 - len(kept))


def test_a_second_evaluation_does_not_write_over_the_first(evals: Evals, models: FakeModels) -> None:
    evals.task("one", CHECK)
    models.script({"hang": True})
    with evals.start("eval", str(evals.suite), "--model", MODEL) as process:
        models.wait_requests(1)
        code, _, err = evals.run("eval", str(evals.suite), "--model", MODEL)
        assert code == 2 and "another evaluation writes" in err
        process.terminate()
        process.wait(HANG_S)
    assert not list((evals.project.parent / "tmp").iterdir()), "a try that was stopped left its directory"


SAY = """printf '%s' '{"type":"result","is_error":false,"result":"fixed","session_id":"s",'
printf '%s\\n' '"usage":{"input_tokens":5,"output_tokens":7},"total_cost_usd":0.25}'
"""
CLAUDE = f"""#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
cat > "$HOME/prompt"
{RIGHT}
{SAY}"""


def test_another_vendors_agent_is_tried_beside_a_model(evals: Evals, commands: Callable[..., None]) -> None:
    programs = evals.project.parent / "bin"
    programs.mkdir()
    (programs / "claude").write_text(CLAUDE)
    (programs / "claude").chmod(0o755)
    evals.environment["PATH"] = f"{programs}:{evals.environment['PATH']}"
    evals.task("one", CHECK)
    commands({"Do one.": "true"})
    found = evals.judge("--agent", "claude_code", "--model", MODEL)
    if "needs the network" in json.dumps(found):
        pytest.skip("the copy tier has no network, which another vendor's agent needs for its model")
    tries = {t["contender"]: t for t in found["tries"]}
    assert {name: t["state"] for name, t in tries.items()} == {MODEL: "wrong", "claude_code": "right"}, tries
    assert (tries["claude_code"]["cost"], tries["claude_code"]["tokens"]) == (0.25, 12)
    code, _, err = evals.run("eval", str(evals.suite), "--agent", "claude_cod")
    assert code == 2 and "there is no agent 'claude_cod'" in err
