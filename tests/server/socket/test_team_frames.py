"""Teams over the socket: the switch, each change of a teammate, its questions (SV-38, SV-41, DE-61)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.children import wrote
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.plain_client import PlainClient
from support.teams import order, play

QUICK = {"teams.poll_s": 0.05, "teams.wake_lead": False}


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, **QUICK) as opened:
        yield opened


async def test_a_plain_client_switches_teams_on_and_sees_each_status(server: LiveServer) -> None:
    """DE-46, DE-61: `teammate_status{name,role,status}`; off shuts living teammates down first."""
    play(server.fake, {"ann": [wrote("ann.txt"), {"text": "there"}]})
    spawn = order(("spawn_teammate", {"name": "ann", "role": "writer", "prompt": "write"}))
    async with PlainClient(server.address) as client:
        conversation = await client.create()
        async with client.chat(conversation) as chat:
            await chat.send({"type": "toggle_teams", "enabled": True})
            await chat.until_done(end="teams_changed")
            assert (await client.get(f"/api/conversations/{conversation}"))["enable_teams"] is True
            await chat.ask(spawn)
            while [e["status"] for e in chat.events if e["type"] == "teammate_status"] != ["working", "idle"]:
                await chat.next()
            shown = [e for e in chat.events if e["type"] == "teammate_status"]
            assert all((e["name"], e["role"]) == ("ann", "writer") for e in shown)
            await chat.send({"type": "toggle_teams", "enabled": False})
            await chat.until_done(end="teams_changed")
            kinds = [(e["type"], e.get("status")) for e in chat.events]
            assert kinds[-2:] == [("teammate_status", "shutdown"), ("teams_changed", None)]
        assert [row["id"] for row in await client.get("/api/conversations")] == [conversation]


async def test_a_teammates_question_is_answered_where_its_lead_is_watched(server: LiveServer) -> None:
    """DE-55: approvals are the session's; the answer reaches the teammate."""
    play(server.fake, {"ann": [wrote("asked.txt"), {"text": "there"}]})
    spawn = order(("spawn_teammate", {"name": "ann", "role": "writer", "prompt": "write"}))
    async with PlainClient(server.address) as client:
        conversation = await client.create(enable_teams=True, enable_approval=True)
        async with client.chat(conversation) as chat:
            await chat.ask(spawn)  # the spawning itself is asked for, too

            def ended() -> bool:
                return any(e["type"] == "teammate_status" and e["status"] == "idle" for e in chat.events)

            answered = sum(e["type"] == "tool_approval_request" for e in chat.events)
            while not ended():
                event = await chat.next()
                if event["type"] == "tool_approval_request":
                    await chat.send({"type": "tool_approval_response", "decision": "approve"})
                    answered += 1
            asked = [e for e in chat.events if e["type"] == "tool_approval_request"]
            tools = [tool["name"] for e in asked for tool in e["tools"]]
            assert tools == ["spawn_teammate", "write_file"] and answered == 2
        branch = await server.sessions.branch(conversation)
        assert branch.changes().written == ("/asked.txt",)
