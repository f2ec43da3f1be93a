"""Whoever only connects can neither fill the server nor make it grow (D-11; security finding 4).

The attacks at full size are in `benchmarks/half_open.py`; here they meet a server with small limits.
"""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import HANG_S
from support.servers import TestServer, serve, until
from websockets.sync.client import connect

from bowerbird.server.common.doorstep import DoorLimits, Doorstep, Place, group_of

LINE = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
HANDSHAKE = (
    b"GET /api/chat/none/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)
MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    small = {
        "server.header_timeout": 0.5,
        "server.body_timeout": 0.5,
        "server.header_kb": 8,
        "server.max_connections": 40,
        "server.max_connections_per_address": 12,
    }
    with serve(tmp_path_factory.mktemp("door"), flags=small) as running:
        yield running


def opened(server: TestServer, address: str = "127.0.0.1") -> socket.socket:
    """A connection from one of the machine's own addresses."""
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=HANG_S, source_address=(address, 0))


def answered(sock: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65_536):
            got += piece
    return got


def healthy(server: TestServer, address: str) -> bool:
    with opened(server, address) as sock:
        sock.sendall(LINE + b"Connection: close\r\n\r\n")
        return answered(sock).startswith(b"HTTP/1.1 200")


def open_now(server: TestServer) -> int:
    """How many connections the server counts beside the one that asks."""
    with server.http as http:
        text = http.get("/metrics").text
    line = next(line for line in text.splitlines() if line.startswith("bowerbird_open_connections "))
    return int(float(line.split()[1])) - 1


@pytest.mark.parametrize(
    ("start", "status"),
    [
        pytest.param(b"", b"", id="silence"),
        pytest.param(LINE, b"408", id="half a request"),
        pytest.param(HANDSHAKE, b"408", id="half a socket handshake"),
        pytest.param(POST + b"Content-Length: 1000\r\n\r\n{", b"408", id="half a body"),
        pytest.param(CHUNKED + b"1\r\n{\r\n", b"408", id="half a body in chunks"),
        pytest.param(LINE + b"\r\n" + LINE, b"200", id="half a second request"),
    ],
)
def test_what_does_not_go_on_is_ended(server: TestServer, start: bytes, status: bytes) -> None:
    with opened(server) as sock:
        sock.sendall(start)
        assert answered(sock)[9:12] == status


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        pytest.param(LINE, b"X-A: " + b"b" * 995, id="headers"),
        pytest.param(LINE + b"X-A: ", b"b" * 1000, id="value"),
        pytest.param(b"GET /", b"b" * 1000, id="address"),
        pytest.param(b"", b"\r\n" * 500, id="blank lines"),
        pytest.param(CHUNKED + b"1;a=", b"b" * 1000, id="chunk extension"),
        pytest.param(CHUNKED + b"0\r\nX-A: ", b"b" * 1000, id="trailer"),
        pytest.param(HANDSHAKE, b"X-A: " + b"b" * 993 + b"\r\n", id="socket handshake"),
        pytest.param(b"", LINE + b"\r\n", id="pipelined requests"),
    ],
)
def test_what_never_ends_is_ended(server: TestServer, start: bytes, piece: bytes) -> None:
    """Old: 300 MiB of headers were taken, and kept in memory."""
    sent = 0
    with opened(server) as sock:
        try:
            sock.sendall(start)
            while sent < 64 * MIB:
                sock.sendall(piece * 64)
                sent += 64 * len(piece)
        except ConnectionError:
            pass
    assert sent < 32 * MIB, "as much as fits between two kernels, and no more"
    assert healthy(server, "127.0.0.1")


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [
        pytest.param("/health", 6_000, 200, id="long header"),
        pytest.param("/health", 9_000, 431, id="longer"),
        pytest.param("/health?" + "a" * 9_000, 0, 414, id="address"),
    ],
)
def test_the_limit_of_a_head_is_exact(server: TestServer, path: str, header: int, status: int) -> None:
    with server.http as http:
        assert http.get(path, headers={"x-a": "b" * header}).status_code == status


