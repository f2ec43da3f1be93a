"""Nobody gets in who does not belong: a walk along every route and socket of the application (Must-show 5).

The walk takes its paths from the application itself, so a route that is added without protection fails
here. What is open is compared with the chapter's own list (SV-54).
"""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bowerbird.server.access import OPEN_PATHS
from bowerbird.server.http.pages import is_ui

CHAPTER = {"/health", "/health/live", "/health/ready", "/api/auth/config"}  # SV-54, besides files of the UI
WRONG = {"Authorization": "Bearer bb_wrong"}
FOREIGN_ORIGIN = {"Origin": "https://evil.example"}
FOREIGN_HOST = {"Host": "evil.example"}


class Door(NamedTuple):
    """One method of one path."""

    method: str
    path: str


def doors(routes: list[BaseRoute], above: str = "") -> list[Door]:
    found: list[Door] = []
    for route in routes:
        if isinstance(route, Mount):
            found += doors(list(route.routes), above + route.path) or [Door("GET", above + route.path + "/x")]
        elif isinstance(route, APIRoute | Route):
            path = above + filled(route.path)
            found += [Door(method, path) for method in sorted(route.methods or {"GET"}) if method != "HEAD"]
        elif isinstance(route, WebSocketRoute):
            found.append(Door("WS", above + filled(route.path)))
        else:
            included = getattr(route, "original_router", None)  # FastAPI's form of an included router
            assert included is not None, f"the walk does not know what {route!r} is"
            found += doors(list(included.routes), above + route.include_context.prefix)  # type: ignore[attr-defined]
    return found


def filled(path: str) -> str:
    return re.sub(r"{[^}]*}", "0123456789ab", path)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def guarded(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, server__auth="token") as server:
        yield server


@pytest.fixture
async def unguarded(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake) as server:
        yield server


def all_doors(server: LiveServer) -> list[Door]:
    found = doors(server.serving.app.routes)
    paths = {door.path for door in found}
    assert {"/health", "/api/chat", "/api/auth/tokens", "/openapi.json", "/docs"} <= paths
    assert Door("WS", "/api/chat/0123456789ab/ws") in found
    assert len(found) > 20
    return found


async def status(server: LiveServer, door: Door, headers: dict[str, str]) -> int:
    """The HTTP status that a request gets; of a socket that was accepted, its close code."""
    if door.method != "WS":
        return (await server.http.request(door.method, door.path, headers=headers)).status_code
    address = server.address.replace("http", "ws", 1) + door.path
    more = {key: value for key, value in headers.items() if key != "Host"}
    options: dict[str, Any] = {"additional_headers": more, "proxy": None}
    if "Host" in headers:
        host, _, port = server.address.removeprefix("http://").partition(":")
        address = f"ws://{headers['Host']}{door.path}"
        options |= {"host": host, "port": int(port)}
    try:
        async with connect(address, **options) as socket:
            try:
                while True:
                    await socket.recv()
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd is not None else 0
    except InvalidStatus as refused:
        return refused.response.status_code


def test_only_what_the_chapter_names_is_open() -> None:
    """SV-54."""
    assert OPEN_PATHS == CHAPTER


async def test_without_a_credential_everything_else_is_closed(guarded: LiveServer) -> None:
    """SV-54, acceptance 8."""
    for door in all_doors(guarded):
        if is_ui(door.path):
            continue  # open too: people sign in there
        wanted = (
            200 if door.path in CHAPTER and door.method == "GET" else 4001 if door.method == "WS" else 401
        )
        got = await status(guarded, door, {})
        assert got == wanted or (door.path == "/health/ready" and got == 503), door


async def test_with_a_wrong_credential_everything_else_is_closed(guarded: LiveServer) -> None:
    """SV-54, SV-60: after five wrong ones in a minute the address is told to wait."""
    seen: list[int] = []
    for door in all_doors(guarded):
        if door.path in CHAPTER or is_ui(door.path):
            continue
        got = await status(guarded, door, WRONG)
        seen.append(got)
        assert got in ((4001, 4029) if door.method == "WS" else (401, 429)), door
    assert [code for code in seen if code in (401, 4001)] == seen[:5]


@pytest.mark.parametrize("auth", ["none", "token"])
async def test_foreign_pages_and_names_are_refused_everywhere(
    tmp_path: Path, fake: FakeModels, auth: str
) -> None:
    """SV-58, acceptance 7: auth on or off, open paths too."""
    async with live_server(tmp_path, fake, server__auth=auth) as server:
        for door in all_doors(server):
            assert await status(server, door, FOREIGN_ORIGIN) == 403, door
            assert await status(server, door, FOREIGN_HOST) == 421, door


async def raw_status(server: LiveServer, head: str) -> int:
    """The status that a head written by hand gets."""
    name, port = server.address.partition("://")[2].split(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    async with asyncio.timeout(HANG_S):
        answer = await reader.read()
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def test_a_request_with_two_names_is_refused(guarded: LiveServer) -> None:
    """A proxy in front may have read the other one (RFC 9112, 3.2)."""
    own = guarded.address.partition("://")[2]
    for other in ("evil.example", own):
        hosts = f"Host: {own}\r\nHost: {other}\r\n"
        assert await raw_status(guarded, f"GET /health HTTP/1.1\r\n{hosts}") == 400


async def test_the_name_in_an_absolute_address_is_checked_like_the_host_header(guarded: LiveServer) -> None:
    """SV-58; RFC 9112, 3.2.2: it goes before the Host header, which alone was looked at."""
    own, evil = guarded.address.partition("://")[2], "evil.example"
    upgrade = (
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n"
    )
    for target, host, expected in (
        (own, own, 200), (own.upper(), own, 200), (evil, evil, 421), (evil, own, 400), (own, evil, 400),
        (f"me@{own}", own, 400), (evil, None, 421), (own, None, 200),
    ):  # fmt: skip
        line = f"GET http://{target}/health HTTP/1.1\r\n" + (f"Host: {host}\r\n" if host else "")
        assert await raw_status(guarded, line) == expected, (target, host)
        if expected != 200:
            socket = line.replace("/health", "/api/chat/none/ws") + upgrade.replace(
                "Upgrade", "Connection: Upgrade\r\nUpgrade", 1
            )
            assert await raw_status(guarded, socket) in (400, 403, 421), (target, host)


async def test_a_path_that_is_no_route_is_closed_too(guarded: LiveServer) -> None:
    for path in ("/api/nothing", "/nothing", "/api/auth/config/", "//health", "/health/../api/tools"):
        assert (await guarded.http.get(guarded.address + path)).status_code in (401, 404), path
    assert (await guarded.http.get("/api/nothing")).status_code == 401


async def test_a_route_added_without_protection_would_be_found(unguarded: LiveServer) -> None:
    """The walk itself: a new route and a new socket are among its doors."""

    async def nothing(_: Any) -> None:
        return None

    app = unguarded.serving.app
    app.router.add_route("/api/new", nothing)
    app.router.add_websocket_route("/api/new/ws", nothing)
    found = all_doors(unguarded)
    assert Door("GET", "/api/new") in found
    assert Door("WS", "/api/new/ws") in found
