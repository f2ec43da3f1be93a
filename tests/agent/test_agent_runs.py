"""Runs of `Agent` on real directories, with a real HTTP model (agent chapter, sections 1 to 4)."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, events_of, fingerprint, result_of, results, texts
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sample_tools import count_words

from bowerbird.agent.agent import Agent
from bowerbird.agent.result import RunDone, RunResult
from bowerbird.core.errors import BranchBusy, InvalidArgument, NoModel
from bowerbird.core.events import Done, LandingProgress
from bowerbird.tools import Tool


async def test_writing_leaves_the_directory_alone_until_it_lands(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG acceptance 2."""
    before = fingerprint(project)
    fake.script(
        {"tools": [call("write_file", path="c.txt", content="new\n"), call("delete_file", path="b.txt")]},
        {"text": "done"},
    )
    agent = make(project)
    result: RunResult = await agent.run("change things")
    assert result.stop_reason == "completed" and result.text == "done"
    assert fingerprint(project) == before
    assert result.changes.record() == {"written": ["/c.txt"], "deleted": ["/b.txt"]}
    landing = result.branch.land()
    assert (project / "c.txt").read_text() == "new\n" and not (project / "b.txt").exists()
    landing.undo()
    assert {k: v[0] for k, v in fingerprint(project).items()} == {k: v[0] for k, v in before.items()}


async def test_a_plain_function_is_a_tool_and_runs_unasked(fake: FakeModels, make: Any) -> None:
    """AG-4; the example of section 10."""
    fake.script({"tools": [call("count_words", text="a b c")]}, {"text": "three"})
    result = await make(tools=[count_words]).run("how many words in 'a b c'?")
    assert result.text == "three"
    assert result_of(results(fake.requests[1])[0]) == '{"result":3}'
    assert fake.requests[0]["tools"][-1]["name"] == "count_words"  # after the built-in ones
    assert result.usage.tool_calls == 1 and result.usage.model_calls == 2


async def test_a_tool_declared_to_act_outside_is_denied_where_nobody_can_answer(
    fake: FakeModels, make: Any
) -> None:
    """AG-60, AG-63."""
    fake.script({"tools": [call("count_words", text="a")]}, {"text": "ok"})
    result = await make(tools=[Tool(count_words, effect="outside")]).run("go")
    assert "nobody can answer" in result_of(results(fake.requests[1])[0])
    assert result.stop_reason == "completed"


async def test_consecutive_runs_share_the_branch(fake: FakeModels, make: Any, project: Path) -> None:
    """AG-26."""
    agent = make(project)
    fake.script({"tools": [call("write_file", path="n.txt", content="1")]}, {"text": "ok"})
    await agent.run("write")
    fake.script({"tools": [call("read_file", path="n.txt")]}, {"text": "ok"})
    await agent.run("read")
    assert result_of(results(fake.requests[-1])[-1]) == "1"
    assert agent.branch is agent.sandbox
    assert agent.branch.read_overlay("n.txt") == b"1"


async def test_names_of_python_persist_from_run_to_run(fake: FakeModels, make: Any) -> None:
    """TO-24."""
    agent = make()
    fake.script({"tools": [call("run_python_code", code="x = 41")]}, {"text": "ok"})
    await agent.run("set")
    fake.script({"tools": [call("run_python_code", code="x + 1")]}, {"text": "ok"})
    await agent.run("use")
    assert "42" in result_of(results(fake.requests[-1])[-1])


async def test_names_of_python_are_lost_when_the_branch_was_taken_back(fake: FakeModels, make: Any) -> None:
    """SB-44: after a rollback the next call says so."""
    agent = make()
    mark = agent.branch.mark()
    fake.script({"tools": [call("run_python_code", code="x = 41")]}, {"text": "ok"})
    await agent.run("set")
    agent.branch.rollback(mark)
    use = {"tools": [call("run_python_code", code="y = 1")]}
    fake.script(use, {"text": "ok"}, use, {"text": "ok"})
    events = await events_of(agent, "use")
    events += await events_of(agent, "again")
    states = [e.data["state"] for e in events if e.type == "tool_outcome"]
    assert states == ["lost", "kept"]


