"""SB-28, finding security 12: an allowed host is no door to the other sites behind it, in whatever way one asks."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.certificates import certificate
from support.sandboxes import Bench, bench_of

from bowerbird.core.events import Egress
from bowerbird.sandbox.network.network import NetworkRules
from bowerbird.sandbox.network.proxy_http import looks_like_http
from bowerbird.sandbox.settings import SandboxSettings

pytestmark = pytest.mark.timeout(60)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_CLIENT = """
import json, socket, sys, time
port, kind, pieces = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
sock = socket.create_connection(("127.0.0.1", 3128))
sock.settimeout(4)
if kind == "connect":
    sock.sendall(f"CONNECT good.test:{port} HTTP/1.1\\r\\nHost: good.test:{port}\\r\\n\\r\\n".encode())
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        head += sock.recv(1)
    assert b"200" in head
try:
    for n, piece in enumerate(pieces):
        time.sleep(1.3 if n else 0)
        sock.sendall(piece.encode("latin-1"))
    print(sock.recv(4096))
except OSError as error:
    print(type(error).__name__)
"""


class Far:
    """A server that keeps what it was sent, answers each head it sees, and may speak first."""

    def __init__(self, greeting: bytes) -> None:
        self.port = 0
        self.seen = b""
        self.greeting = greeting

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(self.greeting)
            while chunk := await reader.read(65536):
                self.seen += chunk
                if b"\n\n" in self.seen.replace(b"\r", b""):
                    writer.write(_ANSWER)
                    await writer.drain()
        writer.close()


@asynccontextmanager
async def opened(
    tmp_path: Path, *, greeting: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Bench, Far]]:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    far = Far(greeting)
    server = await asyncio.start_server(far.serve, "127.0.0.1", 0, ssl=tls)
    far.port = server.sockets[0].getsockname()[1]
    settings = SandboxSettings(allow=("none.test",), private_hosts=frozenset({"good.test"}))
    async with server, bench_of(tmp_path, settings=settings, resolve=resolve) as bench:
        rules = NetworkRules((f"good.test:{far.port}",), private_hosts=frozenset({"good.test"}))
        await bench.sandbox.network.change(rules)
        yield bench, far


async def say(bench: Bench, far: Far, kind: str, *pieces: str) -> str:
    done = await bench.sandbox.run(["python3", "-c", _CLIENT, str(far.port), kind, json.dumps(pieces)])
    return done.output


GOOD, EVIL = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        pytest.param("connect", [EVIL], id="first"),
        pytest.param("connect", [GOOD, EVIL], id="second"),
        pytest.param("connect", [GOOD + EVIL], id="pipelined"),
        pytest.param("connect", [EVIL.replace("\r\n", "\n")], id="lf-only"),
        pytest.param("connect", ["GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n"], id="absolute"),
        pytest.param("connect", [EVIL.replace("GET", "PROPFIND")], id="other-method"),
        pytest.param("connect", [f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{EVIL}"], id="http-2"),
        pytest.param("connect", [f"\r\n{EVIL}"], id="leading-crlf"),
        pytest.param("connect", ["G", EVIL[1:]], id="first-byte-alone"),
        pytest.param("connect", ["POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\n"
                                 f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{EVIL}"], id="two-framings"),
        pytest.param("connect", ["GET / HTTP/1.1\r\nHost: good.test\r\nX: 1\nHost: evil.test\r\n\r\n"], id="bare-lf"),
        pytest.param("absolute", ["GET http://good.test:PORT/ HTTP/1.1\r\nHost: good.test\r\n"
                                  "X: 1\nHost: evil.test\r\n\r\n"], id="absolute-bare-lf"),
        pytest.param("absolute", [f"GET http://good.test:PORT/ HTTP/1.1\r\nHost: x\r\n\r\n{EVIL}"], id="absolute-pipelined"),
    ],
)  # fmt: skip
async def test_no_request_for_another_host_reaches_the_far_end(tmp_path, kind: str, pieces: list[str]):
    async with opened(tmp_path) as (bench, far):
        await say(bench, far, kind, *(piece.replace("PORT", str(far.port)) for piece in pieces))
        assert b"evil" not in far.seen.lower(), far.seen
        verdicts = [event.verdict for event in bench.events if isinstance(event, Egress)]
        assert any(verdict.startswith("refused: ") for verdict in verdicts) or not far.seen, verdicts


async def test_one_request_is_passed_on_whole_and_told_as_allowed(tmp_path):
    """Bodies by length and in pieces, odd methods, either way of asking."""
    async with opened(tmp_path) as (bench, far):
        body = "POST /a?b=1 HTTP/1.1\r\nHost: good.test\r\nX-Kept: yes\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert "200 OK" in await say(bench, far, "connect", body, "3\r\nabc\r\n", "0\r\n\r\n")
        assert far.seen.startswith(b"POST /a?b=1 HTTP/1.1\r\n") and b"X-Kept: yes\r\n" in far.seen
        assert far.seen.endswith(b"abc\r\n0\r\n\r\n") and b"Connection: close\r\n" in far.seen
        far.seen = b""
        plain = f"PUT http://good.test:{far.port}/x HTTP/1.1\r\nHost: other\r\nContent-Length: 3\r\n\r\nxyz"
        assert "200 OK" in await say(bench, far, "absolute", plain)
        assert f"Host: good.test:{far.port}\r\n".encode() in far.seen and far.seen.endswith(b"\r\n\r\nxyz")
        assert {event.verdict for event in bench.events if isinstance(event, Egress)} == {"allowed"}


async def test_other_protocols_on_a_listed_port_go_on_and_the_server_may_speak_first(tmp_path):
    async with opened(tmp_path, greeting=b"SSH-2.0-far\r\n") as (bench, far):
        assert "SSH-2.0-far" in await say(bench, far, "connect", "SSH-2.0-near\r\n")
        assert "SSH-2.0-far" in await say(bench, far, "connect", "\0\0\0\x08binary")
        assert far.seen == b"SSH-2.0-near\r\n\0\0\0\x08binary"


async def test_a_tls_hello_without_a_name_is_refused(tmp_path):
    context = certificate(tmp_path)
    async with opened(tmp_path, tls=context) as (bench, far):
        code = f"""
import socket, ssl
for name in (None, "good.test"):
    sock = socket.create_connection(("127.0.0.1", 3128))
    sock.sendall(b"CONNECT good.test:{far.port} HTTP/1.1\\r\\n\\r\\n")
    sock.recv(100)
    context = ssl._create_unverified_context()
    try:
        context.wrap_socket(sock, server_hostname=name)
        print("REACHED", name)
    except OSError:
        print("cut off")
"""
        assert (await bench.sandbox.run(["python3", "-c", code])).output == "cut off\nREACHED good.test\n"
        await bench.until(lambda: len(bench.events) == 2)
        refused = bench.events[0]
        assert isinstance(refused, Egress) and refused.verdict == "refused: the TLS hello names no server"


@pytest.mark.parametrize(
    ("start", "http"),
    [
        (b"GET / HTTP/1.1\r\n", True), (b"\r\n\nget\t/ HTTP/1.0\n", True), (b"G", None), (b"GET /x", True),
        (b"SSH-2.0-OpenSSH\r\n", False), (b"*1\r\n$4\r\n", False), (b"EHLO me\r\n", False), (b"\0\x01", False),
        (b"0033git-upload-pack /p\0host=h\0\n", False), (b"FOO http://evil/\n", True), (b"", None),
    ],
)  # fmt: skip
def test_what_counts_as_http(start: bytes, http: bool | None):
    assert looks_like_http(start) is http
