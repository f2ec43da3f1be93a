"""SB-27 … SB-30, SB-55, acceptance 11: what a sandbox reaches, tried from inside with real servers."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.certificates import certificate
from support.sandboxes import Bench, bench_of

from bowerbird.core.errors import ConfigError, InvalidArgument
from bowerbird.core.events import Egress
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.network.network import NetworkRules
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

SECRET = "only-for-the-host"


@asynccontextmanager
async def web_server(tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator["Web"]:
    web = Web()
    server = await asyncio.start_server(web.serve, host, 0, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web


class Web:
    """Answers each request with `SECRET`, or a redirect; `hosts` are the Host headers it saw."""

    def __init__(self) -> None:
        self.port = 0
        self.hosts: list[str] = []
        self.redirect = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.hosts += [
                row.split(": ", 1)[1] for row in head.splitlines() if row.lower().startswith("host:")
            ]
            status = f"302 Found\r\nLocation: {self.redirect}" if self.redirect else "200 OK"
            body = "" if self.redirect else SECRET
            answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
            writer.write(answer.encode())
            await writer.drain()
        writer.close()


@asynccontextmanager
async def open_bench(
    tmp_path: Path, *allow: str, private: tuple[str, ...] = ("good.test",), max_bytes: int = 1 << 30
) -> AsyncIterator[Bench]:
    async def resolve(host: str, _port: int) -> list[str]:
        if host == "missing.test":
            raise OSError("no such name")
        return ["127.0.0.1"]

    settings = SandboxSettings(allow=allow, private_hosts=frozenset(private), max_bytes=max_bytes)
    async with bench_of(tmp_path, settings=settings, resolve=resolve) as bench:
        yield bench


def only(web: "Web", *more: str) -> NetworkRules:
    return NetworkRules((f"good.test:{web.port}", *more), private_hosts=frozenset({"good.test"}))


async def curl(bench: Bench, *words: str) -> str:
    result = await bench.sandbox.run(["curl", "-sS", "-m", "5", "-w", " [%{http_code}]", *words])
    return result.output


async def test_a_listed_host_answers_and_every_request_is_an_event(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        assert await curl(bench, f"http://good.test:{web.port}/x") == f"{SECRET} [200]"
        other = await curl(bench, f"http://other.test:{web.port}/")
        assert "[403]" in other and "other.test" in other and "sandbox.network.allow" in other
        first, second = bench.events
        assert isinstance(first, Egress) and isinstance(second, Egress)
        assert (first.host, first.port, first.verdict) == ("good.test", web.port, "allowed")
        assert first.bytes_in > len(SECRET) and first.bytes_out > 0
        assert second.verdict.startswith("refused") and second.bytes_out == 0
        assert bench.sandbox.network.mode == "allowlist"
        assert (await bench.sandbox.run("true")).network == "allowlist"


async def test_closed_is_the_default_and_reaches_nothing(tmp_path):
    async with web_server() as web, bench_of(tmp_path) as bench:
        result = await bench.sandbox.run(
            f"env | grep -ic proxy; (exec 3<>/dev/tcp/127.0.0.1/{web.port}) && echo REACHED; "
            f"curl -sS http://127.0.0.1:{web.port}/; curl -sS http://good.test/"
        )
        assert result.network == "closed" and result.output.startswith("0\n")
        assert SECRET not in result.output and "REACHED" not in result.output and web.hosts == []
        assert (await bench.host.status()).network == "closed"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exec 3<>/dev/tcp/{host}/{port} && echo REACHED", id="direct-tcp"),
        pytest.param("curl -sS -m 2 --noproxy '*' http://{host}:{port}/", id="curl-without-proxy"),
        pytest.param("curl -sS -m 2 --noproxy '*' http://2130706433:{port}/", id="decimal"),
        pytest.param("curl -sS -m 2 --noproxy '*' 'http://[::ffff:127.0.0.1]:{port}/'", id="mapped"),
        pytest.param("curl -sS -m 2 --noproxy '*' 'http://[::1]:{port}/'", id="ipv6"),
        pytest.param(
            "curl -sS -m 2 -x http://127.0.0.1:3128 --noproxy '' http://127.0.0.1:{port}/", id="proxy"
        ),
        pytest.param("curl -sS -m 2 --noproxy '' http://2130706433:{port}/", id="proxied-decimal"),
        pytest.param("curl -sS -m 2 --noproxy '' 'http://[::ffff:127.0.0.1]:{port}/'", id="proxied-mapped"),
        pytest.param("curl -sS -m 2 --noproxy '' http://0x7f.1:{port}/", id="proxied-hex"),
        pytest.param("curl -sS -m 2 --noproxy '' http://localhost:{port}/", id="proxied-localhost"),
        pytest.param(
            "curl -sS -m 2 --socks5-hostname 127.0.0.1:3128 http://127.0.0.1:{port}/", id="socks-ip"
        ),
        pytest.param("curl -sS -m 2 http://private.test:{port}/", id="private-name"),
        pytest.param("curl -sS -m 2 http://missing.test:{port}/", id="unknown-name"),
        pytest.param("curl -sS -m 2 -x http://{outer}:{port} http://good.test/", id="host-address"),
    ],
)
async def test_no_way_leads_past_the_allow_list(tmp_path, script):
    """SB-55: even with `*`, which is any public host."""
    async with web_server(host="0.0.0.0") as web:
        # With the very port, so that nothing but the address is wrong with these names.
        listed = [f"{name}:{web.port}" for name in ("private.test", "localhost")]
        await go_past(tmp_path, web, ("*", *listed), script)


async def go_past(tmp_path: Path, web: "Web", allow: tuple[str, ...], script: str) -> None:
    async with open_bench(tmp_path, *allow) as bench:
        line = script.format(host="127.0.0.1", port=web.port, outer=own_address())
        result = await bench.sandbox.run(line)
        assert SECRET not in result.output and "REACHED" not in result.output
        assert web.hosts == []
        assert (await bench.sandbox.run("echo usable")).output == "usable\n"


def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks for the way
        return str(probe.getsockname()[0])
    return "127.0.0.1"


async def test_udp_and_name_look_ups_lead_nowhere(tmp_path):
    async with open_bench(tmp_path, "*") as bench:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
            listener.bind(("0.0.0.0", 0))
            listener.settimeout(0.3)
            port = listener.getsockname()[1]
            code = f"""
