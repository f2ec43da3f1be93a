"""Turns over a socket: what comes, in which order, and what stops them (SV-37, SV-41 … SV-48)."""

import asyncio
import json

from support.live_server import LiveServer, events, one, say, text_of, types
from support.patience import patience


async def test_a_message_is_answered_in_pieces_and_done(server: LiveServer) -> None:
    """SV-37, SV-41."""
    server.fake.script({"text": "hello there friend", "deltas": 3})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "hi")
        seen = await events(socket, "done")
    # Pieces that come together may be sent as one.
    assert set(types(seen)[:-1]) == {"text_delta"} and types(seen)[-1] == "done"
    assert text_of(seen) == "hello there friend"
    done = seen[-1]
    assert done["stop_reason"] == "end_turn"
    assert done["usage"]["output_tokens"] > 0
    assert done["files"] == []
    assert [event["cursor"] for event in seen] == sorted(event["cursor"] for event in seen)


async def test_the_events_of_a_step_come_in_the_order_of_the_chapter(server: LiveServer) -> None:
    """SV-44: the batch's calls in the model's order, then results, then the next model call."""
    calls = [{"name": "write_file", "input": {"path": f"{n}.txt", "content": n}} for n in ("a", "b")]
    server.fake.script({"text": "first", "thinking": "hm", "tools": calls}, {"text": "all done"})
    conversation = await server.conversation(enable_thinking=True)
    async with server.socket(conversation) as socket:
        await say(socket, "write two files")
        seen = await events(socket, "done")
    names = types(seen)
    assert names.index("text_delta") < names.index("tool_call")
    assert [e["id"] for e in seen if e["type"] == "tool_call"] == sorted(
        (e["id"] for e in seen if e["type"] == "tool_call"),
        key=[e["id"] for e in seen if e["type"] == "tool_call"].index,
    )
    assert [e["tool"] for e in seen if e["type"] == "tool_result"] == ["write_file"] * 2
    last_call = len(names) - 1 - names[::-1].index("tool_call")
    assert last_call < names.index("tool_result") < len(names) - 2
    assert "thinking_delta" in names
    assert names.count("done") == 1
    done = seen[-1]
    assert [row["path"] for row in done["files"]] == ["a.txt", "b.txt"]
    assert done["files"][0] == {"name": "a.txt", "path": "a.txt", "size": 1}
    assert done["changed"] == 2


async def test_git_s_own_files_are_none_of_a_branch(server: LiveServer) -> None:
    """SV-42: a repository's thousand objects would be all of the list."""
    command = (
        "git init -q && echo 1 > a.txt && git add a.txt && git -c user.name=a -c user.email=a commit -qm a"
    )
    server.fake.script(
        {"tools": [{"name": "bash", "input": {"command": command}}]}, {"text": "done"}, {"text": "again"}
    )
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        for word in ("commit", "and now?"):
            await say(socket, word)
            done = (await events(socket, "done"))[-1]
            assert [row["path"] for row in done["files"]] == ["a.txt"]


async def test_messages_sent_during_a_turn_are_answered_in_order(server: LiveServer) -> None:
    """SV-47, acceptance 4."""
    server.fake.answer(lambda body, n: {"text": f"answer {n}", "ttft_s": 0.2 if n == 0 else 0})
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        await say(socket, "one")
        await events(socket, "turn_started")
        for word in ("two", "three", "four"):
            await say(socket, word)
        seen = await events(socket, "done", times=4)
    assert [text for text in text_of(seen).split("\n") if text] == [f"answer {n}" for n in range(4)]
    queued = [e for e in seen if e["type"] == "turn_queued"]
    assert [e["content"] for e in queued] == ["two", "three", "four"]
    assert [e["position"] for e in queued] == [1, 2, 3]


async def test_an_interrupt_stops_the_stream_and_answers_on_the_same_socket(server: LiveServer) -> None:
    """SV-48, acceptance 1."""
    server.fake.script({"deltas": 600, "gap_s": 0.1}, {"text": "now this"})
    conversation = await server.conversation()
    loop = asyncio.get_running_loop()
    async with server.socket(conversation) as socket:
        await say(socket, "tell me a long story")
        await events(socket, "text_delta", times=3)
        began = loop.time()
        await socket.send(json.dumps({"type": "interrupt", "content": "stop, do this"}))
        seen = await events(socket, "interrupted")
        # the chapter's 0.1 s is for an idle machine; the story takes a minute
        assert loop.time() - began < patience(2)
        await server.fake.wait_closed(1)
        assert set(types(seen)) <= {"text_delta", "interrupted"}
        assert {"usage", "files"} <= seen[-1].keys()
        after = await events(socket, "done")
    assert text_of(after) == "now this"
    assert after[-1]["stop_reason"] == "end_turn"


