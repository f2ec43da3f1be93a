"""The HTTP that carries requests: proxies, large bodies, connections kept and refused (MO-29, CF-49)."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from support.model_settings import HELLO, KEY, NAMES

from bowerbird.core.errors import ModelError
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models import (
    Model,
    ModelSettings,
    ProviderSettings,
    RetryPolicy,
    Timeouts,
    complete,
    open_model,
)
from bowerbird.models.providers import connection, transport


def settings(wire: str, url: str, timeouts: Timeouts) -> ModelSettings:
    provider = ProviderSettings(api_key=KEY, base_url=url, timeouts=timeouts)
    return ModelSettings(providers={wire: provider}, retry=RetryPolicy(retries=0))


@asynccontextmanager
async def opened(wire: str, url: str, timeouts: Timeouts | None = None) -> AsyncIterator[Model]:
    model = open_model(NAMES[wire], settings(wire, url, timeouts or Timeouts()))
    try:
        yield model
    finally:
        await model.aclose()


async def test_a_proxy_of_the_environment_carries_requests_but_not_those_to_this_machine(
    wire: str, fake, open_fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CF-49: what goes to loopback goes there directly."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n"))
        writer.write(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with server, opened(wire, "http://models.invalid/v1") as model:
        with pytest.raises(ModelError) as caught:
            await complete(model, HELLO)
        assert caught.value.status == 400
    assert len(seen) == 1 and seen[0].startswith(b"POST http://models.invalid/v1/")
    fake.script({"text": "direct"})
    assert (await complete(open_fake(wire), HELLO)).message.text == "direct"
    assert len(seen) == 1


async def test_a_body_of_many_megabytes_arrives_whole(fake, open_fake, wire: str) -> None:
    """Images and long histories: one request, nothing warned about."""
    text = "x" * (6 << 20)
    fake.script({"text": "read"})
    await complete(open_fake(wire), ModelRequest((user_text(text),)))
    assert text in str(fake.requests[-1]["messages"])


async def test_a_long_body_also_goes_to_a_server_without_keys(fake) -> None:
    """MO-16: no `Authorization` is invented for it, however the body is sent."""
    keyless = ModelSettings(providers={"openai": ProviderSettings(base_url=fake.openai_url)})
    model = open_model("openai:m", keyless)
    try:
        await complete(model, ModelRequest((user_text("x" * (1 << 20)),)))
    finally:
        await model.aclose()
    assert "authorization" not in fake.headers[-1] and int(fake.headers[-1]["content-length"]) > 1 << 20


async def test_a_host_that_does_not_answer_is_a_timeout_and_a_refusal_is_not(wire: str) -> None:
    """MO-29: both wires, whatever the HTTP library calls it."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]  # they fill the queue that nobody accepts from
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        try:
            url = f"http://127.0.0.1:{port}/v1"
            async with opened(wire, url, timeouts=Timeouts(connect_s=0.2)) as model:
                with pytest.raises(ModelError) as late:
                    await complete(model, HELLO)
        finally:
            for each in waiting:
                each.close()
    assert late.value.kind == "timeout" and "within 0.2 s" in str(late.value)
    async with opened(wire, f"http://127.0.0.1:{port}/v1") as model:
        with pytest.raises(ModelError) as refused:
            await complete(model, HELLO)
    assert refused.value.kind == "network" and "cannot be reached" in str(refused.value)
    assert "Connection refused; is it running?" in str(refused.value)  # Ollama that nobody has started


