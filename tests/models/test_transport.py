"""The HTTP that carries requests: proxies, large bodies, connections kept and refused (MO-29, CF-49)."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
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
    """MO-29: both wires, whatever their SDK's transport calls it."""
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
