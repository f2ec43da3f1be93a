"""Runs of `Agent` on real directories, with a real HTTP model (agent chapter, sections 1 to 4)."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import result_of, results, texts
from support.fake_models import FakeModels
from support.sample_tools import Verdict, count_words

from bowerbird.agent.agent import Agent
from bowerbird.agent.result import RunDone, RunResult
from bowerbird.core.errors import BranchBusy, InvalidArgument, NoModel
from bowerbird.core.events import Compaction, Done, ToolOutcome
from bowerbird.models import Model
from bowerbird.tools import Tool


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("alpha\n")
    (root / "b.txt").write_text("beta\n")
    return root


@pytest.fixture
def make(model: Model) -> Iterator[Any]:
    """Make agents that are closed at the end: `make(workdir, **parameters)`."""
    made: list[Agent] = []

    def agent(workdir: Path | None = None, **parameters: Any) -> Agent:
        made.append(Agent(workdir=workdir, language_model=model, **parameters))
        return made[-1]

    yield agent
    for each in made:
        each.close()


async def events_of(agent: Agent, inputs: Any) -> list[Any]:
    async with aclosing(agent.stream(inputs)) as events:
        return [event async for event in events]


def fingerprint(root: Path) -> dict[str, tuple[bytes, int]]:
    found: dict[str, tuple[bytes, int]] = {}
    for base, _dirs, names in os.walk(root):
        for name in names:
            path = Path(base) / name
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


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
    assert result.changes == {"written": ["/c.txt"], "deleted": ["/b.txt"]}
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
    assert agent.branch.changes() == {"written": [], "deleted": []}


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


async def test_a_failed_run_lands_nothing(fake: FakeModels, make: Any, project: Path) -> None:
    """WS-57."""
    fake.script({"tools": [call("write_file", path="n.txt", content="1")]}, {"status": 400})
    result = await make(project, landing="turn").run("go")
    assert result.stop_reason == "model_error" and result.error.type == "ModelError"
    assert not (project / "n.txt").exists()
    assert result.changes["written"] == ["/n.txt"]


# ---------------------------------------------------------------- inputs


async def test_five_megabytes_of_data_make_a_small_request_and_no_change(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-29, AG-30; AG acceptance 13."""
    data = {"text": "ü" * 2_500_000, "rows": list(range(1000)), "none": None}
    fake.script({"tools": [call("read_file", path="inputs.json", limit=2)]}, {"text": "ok"})
    before = fingerprint(project)
    result = await make(project).run(data)
    assert len(str(fake.requests[0]["messages"])) < 10_000
    assert fingerprint(project) == before
    assert result.changes == {"written": [], "deleted": []} and result.branch.unified() == ""
    shown = texts(fake.requests[0])[0]
    assert '"inputs_file":"inputs.json"' in shown and '"size":2500000' in shown
    assert "[0,1,2,3,4]" in shown and '"truncated":true' in shown
    assert result.branch.read_overlay("inputs.json").startswith('{\n  "text": "üü'.encode())
    assert result.inputs is data


async def test_the_inputs_file_takes_the_first_free_name(fake: FakeModels, make: Any, project: Path) -> None:
    """AG-29."""
    (project / "inputs.json").write_text("mine")
    fake.script({"text": "ok"})
    agent = make(project)
    await agent.run({"a": 1})
    await agent.run({"a": 2})
    assert '"inputs_file":"inputs_1.json"' in texts(fake.requests[0])[0]
    assert '"inputs_file":"inputs_2.json"' in texts(fake.requests[1])[0]
    assert (project / "inputs.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"a": [1, {"b": {1, 2}}]}, "inputs['a'][1]['b']"),
        ([float("nan")], "inputs[0]"),
        ({"s": "\ud800"}, "inputs['s']"),
    ],
)
async def test_what_has_no_json_form_is_refused_with_its_path(make: Any, data: Any, path: str) -> None:
    """AG-31."""
    with pytest.raises(InvalidArgument) as refused:
        await make().run(data)
    assert path in str(refused.value)


@pytest.mark.parametrize(
    "chat",
    [
        "hello",
        [{"role": "user", "content": "hello"}],
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]},
    ],
)
async def test_three_forms_of_chat(fake: FakeModels, make: Any, chat: Any) -> None:
    """AG-28."""
    fake.script({"text": "hi"})
    result = await make().run(chat)
    assert texts(fake.requests[0]) == ["hello"]
    assert [m["role"] for m in result.messages] == ["user", "assistant"]


async def test_a_template_gets_its_parts(fake: FakeModels, make: Any) -> None:
    """AG-9, AG-10, AG-14."""
    fake.script({"text": '{"good": true}'})
    agent = make(
        data_model=Verdict,
        prompt_template="IN {inputs} SCHEMA {inputs_schema} OUT {outputs_schema} EX {examples}",
        examples=[{"input": {"a": 1}, "output": {"good": False}}],
    )
    result = await agent.run({"a": 5})
    shown = texts(fake.requests[0])[0]
    assert '"inputs_file"' in shown and '"integer"' in shown and '"good"' in shown and "Examples:" in shown
    assert result.output == Verdict(good=True)


async def test_messages_may_leave_the_inputs_out(fake: FakeModels, make: Any) -> None:
    """AG-18."""
    chat = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    fake.script({"text": "four"})
    whole = await make().run(chat)
    added = await make(return_inputs_with_trajectory=False).run(chat)
    assert [m["content"][0]["text"] for m in whole.messages] == ["one", "two", "three", "four"]
    assert [m["content"][0]["text"] for m in added.messages] == ["four"]
    assert added.inputs == chat


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


# ---------------------------------------------------------------- prompt, records


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
    assert result.changes == {"written": [], "deleted": []}


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
    assert agent.branch.changes() == {"written": [], "deleted": []}


async def test_five_parallel_reads_are_seen_whole_once(fake: FakeModels, make: Any, project: Path) -> None:
    """AG acceptance 4."""
    for n in range(5):
        (project / f"f{n}.txt").write_text(f"{n}" * 200)
    fake.script(
        {"tools": [call("read_file", path=f"f{n}.txt") for n in range(5)]},
        {"tools": [call("read_file", path="a.txt")]},
        {"text": "ok"},
    )
    outcomes = [e for e in await events_of(make(project), "read") if isinstance(e, ToolOutcome)]
    seen = [[len(result_of(r)) >= 200 for r in results(body)] for body in fake.requests]
    assert seen[1] == [True] * 5
    assert seen[2] == [False] * 3 + [True] * 2 + [False]
    assert all(len(str(o.content)) >= 200 for o in outcomes[:5])