import socket
for host in ("127.0.0.1", "{own_address()}", "192.0.2.1"):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, {port}))
    except OSError as error:
        print(error.errno)
try:
    socket.getaddrinfo("example.test", 80)
except OSError as error:
    print("no name")
"""
            result = await bench.sandbox.run(["python3", "-c", code])
            assert "no name" in result.output
            with pytest.raises(TimeoutError):
                listener.recv(10)


async def test_a_name_that_changes_its_address_is_asked_for_once(tmp_path):
    """Rebinding: the address that was checked is the one connected to."""
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["203.0.113.1"] if len(asked) > 1 else ["127.0.0.1"]

    async with web_server() as web:
        settings = SandboxSettings(allow=(f"rebind.test:{web.port}",))
        async with bench_of(tmp_path, settings=settings, resolve=resolve) as bench:
            output = await curl(bench, f"http://rebind.test:{web.port}/")
            assert "[403]" in output and "address not allowed" in output
            assert asked == ["rebind.test"] and web.hosts == []


async def test_the_host_header_must_be_the_name_that_was_asked_for(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        url = f"http://good.test:{web.port}/"
        tunnelled = await curl(bench, "-p", "-H", "Host: hidden.test", url)
        assert SECRET not in tunnelled and web.hosts == []
        # Absolute form: the proxy writes the Host itself.
        await curl(bench, "-H", "Host: hidden.test", url)
        assert web.hosts == [f"good.test:{web.port}"]
        assert await curl(bench, "-p", url) == f"{SECRET} [200]"


async def test_the_tls_name_must_be_the_name_that_was_asked_for(tmp_path):
    context = certificate(tmp_path)
    async with web_server(context) as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        plain = await curl(bench, "-k", f"https://good.test:{web.port}/")
        assert plain == f"{SECRET} [200]"
        code = f"""
import socket, ssl
sock = socket.create_connection(("127.0.0.1", 3128))
sock.sendall(b"CONNECT good.test:{web.port} HTTP/1.1\\r\\n\\r\\n")
print(sock.recv(100).split()[1])
context = ssl._create_unverified_context()
try:
    inside = context.wrap_socket(sock, server_hostname="hidden.test")
    inside.sendall(b"GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n")
    print("REACHED")
except OSError:
    print("cut off")
"""
        result = await bench.sandbox.run(["python3", "-c", code])
        assert result.output == "b'200'\ncut off\n" and len(web.hosts) == 1


async def test_socks_works_by_name_and_a_name_with_nul_is_refused(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        url = f"http://good.test:{web.port}/"
        assert await curl(bench, "--socks5-hostname", "127.0.0.1:3128", url) == f"{SECRET} [200]"
        code = f"""
import socket, struct
for name in (b"good.test\\0.evil.test", b"good.test\\n", b"good .test", b""):
    sock = socket.create_connection(("127.0.0.1", 3128))
    sock.sendall(b"\\x05\\x01\\x00")
    assert sock.recv(2) == b"\\x05\\x00"
    sock.sendall(b"\\x05\\x01\\x00\\x03" + bytes([len(name)]) + name + struct.pack("!H", {web.port}))
    print(sock.recv(10)[1])
