"""`/mcp` of the HTTP server: who may come in, sessions of the protocol, bodies, the end (PT-9, PT-10)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_registry import Registry, agents_of, use_agents
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.mcp_clients import ERAS, HEADERS, INITIALIZE, MODERN, Era, http_client, modern, token
from support.patience import HANG_S

from bowerbird.protocols.mcp_server import http as mcp_http
from bowerbird.store.rows.tokens import make_token, revoke

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, server__auth="token") as opened:
        use_agents(opened.serving.application, Registry())
        yield opened


async def begun(server: LiveServer, headers: dict[str, str]) -> dict[str, str]:
    """Begin a session and return the headers of its requests."""
    made = await server.http.post("/mcp", json=INITIALIZE, headers={**HEADERS, **headers})
    assert made.status_code == 200, made.text
    return {**HEADERS, **headers, "Mcp-Session-Id": made.headers["mcp-session-id"]}


async def test_who_may_come_in(server: LiveServer) -> None:
    """PT-9, acceptance 4: 401 with WWW-Authenticate, foreign Origin 403, foreign Host 421."""
    mine = await token(server, "a")
    bare = await server.http.post("/mcp", json=INITIALIZE, headers=HEADERS)
    assert (bare.status_code, bare.headers["www-authenticate"]) == (401, "Bearer")
    for more, status in (({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 421)):
        for kind, body in ((HEADERS, INITIALIZE), (MODERN, modern("server/discover"))):
            asked = await server.http.post("/mcp", json=body, headers={**kind, **mine, **more})
            assert asked.status_code == status
    own = {"Origin": server.address}
    assert (
        await server.http.post("/mcp", json=INITIALIZE, headers={**HEADERS, **mine, **own})
    ).status_code == 200


async def test_a_session_belongs_to_its_user(server: LiveServer) -> None:
    """PT-10, acceptance 4: for anybody else it does not exist, and it does not end by their asking."""
    a, b = await token(server, "a"), await token(server, "b")
    session = await begun(server, a)
    assert (await server.http.post("/mcp", json=PING, headers=session)).status_code == 200
    for method in ("POST", "GET", "DELETE"):
        body = PING if method == "POST" else None
        stolen = await server.http.request(method, "/mcp", json=body, headers={**session, **b})
        assert stolen.status_code == 404, method
    again = await token(server, "other", user="a")
    assert (await server.http.post("/mcp", json=PING, headers={**session, **again})).status_code == 200
    assert (await server.http.delete("/mcp", headers=session)).status_code == 200
    assert (await server.http.post("/mcp", json=PING, headers=session)).status_code == 404
    unknown = {**session, "Mcp-Session-Id": "0" * 32}
    assert (await server.http.post("/mcp", json=PING, headers=unknown)).status_code == 404


async def test_a_revoked_token_ends_what_it_holds_open(server: LiveServer) -> None:
    """PT-9, D-31: the next request is refused, and a stream that stands open ends; its agent is stopped."""
    made, secret = await server.context.store.write(lambda c: make_token(c, "short", "user"))
    headers = {"Authorization": f"Bearer {secret}"}
    agents: Any = agents_of(server.serving.application)
    session = await begun(server, headers)
    arguments = {"agent_name": "claude", "prompt": "wait"}
    body = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "execute_agent", "arguments": arguments},
    }

    async def ask() -> int:
        async with server.http.stream("POST", "/mcp", json=body, headers=session) as answer:
            await answer.aread()
            return answer.status_code

    asking = asyncio.create_task(ask())
    async with asyncio.timeout(HANG_S):
        await agents.started.wait()
        await server.context.store.write(lambda c: revoke(c, made.token_id))
        server.context.in_force.note_revoked()
        await asyncio.wait((asking,))
        await agents.stopped.wait()
    assert (await server.http.post("/mcp", json=PING, headers=session)).status_code == 401


async def test_a_body_of_5_mib_is_refused(server: LiveServer) -> None:
    """PT-9: 4 MiB are the most, before anything is parsed; what is smaller is judged by what it says."""
    mine = await token(server, "a")
    for kind in (HEADERS, MODERN):
        large = await server.http.post("/mcp", content=b" " * (5 << 20), headers={**kind, **mine})
        assert large.status_code == 413
    nested = b"[" * 100_000
    odd = await server.http.post("/mcp", content=nested, headers={**MODERN, **mine})
    assert odd.status_code == 400


async def test_a_viewer_reads_only(server: LiveServer) -> None:
    """PT-12: tools that do more are not offered, and calling them all the same finds none."""
    viewer = await token(server, "eye", "viewer")
    async with http_client(server, headers=viewer) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"list_agents", "get_agent_memory", "session_status", "session_list", "branch_diff"}
        body = modern("tools/call", name="execute_agent", arguments={"agent_name": "claude", "prompt": "x"})
        more = {"Mcp-Method": "tools/call", "Mcp-Name": "execute_agent"}
        refused = await server.http.post("/mcp", json=body, headers={**MODERN, **viewer, **more})
    assert "Unknown tool: execute_agent" in refused.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_users_memory_is_nobody_elses(server: LiveServer, era: Era) -> None:
    """PT-6, PR-32: a run is in its caller's name."""
    a, b = await token(server, "a"), await token(server, "b")
    async with http_client(server, era, a) as client:
        ran = await client.call_tool("execute_agent", {"agent_name": "claude", "prompt": "hello"})
        session_id = ran.structured_content and ran.structured_content["session_id"]
        mine = await client.call_tool("get_agent_memory", {"session_id": session_id})
    async with http_client(server, era, b) as client:
        theirs = await client.call_tool("get_agent_memory", {"session_id": session_id})
    assert not mine.is_error
    assert theirs.structured_content == {"status": "error", "message": f"Session {session_id} not found."}


