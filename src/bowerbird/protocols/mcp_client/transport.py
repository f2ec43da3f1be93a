"""The streams of messages to a server, by any of the three transports (PT-17).

Here: framing for stdio, the HTTP client with its headers. Not here: what messages mean (`connection.py`).
"""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage

from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_client.asked import bounded
from bowerbird.protocols.mcp_client.child import LARGEST_LINE, Child, Ring
from bowerbird.protocols.mcp_client.http_bounds import IDENTITY, hold_to_bounds, log_rarely
from bowerbird.protocols.mcp_client.logins import LoginNeeded
from bowerbird.protocols.mcp_client.messages import MOST_PARTS, is_readable, read_message
from bowerbird.protocols.mcp_client.spec import ServerSpec

Streams = tuple[Any, Any]  # the SDK's pair: messages from the server, messages to it


class Pipes(Protocol):
    """A started server that speaks over pipes; `close` ends it."""

    @property
    def stdin(self) -> asyncio.StreamWriter: ...
    @property
    def stdout(self) -> asyncio.StreamReader: ...
    async def close(self) -> None: ...


Start = Callable[[ServerSpec, Ring], Awaitable[Pipes]]

_CONNECT_S = 10.0
_STREAM_SILENCE_S = 300.0


def open_streams(
    spec: ServerSpec, ring: Ring, ended: asyncio.Event, start: Start = Child.start
) -> AbstractAsyncContextManager[Streams]:
    """Return the transport of `spec`, not yet entered; leaving it ends the server or the connection.

    Args:
        ring: takes what a started server says on stderr, and lines on stdout that are no messages.
        ended: set when a started server has closed its stdout.
        start: starts a server of the stdio transport.
    """
    if spec.transport == "stdio":
        return _questions_bounded(_stdio(spec, ring, ended, start), ring)
    log_rarely()
    if spec.transport == "sse":
        headers = {**IDENTITY, **spec.headers}
        sse = sse_client(spec.url, headers, timeout=_CONNECT_S, httpx_client_factory=_bounded_client(spec))
        return _questions_bounded(sse, ring)
    return _questions_bounded(_http(spec), ring)


@asynccontextmanager
async def _questions_bounded(
    transport: AbstractAsyncContextManager[Streams], ring: Ring
) -> AsyncGenerator[Streams, None]:
    async with transport as streams:
        yield bounded(streams, ring)


def _bounded_client(spec: ServerSpec) -> Callable[..., httpx2.AsyncClient]:
    def made(
        headers: dict[str, Any] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        client = create_mcp_http_client(headers, timeout, auth)
        client.event_hooks = {"response": [hold_to_bounds, _lets_in(spec, is_signed_in=False)]}
        return client

    return made


@asynccontextmanager
async def _http(spec: ServerSpec) -> AsyncGenerator[Streams, None]:
    timeout = httpx2.Timeout(_CONNECT_S, read=max(_STREAM_SILENCE_S, spec.call_timeout_s))
    options: dict[str, Any] = {"headers": {**IDENTITY, **spec.headers}, "timeout": timeout}
    if _is_loopback(spec.url):
        options["trust_env"] = False  # a proxy of the environment cannot reach this machine
    auth = await _auth(spec) if spec.oauth is not None else None
    if auth is not None:
        options["auth"] = auth
    hooks = [hold_to_bounds, _lets_in(spec, is_signed_in=auth is not None)]
    async with (
        httpx2.AsyncClient(**options, event_hooks={"response": hooks}) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=LARGEST_LINE) as streams,
    ):
        yield streams


async def _auth(spec: ServerSpec) -> httpx2.Auth | None:
    from bowerbird.protocols.mcp_client.oauth import kept_auth  # costs what it signs with

    return await to_thread(kept_auth, spec)


def _lets_in(spec: ServerSpec, *, is_signed_in: bool) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook that ends a session which is refused at its start, and says what to do.

    Later a refusal is an answer to one request, and the SDK passes it on; a sign-in renews itself on one.
    """
    was_let_in = is_signed_in

    async def look(response: httpx2.Response) -> None:
        nonlocal was_let_in
        if not was_let_in and response.status_code in (401, 403):
            raise LoginNeeded(way_in(spec, response.status_code))
        was_let_in = was_let_in or response.is_success

    return look


def way_in(spec: ServerSpec, status: int) -> str:
    """Return what a person does about a server that lets nobody in."""
    place = f"mcp_servers.{spec.name}"
    if any(name.lower() == "authorization" for name in spec.headers):
        return (
            f"it refuses what is sent to it (HTTP {status}); check {place}.authorization_token, or "
            f"{place}.headers"
        )
    token = f"{place}.authorization_token, or {place}.headers"
    if spec.oauth is None:
        return f"it wants a credential (HTTP {status}); set {token}"
    return f"it asks for a sign-in: bowerbird mcp login {spec.name}; where it takes a token, set {token}"


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@asynccontextmanager
async def _stdio(
    spec: ServerSpec, ring: Ring, ended: asyncio.Event, start: Start
) -> AsyncGenerator[Streams, None]:
    child = await start(spec, ring)
    heard, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, told = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, child, heard, ring, ended)
            tasks.start_soon(_write, child, told, heard)
            try:
                yield inbound, outbound
            finally:
                # Shielded, bounded: whoever cancels us must not leave a process behind.
                with anyio.CancelScope(shield=True):
                    inbound.close()  # the reader drains from now on, so a server that talks can end
                    await child.close()
                tasks.cancel_scope.cancel()
    finally:
        for stream in (heard, inbound, outbound, told):
            stream.close()


async def _read(child: Pipes, heard: Any, ring: Ring, ended: asyncio.Event) -> None:
    try:
        async with heard:
            while True:
                line = await child.stdout.readuntil(b"\n")
                if not is_readable(line):
                    ring.add(
                        f"[a message has over {MOST_PARTS:,} parts; the connection was ended]\n".encode()
                    )
                    break
                try:
                    message = read_message(line)
                except ValueError:
                    ring.add(b"[stdout] " + line)  # noise: some servers print there
                    continue
                try:
                    await heard.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    continue  # the session is gone; go on reading, so that the server can end
    except asyncio.LimitOverrunError:
        ring.add(b"[a message of the server is over 16 MiB; the connection was ended]\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the server has closed its stdout
    finally:
        ended.set()


async def _write(child: Pipes, told: Any, heard: Any) -> None:
    try:
        async with told:
            async for item in told:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.stdin.write(text.encode() + b"\n")
                await child.stdin.drain()
    except (anyio.ClosedResourceError, OSError, RuntimeError):  # uvloop's word for a closed pipe
        await heard.aclose()  # the session sees the end instead of waiting for answers
