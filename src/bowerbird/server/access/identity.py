"""From the credential of a request to its caller (SV-54, SV-55).

Here: where credentials stand in a request, who they are of, and what a route asks of its caller (`require`).
Not here: what follows when there is none (`gate.py`).
"""

import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import HTTPConnection

from bowerbird.core.forms import decode
from bowerbird.server.access.admission import Admission
from bowerbird.server.access.oidc import Refused, SignIn
from bowerbird.server.common.context import Caller, Role, caller_of
from bowerbird.server.common.errors import problem
from bowerbird.store.rows.tokens import PREFIX, find_token, make_ticket, take_ticket, unusable

if TYPE_CHECKING:
    from starlette.types import Scope

    from bowerbird.server.common.context import ServerContext
    from bowerbird.store.rows.tokens import TokenRow


_log = logging.getLogger(__name__)

_SECRET_PARAMETERS = ("token", "ticket")
_EVENT_STREAM = re.compile(r"/api/conversations/[^/]+/events")  # an EventSource sends no headers either
HIDDEN = "removed"


@dataclass(frozen=True, slots=True)
class Presented:
    """A credential as a request shows it."""

    kind: str  # bearer, token, ticket
    secret: str


@dataclass(frozen=True, slots=True)
class Known:
    """Who a credential is of; `expires_at` in seconds since the epoch, None = never."""

    caller: Caller
    expires_at: float | None = None


async def withdrawn(context: "ServerContext", credentials: set[str]) -> set[str]:
    """Return those of these credentials that count no longer: revoked, or over."""
    return await context.store.read(lambda c: unusable(c, credentials)) if credentials else set()


def presented(scope: "Scope") -> Presented | None:
    """Return the credential of a request: a bearer header, for event streams also `?ticket=`, `?token=`.

    What stands in the query is taken out of the scope, so that no log shows it.
    """
    found: Presented | None = None
    query = scope.get("query_string", b"")
    if any(name.encode() in query for name in _SECRET_PARAMETERS):
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        is_stream = scope["type"] == "websocket" or _EVENT_STREAM.fullmatch(scope["path"])
        for kind in _SECRET_PARAMETERS if is_stream else ():
            secret = next((value for name, value in pairs if name == kind), None)
            found = Presented(kind, secret) if secret else found
        shown = [(name, HIDDEN if name in _SECRET_PARAMETERS else value) for name, value in pairs]
        scope["query_string"] = urlencode(shown).encode("latin-1")
    header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if header is not None:
        scheme, _, secret = header.decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            return Presented("bearer", secret.strip())
        return Presented("bearer", "")  # something else: it admits nobody
    return found


class Identity:
    """Finds out who is calling, where auth is on.

    Args:
        context: settings and the store of tokens.
        sign_in: verifies sign-in tokens; made from the settings when None.
    """

    def __init__(self, context: "ServerContext", sign_in: SignIn | None = None) -> None:
        settings = context.settings
        self._store = context.store
        self._metrics_token = settings.metrics_token
        self._rules = Admission.of(settings)
        self._sign_in = sign_in
        if sign_in is None and settings.auth == "oidc" and settings.google_client_id:
            self._sign_in = SignIn(
                settings.oidc_issuer,
                settings.google_client_id,
                emails=settings.allowed_emails,
                domains=settings.allowed_domains,
                denied=settings.denied_users,
            )

    async def known(self, credential: Presented) -> Known | None:
        """Return who a credential is of, None when it admits nobody."""
        found = await self._found(credential)
        if found is not None and not self._rules.stays(found.caller):
            _log.info("%s is not admitted (server.denied_users)", found.caller.user_id)
            return None
        return found

    async def _found(self, credential: Presented) -> Known | None:
        secret = credential.secret
        if credential.kind == "ticket":
            raw = await self._store.write(lambda c: take_ticket(c, secret), flush=False)
            return None if raw is None else decode(raw, Known)
        if secret.startswith(PREFIX):
            row = await self._store.read(lambda c: find_token(c, secret))
            return None if row is None else Known(_caller_of(row))
        if self._sign_in is None or not secret:
            return None
        try:
            caller, until = await self._sign_in.caller(secret)
        except Refused as refused:
            _log.info("a sign-in was refused: %s", refused)
            return None
        return Known(caller, until)

    def reads_metrics(self, scope: "Scope", credential: Presented | None) -> bool:
        """Whether this is `/metrics` asked with `server.metrics_token`."""
        token = self._metrics_token
        if token is None or credential is None or not _ends_path(scope, "/metrics"):
            return False
        return hmac.compare_digest(credential.secret.encode("utf-8", "replace"), token.encode())


async def new_ticket(context: "ServerContext", caller: Caller, expires_at: float | None) -> str:
    """Return a ticket that admits this caller once, within 30 seconds."""
    raw = msgspec.json.encode(Known(caller, expires_at)).decode()
    return await context.store.write(lambda c: make_ticket(c, raw), flush=False)


def path_of(scope: "Scope") -> str:
    """Return the path of a request below the server's root path."""
    path, root = str(scope["path"]), str(scope.get("root_path") or "").rstrip("/")
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def _ends_path(scope: "Scope", path: str) -> bool:
    return path_of(scope) == path


def _caller_of(row: "TokenRow") -> Caller:
    return Caller(row.user, row.role, name=row.name, credential=row.token_id)


def shown_caller(caller: Caller) -> dict[str, Any]:
    """Return what `/api/auth/me` says of a caller."""
    said: dict[str, Any] = {"authenticated": True, "role": caller.role, "user": caller.user_id}
    named = {"email": caller.email, "name": caller.name or caller.user_id, "picture": caller.picture}
    return said | {key: value for key, value in named.items() if value}


def require(role: Role) -> Callable[[HTTPConnection], Awaitable[Caller]]:
    """Return a dependency that gives the caller, or answers 403 when `role` is more than theirs."""

    async def caller(connection: HTTPConnection) -> Caller:
        found = caller_of(connection)
        if not found.may(role):
            raise problem("forbidden", f"this needs the role {role}")
        return found

    return caller