async def test_a_connection_is_used_again_and_one_that_the_server_closed_is_not(wire: str) -> None:
    """A server that ends an idle connection costs no failed turn."""
    body = b'{"error": {"message": "no"}}'
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):  # then it closes
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(size)
            writer.write(
                b"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, opened(wire, f"http://127.0.0.1:{port}/v1") as model:
        for _ in range(4):
            with pytest.raises(ModelError) as caught:
                await complete(model, HELLO)
            assert caught.value.status == 400, caught.value
            await asyncio.sleep(0.05)  # the close arrives
    assert connections == 2


async def test_a_redirect_keeps_the_content_on_its_own_host_and_is_refused_where_it_would_lose_it(
    fake, open_fake, wire: str
) -> None:
    """CF-49; 307 and 308 are followed, 301 to 303 would make it a request without content."""
    path = "/other/messages" if wire == "anthropic" else "/v1/other/chat/completions"
    steps = [{"status": status, "headers": {"location": path}, "body": ""} for status in (307, 308)]
    fake.script(*steps, {"text": "arrived"})
    assert (await complete(open_fake(wire), HELLO)).message.text == "arrived"
    assert fake.paths[-1] == path and fake.requests[-1] == fake.requests[0]
    assert KEY in fake.headers[-1]["authorization"]
    fake.script(steps[0])
    with pytest.raises(ModelError, match="redirects more than 5 times"):
        await complete(open_fake(wire), HELLO)
    for status in (301, 302, 303):
        before = fake.request_count
        fake.script({"status": status, "headers": {"location": path}, "body": ""})
        with pytest.raises(ModelError, match=f"redirects to .*{path} .HTTP {status}.*set that base URL"):
            await complete(open_fake(wire), HELLO)
        assert fake.request_count == before + 1
    for elsewhere in (f"http://127.0.0.1:9{path}", f"ftp://127.0.0.1{path}", "http://[oops"):
        fake.script({"status": 307, "headers": {"location": elsewhere}, "body": ""})
        with pytest.raises(ModelError, match="redirects to"):
            await complete(open_fake(wire), HELLO)


async def test_a_proxy_that_refuses_or_cannot_be_used_is_named(wire: str, monkeypatch) -> None:
    """The environment's proxy is often what is wrong: the error says so, without its password."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"proxy-authorization: Basic dTpzZWNyZXQ=" in head.replace(b"Proxy-Auth", b"proxy-auth")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    cases = (
        (f"http://u:secret@127.0.0.1:{port}", "the proxy answers 407"),
        ("http://u:secret@127.0.0.1:1", "the proxy 127.0.0.1:1: Connection refused"),
        ("socks5://u:secret@127.0.0.1:1", "the proxy of the environment is 'socks5://127.0.0.1:1'"),
    )
    async with server:
        for proxy, said in cases:
            monkeypatch.setenv("ALL_PROXY", proxy)
            async with opened(wire, "https://models.invalid/v1") as model:
                with pytest.raises(ModelError, match=said) as caught:
                    await complete(model, HELLO)
            assert "secret" not in str(caught.value)
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        async with opened(wire, "https://models.invalid/v1") as model:
            with pytest.raises(ModelError, match="cannot be reached") as caught:
                await complete(model, HELLO)
        assert "proxy" not in str(caught.value)


async def test_a_certificate_that_nobody_vouches_for_is_named(wire: str, tmp_path) -> None:
    """MO-17: and is taken where a loopback host's check is turned off."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*own_certificate(tmp_path))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        async with opened(wire, url) as model:
            with pytest.raises(
                ModelError, match="certificate verify failed: self-signed certificate"
            ) as caught:
                await complete(model, HELLO)
        assert caught.value.kind == "network"
        provider = ProviderSettings(api_key=KEY, base_url=url, verify_tls=False)
        model = open_model(NAMES[wire], ModelSettings(providers={wire: provider}, retry=RetryPolicy(0)))
        with pytest.raises(ModelError) as answered:
            await complete(model, HELLO)
        await model.aclose()
        assert answered.value.status == 400


async def test_an_error_that_never_ends_is_told_by_its_status(
    fake, open_fake, wire: str, monkeypatch
) -> None:
    """Its text is read for ten seconds and one megabyte at most."""
    monkeypatch.setattr(connection, "LONGEST_ERROR_S", 0.2)
    monkeypatch.setattr(transport, "LARGEST_ERROR", 1000)
    fake.script({"status": 401, "body": "x" * 9, "headers": {"content-length": "10"}})
    with pytest.raises(ModelError, match="refused the key"):
        await complete(open_fake(wire), HELLO)
    fake.script({"status": 401, "body": "x" * 100_000, "headers": {"content-length": "1000000"}})
    with pytest.raises(ModelError, match=r"refused the key \(HTTP 401\): x{100}"):
        await complete(open_fake(wire), HELLO)


async def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it(fake, wire: str) -> None:
    """A line break from a file the key was read from."""
    url = fake.anthropic_url if wire == "anthropic" else fake.openai_url
    provider = ProviderSettings(api_key=f"{KEY}\nsecond", base_url=url)
    model = open_model(NAMES[wire], ModelSettings(providers={wire: provider}))
    with pytest.raises(ModelError, match="header") as caught:
        await complete(model, HELLO)
    await model.aclose()
    assert caught.value.kind == "bad_request" and KEY not in str(caught.value) and fake.request_count == 0


async def test_an_address_with_a_query_or_a_password_is_asked_as_it_is(fake) -> None:
    """Gateways want both; the key goes before a password of the address."""
    host = f"127.0.0.1:{fake.port}"
    for key, proof in ((KEY, f"Bearer {KEY}"), (None, "Basic dTpwYXNz")):
        provider = ProviderSettings(api_key=key, base_url=f"http://u:pass@{host}/gate/v1/?version=2")
        model = open_model("openai:m", ModelSettings(providers={"openai": provider}))
        await complete(model, HELLO)
        await model.aclose()
        assert fake.paths[-1] == "/gate/v1/chat/completions?version=2"
        assert fake.headers[-1]["authorization"] == proof


def own_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files = directory / "certificate.pem", directory / "key.pem"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


async def test_interim_answers_without_end_end_the_connection(wire: str) -> None:
    """They were kept until the model's time was over; under uvloop nobody else was served for seconds."""

    async def hint(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 200)
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(hint, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, opened(wire, url, Timeouts(first_event_s=5.0)) as model:
        with pytest.raises(ModelError, match=r"interim answers .* without end") as caught:
            await complete(model, HELLO)
    assert caught.value.kind == "network"


async def test_a_few_interim_answers_before_the_answer_are_none(wire: str) -> None:
    async def hint(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 20)
        writer.write(b"HTTP/1.1 418 Teapot\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hint, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, opened(wire, url) as model:
        with pytest.raises(ModelError) as caught:
            await complete(model, HELLO)
    assert caught.value.status == 418
