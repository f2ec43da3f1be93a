"""What a type checker says of a program that uses the library (engine 7, D-20)."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.patience import patience

RIGHT = """
import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from bowerbird import Agent, Branch, Landing, LandingPlan, MergeResult, RunDone, RunResult, StepResult


@dataclass
class Verdict:
    ok: bool
    reason: str


def review(branch: Branch) -> None:
    for change in branch.diff().written:
        lines: list[str] = [hunk.text for hunk in change.hunks or ()]
        print(change.path.upper(), change.added - change.removed, change.flags, lines)
    plan: LandingPlan = branch.plan_landing()
    waiting = [entry.path for entry in plan.entries if entry.grade == "needs_accept"]
    landing = branch.land(plan=plan.id, accept=waiting)
    print([entry.path.upper() for entry in landing.entries], [row.reason for row in landing.refused])
    undone: Landing = landing.undo()
    print(undone.at, undone.undoes, landing.diff().deleted, landing.record()["state"])
    merged: MergeResult = branch.merge(branch.fork())
    print({path: conflict.reason for path, conflict in merged.details.items()}, merged.record())
    print([snapshot.created_at.upper() for snapshot in branch.snapshots()], branch.changes().paths)


async def main() -> None:
    with Agent(workdir=".", data_model=Verdict, max_iterations=3) as agent:
        result = await agent.run("hello", deadline_s=3)
        if result.output is not None:
            print(result.output.reason.upper(), result.text.upper(), result.usage.cost)
        print(agent.workdir, (agent.temperature or 0) + 1, agent.name.upper(), result.branch.unified().upper())
        written: tuple[str, ...] = result.changes.written
        print(written, agent.data_dir)
        review(agent.branch)
        async with aclosing(agent.stream("hello")) as events:
            async for event in events:
                if isinstance(event, RunDone):
                    last: RunResult[Verdict] = event.result
                    print(last.text.upper(), event.type)
        other = agent.replace(temperature=0.5, name="other")
        again: Verdict | None = (await other.run({"rows": [1]})).output
        step: StepResult = await agent.step([{"role": "user", "content": "hi"}])
        print(again, step.pending_calls)
        for one in (await agent.spawn_subagents(["a"])).subagents:
            print(one.task.upper(), [file.path.upper() for file in one.diff.written] if one.diff else one.error)
        taken: tuple[str, ...] = (await agent.merge_subagent("subagent_0")).written
        contest = await agent.run_tournament("b", checks=["true"])
        print(taken, [row.seconds + 1 for row in contest.ranking], contest.record()["winner"])
    plain = Agent()
    print((await plain.run("hi")).output)


def sync() -> None:
    number: int = Agent(data_model=Verdict).run_sync("hi", deadline_s=2.0).steps
    changed: Agent[Verdict] = Agent().replace(data_model=Verdict)
    print(number, changed.get_config())


asyncio.run(main())
"""

WRONG = """
from dataclasses import dataclass
from bowerbird import Agent


@dataclass
class Verdict:
    ok: bool


async def main() -> None:
    agent = Agent(data_model=Verdict)
    result = await agent.run("hello")
    result.txet  # typo of a result
    agent.temprature  # typo of a parameter
    agent.temperature = 1.0  # an agent does not change
    Agent(temprature=1)  # typo of an argument
    Agent(landing="now")  # no such policy
    agent.replace(temprature=1)  # typo of a change
    if result.output:
        result.output.okay  # typo of the output's field
    agent.run_sync("x", dedline_s=1)  # typo of an option
    agent.run_sync("x").stop_raeson  # typo of a result, without await
    async for event in agent.stream("x"):
        event.result  # not every event has one
    (await agent.step("x")).pending  # typo of a step
    result.changes["written"]  # changes are no dictionary
    branch = agent.branch
    branch.diff().written[0].hunk  # typo of a changed file
    branch.plan_landing().entries[0].flag  # typo of a plan's entry
    branch.land().entires  # typo of a landing
    branch.merge("b_1").conflict  # typo of a merge
    branch.snapshots()[0].turns  # typo of a snapshot
"""


@dataclass(frozen=True)
class Said:
    right: list[str]
    wrong: list[int]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """The checker's complaints: strict about the correct program, lenient about the other."""
    place = tmp_path_factory.mktemp("program")
    (place / "right.py").write_text("# pyright: strict\n" + RIGHT)
    (place / "wrong.py").write_text(WRONG)
    (place / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", "."]
    ran = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=patience(60), check=False
    )
    found: list[dict[str, Any]] = json.loads(ran.stdout)["generalDiagnostics"]
    errors = [row for row in found if row["severity"] == "error"]
    return Said(
        [f"{r['range']['start']['line']}: {r['message']}" for r in errors if r["file"].endswith("right.py")],
        sorted({row["range"]["start"]["line"] for row in errors if Path(row["file"]).name == "wrong.py"}),
    )


def test_a_correct_program_has_no_complaint_even_in_strict_mode(said: Said) -> None:
    assert said.right == []


def test_every_typo_is_found(said: Said) -> None:
    """Engine 7: "`result.txet`, `agent.temprature` pass unnoticed"."""
    expected = [number for number, line in enumerate(WRONG.splitlines()) if "  # " in line]
    assert said.wrong == expected
