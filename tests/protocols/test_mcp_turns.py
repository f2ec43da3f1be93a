"""MCP tools in turns: permission, plan mode, approval, questions, taint, the ledger (PT-18 … PT-23)."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from support.agent_turns import NAME, Told, settings_for
from support.fake_models import FakeModels
from support.mcp_servers import noted, raw_spec
from support.patience import HANG_S
from support.sessions import Place, place

import bowerbird
from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.agent.stop import StopSignal
from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.config import load_settings
from bowerbird.core.events import Notice, ToolOutcome, UsageStep
from bowerbird.core.messages import user_text
from bowerbird.models import open_model
from bowerbird.tools import Toolset


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": f"mcp__raw__{name}", "input": arguments}]}


async def turn(fake: FakeModels, client: Any, **options: Any) -> Told:
    """One turn of the loop without a session."""
    model, told = open_model(NAME, settings_for(fake)), Told()
    try:
        given = {"new": (user_text("go"),), "more_tools": client, **options}
        run = TurnRun(model=model, tools=Toolset(), **given)
        async with aclosing(run_turn(run)) as events:
            async for event in events:
                told.events.append(event)
    finally:
        await model.aclose()
    return told


def offered(fake: FakeModels, at: int = 0) -> set[str]:
    return {tool["name"] for tool in fake.requests[at].get("tools", ())}


async def waiting(home: Place, thread: str, count: int = 1) -> list[dict[str, Any]]:
    """The requests of a session, once there are `count`."""

    async def enough() -> bool:
        return len(await home.bodies(thread, "request")) >= count

    await home.until(enough)
    return await home.bodies(thread, "request")


async def test_a_call_asks_first_and_its_result_is_untrusted(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """PT-19, PT-20, acceptance 8: also for a tool that calls itself read-only."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes))
    async with place(
        tmp_path, fake, change=lambda run: msgspec.structs.replace(run, more_tools=client)
    ) as home:
        fake.script(calls("peek"), {"text": "done"})
        thread = await home.session()
        receipt = await home.service.submit(thread, "go")
        [request] = await waiting(home, thread)
        assert [tool["name"] for tool in request["tools"]] == ["mcp__raw__peek"]
        assert noted(notes, "called") == []
        await home.service.answer(request["id"], "approve")
        ended = await home.service.wait(receipt.turn_id)
        assert (ended.state, noted(notes, "called")) == ("done", ["peek"])
        [outcome] = await home.bodies(thread, "tool_outcome")
        assert outcome["status"] == "ok" and outcome["tainted"] is True
        assert "untrusted_content" in json.dumps(outcome["content"])


@pytest.mark.parametrize("trusted", [False, True])
async def test_plan_mode_refuses_all_but_what_a_trusted_server_only_reads_with(
    connect: Any, fake: FakeModels, tmp_path: Path, trusted: bool
) -> None:
    """Refused where it would run; what is offered stays as it is in any mode."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes, trusted=trusted, approval="allow"))
    fake.script({"tools": [calls("peek")["tools"][0], calls("zulu")["tools"][0]]}, {"text": "plan"})
    told = await turn(fake, client, mode="plan")
    peek, zulu = sorted(told.outcomes, key=lambda outcome: outcome.tool)
    assert (peek.status, zulu.status) == ("ok" if trusted else "denied", "denied")
    assert noted(notes, "called") == (["peek"] if trusted else [])
    assert {"mcp__raw__peek", "mcp__raw__zulu"} <= offered(fake)


async def test_where_nobody_can_be_asked_the_call_is_denied(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """AG-63, PT-20."""
    notes = tmp_path / "notes"
    fake.script(calls("zulu"), {"text": "done"})
    told = await turn(fake, await connect(raw_spec(notes)))
    assert [o.status for o in told.outcomes] == ["denied"] and noted(notes, "called") == []


async def test_rules_speak_of_servers_and_a_denied_tool_is_explained(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """AG-60 for MCP tools; `approval: deny` of PT-20."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes, approval={"put": "deny"}))
    fake.script(
        {"tools": [calls(n)["tools"][0] for n in ("zulu", "peek")] + calls("put", text="x")["tools"]},
        {"text": "ok"},
    )
    policy = Policy.of({"allow": ["mcp__raw__*"], "deny": ["mcp__*__peek"]})
    told = await turn(fake, client, policy=policy)
    by = {outcome.tool: outcome for outcome in told.outcomes}
    assert by["mcp__raw__zulu"].status == "ok" and by["mcp__raw__peek"].status == "denied"
    assert by["mcp__raw__put"].status == "error" and "mcp_servers.raw.approval" in str(
        by["mcp__raw__put"].content
    )
    assert noted(notes, "called") == ["zulu"]


