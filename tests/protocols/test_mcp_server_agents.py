"""The three tools over the registry of agents, over HTTP (PT-1 … PT-6, PT-11)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from support.agent_registry import Registry, agents_of, use_agents
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.mcp_clients import ERAS, HEADERS, MODERN, Era, http_client, modern
from support.patience import HANG_S

from bowerbird.core.errors import StoreError

SECRET = "sk-ant-0123456789abcdefghij"


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake) as opened:
        use_agents(opened.serving.application, Registry())
        yield opened


def registry(server: LiveServer) -> Any:
    return agents_of(server.serving.application)


async def called(server: LiveServer, tool: str, era: Era = "auto", **arguments: Any) -> dict[str, Any]:
    """Call a tool; both forms of its result are equal, and only an error is marked as one (PT-1, PT-2)."""
    async with http_client(server, era) as client:
        result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert [json.loads(block.text) for block in result.content] == [result.structured_content]  # type: ignore[union-attr]
    assert result.is_error == (result.structured_content["status"] == "error")
    return result.structured_content


@pytest.mark.parametrize("era", ERAS)
async def test_both_eras_get_the_same_three_results(server: LiveServer, era: Era) -> None:
    """Acceptance 1, PT-1, PT-4, PT-5."""
    ran = await called(server, "execute_agent", era, agent_name="claude", prompt="say hello")
    assert ran == {"status": "success", "content": "hello", "message": None, "session_id": "sess_" + "0" * 24}
    logs = [{"role": "user", "content": "say hello"}, {"role": "assistant", "content": "hello"}]
    memory = await called(server, "get_agent_memory", era, session_id=ran["session_id"])
    assert memory == {"status": "success", "session_id": ran["session_id"], "logs": logs}
    listed = await called(server, "list_agents", era)
    assert (listed["count"], [item["name"] for item in listed["agents"]]) == (2, ["claude", "absent"])
    assert listed["agents"][1] == {
        "name": "absent", "display_name": "Absent", "type": "api", "description": "The agent absent.",
        "capabilities": ["text_completion", "streaming"], "status": "unavailable",
        "detail": "no program at absent", "default_model": "model-1", "transports": ["api"],
    }  # fmt: skip


async def test_errors_have_exactly_these_words(server: LiveServer) -> None:
    """PT-2, PT-3, acceptance 2: lookup comes first and is exact; no secret, no path, no exception."""
    assert await called(server, "execute_agent", agent_name="Claude", prompt="") == {
        "status": "error", "message": "Agent 'Claude' not found.",
    }  # fmt: skip
    failed = await called(
        server, "execute_agent", agent_name="claude", prompt=f"fail key {SECRET} in /srv/x/a.py"
    )
    assert failed == {
        "status": "error",
        "message": "Failed to execute agent claude: key [redacted:key] in a.py",
    }
    blank = await called(server, "execute_agent", agent_name="claude", prompt=" ")
    assert blank["message"].startswith("Failed to execute agent claude: the prompt is blank")
    unknown = await called(server, "execute_agent", agent_name="claude", prompt="x", session_id="sess_no")
    assert unknown["message"] == "Failed to execute agent claude: there is no session sess_no"
    assert (await called(server, "get_agent_memory", session_id="sess_no"))["message"] == (
        "Session sess_no not found."
    )
    raised = await called(server, "execute_agent", agent_name="claude", prompt="raise boom at /srv/secret")
    assert raised["message"].startswith("Failed to execute agent claude: something went wrong in the server")
    assert "boom" not in raised["message"]


async def test_a_store_that_fails_is_told_without_its_words(server: LiveServer) -> None:
    """PT-3."""

    async def broken(session_id: str, *, owner: str) -> None:
        raise StoreError("no such table: /data/agent.db")

    registry(server).memory = broken
    told = await called(server, "get_agent_memory", session_id="sess_1")
    assert told["message"] == (
        "Failed to retrieve memory for sess_1: the database refused the operation; the server's log says why"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("execute_agnt", {}, "Unknown tool: execute_agnt; nearest: execute_agent"),
        ("branch_land", {"thread_id": "a", "snapshot_id": "b"}, "Unknown tool: branch_land"),
        ("execute_agent", {"agent_name": "claude"}, "prompt"),
        ("execute_agent", {"agent_name": 1, "prompt": "x"}, "agent_name"),
        ("list_agents", {"x": 1}, "x"),
    ],
)
async def test_a_wrong_request_is_no_result(
    server: LiveServer, tool: str, arguments: dict[str, Any], words: str
) -> None:
    """PT-2, PT-11, PT-12: invalid params, naming the nearest tool or the argument."""
    async with http_client(server) as client:
        with pytest.raises(MCPError, match=words) as refused:
            await client.session.call_tool(tool, arguments)
    assert refused.value.code == -32602


async def test_secrets_are_masked_in_answers_and_memory(server: LiveServer) -> None:
    """PT-6: one by its form, one because it is configured."""
    ran = await called(
        server, "execute_agent", agent_name="claude", prompt=f"say {SECRET} fake-key-for-tests"
    )
    assert ran["content"] == "[redacted:key] [redacted:secret]"
    memory = await called(server, "get_agent_memory", session_id=ran["session_id"])
    assert SECRET not in json.dumps(memory)


async def test_progress_is_told_to_who_asked(server: LiveServer) -> None:
    """PT-6."""
    heard: list[str | None] = []
    told = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)
        told.set()

    async with http_client(server) as client:
        call = asyncio.create_task(
            client.session.call_tool(
                "execute_agent", {"agent_name": "claude", "prompt": "wait"}, progress_callback=note
            )
        )
        async with asyncio.timeout(HANG_S):
            await told.wait()
        call.cancel()
    assert heard == ["text: thinking about it"]


@pytest.mark.parametrize("how", ["cancel", "disconnect", "legacy disconnect"])
async def test_who_cancels_or_leaves_stops_the_agent(server: LiveServer, how: str) -> None:
    """PT-6: the run is cancelled once, and finishes stopping."""
    agents = registry(server)
    body = modern("tools/call", name="execute_agent", arguments={"agent_name": "claude", "prompt": "wait"})
    headers = {**MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "execute_agent"}
    async with asyncio.timeout(HANG_S):
        if how == "cancel":
            async with http_client(server, "legacy") as client:
                arguments = {"agent_name": "claude", "prompt": "wait"}
                call = asyncio.create_task(client.session.call_tool("execute_agent", arguments))
                await agents.started.wait()
                call.cancel()
                await agents.stopped.wait()
        else:
            if how == "legacy disconnect":
                made = await server.http.post("/mcp", json=initialize(), headers=HEADERS)
                headers = {**HEADERS, "Mcp-Session-Id": made.headers["mcp-session-id"]}
                body["params"].pop("_meta")
            asking = asyncio.create_task(server.http.post("/mcp", json=body, headers=headers))
            await agents.started.wait()
            asking.cancel()
            await agents.stopped.wait()
    assert agents.running == 0


def initialize() -> dict[str, Any]:
    from support.mcp_clients import INITIALIZE

    return INITIALIZE


async def test_four_run_and_two_hundred_callers_are_answered(server: LiveServer) -> None:
    """PT-6, PT-11: 4 running and 30 a minute; all others are told so, and reading goes on meanwhile."""
    agents = registry(server)
    async with http_client(server) as client:
        arguments = {"agent_name": "claude", "prompt": "wait"}
        waiting = [
            asyncio.create_task(client.session.call_tool("execute_agent", arguments)) for _ in range(4)
        ]
        async with asyncio.timeout(HANG_S):
            await agents.four_run.wait()
            many = await asyncio.gather(*(client.call_tool("execute_agent", arguments) for _ in range(50)))
            read = await asyncio.gather(*(client.call_tool("list_agents", {}) for _ in range(150)))
        assert agents.most_running == 4
        messages = {result.structured_content["message"] for result in many if result.structured_content}
        assert messages == {
            "Failed to execute agent claude: 4 runs of agents are under way already; wait for one to end"
        }
        assert all(result.structured_content and result.structured_content["count"] == 2 for result in read)
        for task in waiting:
            task.cancel()


async def test_a_server_without_agents_says_so(tmp_path: Path, fake: FakeModels) -> None:
    """PT-4."""
    async with live_server(tmp_path, fake) as server:
        use_agents(server.serving.application, Registry(()))
        assert await called(server, "list_agents") == {"status": "success", "agents": [], "count": 0}


async def test_hints_and_names_are_those_of_the_chapter(server: LiveServer) -> None:
    """PT-1, PT-5, PT-12: land tools are not offered by default."""
    async with http_client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {name: tool.annotations for name, tool in tools.items()}
    run, listing = hints["execute_agent"], hints["list_agents"]
    assert run is not None
    assert (run.read_only_hint, run.idempotent_hint, run.open_world_hint) == (False, False, True)
    for name in ("list_agents", "get_agent_memory"):
        found = hints[name]
        assert found is not None
        assert (found.read_only_hint, found.idempotent_hint) == (True, True)
    assert listing is not None
    assert all(tool.output_schema for tool in tools.values())
    assert not {"branch_land", "landing_undo"} & set(tools)
