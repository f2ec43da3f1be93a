"""The endpoint of one run: takes its token, puts the real key in, and asks the vendor's host and no other.

Here: one HTTP server on a Unix socket, what it passes on, what it saw. Not here: counting (`counting`), who
may reach the socket (the sandbox's loopback leads to it).
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from yarl import URL

from bowerbird.providers.contract.errors import (
    AgentAuthError,
    AgentError,
    AgentRateLimited,
    AgentUnavailable,
)
from bowerbird.providers.programs.relay.counting import TokenCount

if TYPE_CHECKING:
    from aiohttp import ClientSession, web

KeyStyle = Literal["bearer", "x-api-key", "x-goog-api-key"]

_TOKEN_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_DROPPED = frozenset((
    "host", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade", "content-length", "authorization", "accept-encoding", "cookie",
    "forwarded", *_TOKEN_HEADERS,
))  # fmt: skip
_RETURNED = (
    "content-type", "retry-after", "request-id", "x-request-id", "openai-processing-ms", "cache-control",
)  # fmt: skip
_MOST_BODY = 64 << 20
_MOST_CALLS = 2_000
_CONNECT_S, _SILENCE_S = 10.0, 600.0
_FATAL_IN_A_ROW = 3
_CUT_S = 0.05  # zero would be for ever


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where the relay leads.

    Attributes:
        base_url: with its path; only what lies below it is asked for.
        style: how the vendor takes its key. headers: further ones that settings name.
    """

    base_url: str
    key: str = field(repr=False)
    style: KeyStyle = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def signed(self) -> dict[str, str]:
        """Return the headers that carry the key."""
        value = f"Bearer {self.key}" if self.style == "bearer" else self.key
        name = "authorization" if self.style == "bearer" else self.style
        return {name: value, **{n.lower(): v for n, v in self.headers.items()}}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use; None = no limit of this kind."""

    output_tokens: int | None = None


class Relay:
    """The relay of one run; `serve`, then `close`.

    Attributes:
        token: what the program gives in place of a key.
        input_tokens, output_tokens: counted so far. calls: answered by the vendor.
        trouble: what the vendor's host said or did that no retry mends; None so far.
        over: set as soon as there is no sense in going on.
    """

    def __init__(self, upstream: Upstream, budget: Budget | None = None) -> None:
        self.token = f"relay-{secrets.token_urlsafe(24)}"
        self.input_tokens = self.output_tokens = self.calls = 0
        self.trouble: AgentError | None = None
        self.over = asyncio.Event()
        self._upstream = upstream
        self._base = URL(upstream.base_url)
        self._budget = budget or Budget()
        self._asked = self._in_a_row = 0
        self._runner: web.AppRunner | None = None
        self._session: ClientSession | None = None
        self._answering: set[asyncio.Task[Any]] = set()

    @property
    def host(self) -> str:
        """The vendor's host, for people."""
        return self._base.authority.rpartition("@")[2]

    @property
    def path(self) -> str:
        """The path of the vendor's address, without a slash at its end."""
        return self._base.raw_path.rstrip("/")

    async def serve(self, listener: socket.socket) -> None:
        """Answer on a bound Unix socket, which is the relay's from then on."""
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, web

        timeout = ClientTimeout(total=None, connect=_CONNECT_S, sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
        self._session = ClientSession(
            timeout=timeout, trust_env=True, auto_decompress=False, cookie_jar=DummyCookieJar()
        )
        app = web.Application(client_max_size=_MOST_BODY)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_CUT_S)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def close(self) -> None:
        """Cut every connection."""
        for task in list(self._answering):  # of a program that went away, say: they would wait for the vendor
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _answer(self, request: "web.Request") -> "web.StreamResponse":
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            return await self._answered(request)
        finally:
            self._answering.discard(task)

    async def _answered(self, request: "web.Request") -> "web.StreamResponse":
        refused = self._refusal(request)
        if refused is not None:
            return _said(*refused)
        self._asked += 1
        from aiohttp import ClientError

        try:
            return await self._passed_on(request)
        except (ClientError, TimeoutError, OSError) as error:
            self._in_a_row += 1
            why = f"cannot reach {self.host}: {type(error).__name__}"
            if self._in_a_row >= _FATAL_IN_A_ROW:
                self._give_up(AgentUnavailable(why))
            return _said(502, why)

    def _refusal(self, request: "web.Request") -> tuple[int, str] | None:
        given = _token_of(request)
        # A header may hold bytes that are no text: they are no token either.
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode()):
            return 401, "this relay belongs to another run"
        path = request.rel_url.raw_path
        if not (path + "/").startswith(self.path + "/") or "/../" in path + "/" or "/./" in path + "/":
            return 404, f"the relay leads to addresses below {self.path or '/'} only"
        if request.headers.get("upgrade"):
            return 426, "the relay passes plain HTTP on"
        most = self._budget.output_tokens
        if most is not None and self.output_tokens >= most:
            return 403, f"this run used its {most:,} output tokens (max_tokens)"
        if self._asked >= _MOST_CALLS:
            return 403, f"this run made {_MOST_CALLS:,} requests, which is the limit"
        return None

    async def _passed_on(self, request: "web.Request") -> "web.StreamResponse":
        assert self._session is not None
        query = [(name, value) for name, value in request.query.items() if value != self.token]
        target = self._base.with_path(request.rel_url.raw_path, encoded=True).with_query(query)
        headers = {n: v for n, v in request.headers.items() if n.lower() not in _DROPPED}
        headers |= {"accept-encoding": "identity", **self._upstream.signed()}
        body = await request.read()
        call = self._session.request(
            request.method, target, headers=headers, data=body or None, allow_redirects=False
        )
        async with call as answer:
            self.calls += 1
            self._note(answer.status, answer.headers.get("retry-after"))
            if answer.status in (401, 403):  # some vendors quote a piece of the key
                return _said(answer.status, f"{self.host} rejected the key that Bowerbird holds")
            return await self._streamed(request, answer)

    async def _streamed(self, request: "web.Request", answer: object) -> "web.StreamResponse":
        from aiohttp import ClientResponse, web

        assert isinstance(answer, ClientResponse)
        kept = {n: answer.headers[n] for n in _RETURNED if n in answer.headers}
        limits = {n: v for n, v in answer.headers.items() if "ratelimit" in n.lower()}
        back = web.StreamResponse(status=answer.status, headers={**kept, **limits})
        count = TokenCount(streamed="event-stream" in answer.headers.get("content-type", ""))
        await back.prepare(request)
        try:
            async for chunk in answer.content.iter_any():
                count.feed(chunk)
                with contextlib.suppress(ConnectionError):  # the program went away; what it used still counts
                    await back.write(chunk)
        finally:
            found = count.counted()
            self.input_tokens += found.input_tokens
            self.output_tokens += found.output_tokens
        with contextlib.suppress(ConnectionError):
            await back.write_eof()
        return back

    def _note(self, status: int, retry_after: str | None) -> None:
        """Remember what the vendor says; a key that is rejected will be so again."""
        if status in (401, 403):
            self._give_up(AgentAuthError(f"{self.host} rejected the key ({status})"))
        elif status == 429:
            wait = float(retry_after) if retry_after and retry_after.isdigit() else None
            self._in_a_row += 1
            if self._in_a_row >= _FATAL_IN_A_ROW:
                self._give_up(AgentRateLimited(f"{self.host} asks to wait (429)", wait))
        else:
            self._in_a_row = 0

    def _give_up(self, error: AgentError) -> None:
        self.trouble = self.trouble or error
        self.over.set()


def _token_of(request: "web.Request") -> str:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    for name in _TOKEN_HEADERS:
        if name in request.headers:
            return request.headers[name].strip()
    return request.query.get("key", "")


def _said(status: int, message: str) -> "web.Response":
    """Return an error in a form that reads as one on every vendor's wire."""
    from aiohttp import web

    error = {"type": "relay_error", "message": message, "code": status}
    return web.json_response({"type": "error", "error": error}, status=status)
