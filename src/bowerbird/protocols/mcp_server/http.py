"""The MCP server over streamable HTTP (PT-9, PT-10).

Here: sessions of the protocol and whose they are, requests under way, their end. Not here: who may come in
(`server/access` has decided that before), tools.
"""

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import Response

from bowerbird.protocols.mcp_server.framing import fault_of, without_session

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventStore
    from starlette.types import Message, Receive, Scope, Send

MOST_BYTES = 4 << 20
MOST_SESSIONS = 1_000
IDLE_S = 1_800.0
LOOK_S = 1.0
_METHODS = ("GET", "POST", "DELETE")
_SESSION, _VERSION = b"mcp-session-id", b"mcp-protocol-version"


@dataclass(frozen=True, slots=True)
class Names:
    """Names and origins under which the server is reached."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass(slots=True)
class _Session:
    user: AuthenticatedUser
    used: float
    under_way: int = 0


@dataclass(slots=True)
class _Visit:
    """A request under way."""

    scope: "Scope"
    cancel: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    started: bool = False


Judge = Callable[[Sequence["Scope"]], Awaitable[Sequence[bool]]]


class HttpDoor:
    """ASGI: `/mcp`. Made and used in one event loop; `open` first, `aclose` at the end.

    Args:
        server: what is served.
        user_of: names the user of a request, "" for the one user of a server without auth.
        names: names and origins that are admitted now.
        stay: tells for requests under way whether their credentials still count; asked now and then.
        most_sessions: of the era that has them; the idle one unused for longest makes room.
        event_store, retry_ms: for streams that are taken up again; the product has none.
    """

    def __init__(
        self,
        server: Server[Any],
        *,
        user_of: "Callable[[Scope], str]",
        names: Callable[[], Names],
        stay: "Judge",
        most_sessions: int = MOST_SESSIONS,
        event_store: "EventStore | None" = None,
        retry_ms: int | None = None,
    ) -> None:
        self._user_of, self._names, self._stay = user_of, names, stay
        self._security = TransportSecuritySettings(enable_dns_rebinding_protection=True)
        self._manager = StreamableHTTPSessionManager(
            server,
            event_store=event_store,
            retry_interval=retry_ms,
            security_settings=self._security,
            session_idle_timeout=IDLE_S,
            max_request_body_size=MOST_BYTES,
            max_sessions=most_sessions,
        )
        self._most = most_sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._visits: dict[int, _Visit] = {}
        self._numbers = itertools.count()
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin; sessions live in a task of their own."""
        opened = asyncio.Event()
        self._owner = asyncio.create_task(self._own(opened), name="mcp sessions")
        await opened.wait()

    async def aclose(self) -> None:
        """End every request and session; may be called more than once."""
        self._closing.set()
        for visit in tuple(self._visits.values()):
            visit.cancel.cancel()
        if self._looking is not None:
            self._looking.cancel()
        if self._owner is not None:
            await asyncio.wait((self._owner,))

    async def _own(self, opened: asyncio.Event) -> None:
        async with self._manager.run():
            opened.set()
            await self._closing.wait()

    # ------------------------------------------------------------ requests

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if self._closing.is_set():
            await Response("the server is shutting down", 503)(scope, receive, send)
            return
        visit, number = _Visit(scope), next(self._numbers)
        self._visits[number] = visit
        self._begin_looking()
        try:
            with visit.cancel:
                await self._answer(visit, receive, send)
            if visit.cancel.cancelled_caught:
                await self._sent_away(visit, receive, send)
        finally:
            del self._visits[number]

    async def _answer(self, visit: _Visit, receive: "Receive", send: "Send") -> None:
        scope = visit.scope
        # The parser before us leaves white space behind a value (RFC 9110, 5.5).
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        user = self._user(scope)
        scope["user"] = user
        gone = scope.setdefault("state", {})["mcp_gone"] = asyncio.Event()
        self._follow(scope)
        asked = _header(scope, _SESSION)
        read: deque[Message] = deque()
        if not _is_modern(scope):
            body: bytes | None = b""
            if scope["method"] == "POST":
                body, read = await _read_ahead(receive)
            refused = _refused(scope["method"], body, asked)
            if refused is not None:
                await refused(scope, receive, send)
                return
        if asked is None and not _is_modern(scope):
            await self._make_room()

        async def watched() -> "Message":
            message = read.popleft() if read else await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        async def noted(message: "Message") -> None:
            if message["type"] == "http.response.start":
                visit.started = True
                self._note(message, asked, user)
            await send(message)

        try:
            with self._used(asked):
                await self._manager.handle_request(scope, watched, noted)
        finally:
            gone.set()  # also where it is ended from here: a session's calls run in a task of its own

    async def _sent_away(self, visit: _Visit, receive: "Receive", send: "Send") -> None:
        if not visit.started:
            await Response("this credential counts no longer", 401)(visit.scope, receive, send)
            return
        with contextlib.suppress(RuntimeError, OSError):  # the answer was whole already, or nobody is there
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _user(self, scope: "Scope") -> AuthenticatedUser:
        name = self._user_of(scope)
        return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[], subject=name))

    def _follow(self, scope: "Scope") -> None:
        """Let the SDK's own check of Host and Origin know what the server admits now."""
        names = self._names()
        reached = scope.get("server")
        hosts = [*names.hosts, *([str(reached[0])] if reached else [])]
        bare = dict.fromkeys(f"[{host}]" if ":" in host and "[" not in host else host for host in hosts)
        self._security.allowed_hosts[:] = [*bare, *(f"{host}:*" for host in bare)]
        own = [f"{scheme}://{host}" for host in bare for scheme in ("http", "https")]
        self._security.allowed_origins[:] = [*names.origins, *own, *(f"{one}:*" for one in own)]

    # ------------------------------------------------------------ sessions

    @contextlib.contextmanager
    def _used(self, session_id: str | None) -> Any:
        session = self._sessions.get(session_id) if session_id is not None else None
        if session is None or session_id is None:
            yield
            return
        session.under_way += 1
        try:
            yield
        finally:
            session.under_way -= 1
            session.used = time.monotonic()
            if session_id in self._sessions:
                self._sessions.move_to_end(session_id)

    def _note(self, message: "Message", asked: str | None, user: AuthenticatedUser) -> None:
        """Keep account of the sessions that there are."""
        if asked is not None:
            if message["status"] == 404:
                known = self._sessions.get(asked)
                if known is not None and known.user.access_token.client_id == user.access_token.client_id:
                    del self._sessions[asked]
            return
        made = next((value for name, value in message["headers"] if name.lower() == _SESSION), None)
        if made is not None and message["status"] < 400:
            self._sessions[made.decode("latin-1")] = _Session(user, time.monotonic())

    async def _make_room(self) -> None:
        """End the idle session that was not used for longest when there are as many as there may be."""
        now = time.monotonic()
        over = [name for name, one in self._sessions.items() if not one.under_way and now - one.used > IDLE_S]
        for name in over:  # the SDK has ended these
            del self._sessions[name]
        if len(self._sessions) < self._most:
            return
        name = next((name for name, session in self._sessions.items() if not session.under_way), None)
        if name is not None:
            await self._end(name, self._sessions.pop(name))

    async def _end(self, name: str, session: _Session) -> None:
        host = self._security.allowed_hosts[0].encode()
        headers = [(b"host", host), (_SESSION, name.encode("latin-1"))]
        scope: dict[str, Any] = {
            "type": "http", "method": "DELETE", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"",
            "headers": headers, "http_version": "1.1", "scheme": "http", "user": session.user, "state": {},
        }  # fmt: skip

        async def nothing() -> "Message":
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(_: "Message") -> None:
            return None

        await self._manager.handle_request(scope, nothing, unheard)

    # ------------------------------------------------------------ credentials

    def _begin_looking(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="mcp credentials")

    async def _look(self) -> None:
        """End requests whose credential was taken away or is over; streams may stay open for hours."""
        while self._visits:
            await asyncio.sleep(LOOK_S)
            visits = tuple(self._visits.values())
            for visit, stays in zip(visits, await self._stay([v.scope for v in visits]), strict=True):
                if not stays:
                    visit.cancel.cancel()


