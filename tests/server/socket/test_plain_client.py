"""A client written only from SV-6 … SV-18, SV-37, SV-41 works, in every scenario (Must-show 1, acceptance 15)."""

from collections.abc import AsyncIterator

import pytest
from support.live_server import LiveServer
from support.plain_client import PlainClient

WRITE = {"tools": [{"name": "write_file", "input": {"path": "notes/a.txt", "content": "hello"}}]}


@pytest.fixture
async def client(server: LiveServer) -> AsyncIterator[PlainClient]:
    async with PlainClient(server.address) as opened:
        yield opened


async def test_the_rest_surface_without_a_turn(client: PlainClient) -> None:
    """SV-6, SV-8 … SV-14, SV-18."""
    assert (await client.get("/health"))["status"] == "ok"
    conversation = await client.create(title="mine", preset="coding")
    assert [row["id"] for row in await client.get("/api/conversations")] == [conversation]
    shown = await client.get(f"/api/conversations/{conversation}")
    assert (shown["title"], shown["preset"], shown["messages"]) == ("mine", "coding", [])
    assert {"name", "description"} <= (await client.get("/api/tools"))[0].keys()
    assert [row["name"] for row in await client.get("/api/presets")] == ["coding", "work"]
    assert isinstance(await client.get("/api/skills"), list)
    assert await client.get("/api/workspace/files") == []
    assert await client.get("/api/auth/config") == {"enabled": False, "google_client_id": None}
    assert (await client.get("/api/auth/me"))["authenticated"] is True


async def test_files_that_the_agent_wrote_are_listed_and_read(
    server: LiveServer, client: PlainClient
) -> None:
    """SV-14, SV-15, SV-17."""
    server.fake.script(WRITE, {"text": "written"})
    conversation = await client.create()
    async with client.chat(conversation) as chat:
        done = await chat.ask("write")
        assert chat.text == "written"
    assert [row["path"] for row in done["files"]] == ["notes/a.txt"]
    assert [row["path"] for row in await client.get("/api/workspace/files")] == ["notes/a.txt"]
    assert (await client.get("/api/workspace/file/notes/a.txt"))["content"] == "hello"
    download = await client.http.get(f"/api/files/{conversation}/notes/a.txt")
    assert (download.content, download.headers["x-content-type-options"]) == (b"hello", "nosniff")
    messages = (await client.get(f"/api/conversations/{conversation}"))["messages"]
    assert [(m["role"], m["content"]) for m in messages] == [("user", "write"), ("assistant", "written")]
    assert (await client.http.delete(f"/api/conversations/{conversation}")).json() == {"status": "deleted"}


async def test_thinking_tools_approval_and_tracing(server: LiveServer, client: PlainClient) -> None:
    server.fake.script({"thinking": "hm", "text": "first", **WRITE}, {"text": "second"})
    conversation = await client.create(
        enable_thinking=True, thinking_effort="xhigh", enable_approval=True, enable_tracing=True
    )
    async with client.chat(conversation) as chat:
        await chat.ask("go", decision="auto_approve")
        kinds = [event["type"] for event in chat.events]
    assert chat.text == "firstsecond"
    assert kinds.count("llm_request") == kinds.count("llm_response") == 2
    assert kinds.index("tool_call") < kinds.index("tool_approval_request") < kinds.index("tool_result")
    assert next(e for e in chat.events if e["type"] == "thinking_delta")["effort"] == "max"
    assert [e["seq"] for e in chat.events if e["type"] == "llm_request"] == [1, 2]


async def test_interrupt_cancel_and_failure(server: LiveServer, client: PlainClient) -> None:
    server.fake.script(
        {"deltas": 4, "hang_after": 2},
        {"text": "instead"},
        {"deltas": 4, "hang_after": 2},
        {"status": 500, "body": {}},
    )
    conversation = await client.create()
    async with client.chat(conversation) as chat:
        await chat.send({"type": "message", "content": "long"})
        await chat.next()
        await chat.send({"type": "interrupt", "content": "this instead"})
        await chat.until_done(end="interrupted")
        await chat.until_done()
        assert chat.text == "instead"
        await chat.send({"type": "message", "content": "long again"})
        await chat.next()
        await chat.send({"type": "cancel"})
        await chat.until_done()
        await chat.send({"type": "cancel"})
        assert (await chat.next())["type"] == "error"
        await chat.ask("fail")
        assert chat.events[-2]["type"] == "error"


async def test_plan_mode_and_a_retried_call(server: LiveServer, client: PlainClient) -> None:
    """Retries are told to `v=2` only."""
    server.fake.script({"status": 529, "body": {}}, {"text": "the plan"}, {"text": "done as planned"})
    conversation = await client.create(enable_plan_mode=True)
    async with client.chat(conversation) as chat:
        await chat.ask("plan")
        assert chat.events[-2]["plan"] == "the plan"
        await chat.send({"type": "plan_approval", "decision": "approve"})
        await chat.until_done(end="plan_approved")
        while chat.text != "done as planned":
            await chat.until_done()
    assert {"retrying", "turn_started"}.isdisjoint(event["type"] for event in chat.events)
