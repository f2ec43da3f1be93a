"""The proxy through which a sandbox with an allow-list reaches hosts (SB-28, SB-29).

HTTP CONNECT, absolute-form HTTP and SOCKS5 by name arrive over a Unix socket that `inside/bridge.py`
offers on the sandbox's loopback. A name is resolved here, once, and the connection goes to that very
address; so a name that changes between two look-ups leads nowhere else. Not here: who may ask for what
(`egress_policy`).
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from bowerbird.core.addresses import is_public
from bowerbird.core.events import Egress
from bowerbird.sandbox.network import proxy_wire as wire
from bowerbird.sandbox.network.egress_policy import EgressPolicy, literal, normal_name
from bowerbird.sandbox.network.proxy_http import Refused, SecondRequest, one_request
from bowerbird.sandbox.network.resolving import Resolver, system_resolver

MOST_CONNECTIONS = 64
_CHUNK = 1 << 16
_HELLO_S, _CONNECT_S = 10.0, 10.0
_LONGEST_HELLO = 1 << 16


def is_own(address: str) -> bool:
    """Whether `address` is one of this host's: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


class ProxyLimits(msgspec.Struct, frozen=True):
    """Bounds of one session: open connections at once, bytes in both directions together."""

    connections: int = MOST_CONNECTIONS
    total_bytes: int = 1 << 30


class EgressProxy:
    """Listens on a Unix socket until closed; one per sandbox with an allow-list.

    Args:
        policy: what may be asked for; may be replaced while running (`policy` attribute).
        on_egress: hears of every request, refused ones too.
        private_hosts: names that may lead to private addresses, for test hosts a person listed.
        resolve: finds addresses; the system's resolver unless a test gives another.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        on_egress: Callable[[Egress], None],
        *,
        limits: ProxyLimits | None = None,
        private_hosts: frozenset[str] = frozenset(),
        resolve: Resolver = system_resolver,
    ) -> None:
        self.policy = policy
        self._on_egress = on_egress
        self._limits = limits or ProxyLimits()
        self._private = private_hosts
        self._resolve = resolve
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.bytes_moved = 0

    async def start(self, listener: socket.socket) -> None:
        """Serve a bound Unix socket, which is the proxy's from now on; its directory keeps others out."""
        self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=_LONGEST_HELLO)

    async def close(self) -> None:
        """Stop listening and cut every open connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError):
            pass  # the client went away or spoke no proxy protocol; what it asked was reported
        except asyncio.CancelledError:
            pass  # by `close`; what started this task would log it as an error (asyncio up to 3.11)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HELLO_S):
            asked = await wire.read_request(reader, writer)
        host = normal_name(asked.host)
        why = self._refusal(host, asked.port)
        if why is None and host is not None:
            target = await self._connect(host, asked.port)
            if isinstance(target, str):
                why = target
            else:
                await self._relay(asked, host, reader, writer, target)
                return
        shown = host if host is not None else "(not a host name)"
        self._on_egress(Egress(shown, asked.port, f"refused: {why}"))
        await wire.refuse(asked, writer, f"{shown}:{asked.port} refused: {why}")

    def _refusal(self, host: str | None, port: int) -> str | None:
        if host is None:
            return "this is not a host name"
        if len(self._tasks) > self._limits.connections:
            return f"more than {self._limits.connections} connections at once"
        if self.bytes_moved >= self._limits.total_bytes:
            return "the session's transfer limit is used up (sandbox.network.max_bytes)"
        if not self.policy.admits(host, port):
            return "not in the allow-list (sandbox.network.allow)"
        return None

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | str:
        """Resolve once, check every address, connect to the first; a text says why not."""
        address = literal(host)
        try:
            addresses = [str(address)] if address else await self._resolve(host, port)
        except OSError:
            return "the name does not resolve"
        if host not in self._private:
            for each in addresses:
                if not is_public(each) or is_own(each):
                    return "address not allowed"
        for each in addresses[:4]:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(each, port)
        return "cannot connect"

    async def _relay(
        self,
        asked: wire.Request,
        host: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        far_reader, far_writer = target
        counts = [0, 0]
        verdict = "allowed"
        try:
            await wire.accept(asked, writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(far_reader, writer, counts, 0))
                await self._forward(asked, host, reader, far_writer, counts)
        except* Refused as refused:
            verdict = f"refused: {refused.exceptions[0]}"
        except* _LimitReached:
            verdict = "refused: the session's transfer limit is used up (sandbox.network.max_bytes)"
        except* OSError:
            pass  # one of the two ends went away
        finally:
            far_writer.close()
            self._on_egress(Egress(host, asked.port, verdict, counts[0], counts[1]))

    async def _forward(
        self,
        asked: wire.Request,
        host: str,
        reader: asyncio.StreamReader,
        far: asyncio.StreamWriter,
        counts: list[int],
    ) -> None:
        """Pass on what the client sends, as far as it can be checked."""
        if asked.kind == "http":
            await self._one_request(asked, host, asked.head, reader, far, counts)
            return
        opening = await wire.opening(asked, host, reader)
        if opening.kind == "http":
            await self._one_request(asked, host, opening.first, reader, far, counts)
            return
        await self._send(opening.first, far, counts, 1)
        await self._pump(reader, far, counts, 1)

    async def _one_request(
        self,
        asked: wire.Request,
        host: str,
        first: bytes,
        reader: asyncio.StreamReader,
        far: asyncio.StreamWriter,
        counts: list[int],
    ) -> None:
        request = one_request(first, reader.read, host, asked.port, absolute=asked.kind == "http")
        try:
            async with aclosing(request) as pieces:
                async for piece in pieces:
                    await self._send(piece, far, counts, 1)
        except SecondRequest as refused:  # the answer to the first one still comes
            self._on_egress(Egress(host, asked.port, f"refused: {refused}"))
            while await reader.read(_CHUNK):
                pass  # nobody gets it
        with contextlib.suppress(OSError):
            far.write_eof()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, counts: list[int], which: int
    ) -> None:
        while chunk := await source.read(_CHUNK):
            await self._send(chunk, sink, counts, which)
        with contextlib.suppress(OSError):
            sink.write_eof()

    async def _send(self, chunk: bytes, sink: asyncio.StreamWriter, counts: list[int], which: int) -> None:
        counts[which] += len(chunk)
        self.bytes_moved += len(chunk)
        if self.bytes_moved > self._limits.total_bytes:
            raise _LimitReached
        sink.write(chunk)
        await sink.drain()


class _LimitReached(Exception):
    """The session moved as many bytes as it may."""
