"""Runs of `Agent` that use processes (AG-45, TO-23, TO-26)."""

import asyncio
from typing import Any

import pytest
from support.agent_turns import call, result_of, results
from support.patience import HANG_S

from bowerbird.core.events import ToolOutcome


@pytest.fixture
async def sandboxed(make: Any) -> None:
    from bowerbird.tools.processes.family import ProcessSetup, processes_of_run

    with make() as agent:
        async with processes_of_run(agent.branch, ProcessSetup()) as found:
            if not found.tools:
                pytest.skip(found.line)


async def test_an_agent_runs_the_project_s_tests_on_its_branch(sandboxed, fake, make, project) -> None:
    (project / "test_sum.py").write_text(
        "import unittest\nfrom total import total\n\nclass T(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    )
    (project / "total.py").write_text("def total(numbers):\n    return 0\n")
    run_tests = call("bash", command="python3 -m unittest -q 2>&1 | tail -1")
    fake.script(
        {"tools": [run_tests]},
        {"tools": [call("edit_file", path="total.py", old="return 0", new="return sum(numbers)")]},
        {"tools": [run_tests]},
        {"text": "fixed"},
    )
    with make(project) as agent:
        result = await agent.run("fix it")
        answers = [result_of(block) for block in results(fake.requests[3])]
        assert answers[0].startswith("FAILED") and answers[2].startswith("OK"), answers
        assert "return 0" in (project / "total.py").read_text()
        result.branch.land(["total.py"])
    assert "return sum" in (project / "total.py").read_text()


async def test_a_background_run_ends_with_the_run_that_started_it(sandboxed, fake, make) -> None:
    fake.script(
        {"tools": [call("background_run", command="echo up > up; sleep 1000")]},
        {"tools": [call("bash", command="until [ -e up ]; do sleep 0.01; done")]},
        {"text": "ok"}, {"text": "again"},
    )  # fmt: skip
    with make() as agent:
        await agent.run("start")
        assert agent.branch.process_mark() is not None, "no process holds the branch"
        await agent.run("and now?")
        last = fake.requests[3]["messages"][-1]["content"]
        assert "lost" in str(last)
        assert agent.branch.changes().written == ("/up",)


async def test_a_cancelled_run_kills_the_command_and_shows_how_far_it_came(sandboxed, fake, make) -> None:
    """AG-45, SB-19."""
    fake.script({"tools": [call("bash", command="echo begun; touch up; setsid sleep 1000 & sleep 1000")]})
    with make() as agent:
        events: list[Any] = []

        async def consume() -> None:
            events.extend([event async for event in agent.stream("go")])

        task = asyncio.create_task(consume())
        async with asyncio.timeout(HANG_S):
            while await agent.branch.stat("up") is None:
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert agent.branch.process_mark() is not None
        assert agent.branch.changes().written == ("/up",)
        assert not [e for e in events if isinstance(e, ToolOutcome)]
