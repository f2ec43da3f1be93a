"""What a run's model is shown: system part, long results, transcripts of summaries (AG-11, AG-51, AG-65)."""

from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, events_of, result_of, results
from support.fake_models import FakeModels

from bowerbird.agent.limits import Limits
from bowerbird.core.events import Compaction, ToolOutcome
from bowerbird.tools import Tool


async def test_memory_files_are_read_anew_and_else_the_system_part_is_identical(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-65, AG-66; AG acceptance 14."""
    (project / "MEMORY.md").write_text("likes tea")
    agent = make(project)
    fake.script({"text": "ok"})
    await agent.run("one")
    await agent.run("two")
    (project / "MEMORY.md").write_text("likes coffee")
    await agent.run("three")
    first, second, third = (r["system"] for r in fake.requests)
    assert first == second and "likes tea" in str(first)
    assert third != first and "likes coffee" in str(third)
    assert fake.requests[0]["tools"] == fake.requests[2]["tools"]


async def test_the_default_instructions_name_only_offered_tools(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-11."""
    fake.script({"text": "ok"})
    await make(project, think=False).run("hi")
    system = fake.requests[0]["system"][0]["text"]
    assert "think" not in system and "read_file" in system and str(project) in system
    await make(project, instructions="only this").run("hi")
    assert fake.requests[1]["system"][0]["text"] == "only this"


async def test_a_long_result_is_cut_and_the_rest_can_be_read(fake: FakeModels, make: Any) -> None:
    """AG-51."""

    async def lines() -> str:
        """Give many lines."""
        return "\n".join(f"line {n}" for n in range(20_000))

    fake.script(
        {"tools": [call("lines")]},
        {"tools": [call("read_file", path="PATH", offset=19_990)]},
        {"text": "ok"},
    )
    where: list[str] = []

    def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
        if n == 0:
            return {"tools": [call("lines")]}
        if n == 1:
            shown = result_of(results(body)[0])
            assert len(shown) <= 50_000 and "line 0\n" in shown and "line 19999" in shown
            where.append(shown.split("read_file at ")[1].split(" ")[0].rstrip("]…").strip())
            return {"tools": [call("read_file", path=where[0], offset=19_990)]}
        return {"text": "ok"}

    fake.answer(answer)
    result = await make(tools=[Tool(lines, effect="read")]).run("go")
    assert "line 19990" in result_of(results(fake.requests[2])[-1])
    assert result.changes.record() == {"written": [], "deleted": []}


async def test_a_summary_names_a_transcript_that_can_be_read(fake: FakeModels, make: Any) -> None:
    """AG-56: `.transcripts/transcript_{unix_seconds}.jsonl`, in no diff."""

    def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
        if "You summarise" in str(body["system"]):
            return {"text": "SUMMARY"}
        if n == 0:
            return {"tools": [call("think", thought="x")], "usage": {"input": 190_000, "output": 1}}
        return {"text": "ok"}

    fake.answer(answer)
    agent = make(limits={"max_tokens_total": None})
    made = [e for e in await events_of(agent, "the question") if isinstance(e, Compaction)]
    assert made[0].transcript is not None and made[0].transcript.startswith(".transcripts/transcript_")
    kept = agent.branch.read_overlay(made[0].transcript)
    assert b"the question" in kept and kept.count(b"\n") == 3
    assert agent.branch.changes().record() == {"written": [], "deleted": []}


@pytest.mark.parametrize("keep", [0.0, 0.6])
async def test_five_parallel_reads_are_seen_whole_while_there_is_room(
    fake: FakeModels, make: Any, project: Path, keep: float
) -> None:
    """Without room they are seen whole once."""
    for n in range(5):
        (project / f"f{n}.txt").write_text(f"{n}" * 200)
    fake.script(
        {"tools": [call("read_file", path=f"f{n}.txt") for n in range(5)]},
        {"tools": [call("read_file", path="a.txt")]},
        {"text": "ok"},
    )
    told = await events_of(make(project, limits=Limits(keep_results=keep)), "read")
    outcomes = [e for e in told if isinstance(e, ToolOutcome)]
    seen = [[len(result_of(r)) >= 200 for r in results(body)] for body in fake.requests]
    assert seen[1] == [True] * 5
    assert seen[2] == [bool(keep)] * 3 + [True] * 2 + [False]
    assert all(len(str(o.content)) >= 200 for o in outcomes[:5])
