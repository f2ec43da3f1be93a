"""Tokens, roles, tickets, owners (SV-54 … SV-56, acceptance 8)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, one, say, text_of
from support.patience import HANG_S
from websockets.exceptions import ConnectionClosed

from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.tokens import expiry, make_token, revoke


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, server__auth="token") as opened:
        yield opened


async def token(server: LiveServer, name: str, role: Any = "user", **more: Any) -> dict[str, str]:
    _, secret = await server.context.store.write(lambda c: make_token(c, name, role, **more))
    return {"Authorization": f"Bearer {secret}"}


async def close_code(socket: Any) -> int | None:
    with pytest.raises(ConnectionClosed) as closed:
        async with asyncio.timeout(HANG_S):
            while True:
                await socket.recv()
    return closed.value.rcvd.code if closed.value.rcvd is not None else None


async def test_a_token_admits_and_its_secret_is_nowhere(server: LiveServer, tmp_path: Path) -> None:
    """SV-55."""
    headers = await token(server, "laptop")
    assert (await server.http.get("/api/tools", headers=headers)).status_code == 200
    me = (await server.http.get("/api/auth/me", headers=headers)).json()
    assert me == {"authenticated": True, "role": "user", "user": "laptop", "name": "laptop"}
    secret = headers["Authorization"].removeprefix("Bearer ")
    assert secret.startswith("bb_")
    assert len(secret) >= 3 + 43
    await server.context.store.write(lambda c: None)
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


async def test_another_users_conversation_does_not_exist(server: LiveServer) -> None:
    """SV-56, acceptance 8."""
    a, b, admin = await token(server, "a"), await token(server, "b"), await token(server, "root", "admin")
    conversation = await server.conversation(headers=a)
    for path in ("", "/events", "/diff", "/traces"):
        where = f"/api/conversations/{conversation}{path}"
        assert (await server.http.get(where, headers=b)).status_code == 404, path
    landings = "/api/landings?conversation=" + conversation
    assert (await server.http.get(landings, headers=a)).json() == []
    assert (await server.http.get(landings, headers=b)).status_code == 404
    sent = await server.http.post(
        f"/api/conversations/{conversation}/messages", headers=b, json={"content": "x"}
    )
    assert sent.status_code == 404
    assert (await server.http.get(f"/api/conversations/{conversation}", headers=admin)).status_code == 200
    async with server.socket(conversation, additional_headers=b) as socket:
        assert (await one(socket))["code"] == "not_found"
        assert await close_code(socket) == 4004
    second = await token(server, "a at home", user="a")
    assert (await server.http.get(f"/api/conversations/{conversation}", headers=second)).status_code == 200


async def test_a_viewer_reads_only(server: LiveServer) -> None:
    """SV-56."""
    user, viewer = await token(server, "u", user="u"), await token(server, "v", "viewer", user="u")
    conversation = await server.conversation(headers=user)
    assert (await server.http.get(f"/api/conversations/{conversation}", headers=viewer)).status_code == 200
    for method, path in (("POST", "/api/chat"), ("DELETE", f"/api/conversations/{conversation}"),
                         ("POST", f"/api/conversations/{conversation}/cancel"), ("POST", "/api/skills")):  # fmt: skip
        assert (await server.http.request(method, path, headers=viewer)).status_code == 403, path
    async with server.socket(conversation, additional_headers=viewer) as socket:
        await say(socket, "may I?")
        assert (await one(socket))["code"] == "forbidden"
    assert (await server.http.get("/api/auth/tokens", headers=user)).status_code == 403


async def test_tokens_are_managed_by_admins(server: LiveServer) -> None:
    """SV-62."""
    admin = await token(server, "root", "admin")
    made = await server.http.post(
        "/api/auth/tokens", headers=admin, json={"name": "ci", "role": "viewer", "expires": "2h"}
    )
    assert made.status_code == 201
    fresh = made.json()
    headers = {"Authorization": f"Bearer {fresh['token']}"}
    assert (await server.http.get("/api/tools", headers=headers)).status_code == 200
    listed = (await server.http.get("/api/auth/tokens", headers=admin)).json()
    assert [row["name"] for row in listed] == ["root", "ci"]
    assert "token" not in listed[1]
    assert (await server.http.delete(f"/api/auth/tokens/{fresh['id']}", headers=admin)).status_code == 200
    assert (await server.http.get("/api/tools", headers=headers)).status_code == 401
    assert (await server.http.delete("/api/auth/tokens/nobody", headers=admin)).status_code == 404
    for bad in ({}, {"name": " "}, {"name": "x", "role": "god"}, {"name": "x", "expires": "soon"},
                {"name": "x", "more": 1}, {"name": 5}):  # fmt: skip
        answer = await server.http.post("/api/auth/tokens", headers=admin, json=bad)
        assert answer.status_code == 422, bad
    taken = await server.http.post("/api/auth/tokens", headers=admin, json={"name": "root"})
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")


async def test_a_revoked_token_closes_its_sockets(server: LiveServer) -> None:
    """SV-55: within 5 s, with 4001."""
    headers = await token(server, "gone")
    conversation = await server.conversation(headers=headers)
    async with server.socket(conversation, additional_headers=headers) as socket:
        await server.context.store.write(lambda c: revoke(c, "gone"))
        assert await close_code(socket) == 4001
    assert (await server.http.get("/api/tools", headers=headers)).status_code == 401


async def test_a_revoked_token_closes_its_sockets_after_a_defect_in_looking_after_them(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SV-55: one unforeseen error ended the task that closes sockets, and nobody heard of it."""
    headers = await token(server, "gone")
    conversation = await server.conversation(headers=headers)
    failed = asyncio.Event()

    def defect(*_: Any) -> Any:
        failed.set()
        monkeypatch.undo()
        raise KeyError("a defect")

    async with server.socket(conversation, additional_headers=headers) as socket:
        monkeypatch.setattr("bowerbird.server.socket.hub.heads", defect)
        async with asyncio.timeout(HANG_S):
            await failed.wait()
        await server.context.store.write(lambda c: revoke(c, "gone"))
        assert await close_code(socket) == 4001
    assert "viewers are not looked after" in caplog.text


