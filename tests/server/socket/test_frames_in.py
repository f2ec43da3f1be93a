"""What is no frame changes nothing and costs nobody the socket (SV-40, acceptance 3)."""

import json
from typing import Any

import pytest
from support.live_server import LiveServer, events, one, say, text_of
from websockets.exceptions import ConnectionClosed

from bowerbird.core.wire.commands import Message
from bowerbird.server.socket.endpoint import BadFrame, parse

DEEP = "[" * 5000 + "]" * 5000

BAD: list[str] = [
    "[1,2]", "5", '"x"', "null", "true", "-0.5", "{}", "[]", "[[]]",
    '{"type":"message","content":{}}', '{"type":"message","content":[]}', '{"type":"message","content":5}',
    '{"type":"message","content":null}', '{"type":"message"}', '{"type":"message","content":""}',
    '{"type":"message","content":"  \\n\\t "}', '{"content":5}', '{"content":{"type":"message"}}',
    '{"type":"Message","content":"x"}', '{"type":"unknown"}', '{"type":5,"content":"x"}',
    '{"type":null,"content":"x"}', '{"type":["message"],"content":"x"}', '{"type":{"a":1}}',
    '{"type":"interrupt"}', '{"type":"interrupt","content":false}', '{"type":"steer","content":""}',
    '{"type":"toggle_plan_mode"}', '{"type":"toggle_plan_mode","enabled":"true"}',
    '{"type":"toggle_teams","enabled":1}', '{"type":"toggle_approval","enabled":null}',
    '{"type":"tool_approval_response"}', '{"type":"tool_approval_response","decision":1}',
    '{"type":"tool_approval_response","decision":""}', '{"type":"plan_approval","decision":"maybe"}',
    '{"type":"plan_approval","decision":"reject","feedback":7}', '{"type":"cancel","id":7}',
    '{"type":"cancel","id":""}', json.dumps({"type": "cancel", "id": "x" * 129}),
    '{"type":"cancel","request_id":[]}', '{"type":"message","content":"x","id":{}}',
    '{"type":"llm_request"}', '{"type":"done"}', '{"type":"__proto__","content":"x"}', DEEP,
    '{"type":"message","content":"x","id":"' + "y" * 5000 + '"}', "   ", "\n",
    '{"type":"message","content":"half \\ud83d of one"}', '{"type":"ping","n":NaN}', '{"type":"cancel"',
    ' { "type" : "message", "content": "cut', '{"type":"ping","n":' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("raw", BAD, ids=range(len(BAD)))
def test_a_malformed_frame_is_refused_with_a_reason(raw: str) -> None:
    assert isinstance(parse(raw), BadFrame)


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        pytest.param("hello", "hello", id="plain text"),
        pytest.param('{"content": "hello"}', "hello", id="object without type"),
        pytest.param('{"type": "message", "content": "x", "more": 1}', "x", id="unknown members are ignored"),
        pytest.param("{broken", "{broken", id="broken JSON"),
        pytest.param("NaN", "NaN", id="no JSON"),
        pytest.param("\ufeff{}", "\ufeff{}", id="byte order mark"),
        pytest.param('{"type": "message", "content": "a", "content": "b"}', "b", id="the last one counts"),
        pytest.param("🙂", "🙂", id="beyond the basic plane"),
    ],
)
def test_what_is_a_message(raw: str, content: str) -> None:
    command = parse(raw)
    assert isinstance(command, Message)
    assert command.content == content


async def test_bad_frames_leave_socket_and_session_as_they_were(server: LiveServer) -> None:
    """Acceptance 3, Must-show 4: then a normal turn."""
    server.fake.script({"text": "still here"})
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        sent: list[Any] = [*BAD[:46], b"\x00binary"]
        for raw in sent:
            await socket.send(raw)
        for raw in sent:
            event = await one(socket)
            assert (event["type"], event["code"]) == ("error", "bad_frame"), raw
        await say(socket, "hi")
        assert text_of(await events(socket, "done")) == "still here"
    shown = (await server.http.get(f"/api/conversations/{conversation}")).json()
    assert [message["content"] for message in shown["messages"]] == ["hi", "still here"]


async def test_more_than_fifty_bad_frames_close_the_socket(server: LiveServer) -> None:
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        for _ in range(60):
            await socket.send("null")
        with pytest.raises(ConnectionClosed) as closed:
            await events(socket, "done")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def test_a_frame_over_one_mebibyte_closes_the_socket(server: LiveServer) -> None:
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await socket.send("x" * ((1 << 20) + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await events(socket, "done")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("name", ["0123456789ab", "%00", "x" * 300])
async def test_an_unknown_conversation_closes_with_4004(server: LiveServer, name: str) -> None:
    """SV-35."""
    async with server.socket(name) as socket:
        assert (await one(socket))["code"] == "not_found"
        with pytest.raises(ConnectionClosed) as closed:
            await one(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4004
