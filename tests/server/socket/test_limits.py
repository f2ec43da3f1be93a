"""How many may watch (SV-35, SV-60), and a crowd that is served in gathered pieces (SV-51)."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from support.live_server import LiveServer, events, one, say, text_of, types
from support.patience import HANG_S
from websockets.exceptions import ConnectionClosed

from bowerbird.server.socket import audience as audience_module
from bowerbird.server.socket import hub as hub_module


@pytest.mark.parametrize("limit", ["MOST_SOCKETS", "MOST_PER_CONVERSATION"])
async def test_one_viewer_too_many_is_closed_with_4029(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(hub_module, limit, 2)
    conversation = await server.conversation()
    async with AsyncExitStack() as stack:
        for _ in range(2):
            socket = await stack.enter_async_context(server.socket(conversation, "v=2"))
            assert (await one(socket))["type"] == "hello"
        async with server.socket(conversation) as third:
            refused = await one(third)
            assert (refused["code"], refused["retryable"]) == ("rate_limited", True)
            with pytest.raises(ConnectionClosed) as closed:
                await one(third)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4029
    async with server.socket(conversation, "v=2") as again:
        assert (await one(again))["type"] == "hello"


async def test_all_of_a_crowd_see_the_same_in_the_same_order(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Must-show 6: one comes while pieces are gathered."""
    monkeypatch.setattr(audience_module, "CROWD", 3)
    monkeypatch.setattr(audience_module, "GATHER_S", 0.05)
    server.fake.script({"text": " ".join("abcdefghij"), "deltas": 10, "gap_s": 0.04}, {"text": "more"})
    conversation = await server.conversation()
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(server.socket(conversation)) for _ in range(4)]
        await say(sockets[0], "go")
        first = [await events(socket, "text_delta") for socket in sockets]
        late = await stack.enter_async_context(server.socket(conversation))
        await say(sockets[1], "again")
        rest = [await events(socket, "done", times=2) for socket in sockets]
        seen = [a + b for a, b in zip(first, rest, strict=True)]
        others = await events(late, "done", times=2)
    assert all(events_of == seen[0] for events_of in seen)
    assert text_of(seen[0]) == text_of(others) == " ".join("abcdefghij") + "\nmore"
    assert types(seen[0]).count("text_delta") < 11


async def test_a_hundred_connections_leave_nothing_behind(server: LiveServer) -> None:
    """SV §8: 100 reconnects; SE acceptance 11: without a message no model is called."""
    conversation = await server.conversation()
    hub = server.serving.app.state
    for _ in range(20):
        async with AsyncExitStack() as stack:
            for _ in range(5):
                await stack.enter_async_context(server.socket(conversation))
    async with asyncio.timeout(HANG_S):
        while hub.viewers._viewers or hub.viewers._seats:
            await asyncio.sleep(0.02)
    assert server.context.presence.viewers(conversation) == 0
    assert server.fake.request_count == 0
    async with server.socket(conversation, "v=2") as socket:
        assert json.loads(await socket.recv())["viewers"] == 1
