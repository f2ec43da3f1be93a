"""SV-35: sockets that are refused are told why, and are no errors in the log."""

import asyncio
import json

import pytest
from support.live_server import LiveServer, events, one, say, text_of
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus


@pytest.mark.parametrize(
    ("query", "known"),
    [
        ("v=3", "v is 1 or 2"),
        ("v=two", "v is 1 or 2"),
        ("v=2&on_disconnect=stay", "stop or continue"),
    ],
)
async def test_a_value_that_is_not_known_is_refused_with_those_that_are(
    server: LiveServer, query: str, known: str
) -> None:
    """SV-35: `v=3` was quietly served as version 1, a misspelt `continue` stopped the turn."""
    conversation = await server.conversation()
    async with server.socket(conversation, query) as socket:
        said = await one(socket)
        assert said["code"] == "invalid" and known in said["message"], said
        with pytest.raises(ConnectionClosed) as closed:
            await one(socket)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


@pytest.mark.parametrize("query", ["v=1", "v=2", "v=", ""])
async def test_what_is_known_is_served(server: LiveServer, query: str) -> None:
    server.fake.script({"text": "well"})
    conversation = await server.conversation()
    async with server.socket(conversation, query) as socket:
        await say(socket, "hi")
        assert text_of(await events(socket, "done")) == "well"


async def test_a_refused_socket_is_no_error_in_the_log(
    server: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    """SV-58: each page of a foreign origin left "ASGI callable returned without completing handshake"."""
    conversation = await server.conversation()
    with pytest.raises(InvalidStatus) as refused:
        async with server.socket(conversation, origin="https://evil.example"):
            pass
    assert refused.value.response.status_code == 403
    assert b"foreign_origin" in (refused.value.response.body or b"")
    await server.conversation()  # the refused request has ended by now
    assert [row.getMessage() for row in caplog.records if row.levelname == "ERROR"] == []


async def test_who_leaves_amid_a_body_is_no_error_in_the_log(
    server: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    """SV-59: anybody could fill the log, forty lines at a time."""
    conversation = await server.conversation()
    name, port = server.address.partition("://")[2].split(":")
    _, writer = await asyncio.open_connection(name, int(port))
    head = f"POST /api/conversations/{conversation}/messages HTTP/1.1\r\nHost: {name}:{port}\r\n"
    writer.write((head + "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{").encode())
    await writer.drain()
    await server.conversation()  # the server has begun with it by now
    writer.close()
    await writer.wait_closed()
    for _ in range(3):
        await server.conversation()  # and has seen that nobody is there
    assert [row.getMessage() for row in caplog.records if row.levelname == "ERROR"] == []


@pytest.mark.parametrize("sent", [b"\xff\xfe", [b"cut \xe2", b"\x82 off"]], ids=["one frame", "fragments"])
async def test_a_text_that_is_no_text_ends_its_socket_and_is_no_error_in_the_log(
    server: LiveServer, caplog: pytest.LogCaptureFixture, sent: bytes | list[bytes]
) -> None:
    """SV-40: each left a traceback in the log, and the client was given no reason."""
    conversation = await server.conversation()
    async with server.socket(conversation) as socket:
        await socket.send(sent, text=True)
        with pytest.raises(ConnectionClosed) as closed:
            await one(socket)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1007, "a text frame is UTF-8")
    assert [row.getMessage() for row in caplog.records if row.levelname == "ERROR"] == []


async def test_a_text_that_is_cut_within_a_letter_is_whole_again(server: LiveServer) -> None:
    """SV-40."""
    server.fake.script({"text": "well"})
    async with server.socket(await server.conversation()) as socket:
        await socket.send([b'{"type":"message","content":"3 \xe2', b"\x82", b'\xac"}'], text=True)
        assert text_of(await events(socket, "done")) == "well"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_socket_asked_for_in_plain_http_says_that_it_is_one(
    server: LiveServer, method: str
) -> None:
    """SV-35: it was "there is nothing at", the word of a proxy that does not pass the upgrade on."""
    conversation = await server.conversation()
    answer = await server.http.request(method, f"/api/chat/{conversation}/ws")
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    if method == "GET":
        said = answer.json()
        assert said["code"] == "upgrade_required" and "WebSocket" in said["detail"], said
    wrong = await server.http.post(f"/api/chat/{conversation}/ws")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/api/conversations", "/ws", "/api/chat/ws"])
async def test_a_socket_where_there_is_none_is_refused_in_words(server: LiveServer, path: str) -> None:
    """SV-35: it was a 403 without a word, as if somebody were forbidden something."""
    with pytest.raises(InvalidStatus) as refused:
        async with connect(server.address.replace("http", "ws", 1) + path, proxy=None):
            pass
    answer = refused.value.response
    said = json.loads(answer.body or b"{}")
    assert answer.status_code == 404 and said["code"] == "not_found", answer
    assert path in said["detail"] and "/api/chat/{conversation_id}/ws" in said["detail"], said
