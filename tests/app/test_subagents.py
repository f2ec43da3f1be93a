"""Subagents of sessions: durable children, killed and resumed, their use and their records (DE-4, DE-18, SE-57)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.agent_turns import call, result_of, results
from support.children import last_result, play, requests_of, said, wrote
from support.fake_models import FakeModels
from support.killed_app import application, killed_turn
from support.patience import HANG_S, patience

from bowerbird.app import Application
from bowerbird.core.errors import UnknownSession
from bowerbird.core.events import SubagentEnd, SubagentStart
from bowerbird.sessions import NewSession
from bowerbird.sessions.subagents.runner import Children

MODEL = "anthropic:claude-sonnet-4-5"
LEAD = "the turn that is killed"  # what `killed_turn` says


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


def flags_for(fake: FakeModels, **more: Any) -> dict[str, Any]:
    # Files and checks only: what processes do is tested elsewhere, and a probe per process costs time.
    return {
        "provider.api_key": "k", "provider.base_url": fake.anthropic_url, "dispatch.lease_s": 2,
        "dispatch.heartbeat_s": 0.6, **more,
    }  # fmt: skip


async def new_thread(opened: Application, directory: Path, **new: Any) -> str:
    made = await opened.sessions.create(NewSession(workspace=str(directory / "project"), **new))
    return made.thread_id


async def ask(opened: Application, thread: str, text: str) -> Any:
    await opened.drive(thread)
    receipt = await opened.sessions.submit(thread, text)
    async with asyncio.timeout(HANG_S):
        return await opened.sessions.wait(receipt.turn_id)


async def resumed(opened: Application, thread: str) -> Any:
    """Go on with the turn that died, whose lease its dead process may still hold for a while."""
    await opened.drive(thread)
    async with asyncio.timeout(HANG_S):
        while True:
            turn = (await opened.sessions.turns(thread))[-1]
            if turn.state in ("done", "failed"):
                return turn
            await asyncio.sleep(0.05)


async def outcome_of(opened: Application, thread: str, tool: str) -> dict[str, Any]:
    records = await opened.sessions.history(thread)
    calls = {r.body["call"] for r in records if r.type == "tool_intent" and r.body["tool"] == tool}
    found = [r.body for r in records if r.type == "tool_outcome" and r.body["call"] in calls]
    return found[-1]


async def test_children_are_sessions_of_their_own_and_merge_in_a_later_turn(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-4, DE-17, SE-1; DE acceptance 2 without a kill: made in turn 1, merged in turn 3 of another process."""
    play(fake, {
        "make": [{"tools": [call("spawn_subagents", tasks=["paint red", "paint blue"])]}, {"text": "made"}],
        "red": [wrote("red.txt"), {"text": "red is there"}],
        "blue": [wrote("blue.txt"), {"text": "blue is there"}],
    })  # fmt: skip
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
        heard: list[Any] = []
        with opened.sessions.subscribe(thread) as news:
            turn = await ask(opened, thread, "make them")
            async for published in news:
                heard.append(published.event)
                if getattr(published.event, "has_stopped", False):
                    break
        assert turn.state == "done" and turn.usage["subagents"]["model_calls"] == 4
        assert turn.usage["model_calls"] == 6
        starts = [e for e in heard if isinstance(e, SubagentStart)]
        ends = [e for e in heard if isinstance(e, SubagentEnd)]
        assert {e.subagent_id for e in starts} == {f"{thread}.sub0", f"{thread}.sub1"}
        assert {e.summary for e in ends} == {"red is there", "blue is there"}
        child = await opened.sessions.get(f"{thread}.sub0")
        assert child.kind == "subagent" and child.workspace == str(tmp_path / "project")
        types = [record.type for record in await opened.sessions.history(f"{thread}.sub0")]
        assert types[0] == "turn_started" and types[-1] == "turn_ended" and "tool_outcome" in types
        assert [s.thread_id for s in await opened.sessions.list()] == [thread]
        play(fake, {"look": [{"tools": [call("read_subagent", handle="subagent_0")]}, {"text": "seen"}]})
    # Every turn is told the whole dialogue: the newest question decides.
    steps = {
        "look": [call("read_subagent", handle="subagent_0")],
        "merge": [call("merge_subagent", handle="subagent_0"), call("discard_subagent", handle="subagent_1")],
    }
    fake.answer(lambda body, _n: newest(body, steps))
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        await ask(opened, thread, "look at it")
        shown = await outcome_of(opened, thread, "read_subagent")
        assert "+x" in shown["data"]["patch"]
        await ask(opened, thread, "merge one")
        merged = await outcome_of(opened, thread, "merge_subagent")
        assert merged["data"]["written"] == ["/red.txt"]
        branch = await opened.sessions.branch(thread)
        assert branch.changes().record() == {"written": ["/red.txt"], "deleted": []}
        children = await opened.sessions.part(Children).records.of(thread)
        assert [child.state for child in children] == ["merged", "discarded"]
        assert list(children[0].record()) == [
            "handle", "session", "parent_branch", "fork", "snapshot", "task", "agent_type", "model", "state", "result",
            "error", "usage", "depth", "created", "ended", "agent",
        ]  # fmt: skip
        assert not (opened.data_dir / "branches" / children[1].fork).exists()


