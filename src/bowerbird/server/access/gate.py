"""The gate: every request and socket passes here before anything else sees it (SV-54 … SV-61).

Here: the order of the checks and their answers. Not here: the decisions (`origins.py`, `identity.py`,
`rates.py`, `overload.py`), roles (`require` in `__init__.py`), whose conversation it is (`ownership.py`).

Host (421) and Origin (403) come first, auth on or off, then preflights, the credential (401), the rate
(429), the room for new work (503). A socket with a foreign Origin or Host is refused before it is
accepted; one without a credential is accepted, told so, and closed with 4001.
"""

import re
import time
from typing import TYPE_CHECKING, Any, cast

from starlette.datastructures import Headers
from starlette.responses import Response

from bowerbird.server.access.headers import completed, cors_headers, preflight_headers, security_headers
from bowerbird.server.access.identity import Identity, Known, path_of, presented
from bowerbird.server.access.origins import Names, is_loopback
from bowerbird.server.access.overload import RETRY_S, Overload
from bowerbird.server.access.rates import Buckets, Rate
from bowerbird.server.common.context import NOBODY_ELSE
from bowerbird.server.common.errors import problem_response
from bowerbird.server.common.json_answers import encode
from bowerbird.server.http.pages import is_lost, is_ui, page

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bowerbird.server.access.identity import Presented
    from bowerbird.server.common.context import ServerContext, ServerSettings

# Open without a credential. Whoever adds a path here opens a door: a test compares the list.
OPEN_PATHS = frozenset(("/health", "/health/live", "/health/ready", "/api/auth/config"))

UNAUTHORIZED, TOO_MANY = 4001, 4029
_ADMITTING = "server.origins; behind a reverse proxy, server.trusted_proxies"
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
_NEW_CONVERSATION = re.compile(r"/api/chat/?|/api/conversations/[^/]+/fork/?")
_NEW_WORK = re.compile(
    r"/api/chat/?|/api/conversations/[^/]+/(messages|resume|compact|fork|attempts|comments)/?"
    r"|/api/schedules/[^/]+/run/?|/api/workspace/upload/?"
)
# A viewer reads; a ticket lets the viewer's own socket in, nothing more. Over MCP everything is a POST: the
# tools that do more than read are not offered to viewers.
_VIEWER_MAY_POST = frozenset(("/api/auth/ticket", "/mcp"))


class Refusal(Exception):
    """A request is answered here and goes no further."""

    def __init__(self, status: int, code: str, detail: str, retry_s: int = 0) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.retry_s = status, code, detail, retry_s

    def response(self) -> "Response":
        """Return the answer."""
        headers = {"Retry-After": str(self.retry_s)} if self.retry_s else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return problem_response(self.status, self.code, self.detail, headers=headers)