async def test_a_full_house_makes_room_for_who_comes(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PT-9: the idle session that was unused for longest ends; one with an open stream stays."""
    monkeypatch.setattr(mcp_http.HttpDoor.__init__, "__kwdefaults__", {
        **(mcp_http.HttpDoor.__init__.__kwdefaults__ or {}), "most_sessions": 3,
    })  # fmt: skip
    mine = await token(server, "a")
    first, second, third = [await begun(server, mine) for _ in range(3)]
    async with server.http.stream("GET", "/mcp", headers=first) as stream:
        assert stream.status_code == 200
        assert (await server.http.post("/mcp", json=PING, headers=second)).status_code == 200
        fourth = await begun(server, mine)
        statuses = [
            (await server.http.post("/mcp", json=PING, headers=one)).status_code
            for one in (first, second, third, fourth)
        ]
    assert statuses == [200, 200, 404, 200]


async def test_the_server_ends_with_streams_open(tmp_path: Path, fake: FakeModels) -> None:
    """PT-9: its end waits for nobody who only listens."""
    async with live_server(tmp_path, fake) as server:
        session = await begun(server, {})
        listening = asyncio.create_task(_listen(server, session))
        await asyncio.sleep(0)
        async with asyncio.timeout(HANG_S):
            ping = await server.http.post("/mcp", json=PING, headers=session)
        assert json.loads(ping.text.partition("data: ")[2])["result"] == {}
    async with asyncio.timeout(HANG_S):
        await asyncio.wait((listening,))


async def _listen(server: LiveServer, session: dict[str, str]) -> None:
    async with server.http.stream("GET", "/mcp", headers=session) as stream:
        await stream.aread()


async def test_it_can_be_switched_off(tmp_path: Path, fake: FakeModels) -> None:
    """Setting protocols.mcp.enabled."""
    async with live_server(tmp_path, fake, protocols__mcp__enabled=False) as server:
        assert (await server.http.post("/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 404


async def test_white_space_behind_a_header_counts_for_nothing(server: LiveServer) -> None:
    """RFC 9110, 5.5."""
    mine = (await token(server, "a"))["Authorization"]
    body = json.dumps(modern("tools/call", name="list_agents", arguments={}))
    head = {**MODERN, "Authorization": mine, "Mcp-Method": "tools/call", "Mcp-Name": "list_agents  ",
            "Host": "localhost", "Content-Length": str(len(body)), "Connection": "close"}  # fmt: skip
    text = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))
    writer.write(f"POST /mcp HTTP/1.1\r\n{text}\r\n{body}".encode())
    async with asyncio.timeout(HANG_S):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200"), answer


FAULTY: list[bytes] = [
    b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b'{"jsonrpc":"2.0","id":3}',
    b'{"jsonrpc":"1.0","id":3,"method":"ping"}', b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}',
    *(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % n for n in (b"null", b"1.5", b"true", b"{}", b"NaN")),
]  # fmt: skip


async def test_what_is_no_message_is_refused_in_a_sentence(server: LiveServer) -> None:
    """PT-9, PT-16: with 400, its id where it has one, and no session; a request without an id was never answered."""
    session = await begun(server, await token(server, "a"))
    for body in FAULTY:
        for headers in (session, {k: v for k, v in session.items() if k != "Mcp-Session-Id"}):
            answer = await server.http.post("/mcp", content=body, headers=headers)
            assert answer.status_code == 400, (body[:60], answer.text)
            said = answer.json()
            assert len(said["error"]["message"]) < 120 and "pydantic" not in answer.text
            assert said["id"] == (3 if b'"id":3' in body else None) and "mcp-session-id" not in answer.headers
    assert (await server.http.post("/mcp", json=PING, headers=session)).status_code == 200


async def test_only_an_initialize_begins_a_session(server: LiveServer) -> None:
    """PT-10: each look at the address made one, and a thousand looks ended the sessions of all who were idle."""
    user = await token(server, "a")
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
        for accepted in ("text/event-stream", "text/html"):
            answer = await server.http.request(method, "/mcp", headers={**user, "Accept": accepted})
            assert answer.status_code == (400 if method in ("GET", "DELETE") else 405), (method, answer)
            assert "mcp-session-id" not in answer.headers, (method, accepted)
            if method in ("GET", "DELETE"):
                assert "initialize" in answer.json()["error"]["message"], answer.text
            elif method != "HEAD":
                assert answer.headers["allow"] == "GET, POST, DELETE"
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for body, number in ((PING, 2), (notice, None), ({"jsonrpc": "2.0", "id": 9, "result": {}}, 9)):
        answer = await server.http.post("/mcp", json=body, headers={**HEADERS, **user})
        assert answer.status_code == 400 and "mcp-session-id" not in answer.headers, (body, answer.text)
        assert answer.json()["id"] == number and "initialize" in answer.json()["error"]["message"]
    session = await begun(server, user)
    assert (await server.http.post("/mcp", json=PING, headers=session)).status_code == 200
