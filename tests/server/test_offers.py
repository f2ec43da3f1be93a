"""What a running server says of tools, traces and queues as turns change them (SV-11, SV-33, SV-47)."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, one, say
from support.mcp_servers import http_server, sdk_server

TIERS = {
    "model_router.enabled": True,
    "model_router.default_tier": "standard",
    "model_router.tiers": {
        "standard": {"name": "anthropic", "model": "claude-sonnet-5"},
        "expert": {"name": "anthropic", "model": "claude-opus-4-5"},
    },
}


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


@pytest.fixture
async def live(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, sandbox__tier="none") as opened:
        yield opened


async def asked(live: LiveServer, conversation: str, text: str) -> dict[str, Any]:
    url = f"/api/conversations/{conversation}/messages?wait=60"
    return dict((await live.http.post(url, json={"content": text})).json())


async def test_tools_of_mcp_servers_are_listed_once_they_are_known(tmp_path: Path, fake: FakeModels) -> None:
    """SV-11: looking starts no server; the first turn does."""
    fake.script({"text": "hello"})
    with http_server(sdk_server()) as address:
        servers = {"demo": {"url": address}}
        async with live_server(tmp_path, fake, sandbox__tier="none", mcp_servers=servers) as live:
            before = [tool["name"] for tool in (await live.http.get("/api/tools")).json()]
            assert not any("demo" in name for name in before)
            conversation = await live.conversation()
            await asked(live, conversation, "hi")
            offered = [tool["name"] for tool in fake.requests[-1]["tools"] if "demo" in tool["name"]]
            assert offered
            for query in ({}, {"conversation": conversation}):
                rows = (await live.http.get("/api/tools", params=query)).json()
                names = [row["name"] for row in rows]
                assert [name for name in names if "demo" in name] == offered
                assert len(names) == len(set(names)) and all(row["description"] for row in rows)


async def test_a_switch_of_the_tier_within_a_turn_leaves_no_gap_in_the_traces(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SV-33, MO-43."""
    fake.script({"tools": [call("switch_model", tier="expert")]}, {"text": "from the expert"})
    tiers = {key.replace(".", "__"): value for key, value in TIERS.items()}
    async with live_server(tmp_path, fake, sandbox__tier="none", **tiers) as live:
        conversation = await live.conversation(enable_tracing=True, model="tier:standard")
        async with live.socket(conversation) as socket:
            await say(socket, "switch")
            seen = await events(socket, "done")
        shown = [event for event in seen if event["type"] in ("llm_request", "llm_response")]
        kept = (await live.http.get(f"/api/conversations/{conversation}/traces")).json()
    assert [event["type"] for event in shown] == ["llm_request", "llm_response"] * 2
    assert [event["seq"] for event in shown] == [1, 1, 2, 2]
    models = [event["model"] for event in shown if event["type"] == "llm_request"]
    assert "sonnet" in models[0] and "opus" in models[1]
    assert [(row["seq"], row["type"]) for row in kept] == [(e["seq"], e["type"]) for e in shown]


async def test_a_replayed_input_has_the_id_it_was_accepted_with(live: LiveServer) -> None:
    """SV-19, SV-47."""
    live.fake.script({"text": "hello"})
    conversation = await live.conversation()
    ids: list[str] = []
    for text in ("first", "second"):
        answer = await asked(live, conversation, text)
        ids.append(answer["inbox_id"])
    async with live.socket(conversation, "v=2&after=0") as socket:
        seen = await events(socket, "done", times=2)
    queued = [event for event in seen if event["type"] == "turn_queued"]
    assert [event["inbox_id"] for event in queued] == ids
    assert [event["content"] for event in queued] == ["first", "second"]
    # From a place between the beginning of the turn and its input, too.
    after = queued[1]["cursor"] - 1
    async with live.socket(conversation, f"v=2&after={after}") as socket:
        assert (await one(socket))["type"] == "hello"
        later = await events(socket, "done")
    assert [e["inbox_id"] for e in later if e["type"] == "turn_queued"] == ids[1:]


@pytest.mark.parametrize("flags", [{}, {"enable_teams": True}, {"enable_plan_mode": True}])
async def test_the_tools_listed_are_the_tools_a_model_is_offered(
    live: LiveServer, fake: FakeModels, flags: dict[str, Any]
) -> None:
    """SV-11, server 7: the tools of subagents and teams were missing from the list."""
    fake.script({"text": "hello"})
    conversation = await live.conversation(**flags)
    await asked(live, conversation, "hi")
    offered = [tool["name"] for tool in fake.requests[0]["tools"]]
    rows = (await live.http.get("/api/tools", params={"conversation": conversation})).json()
    assert [row["name"] for row in rows] == offered


async def test_what_subagents_ask_their_models_is_traced_with_their_conversation(
    live: LiveServer, fake: FakeModels
) -> None:
    """MO-34, server 5: their calls were kept under ids that nobody is told, with numbers of their own."""
    spawn = call(
        "spawn_subagents", tasks=[{"task": "look around", "name": "a"}, {"task": "look", "name": "b"}]
    )

    def answer(body: dict[str, Any], number: int) -> dict[str, Any]:
        return {"tools": [spawn]} if number == 0 else {"text": "done"}

    fake.answer(answer)
    conversation = await live.conversation(enable_tracing=True)
    await asked(live, conversation, "go")
    rows = (await live.http.get(f"/api/conversations/{conversation}/traces")).json()
    requests = [row for row in rows if row["type"] == "llm_request"]
    assert len(requests) == len(fake.requests) >= 4
    assert sorted(row["seq"] for row in requests) == list(range(1, len(requests) + 1))
    assert {row["agent"] for row in requests} == {"main", "sub0", "sub1"}