async def test_a_revoked_token_ends_a_run_of_an_agent(server: LiveServer) -> None:
    """SV-55, PR-8: the run of another vendor's agent may take hours, and its answer is nobody's any more."""
    headers = await token(server, "gone")
    server.fake.script({"deltas": 1000, "hang_after": 3})
    asked = {"prompt": "hi", "session_id": "left"}
    async with server.http.stream("POST", "/api/agents/claude/run", json=asked, headers=headers) as answer:
        await server.fake.wait_requests(1)
        await server.context.store.write(lambda c: revoke(c, "gone"))
        async with asyncio.timeout(HANG_S):
            rows = [json.loads(line[6:]) async for line in answer.aiter_lines() if line]
    await server.fake.wait_closed(1)
    assert [row["kind"] for row in rows][-2:] == ["error", "done"] and "revoked" in rows[-1]["response"][
        "error"
    ]


async def test_an_expired_token_admits_nobody(server: LiveServer) -> None:
    headers = await token(server, "old", expires_at="2020-01-01T00:00:00.000000+00:00")
    assert (await server.http.get("/api/tools", headers=headers)).status_code == 401


async def test_a_ticket_opens_one_socket_once(server: LiveServer) -> None:
    """SV-54."""
    server.fake.script({"text": "hello"})
    headers = await token(server, "browser")
    conversation = await server.conversation(headers=headers)
    ticket = (await server.http.post("/api/auth/ticket", headers=headers)).json()
    assert ticket["expires_in"] == 30
    async with server.socket(conversation, f"ticket={ticket['ticket']}") as socket:
        await say(socket, "hi")
        assert text_of(await events(socket, "done")) == "hello"
    async with server.socket(conversation, f"ticket={ticket['ticket']}") as socket:
        assert (await one(socket))["code"] == "unauthorized"
        assert await close_code(socket) == 4001
    assert (await server.http.get(f"/api/tools?ticket={ticket['ticket']}")).status_code == 401


async def test_a_token_in_the_query_opens_sockets_and_stays_out_of_the_log(
    server: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    """SV-54."""
    headers = await token(server, "query")
    secret = headers["Authorization"].removeprefix("Bearer ")
    conversation = await server.conversation(headers=headers)
    caplog.set_level("INFO")
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # another test may have quieted them
        caplog.set_level("INFO", name)
    async with server.socket(conversation, f"v=2&token={secret}") as socket:
        assert (await one(socket))["type"] == "hello"
    async with server.socket(conversation, "token=bb_nonsense") as socket:
        assert (await one(socket))["code"] == "unauthorized"
    assert (await server.http.get(f"/api/tools?token={secret}")).status_code == 401
    mine = [record for record in caplog.records if not record.name.startswith(("httpx", "websockets.client"))]
    assert any("WebSocket" in record.getMessage() for record in mine)
    assert not any(secret in record.getMessage() or "bb_nonsense" in record.getMessage() for record in mine)


async def test_the_metrics_token_reads_metrics_and_nothing_else(tmp_path: Path, fake: FakeModels) -> None:
    """SV-34."""
    async with live_server(
        tmp_path, fake, server__auth="token", server__metrics_token="prometheus-reads-this"
    ) as server:
        headers = {"Authorization": "Bearer prometheus-reads-this"}
        assert (await server.http.get("/metrics", headers=headers)).status_code == 200
        assert (await server.http.get("/api/tools", headers=headers)).status_code == 401
        assert (await server.http.get("/metrics", headers=await token(server, "u"))).status_code == 403
        admin = await token(server, "root", "admin")
        assert (await server.http.get("/metrics", headers=admin)).status_code == 200


async def test_health_says_more_to_who_is_signed_in(server: LiveServer) -> None:
    """SV-6."""
    assert (await server.http.get("/health")).json() == {"status": "ok"}
    said = (await server.http.get("/health", headers=await token(server, "u"))).json()
    assert said["model"]
    assert (await server.http.get("/api/auth/config")).json() == {"enabled": True, "google_client_id": None}


@pytest.mark.parametrize("text", ["", "90", "d", "0d", "-1d", "1y", "9999999w", "1.5d"])
def test_what_is_no_lifetime(text: str) -> None:
    with pytest.raises(InvalidArgument):
        expiry(text)