def _refused(method: str, body: bytes | None, session: str | None) -> Response | None:
    """Return the answer to what is no message, or has no session and begins none.

    The SDK makes a session of whatever names none, also of what it then refuses.
    """
    if method not in _METHODS:
        allowed = ", ".join(_METHODS)
        return Response(f"this address takes {allowed}", 405, {"Allow": allowed}, "text/plain")
    if body is None or len(body) > MOST_BYTES:
        return None  # the SDK's to refuse
    fault = fault_of(body) if method == "POST" else None
    if fault is None and session is None:
        fault = without_session(body)
    if fault is None:
        return None
    return Response(fault.model_dump_json(by_alias=True), 400, media_type="application/json")


async def _read_ahead(receive: "Receive") -> "tuple[bytes | None, deque[Message]]":
    """Return the body of a request, and the messages that it came in.

    None instead of one whose sender is gone, and of one that is too long: that is the SDK's to refuse.
    """
    read: deque[Message] = deque()
    size = 0
    while size <= MOST_BYTES:
        message = await receive()
        read.append(message)
        if message["type"] != "http.request":
            return None, read
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(one.get("body", b"") for one in read), read
    return None, read


def _header(scope: "Scope", name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def _is_modern(scope: "Scope") -> bool:
    version = _header(scope, _VERSION)
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
