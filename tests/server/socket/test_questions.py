"""Approvals and plans over a socket (SV-37 … SV-39, SV-46, SV-63)."""

import json

from support.live_server import LiveServer, events, one, say, text_of, types

WRITE = {"tools": [{"name": "write_file", "input": {"path": "a.txt", "content": "x"}}]}


async def answer(socket: object, decision: str, **more: object) -> None:
    await socket.send(json.dumps({"type": "tool_approval_response", "decision": decision, **more}))  # type: ignore[attr-defined]


async def asked(server: LiveServer) -> str:
    return await server.conversation(enable_approval=True)


async def test_an_answer_before_any_question_approves_nothing(server: LiveServer) -> None:
    """Acceptance 6, SV-39."""
    server.fake.script(WRITE, {"text": "done"})
    conversation = await asked(server)
    async with server.socket(conversation) as socket:
        await answer(socket, "approve")
        assert (await one(socket))["code"] == "no_pending_request"
        await say(socket, "write")
        seen = await events(socket, "tool_approval_request")
        request = seen[-1]
        assert [tool["name"] for tool in request["tools"]] == ["write_file"]
        assert request["request_id"].startswith("r_")
        assert request["expires_at"]
        await answer(socket, "deny", request_id=request["request_id"])
        seen = await events(socket, "done")
    result = next(e for e in seen if e["type"] == "tool_approval_result")
    assert result["decision"] == "denied"
    assert [tool["name"] for tool in result["tools"]] == ["write_file"]
    assert next(e for e in seen if e["type"] == "tool_result")["status"] == "denied"


async def test_auto_approval_holds_in_its_own_conversation_only(server: LiveServer) -> None:
    """Acceptance 6."""
    server.fake.script(WRITE, {"text": "one"}, WRITE, {"text": "two"}, WRITE, {"text": "three"})
    first, second = await asked(server), await asked(server)
    async with server.socket(first) as socket:
        await say(socket, "write")
        await events(socket, "tool_approval_request")
        await answer(socket, "auto_approve")
        seen = await events(socket, "done")
        assert next(e for e in seen if e["type"] == "tool_approval_result")["decision"] == "auto_approved"
        await say(socket, "write again")
        assert "tool_approval_request" not in types(await events(socket, "done"))
    async with server.socket(second) as socket:
        await say(socket, "write")
        await events(socket, "tool_approval_request")
        await answer(socket, "approve")
        seen = await events(socket, "done")
    assert next(e for e in seen if e["type"] == "tool_approval_result")["decision"] == "approved"


async def test_a_viewer_that_comes_later_is_asked_too(server: LiveServer) -> None:
    """SV-46, SV-47."""
    server.fake.script(WRITE, {"text": "done"})
    conversation = await asked(server)
    async with server.socket(conversation, "on_disconnect=continue") as first:
        await say(first, "write")
        request = (await events(first, "tool_approval_request"))[-1]
    async with server.socket(conversation) as second:
        again = await one(second)
        assert again["type"] == "tool_approval_request"
        assert again["request_id"] == request["request_id"]
        await answer(second, "approve")
        seen = await events(second, "done")
        assert text_of(seen) == "done"
        await answer(second, "approve", request_id=request["request_id"])
        assert (await one(second))["type"] == "error"


async def test_a_plan_is_rejected_revised_and_carried_out(server: LiveServer) -> None:
    """SV-38, SV-63."""
    server.fake.script({"text": "plan one"}, {"text": "plan two"}, {"text": "carried out"})
    conversation = await server.conversation(enable_plan_mode=True)
    async with server.socket(conversation) as socket:
        await say(socket, "plan it")
        seen = await events(socket, "done")
        assert types(seen)[-2:] == ["plan_ready", "done"]
        assert seen[-2]["plan"] == "plan one"
        assert (seen[-1]["stop_reason"], seen[-1]["usage"]["plan_mode"]) == ("plan", True)
        await answer(socket, "approve")  # of a tool: no plan is approved by it
        assert (await one(socket))["code"] == "no_pending_request"
        await socket.send('{"type": "plan_approval", "decision": "reject", "feedback": "shorter"}')
        seen = await events(socket, "plan_rejected")
        assert seen[-1]["feedback"] == "shorter"
        seen = await events(socket, "plan_ready")
        assert seen[-1]["plan"] == "plan two"
        await events(socket, "done")
        await socket.send('{"type": "plan_approval", "decision": "approve"}')
        seen = await events(socket, "plan_approved")
        while text_of(seen) != "carried out":
            seen += await events(socket, "done")
    assert seen[-1]["usage"]["plan_mode"] is False


async def test_single_calls_are_answered_and_what_makes_no_sense_changes_nothing(server: LiveServer) -> None:
    """UI-71: one runs edited, one does not run; every viewer is told which."""
    calls = [{"name": "bash", "input": {"command": f"echo {word}"}} for word in ("first", "second")]
    server.fake.script({"tools": calls}, {"text": "done"})
    async with server.socket(await asked(server)) as socket:
        await say(socket, "go")
        request = (await events(socket, "tool_approval_request"))[-1]
        first, second = (tool["id"] for tool in request["tools"])
        wrong = [
            {"calls": {"nobody": {"decision": "approve"}}},
            {"calls": {first: {"decision": "deny", "command": "ls"}}},
            {"calls": {first: {"decision": "approve", "command": " "}}},
        ]
        for more in wrong:
            await answer(socket, "approve", request_id=request["request_id"], **more)
            assert (await one(socket))["type"] == "error"
        said = {first: {"decision": "approve", "command": "echo edited"}, second: {"decision": "deny"}}
        await answer(socket, "approve", request_id=request["request_id"], calls=said)
        seen = await events(socket, "done")
    assert next(e for e in seen if e["type"] == "tool_approval_result")["calls"] == said
    results = {e["id"]: e for e in seen if e["type"] == "tool_result"}
    assert results[second]["status"] == "denied" and "echo edited" in str(results[first])
