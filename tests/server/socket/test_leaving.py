"""Viewers that leave, stall, or are sent away (SV-49 … SV-51, acceptance 10)."""

import asyncio
import json
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, one, say, text_of, types
from support.patience import HANG_S
from websockets.exceptions import ConnectionClosed

from bowerbird.server.socket import viewer as viewer_module

LONG = {"deltas": 4, "hang_after": 2}


async def ended(server: LiveServer, conversation: str) -> tuple[str, str | None]:
    """Wait until the newest turn has ended; return its state and why."""
    async with asyncio.timeout(HANG_S):
        while True:
            turns = await server.sessions.turns(conversation)
            if turns and turns[-1].state not in ("queued", "running"):
                return turns[-1].state, turns[-1].stop_reason
            await asyncio.sleep(0.02)


async def test_the_turn_of_the_last_plain_viewer_stops_and_can_be_resumed(server: LiveServer) -> None:
    """SV-49."""
    server.fake.script(LONG, {"text": "went on"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await say(socket, "hang")
        await events(socket, "text_delta")
    assert await ended(server, conversation) == ("cancelled", "disconnected")
    await server.fake.wait_closed(1)
    async with server.socket(conversation) as socket:
        await socket.send('{"type": "resume"}')
        seen = await events(socket, "done")
    assert text_of(seen) == "went on"
    assert seen[-1]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("query", ["v=2", "on_disconnect=continue"])
async def test_a_turn_goes_on_for_who_asked_for_it(server: LiveServer, query: str) -> None:
    server.fake.script({"text": "a b c d", "deltas": 4, "gap_s": 0.1})
    conversation = await server.conversation()
    async with server.socket(conversation, query) as socket:
        await say(socket, "go")
        await events(socket, "text_delta")
    assert await ended(server, conversation) == ("done", "end_turn")


async def test_a_turn_goes_on_while_somebody_watches_and_after_rest(server: LiveServer) -> None:
    server.fake.script({"text": "a b c d", "deltas": 4, "gap_s": 0.1})
    conversation = await server.conversation()
    async with server.socket(conversation) as stays:
        async with server.socket(conversation) as leaves:
            await say(leaves, "go")
            await events(leaves, "text_delta")
        assert text_of(await events(stays, "done")) == "a b c d"
    await server.http.post(f"/api/conversations/{conversation}/messages", json={"content": "from REST"})
    async with server.socket(conversation) as socket:
        await events(socket, "text_delta")
    assert await ended(server, conversation) == ("done", "end_turn")


async def test_v2_viewers_stop_their_turns_where_settings_say_so(tmp_path: Path, fake: FakeModels) -> None:
    """CF-65 `server.on_disconnect`."""
    fake.script(LONG)
    async with live_server(tmp_path, fake, server__on_disconnect="stop") as server:
        conversation = await server.conversation()
        async with server.socket(conversation, "v=2") as socket:
            await say(socket, "hang")
            await events(socket, "text_delta")
        assert await ended(server, conversation) == ("cancelled", "disconnected")


async def test_the_end_of_the_server_is_said_with_1012(tmp_path: Path, fake: FakeModels) -> None:
    """SV-50; the turn goes on when the server is back."""
    fake.script(LONG, {"text": "after the restart"})
    async with live_server(tmp_path, fake) as server:
        conversation = await server.conversation()
        async with server.socket(conversation) as socket:
            await say(socket, "hang")
            cursor = (await events(socket, "text_delta"))[-1]["cursor"]
            server.context.life.draining.set()
            seen = await events(socket, "error")
            assert seen[-1]["code"] == "shutting_down"
            with pytest.raises(ConnectionClosed) as closed:
                await events(socket, "done")
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        await server.sessions.stop(0.0)
    async with (
        live_server(tmp_path, fake) as server,
        server.socket(conversation, f"after={cursor}") as socket,
    ):
        assert text_of(await events(socket, "done")) == "after the restart"


async def test_a_viewer_that_never_reads_is_closed_and_continues_by_cursor(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SV-51, acceptance 13 in small: it delays nobody, and loses nothing."""
    monkeypatch.setattr(viewer_module, "STALLED_S", 0.5)
    text = "x" * 200_000
    server.fake.answer(lambda body, n: {"text": f"{n} {text}", "deltas": 20})
    conversation = await server.conversation()
    async with server.socket(conversation) as reads, server.socket(conversation, max_queue=1) as stalls:
        whole = []
        for _ in range(60):
            await say(reads, "more")
            whole += await events(reads, "done")
            if server.context.metrics.stalled._value.get():  # pyright: ignore[reportPrivateUsage]
                break
        for _ in range(1000):
            if server.context.metrics.stalled._value.get():
                break
            await asyncio.sleep(0.05)
        hub = server.serving.app.state.viewers
        room = next(iter(hub._seats.values())).room
        assert all(viewer.backlog.size <= (1 << 20) + 400_000 for viewer in hub._viewers)
        seen = []
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(HANG_S):
                while True:
                    seen.append(json.loads(await stalls.recv()))
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013
        cursor = int(closed.value.rcvd.reason.removeprefix("cursor="))
        assert seen[-1]["code"] == "too_slow"
        kept = [event for event in seen if event["type"] != "error"]
        assert cursor == kept[-1]["cursor"]
        async with server.socket(conversation, f"after={cursor}") as back:
            left = types(whole).count("done") - types(kept).count("done")
            rest = await events(back, "done", times=left)
        assert text_of(kept + rest) == text_of(whole)
        assert room.head >= cursor


async def test_two_conversations_do_not_disturb_each_other(tmp_path: Path, fake: FakeModels) -> None:
    """Acceptance 10: one disconnects, its runtime is released; the other's files and turn are untouched."""
    write = {"tools": [{"name": "write_file", "input": {"path": "mine.txt", "content": "x"}}]}
    fake.answer(
        lambda body, n: (
            {"text": "ok"}
            if any(m["role"] == "assistant" for m in body["messages"])
            else (
                write
                if "first" in str(body["messages"])
                else {"text": "a b c d e f", "deltas": 6, "gap_s": 0.3}
            )
        )
    )
    async with live_server(tmp_path, fake, workspace__cleanup_delay=0.2) as server:
        first, second = await server.conversation(), await server.conversation()
        async with server.socket(second) as stays:
            await say(stays, "second")
            async with server.socket(first) as leaves:
                await say(leaves, "first")
                await events(leaves, "done")
            seen = await events(stays, "done")
        assert text_of(seen) == "a b c d e f"
        diff = (await server.http.get(f"/api/conversations/{first}/diff")).json()
        assert [row["path"] for row in diff["written"]] == ["/mine.txt"] or "mine.txt" in str(diff["written"])


async def test_a_deleted_conversation_sends_its_viewers_away(server: LiveServer) -> None:
    """SE-49."""
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await socket.send('{"type": "cancel"}')
        await one(socket)
        assert (await server.http.delete(f"/api/conversations/{conversation}")).status_code == 200
        assert (await one(socket))["code"] == "deleted"
        with pytest.raises(ConnectionClosed) as closed:
            await one(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4004