def test_a_body_that_goes_on_may_take_its_time(server: TestServer) -> None:
    def body() -> Iterator[bytes]:
        yield b'{"preset": "coding"'
        for _ in range(8):
            time.sleep(0.15)
            yield b" " * 500
        yield b"}"

    with server.http as http:
        assert http.post("/api/chat", content=body(), headers={"content-type": "application/json"}).is_success


def test_half_open_ones_give_way_to_who_says_what_they_want(server: TestServer) -> None:
    """5,000 at full size: `benchmarks/half_open.py`. Here 200 come to a door with 40 places, 12 for each."""
    standing = [opened(server) for _ in range(200)]
    for sock in standing:
        with contextlib.suppress(ConnectionError):
            sock.sendall(LINE)
    assert healthy(server, "127.0.0.2"), "another address"
    assert healthy(server, "127.0.0.1"), "the same one"
    for sock in standing:
        sock.close()
    until(lambda: open_now(server) == 0, "all places are free again")


def test_one_address_takes_its_own_places_only(server: TestServer) -> None:
    until(lambda: open_now(server) == 0, "nobody is left of what was before")
    with server.http as http:
        conversation = http.post("/api/chat", json={}).json()["conversation_id"]
    where = f"{server.url.replace('http', 'ws', 1)}/api/chat/{conversation}/ws?v=2"
    with contextlib.ExitStack() as sockets:
        full = [sockets.enter_context(connect(where, proxy=None, compression=None)) for _ in range(12)]
        with opened(server) as one_more:
            assert answered(one_more).startswith(b"HTTP/1.1 503")
        assert healthy(server, "127.0.0.2")
        time.sleep(0.7)  # longer than a head may take: sockets that were admitted stay
        for number, viewer in enumerate(full):
            viewer.send(json.dumps({"type": "no such frame"}))
            kinds = {json.loads(viewer.recv(HANG_S))["type"] for _ in range(2)}
            assert "error" in kinds, number
    until(lambda: open_now(server) == 0, "sockets gave their places back")


def test_without_a_credential_nobody_stays(tmp_path: Path) -> None:
    """A refused request whose body never ends: the answer comes at once, and then the connection goes."""
    flags = {"server.auth": "token", "server.body_timeout": 1}
    with serve(tmp_path, flags=flags) as server, opened(server) as sock:
        sock.sendall(POST + b"Content-Length: 100000000\r\n\r\n")
        assert sock.recv(12) == b"HTTP/1.1 401"
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < HANG_S:
                sock.sendall(b"a")
                time.sleep(0.2)
        assert time.monotonic() - began < HANG_S, "it was read for ever"


def test_clients_that_behave_notice_nothing(server: TestServer) -> None:
    with httpx.Client(base_url=server.url, timeout=HANG_S) as http:
        for _ in range(30):
            assert http.get("/health").status_code == 200
            time.sleep(0.02)


# ---------------------------------------------------------------- counting


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["come", "known", "left"])), max_size=200))
def test_nobody_is_counted_twice_and_a_limit_binds_everybody(steps: list[tuple[int, str]]) -> None:
    door = Doorstep(DoorLimits(most=8, most_of_one=3))
    here: dict[Place, int] = {}
    gone: list[Place] = []
    for who, what in steps:
        if what == "come":
            holder: list[Place] = []
            place = door.come(f"10.0.0.{who}", lambda holder=holder: gone.append(holder[0]))
            if place is not None:
                holder.append(place)
                here[place] = who
            while gone:  # a connection that is ended is lost soon after
                door.left(gone[-1])
                del here[gone.pop()]
        elif any(of == who for of in here.values()):
            place = next(place for place, of in here.items() if of == who)
            if what == "known":
                door.known(place)
            else:
                door.left(place)
                del here[place]
        assert door.open == len(here) <= 8
        assert all(list(here.values()).count(each) <= 3 for each in range(4))


def test_addresses_of_one_host_count_as_one() -> None:
    assert group_of("2001:db8::1") == group_of("2001:db8::ffff:1") != group_of("2001:db8:0:1::1")
    assert group_of("::1") != group_of("127.0.0.1")