async def test_a_cancel_ends_the_turn_and_queued_messages_run_then(server: LiveServer) -> None:
    """SV-48."""
    server.fake.script({"deltas": 5, "hang_after": 2}, {"text": "next"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "hang")
        await events(socket, "text_delta")
        await say(socket, "and then")
        await socket.send('{"type": "cancel"}')
        stopped = await events(socket, "done")
        assert stopped[-1]["stop_reason"] == "cancelled"
        await server.fake.wait_closed(1)
        after = await events(socket, "done")
    assert text_of(after) == "next"


async def test_a_cancel_with_nothing_running_is_an_error(server: LiveServer) -> None:
    """SV-48."""
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await socket.send('{"type": "cancel"}')
        assert (await one(socket))["code"] == "not_running"


async def test_a_failed_model_call_is_an_error_then_done_and_the_socket_stays(server: LiveServer) -> None:
    """SV-44."""
    server.fake.script({"status": 400, "body": {"error": {"message": "bad"}}}, {"text": "fine"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "fail")
        seen = await events(socket, "done")
        assert types(seen) == ["error", "done"]
        assert seen[-1]["stop_reason"] == "error"
        assert seen[0]["code"] == "model_error"
        await say(socket, "again")
        assert text_of(await events(socket, "done")) == "fine"


async def test_a_failed_turn_is_resumed_by_a_frame(server: LiveServer) -> None:
    """SV-38, SE-22."""
    server.fake.script({"status": 400, "body": {"error": {"message": "bad"}}}, {"text": "fine now"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "fail")
        failed = await events(socket, "done")
        await socket.send('{"type": "resume", "id": "r1"}')
        seen = await events(socket, "done")
    accepted = next(e for e in seen if e["type"] == "accepted")
    assert accepted["turn_id"] == failed[-1]["turn_id"] == seen[-1]["turn_id"]
    assert text_of(seen) == "fine now"


async def test_an_id_makes_a_repeated_message_do_nothing(server: LiveServer) -> None:
    """SV-39."""
    server.fake.script({"text": "once"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "hi", id="m-1")
        seen = await events(socket, "done")
        await say(socket, "hi", id="m-1")
        repeated = await one(socket)
    first = next(e for e in seen if e["type"] == "accepted")
    assert (first["id"], first["duplicate"], first["position"]) == ("m-1", False, 0)
    assert repeated["duplicate"] is True
    assert repeated["turn_id"] == first["turn_id"]
    assert server.fake.request_count == 1


async def test_a_steer_message_joins_the_running_turn(server: LiveServer) -> None:
    """SV-38, SE-19."""
    wait = {"name": "think", "input": {"thought": "x"}}
    server.fake.script({"tools": [wait], "text": "one", "gap_s": 0.3, "deltas": 3}, {"text": "two"})
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        await say(socket, "go")
        await events(socket, "text_delta")
        await socket.send('{"type": "steer", "content": "and be brief"}')
        seen = await events(socket, "done")
    assert seen[-1]["stop_reason"] == "end_turn"
    assert "and be brief" in json.dumps(server.fake.requests[1]["messages"])
    assert types(seen).count("done") == 1


async def test_settings_are_changed_stored_and_shown_to_every_viewer(server: LiveServer) -> None:
    """SV-38."""
    conversation = await server.conversation()
    async with server.socket(conversation) as one_viewer, server.socket(conversation) as other:
        for name in ("plan_mode", "teams", "approval"):
            await one_viewer.send(json.dumps({"type": f"toggle_{name}", "enabled": True}))
            for socket in (one_viewer, other):
                event = await one(socket)
                assert (event["type"], event["enabled"]) == (f"{name}_changed", True)
    shown = (await server.http.get(f"/api/conversations/{conversation}")).json()
    assert shown["enable_plan_mode"] is True
    assert shown["enable_teams"] is True
    assert shown["enable_approval"] is True


async def test_a_ping_is_answered_for_v2_only(server: LiveServer) -> None:
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        hello = await one(socket)
        assert hello["type"] == "hello"
        assert (hello["state"], hello["viewers"], hello["queued"]) == ("idle", 1, 0)
        assert hello["tier"] in ("overlay", "copy", "none")
        await socket.send('{"type": "ping"}')
        assert (await one(socket))["type"] == "pong"
    async with server.socket(conversation) as socket:
        await socket.send('{"type": "ping"}')
        await socket.send('{"type": "cancel"}')
        assert (await one(socket))["code"] == "not_running"


async def test_a_message_is_accepted_before_its_turn_starts(server: LiveServer) -> None:
    """SV-39: also where the turn begins in the transaction that accepts its message."""
    server.fake.script({"text": "1"}, {"text": "2"})
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        for number in range(2):
            await say(socket, "go", id=f"m{number}")
            seen = types(await events(socket, "done"))
            assert seen.index("accepted") < seen.index("turn_started")