"""
        result = await bench.sandbox.run(["python3", "-c", code])
        assert result.output == "2\n2\n2\n2\n"
        assert [e.host for e in bench.events if isinstance(e, Egress)][1:] == ["(not a host name)"] * 4


async def test_a_redirect_is_a_request_of_its_own(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web, "private.test"))
        web.redirect = "http://private.test/"
        output = await curl(bench, "-L", f"http://good.test:{web.port}/")
        assert "[403]" in output and "address not allowed" in output
        web.redirect = f"http://127.0.0.1:{web.port}/"
        output = await curl(bench, "-L", "--noproxy", "", f"http://good.test:{web.port}/")
        assert "[403]" in output and len(web.hosts) == 2


async def test_the_transfer_limit_of_a_session_holds_over_restarts_of_its_sandbox(tmp_path):
    async with web_server() as web:
        allow = f"good.test:{web.port}"
        async with open_bench(tmp_path, allow, max_bytes=300) as bench:
            assert SECRET in await curl(bench, f"http://good.test:{web.port}/")
            await bench.sandbox.cool_down()
            refused = ""
            for _ in range(3):
                refused = await curl(bench, f"http://good.test:{web.port}/")
            assert "sandbox.network.max_bytes" in refused


async def test_at_most_64_connections_are_open_at_once(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        code = f"""
import socket
held = []
for _ in range(70):
    sock = socket.create_connection(("127.0.0.1", 3128))
    sock.sendall(b"CONNECT good.test:{web.port} HTTP/1.1\\r\\n\\r\\n")
    held.append(sock)
def answer(sock):
    try:
        return sock.recv(12)
    except OSError:
        return b"cut off"
print(sum(b"200" in answer(sock) for sock in held))
"""
        result = await bench.sandbox.run(["python3", "-c", code])
        assert 0 < int(result.output) <= 64


async def test_a_change_of_the_rules_holds_at_once_and_closing_cuts_what_is_open(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        rules = only(web)
        network = bench.sandbox.network
        await network.change(NetworkRules())
        assert (await bench.sandbox.run("env | grep -c HTTP_PROXY")).output == "0\n"
        await network.change(rules)
        assert SECRET in await curl(bench, f"http://good.test:{web.port}/")
        code = f"""
import socket
sock = socket.create_connection(("127.0.0.1", 3128))
sock.sendall(b"CONNECT good.test:{web.port} HTTP/1.1\\r\\n\\r\\n")
sock.recv(100)
open("open", "w").close()
print(sock.recv(1))
try:
    other = socket.create_connection(("127.0.0.1", 3128))
    other.sendall(b"CONNECT good.test:{web.port} HTTP/1.1\\r\\n\\r\\n")
    print(other.recv(100))
except OSError:
    print("no proxy")
"""
        task = await bench.sandbox.background.start(["python3", "-c", code])
        await bench.shows("open")
        await network.change(NetworkRules())
        await bench.until(lambda: bool(bench.ended))
        output = bench.sandbox.background.poll(task)["output"]
        assert output in ("b''\nb''\n", "b''\nno proxy\n")
        with pytest.raises(ConfigError):
            await network.change(NetworkRules(("http://x",)))
        assert network.mode == "closed"


async def test_the_proxy_is_gone_when_the_session_has_ended(tmp_path):
    async with web_server() as web, open_bench(tmp_path, "none.test") as bench:
        await bench.sandbox.network.change(only(web))
        await bench.sandbox.run("true")
        assert bench.sandbox.network.directory is not None
        place = bench.sandbox.network.directory / "proxy.sock"
        assert place.is_socket()
        await bench.host.release(bench.branch.id)
        assert not place.exists()


async def test_what_another_server_allows_on_the_branch_is_its_own(tmp_path: Path) -> None:
    """Two servers on one data directory had one socket: the last to start decided for both (D-4, SB-27)."""
    async with web_server() as web, open_bench(tmp_path, "none.test") as first:
        host = SandboxHost(first.host.data_dir, first.host.settings)
        with Workspace(first.root, data_dir=first.host.data_dir) as workspace:
            second = Bench(first.root, workspace.open(first.branch.id), host)
            try:
                second.opened = await host.sandbox(second.branch)
                await first.sandbox.network.change(only(web))
                asked = f"http://good.test:{web.port}/"
                assert await curl(first, asked) == f"{SECRET} [200]"
                assert "[403]" in await curl(second, asked)
                assert await curl(first, asked) == f"{SECRET} [200]"
                assert "[403]" in await curl(second, asked)
            finally:
                await host.close()
            assert await curl(first, asked) == f"{SECRET} [200]"
        assert len(web.hosts) == 3


async def test_a_command_cannot_choose_its_network(tmp_path):
    async with bench_of(tmp_path) as bench:
        assert (await bench.sandbox.run("true", network="closed")).exit_code == 0
        for wanted in ("allowlist", "host", ""):
            with pytest.raises(InvalidArgument, match="only a person"):
                await bench.sandbox.run("true", network=wanted)


async def test_servers_that_a_command_starts_for_itself_are_reached_without_the_proxy(tmp_path):
    async with open_bench(tmp_path, "good.test") as bench:
        result = await bench.sandbox.run(
            "echo inside > index.html; python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & "
            "curl -sS --retry 20 --retry-connrefused --retry-delay 0 --retry-max-time 9 http://127.0.0.1:8123/"
        )
        assert "inside" in result.output
        assert bench.events == []
