"""Tournaments between scripted attempts, judged by real commands (DE-21 … DE-26)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call
from support.children import play, wrote
from support.fake_models import FakeModels

from bowerbird.agent.limits import Limits
from bowerbird.workspace import Workspace

TEST = "import add\nassert add.add(1, 2) == 3, add.add(1, 2)\n"
CHECK = "python3 tests/test_add.py"
TASK = "fix it"


@pytest.fixture
async def sandboxed(tmp_path: Path) -> AsyncIterator[None]:
    from bowerbird.sandbox.host import SandboxHost

    place = tmp_path / "probe"
    place.mkdir()
    host = SandboxHost(place)
    try:
        status = await host.status()
    finally:
        await host.close()
    if status.tier == "none":
        pytest.skip(str(status.reasons))
    yield


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A project whose test fails."""
    root = tmp_path / "broken"
    (root / "tests").mkdir(parents=True)
    (root / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (root / "tests" / "test_add.py").write_text("import sys\nsys.path.insert(0, '.')\n" + TEST)
    return root


def attempts(fake: FakeModels, *scripts: list[dict[str, Any]]) -> None:
    """Script each attempt by its name: attempt n is the agent `agent_sub{n}`."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        system = str(body["system"])
        number = next(n for n in range(len(scripts)) if f"_sub{n}." in system)
        steps = scripts[number]
        return steps[min(rounds, len(steps) - 1)]

    fake.answer(answer)


def fix(result: str) -> dict[str, Any]:
    return {"tools": [call("edit_file", path="add.py", old="a - b", new=result)]}


DELETE = {
    "tools": [
        call("read_file", path="tests/test_add.py"),
        call("write_file", path="tests/test_add.py", content=""),
    ]
}
DONE = {"text": "done"}


async def test_the_attempt_that_passes_wins_and_only_its_files_are_merged(
    sandboxed: None, fake: FakeModels, make: Any, broken: Path
) -> None:
    """DE acceptance 6; issue 5, must-show 3."""
    attempts(fake, [fix("a + b"), wrote("notes.md"), DONE], [fix("a * b"), DONE], [DELETE, DONE])
    agent = make(broken)
    result = (await agent.run_tournament(TASK, checks=[CHECK], merge="best")).record()
    assert result["winner"] == "subagent_0"
    first, second, third = result["ranking"]
    assert [r["handle"] for r in result["ranking"]] == ["subagent_0", "subagent_2", "subagent_1"]
    assert [r["rank"] for r in result["ranking"]] == [1, 2, 3]
    assert (first["passed"], first["failed"], first["touched_checks"]) == (1, 0, False)
    assert (second["passed"], second["touched_checks"]) == (1, True)
    assert third["checks"][0]["baseline_failed"] and "AssertionError: 2" in third["checks"][0]["output_tail"]
    assert (first["files"], first["added"], first["removed"]) == (2, 2, 1)
    assert first["tokens"] > 0 and first["cost"] is not None and first["seconds"] > 0
    assert agent.branch.changes().record() == {"written": ["/add.py", "/notes.md"], "deleted": []}
    # Compiled files that the check left behind are in no attempt's diff, the losers can be looked at.
    assert set(agent.subagents) == {"subagent_0", "subagent_1", "subagent_2"}
    assert (broken / "add.py").read_text().endswith("a - b\n")


async def test_nobody_wins_when_no_attempt_passes(
    sandboxed: None, fake: FakeModels, make: Any, broken: Path
) -> None:
    """DE-24, DE-25: nothing is merged, the handles are left."""
    attempts(fake, [fix("a * b"), DONE], [{"status": 400}])
    agent = make(broken)
    result = (await agent.run_tournament(TASK, attempts=2, checks=[CHECK, "true"], merge="best")).record()
    assert result["winner"] is None and "merge" not in result
    assert [r["status"] for r in result["ranking"]] == ["completed", "failed"]
    assert result["ranking"][1]["error"].startswith("ModelError: ")
    assert agent.branch.changes().record() == {"written": [], "deleted": []}
    taken = (await agent.merge_subagent("subagent_0", ["add.py"])).record()
    assert taken["written"] == ["/add.py"]


async def test_checks_run_without_network_and_leave_nothing_behind(
    sandboxed: None, fake: FakeModels, make: Any, broken: Path
) -> None:
    """DE-22: in throw-away forks, which are gone afterwards."""
    attempts(fake, [wrote("x"), DONE], [DONE])
    agent = make(broken)
    left = "touch left_by_check && test -e x && ! (exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null"
    result = (await agent.run_tournament(TASK, attempts=2, checks=[left])).record()
    assert result["winner"] == "subagent_0", result
    assert agent.subagents["subagent_0"].changes().record() == {"written": ["/x"], "deleted": []}
    data_dir = agent.branch.processes().data_dir
    with Workspace(broken, data_dir=data_dir) as workspace:
        assert len(workspace.branches()) == 3 and workspace.discarded() == []


@pytest.mark.parametrize(("given", "said"), [
    ({"attempts": 1, "checks": ["true"]}, "attempts is 1; use 2 to 8"),
    ({"attempts": 9, "checks": ["true"]}, "use 2 to 8"),
    ({}, "no checks"),
    ({"checks": [" "]}, "no checks"),
    ({"checks": ["true"], "merge": "all"}, "use none or best"),
])  # fmt: skip
async def test_what_cannot_be_a_tournament_is_an_error(make: Any, given: dict[str, Any], said: str) -> None:
    """DE-21."""
    result = (await make().run_tournament(TASK, **given)).record()
    assert said in result["error"]


async def test_attempts_that_the_budget_has_no_room_for_are_left_out_and_that_is_said(
    sandboxed: None, fake: FakeModels, make: Any, broken: Path
) -> None:
    """DE-26."""
    attempts(fake, *([DONE] for _ in range(4)))
    agent = make(broken, limits=Limits(max_tokens_total=50_000))
    result = (await agent.run_tournament(TASK, attempts=4, checks=["true"])).record()
    assert len(result["ranking"]) == 2 and "2 of 4 attempts" in result["note"]
    none = make(broken, limits=Limits(max_tokens_total=30_000))
    assert "no room for 2 attempts" in (await none.run_tournament(TASK, checks=["true"])).record()["error"]


async def test_a_model_runs_a_tournament_with_its_tool(
    sandboxed: None, fake: FakeModels, make: Any, broken: Path
) -> None:
    """DE-21 through the loop."""
    play(fake, {
        "lead": [
            {"tools": [call("run_tournament", task="try", attempts=2, checks=["test -e made"], merge="best")]},
            {"text": "done"},
        ],
        "try": [wrote("made"), DONE],
    })  # fmt: skip
    agent = make(broken)
    result = await agent.run("lead")
    assert result.changes.written == ("/made",) and result.usage.subagents.model_calls == 4