async def test_a_second_run_on_a_branch_in_use_is_refused_and_forks_do_not_see_each_other(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-26; AG acceptance 11."""
    agent = make(project)
    fake.script({"hang": True})
    first = asyncio.create_task(agent.run("wait"))
    await fake.wait_requests(1)
    with pytest.raises(BranchBusy, match=r"branch=agent\.branch\.fork\(\)"):
        await agent.run("me too")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if results(body):
            return {"text": "ok"}
        return {"tools": [call("write_file", path="mine.txt", content=texts(body)[0])]}

    fake.answer(answer)
    forks = [agent.branch.fork(), agent.branch.fork()]
    both = await asyncio.gather(*(agent.run(f"run {n}", branch=f) for n, f in enumerate(forks)))
    assert [r.branch.read_overlay("mine.txt") for r in both] == [b"run 0", b"run 1"]
    assert agent.branch.changes().record() == {"written": [], "deleted": []}


@pytest.mark.parametrize("landing", ["turn", "step"])
async def test_a_landing_policy_lands_by_itself_and_says_what_it_left(
    fake: FakeModels, make: Any, project: Path, landing: str
) -> None:
    """AG-22, WS-57."""
    written = [call("write_file", path=path, content="1") for path in ("n.txt", "AGENTS.md")]
    fake.script({"tools": written}, {"text": "ok"})
    events = await events_of(make(project, landing=landing), "go")
    notices = [event.text for event in events if event.type == "notice"]
    assert (project / "n.txt").read_text() == "1"
    assert not (project / "AGENTS.md").exists()
    assert any("AGENTS.md" in text for text in notices)


async def test_a_landing_of_many_files_by_policy_says_how_far_it_is(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """Reliability 7: at this door nothing was seen of it until it was over."""
    agent = make(project, landing="turn")
    for number in range(150):
        await agent.branch.write_file(f"dir/{number}.txt", "new")
    seen = threading.Event()
    placed = 0

    def halt(point: str) -> None:
        nonlocal placed
        placed += point.startswith("place")
        if placed == 100:
            assert seen.wait(HANG_S)

    agent.branch._shared.landings.checkpoint = halt
    fake.script({"tools": [call("write_file", path="n.txt", content="1")]}, {"text": "ok"})
    told = []
    async for event in agent.stream("go"):
        if isinstance(event, LandingProgress):
            told.append(event)
            if event.phase == "placing":
                seen.set()
    assert ("land", "placing", 151) in {(each.kind, each.phase, each.total) for each in told}
    assert [each.phase for each in told].index("over") == len(told) - 1
    assert (project / "n.txt").read_text() == "1" and (project / "dir/149.txt").exists()


async def test_a_failed_run_lands_nothing(fake: FakeModels, make: Any, project: Path) -> None:
    """WS-57."""
    fake.script({"tools": [call("write_file", path="n.txt", content="1")]}, {"status": 400})
    result = await make(project, landing="turn").run("go")
    assert result.stop_reason == "model_error" and result.error.type == "ModelError"
    assert not (project / "n.txt").exists()
    assert result.changes.written == ("/n.txt",)


# ---------------------------------------------------------------- ways of running


async def test_stream_ends_with_done_and_its_result(fake: FakeModels, make: Any) -> None:
    """AG-32, AG-20."""
    fake.script({"text": "hello there", "deltas": 3})
    events = await events_of(make(), "hi")
    assert isinstance(events[-1], RunDone) and isinstance(events[-1], Done)
    assert events[-1].type == "done" and events[-1].result.text == "hello there"
    assert [e.type for e in events].count("text_delta") == 3
    iterator: AsyncIterator[Any] = await make(streaming=True).run("hi")
    assert [e.type async for e in iterator][-1] == "done"


def test_run_sync_works_outside_a_loop_and_is_refused_inside(fake: FakeModels) -> None:
    """AG-32."""
    from support.agent_turns import NAME, settings_for

    from bowerbird.models import open_model

    fake.script({"text": "sync"})
    with Agent(language_model=open_model(NAME, settings_for(fake))) as agent:
        assert asyncio.run(_closing(agent)) == "sync"

        async def inside() -> None:
            agent.run_sync("x")

        with pytest.raises(InvalidArgument, match="await agent"):
            asyncio.run(inside())


async def _closing(agent: Agent) -> str:
    result = await agent.run("hi")
    await agent.language_model.aclose()
    return result.text


async def test_closing_the_stream_stops_the_run_and_frees_the_branch(fake: FakeModels, make: Any) -> None:
    """AG-32."""
    agent = make()
    fake.script({"text": "a b c", "deltas": 3, "hang_after": 1})
    stream = agent.stream("hi")
    async for event in stream:
        if event.type == "text_delta":
            break
    await stream.aclose()
    await fake.wait_closed(1)
    fake.script({"text": "again"})
    assert (await agent.run("hi")).text == "again"


async def test_a_branch_that_a_left_stream_holds_names_the_way_out(fake: FakeModels, make: Any) -> None:
    """AG-26, AG-32: it said to fork, of a run that nobody thought of any more."""
    agent = make()
    fake.script({"text": "a b c", "deltas": 3, "hang_after": 1})
    async with aclosing(agent.stream("hi")) as left:
        await anext(left)
        with pytest.raises(BranchBusy, match=r"left before its end .* async with aclosing\(agent\.stream"):
            await agent.run("again")


async def test_steps_show_the_calls_before_they_run_and_take_edited_ones(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-35."""
    fake.script({"tools": [call("read_file", path="a.txt")]}, {"text": "it says beta"})
    agent = make(project, autonomous=False)
    first = await agent.run("what is in a?")
    assert first.stop_reason == "awaiting_tools"
    assert [c["name"] for c in first.pending_calls] == ["read_file"]
    first.messages[-1]["content"][0]["input"]["path"] = "b.txt"
    second = await agent.step(first.messages)
    assert result_of(results(fake.requests[1])[0]).startswith("beta")
    assert (second.stop_reason, second.pending_calls) == ("completed", [])
    assert second.messages[-1]["content"][0]["text"] == "it says beta"
    with pytest.raises(InvalidArgument, match="chat"):
        await agent.run({"data": 1})


async def test_an_agent_without_a_model_says_so(project: Path) -> None:
    """AG-8."""
    with Agent(workdir=project) as agent, pytest.raises(NoModel):
        await agent.run("hi")


async def test_a_deadline_of_one_run(fake: FakeModels, make: Any) -> None:
    """AG-32."""
    fake.script({"hang": True})
    assert (await make().run("hi", deadline_s=0.05)).stop_reason == "deadline"