class Gate:
    """ASGI: access control.

    Args:
        app: what lies behind. context: settings, tokens, metrics.
        identity: who credentials are of; made from the context when None.
    """

    def __init__(self, app: "ASGIApp", context: "ServerContext", identity: Identity | None = None) -> None:
        settings = context.settings
        self.app = app
        self._context = context
        self._auth = settings.auth != "none"
        self._given = identity
        self._overload = Overload(settings.max_rss_mb, settings.max_lag_s)
        self._follow(settings)
        self._metrics = context.metrics
        self._requests = Buckets(Rate(*settings.request_rate))
        self._failed = Buckets(Rate(*settings.failed_rate))
        self._conversations = Buckets(Rate(*settings.new_conversation_rate))
        self._headers = security_headers(google=settings.google_client_id is not None)

    def _follow(self, settings: "ServerSettings") -> None:
        """Admit whom these settings admit; rates and the kind of auth need a restart."""
        self._settings = settings
        self._names = Names(settings.host, settings.hosts, settings.origins)
        self._identity = self._given or Identity(self._context)
        self._overload.limit(settings.max_rss_mb)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if self._context.settings is not self._settings:
            self._follow(self._context.settings)
        headers = Headers(scope=scope)
        state = cast("dict[str, Any]", scope.setdefault("state", {}))
        state["overload"] = self._overload
        credential = presented(scope)
        more = list(self._headers)
        try:
            more += self._named(scope, headers)
            if scope["type"] == "http" and _is_preflight(scope, headers):
                await self._preflight(headers, send, more)
                return
            known = await self._admitted(scope, credential)
            state["caller"] = known.caller if known is not None else None
            state["expires_at"] = known.expires_at if known is not None else None
            self._limited(scope, known)
        except Refusal as refusal:
            self._metrics.refused.labels(_LABELS.get(refusal.status, "other")).inc()
            await self._refuse(scope, receive, send, refusal, more)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = completed(message["headers"], more)
            await send(message)

        await self.app(scope, receive, with_headers)

    # ------------------------------------------------------------ checks

    def _named(self, scope: "Scope", headers: Headers) -> list[tuple[bytes, bytes]]:
        """Check Host and Origin; return the headers that let the page of an admitted origin read."""
        if len(headers.getlist("host")) > 1:  # RFC 9112, 3.2: whoever reads the other one would be misled
            raise Refusal(400, "bad_request", "a request names one host")
        host = headers.get("host")
        reached = scope.get("server")
        if not self._names.admits_host(host, reached[0] if reached else None):
            raise Refusal(421, "misdirected", "this server does not answer for that host name (server.hosts)")
        origins = headers.getlist("origin")
        if not origins:
            return []
        if len(origins) > 1:  # a proxy that reads the last one would have checked another than we do
            raise Refusal(400, "bad_request", "a request comes from one origin")
        [origin] = origins
        proxied = bool(scope["state"].get("proxied"))
        port = headers.get("x-forwarded-port") if proxied else None
        if not self._names.admits_origin(origin, host, proxied=proxied, port=port):
            raise Refusal(403, "foreign_origin", f"pages from this origin are not admitted ({_ADMITTING})")
        return cors_headers(origin)

    async def _admitted(self, scope: "Scope", credential: "Presented | None") -> Known | None:
        """Return who is calling; None where nobody needs to be known."""
        if not self._auth:
            return Known(NOBODY_ELSE)
        if self._identity.reads_metrics(scope, credential):
            return None
        path = path_of(scope)
        is_open = scope["type"] == "http" and (path in OPEN_PATHS or is_ui(path))
        known = await self._identity.known(credential) if credential is not None else None
        if known is None and credential is not None and not is_open:
            wait = self._failed.take(_address(scope), time.monotonic())
            if wait:
                raise Refusal(429, "rate_limited", "too many wrong credentials from this address", wait)
        if known is None and not is_open:
            raise Refusal(401, "unauthorized", "this needs a valid credential: Authorization: Bearer …")
        return known

    def _limited(self, scope: "Scope", known: Known | None) -> None:
        """Refuse what a role may not do at all, what comes too often, and new work when there is no room."""
        path, method = path_of(scope), str(scope.get("method") or "GET")
        changes = scope["type"] == "http" and method not in _READS
        caller = known.caller if known is not None else None
        if changes and caller is not None and caller.role == "viewer" and path not in _VIEWER_MAY_POST:
            raise Refusal(403, "forbidden", "the role viewer reads only")
        if path in OPEN_PATHS:
            return
        # The one user of a server that only this machine reaches is not a crowd.
        if self._auth or not is_loopback(_address(scope)):
            key = f"user {caller.user_id}" if self._auth and caller is not None else _address(scope)
            now = time.monotonic()
            wait = self._requests.take(key, now)
            if not wait and changes and _NEW_CONVERSATION.fullmatch(path):
                wait = self._conversations.take(key, now)
            if wait:
                raise Refusal(429, "rate_limited", "too many requests", wait)
        if changes and _NEW_WORK.fullmatch(path):
            reason = self._overload.reason()
            if reason is not None:
                raise Refusal(503, "overloaded", f"{reason}; try again", RETRY_S)

    # ------------------------------------------------------------ answers

    async def _preflight(self, headers: Headers, send: "Send", more: list[tuple[bytes, bytes]]) -> None:
        wanted = headers.get("access-control-request-headers")
        own = preflight_headers(headers["origin"], wanted)
        start = {"type": "http.response.start", "status": 204, "headers": completed(own, self._headers)}
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    async def _refuse(
        self,
        scope: "Scope",
        receive: "Receive",
        send: "Send",
        refusal: Refusal,
        more: list[tuple[bytes, bytes]],
    ) -> None:
        if scope["type"] == "websocket" and refusal.status in (401, 429):
            await _close_accepted(receive, send, refusal)
            return
        # Somebody who is not signed in and mistyped an address is told so by a page, not by JSON.
        lost = self._lost(scope) if refusal.status == 401 else None
        response = lost if lost is not None else refusal.response()
        response.raw_headers = completed(response.raw_headers, more)
        await response(scope, receive, send)

    def _lost(self, scope: "Scope") -> Response | None:
        accepted = Headers(scope=scope).get("accept", "")
        is_page = is_lost(str(scope["method"]), path_of(scope), accepted)
        return page(self._settings.root_path.rstrip("/"), status=404) if is_page else None


async def _close_accepted(receive: "Receive", send: "Send", refusal: Refusal) -> None:
    """Accept a socket only to tell it why it is closed: browsers show nothing of a refused handshake."""
    await receive()
    await send({"type": "websocket.accept"})
    body = {
        "type": "error",
        "message": refusal.detail,
        "code": refusal.code,
        "retryable": refusal.status == 429,
    }
    await send({"type": "websocket.send", "text": encode(body).decode()})
    code = UNAUTHORIZED if refusal.status == 401 else TOO_MANY
    await send({"type": "websocket.close", "code": code, "reason": refusal.code})


_LABELS = {401: "unauthorized", 403: "origin", 421: "host", 429: "rate_limited", 503: "overloaded"}


def _is_preflight(scope: "Scope", headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _address(scope: "Scope") -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