async def test_a_server_left_out_is_told_once_in_its_turn(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """PT-18: one warning event, and the turn goes on."""
    client = await connect(raw_spec(tmp_path / "notes", command="no-such-program-here"))
    fake.script({"text": "hello"})
    told = await turn(fake, client)
    [notice] = told.of(Notice)
    assert "MCP server raw is left out of this turn" in notice.text and told.done.text == "hello"


async def test_a_turn_that_waits_for_a_server_can_be_stopped(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """AG-45 while PT-18 waits: no request was made, and the wait was cut short."""
    stop = StopSignal()
    client = await connect(raw_spec(tmp_path / "notes", "hang", start_timeout_s=60.0))
    running = asyncio.create_task(turn(fake, client, stop=stop))
    async with asyncio.timeout(HANG_S):
        while not noted(tmp_path / "notes", "started"):
            await asyncio.sleep(0.01)
        stop.set("cancelled")
        told = await running
    assert told.done.stop_reason == "cancelled" and fake.request_count == 0


async def test_the_ledger_knows_what_may_be_repeated(connect: Any, fake: FakeModels, tmp_path: Path) -> None:
    """SE-25, TO-7, PT-20: external by default, keyed and read only by a trusted server's word."""
    trusted = raw_spec(tmp_path / "a", name="a", trusted=True, approval="allow")
    other = raw_spec(tmp_path / "b", name="b", approval="allow")
    client = await connect(trusted, other)
    async with place(
        tmp_path, fake, change=lambda run: msgspec.structs.replace(run, more_tools=client)
    ) as home:
        names = ["mcp__a__put", "mcp__a__peek", "mcp__a__zulu", "mcp__b__put", "mcp__b__peek"]
        given = [{"name": n, "input": {"text": "x"} if n.endswith("put") else {}} for n in names]
        fake.script({"tools": given}, {"text": "done"})
        thread = await home.session()
        assert (await home.ask(thread)).state == "done"
        rows = await home.store.read(lambda c: c.execute(text("SELECT tool, class FROM effects")).all())
        assert dict(map(tuple, rows)) == dict(
            zip(names, ["keyed", "read", "external", "external", "external"], strict=True)
        )


async def test_a_question_of_a_server_is_a_request_that_any_door_answers(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    """PT-23."""
    client = await connect(raw_spec(tmp_path / "notes", approval="allow"))
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    async with place(
        tmp_path, fake, change=lambda run: msgspec.structs.replace(run, more_tools=client)
    ) as home:
        fake.script(calls("ask", schema=schema), {"text": "done"})
        thread = await home.session()
        receipt = await home.service.submit(thread, "go")
        [request] = await waiting(home, thread)
        assert request["kind"] == "user" and "Which colour?" in request["text"]
        await home.service.answer(request["id"], "red")
        assert (await home.service.wait(receipt.turn_id)).state == "done"
        [outcome] = await home.bodies(thread, "tool_outcome")
        assert '"colour": "red"' in outcome["content"][0]["text"]
        assert [answer["decision"] for answer in await home.bodies(thread, "answer")] == ["red"]


class Nobody:
    """A person who never answers; the door's own time limit is over at once."""

    async def ask(self, request: Any) -> None:
        return None


async def test_an_unanswered_question_is_closed_and_the_call_goes_on(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    client = await connect(raw_spec(tmp_path / "notes", approval="allow"))
    fake.script(calls("ask"), {"text": "done"})
    told = await turn(fake, client, approver=Nobody())
    assert told.done.stop_reason == "completed"
    assert [e.decision for e in told.events if e.type == "answer"] == ["deny"]
    assert '"action": "decline"' in str(told.outcomes[0].content)


async def test_a_server_that_dies_while_a_person_thinks_ends_the_question(
    connect: Any, fake: FakeModels, tmp_path: Path
) -> None:
    class Killer:
        async def ask(self, request: Any) -> None:
            fine = next(tool for tool in (await client.gather()).tools if tool.name == "mcp__raw__die")
            await fine.call({}, bowerbird.tools.ToolContext())
            await asyncio.Event().wait()

    client = await connect(raw_spec(tmp_path / "notes", approval="allow"))
    fake.script(calls("ask"), {"text": "done"})
    told = await turn(fake, client, approver=Killer())
    assert told.done.stop_reason == "completed" and told.outcomes[0].status == "error"
    assert [e.decision for e in told.events if e.type == "answer"] == ["deny"]


@pytest.mark.parametrize(("tokens", "allowed"), [(200_000, True), (4_950, False)])
async def test_sampling_counts_to_the_turn(
    connect: Any, fake: FakeModels, tmp_path: Path, tokens: int, allowed: bool
) -> None:
    """PT-23: only with `sampling: true`, and within the budget."""
    client = await connect(raw_spec(tmp_path / "notes", approval="allow", sampling=True))
    fake.script(
        {**calls("think"), "usage": {"input_tokens": 4_900, "output_tokens": 40}},
        {"text": "hi there"} if allowed else {"text": "done"},
        {"text": "done"},
    )
    told = await turn(fake, client, limits=Limits(max_tokens_total=tokens, max_output_tokens=60))
    [outcome] = told.of(ToolOutcome)
    said = str(outcome.content)
    if allowed:
        assert '"text": "hi there"' in said and fake.requests[1]["messages"][0]["content"] != "go"
        [used] = told.of(UsageStep)
        assert used.purpose == "tool" and told.done.usage.model_calls == 3
        assert told.events.index(used) < told.events.index(outcome)
    else:
        assert "token budget" in said and not told.of(UsageStep)


async def test_the_factory_offers_mcp_tools_and_gives_their_client(fake: FakeModels, tmp_path: Path) -> None:
    """AG-68, AG-70: from settings to a call; closing the checkpointer ends the server."""
    notes = tmp_path / "notes"
    spec = raw_spec(notes)
    entry = {"command": spec.command, "args": list(spec.args), "approval": "allow", "start_timeout": 30}
    given = {
        "agent.data_dir": str(tmp_path / "data"), "agent.workspace": str(tmp_path / "workspace"),
        "provider.model": "claude-sonnet-4-5", "provider.api_key": "k", "provider.base_url": fake.anthropic_url,
        "mcp_servers": {"raw": entry},
    }  # fmt: skip
    settings = load_settings(given, env={}, cwd=tmp_path, home=tmp_path).settings
    agent, checkpointer, client = await bowerbird.create_agent(settings)
    try:
        assert client is not None and not notes.exists()
        fake.script(calls("echo", text="over here"), {"text": "done"})
        answer = await agent.ainvoke(
            {"messages": [{"role": "user", "content": "go"}]}, {"configurable": {"thread_id": "t_1"}}
        )
        assert answer["messages"][-1]["content"] == [{"type": "text", "text": "done"}]
        assert "mcp__raw__echo" in offered(fake) and noted(notes, "called") == ["echo"]
    finally:
        await checkpointer.aclose()
    assert noted(notes, "ended") == ["stdin"]
    await client.aclose()
    await client.aclose()