def newest(body: dict[str, Any], steps: dict[str, list[Any]]) -> dict[str, Any]:
    message = body["messages"][-1]
    if results({"messages": [message]}):
        return {"text": "done"}
    text = json.dumps(message["content"])
    return {"tools": next(tools for word, tools in steps.items() if word in text)}


async def test_a_killed_parent_finds_its_children_finished_or_goes_on_with_them(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-18, SE-57; issue 5, must-show 2: nothing is run twice, one result reaches the caller."""
    silent = {"now": True}

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        if "quick" in said(body):
            return [wrote("quick.txt"), {"text": "quick is done"}][rounds]
        if "slow" in said(body):
            step = [wrote("slow.txt"), {"text": "slow is done"}][rounds]
            return {"hang": True} if rounds == 1 and silent["now"] else step
        return [
            {"tools": [call("spawn_subagents", tasks=["a quick one", "a slow one"])]}, {"text": "all done"}
        ][rounds]  # fmt: skip

    fake.answer(answer)
    flags = flags_for(fake)
    async with application(tmp_path, flags, MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
    await killed_turn(fake, tmp_path, flags, MODEL, thread, requests=5)
    silent["now"] = False
    async with application(tmp_path, flags, MODEL) as opened:
        turn = await resumed(opened, thread)
        assert turn.state == "done", turn.error
        entries = (await outcome_of(opened, thread, "spawn_subagents"))["data"]["subagents"]
        assert [entry["result"] for entry in entries] == ["quick is done", "slow is done"]
        assert [entry["handle"] for entry in entries] == ["subagent_0", "subagent_1"]
        # 5 requests before the kill; then the caller's and the slow one's last, and the quick one's if its
        # answer was not committed yet.
        assert 7 <= fake.request_count <= 8
        for number in (0, 1):
            written = [
                r for r in await opened.sessions.history(f"{thread}.sub{number}")
                if r.type == "tool_outcome"
            ]  # fmt: skip
            assert len(written) == 1
        assert turn.usage["subagents"]["model_calls"] >= 4
        assert len(await opened.sessions.part(Children).records.of(thread)) == 2


async def test_a_handle_merges_after_its_server_was_killed(fake: FakeModels, tmp_path: Path) -> None:
    """DE acceptance 2: kill -9 between the turns, handles and forks are there."""

    silent = {"now": True}

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if "small job" in said(body):
            return {"text": "made"} if results(body) else wrote("made.txt")
        last = json.dumps(body["messages"][-1]["content"])
        if "tool_result" in last:
            # The spawn is committed; the process dies while the model thinks about it.
            return {"hang": True} if silent["now"] else {"text": "went on"}
        if "merge" in last:
            return {"tools": [call("merge_subagent", handle="subagent_0")]}
        return {"tools": [call("spawn_subagents", tasks=["small job"])]}

    fake.answer(answer)
    flags = flags_for(fake)
    async with application(tmp_path, flags, MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
    await killed_turn(fake, tmp_path, flags, MODEL, thread, requests=4)
    silent["now"] = False
    async with application(tmp_path, flags, MODEL) as opened:
        turn = await resumed(opened, thread)
        assert turn.state == "done" and turn.usage["subagents"]["model_calls"] == 2
        await ask(opened, thread, "merge it")
        assert (await outcome_of(opened, thread, "merge_subagent"))["data"]["written"] == ["/made.txt"]


async def test_cancelling_a_turn_cancels_its_children_and_says_so(fake: FakeModels, tmp_path: Path) -> None:
    """DE-18: streams closed, forks readable, the record names the reason."""
    play(fake, {
        "slow": [wrote("early.txt"), {"hang": True}],
        "lead": [{"tools": [call("spawn_subagents", tasks=["slow", "slow"])]}, {"text": "never"}],
    })  # fmt: skip
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
        await opened.drive(thread)
        receipt = await opened.sessions.submit(thread, "lead")
        await fake.wait_requests(5)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await opened.sessions.cancel(thread)
        turn = await opened.sessions.wait(receipt.turn_id)
        assert turn.state == "cancelled" and loop.time() - started < patience(2)
        await fake.wait_closed(2)
        children = await settled(opened, thread)
        assert [child.state for child in children] == ["failed", "failed"]
        assert all(child.error.startswith("cancelled") for child in children)
        fork = await opened.sessions.branch(f"{thread}.sub0")
        assert fork.changes().written == ("/early.txt",)


async def settled(opened: Application, thread: str) -> Any:
    async with asyncio.timeout(HANG_S):
        while True:
            children = await opened.sessions.part(Children).records.of(thread)
            if all(child.state != "running" for child in children):
                return children
            await asyncio.sleep(0.02)


async def test_a_shut_down_process_leaves_its_children_to_the_next(fake: FakeModels, tmp_path: Path) -> None:
    """SE-34 for subagents: stopping a server is no cancel."""
    silent = {"now": True}

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if "slow" in said(body):
            return {"hang": True} if silent["now"] else {"text": "done at last"}
        return (
            {"text": last_result(body)}
            if results(body)
            else {"tools": [call("spawn_subagents", tasks=["slow"])]}
        )

    fake.answer(answer)
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
        await opened.drive(thread)
        await opened.sessions.submit(thread, "lead")
        await fake.wait_requests(2)
    silent["now"] = False
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        turn = await resumed(opened, thread)
        assert turn.state == "done"
        entries = (await outcome_of(opened, thread, "spawn_subagents"))["data"]["subagents"]
        assert entries[0].get("result") == "done at last", entries


async def test_types_and_plan_mode_hold_in_sessions(fake: FakeModels, tmp_path: Path) -> None:
    """DE-14, AG-64 where the tool runs, in a child of a session."""
    play(fake, {
        "small": [wrote("made.txt"), {"text": "looked"}],
        "lead": [{"tools": [call("task", description="d", prompt="small", agent_type="explore")]}, {"text": "the plan"}],
    })  # fmt: skip
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        thread = await new_thread(opened, tmp_path, flags={"enable_plan_mode": True})
        turn = await ask(opened, thread, "lead")
        assert turn.waiting_for == "plan"
        denied = results(requests_of(fake, "small")[1])[0]
        assert "not among the tools of this role" in result_of(denied)
        assert (await outcome_of(opened, thread, "task"))["content"] in (
            "looked",
            [{"type": "text", "text": "looked"}],
        )
        (child,) = await opened.sessions.part(Children).records.of(thread)
        assert child.state == "discarded" and msgspec.to_builtins(child.usage)["model_calls"] == 2


async def test_a_money_limit_of_a_session_counts_its_children(fake: FakeModels, tmp_path: Path) -> None:
    """SE-42, SE acceptance 9: eight subagents under one limit never use more than it."""
    use = {"input": 10_000, "output": 100}
    play(fake, {
        "small": [{"text": "ok", "usage": use, "ttft_s": 0.05}],
        "lead": [{"tools": [call("spawn_subagents", tasks=["small"] * 8)]}, {"text": "done"}],
    })  # fmt: skip
    flags = flags_for(fake, **{"budgets.session_usd": 0.5, "agent.max_output_tokens": 2_000})
    async with application(tmp_path, flags, MODEL) as opened:
        opened.maker._attended = False
        thread = await new_thread(opened, tmp_path)
        await ask(opened, thread, "lead")
        info = await opened.sessions.get(thread)
        assert info.cost is not None and info.cost <= 0.5


async def test_a_killed_tournament_repeats_no_finished_attempt(fake: FakeModels, tmp_path: Path) -> None:
    """DE acceptance 6, DE-26: killed while checks run; the attempts are taken from the record."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        if "improve" in said(body):
            name = "good.txt" if "_sub0." in json.dumps(body["system"]) else "bad.txt"
            return [wrote(name), {"text": "done"}][rounds]
        tournament = call(
            "run_tournament", task="improve it", attempts=2, merge="best",
            checks=["test -e good.txt && sleep 1.5; test -e good.txt"],
        )  # fmt: skip
        return [{"tools": [tournament]}, {"text": "all done"}][rounds]

    fake.answer(answer)
    flags = flags_for(fake)
    async with application(tmp_path, flags, MODEL) as opened:
        if (await opened.sandboxes.status()).tier == "none":
            pytest.skip("no commands can run here")
        thread = await new_thread(opened, tmp_path)
    # The fifth request is an attempt's last; its checks have not ended when the process dies.
    await killed_turn(fake, tmp_path, flags, MODEL, thread, requests=5)
    before = fake.request_count
    async with application(tmp_path, flags, MODEL) as opened:
        turn = await resumed(opened, thread)
        assert turn.state == "done", turn.error
        result = (await outcome_of(opened, thread, "run_tournament"))["data"]
        assert result["winner"] == "subagent_0" and result["merge"]["written"] == ["/good.txt"]
        assert len(await opened.sessions.part(Children).records.of(thread)) == 2
        branch = await opened.sessions.branch(thread)
        assert branch.changes().written == ("/good.txt",)
    # The caller's last, and at most the two answers that were not committed when it died.
    assert fake.request_count - before <= 3


async def test_deleting_a_session_deletes_its_subagents(fake: FakeModels, tmp_path: Path) -> None:
    """DE-4: handles end with their session."""
    play(fake, {"make": [{"tools": [call("spawn_subagents", tasks=["small"])]}, {"text": "made"}],
                "small": [wrote("x"), {"text": "ok"}]})  # fmt: skip
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
        await ask(opened, thread, "make one")
        await opened.sessions.delete(thread)
        with pytest.raises(UnknownSession):
            await opened.sessions.get(f"{thread}.sub0")
