"""Errors on the wire: one form, one table from our types to statuses (SV-1).

Here: the form, the table, what becomes of an exception nobody expected. Not here: which operation
raises what; closing codes of sockets (`socket/`).

`{"detail": "text", "code": "snake_case"}`; for validation `detail` is `[{loc, msg, type}]`, `code` `invalid`.
A message never shows a traceback, SQL, an absolute path of the server or a secret: messages of the store
are replaced, the others are masked by `said`.
"""

import errno
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from bowerbird.core import errors as core
from bowerbird.core.ids import new_id
from bowerbird.core.processes import descriptors
from bowerbird.server.common.safe_text import in_wire_words, said
from bowerbird.store.sql.patience import LOOKING_S, READ_PATIENCE_S

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger(__name__)

JSON = "application/json"


class Problem(HTTPException):
    """An answer that is an error; raise it anywhere in a route.

    Attributes:
        code: snake_case. extra: further members of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str | list[dict[str, Any]],
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, cast("str", detail), dict(headers) if headers else None)
        self.code = code
        self.extra = dict(extra or {})

    def response(self) -> Response:
        """Return the answer itself."""
        return problem_response(
            self.status_code, self.code, self.detail, headers=self.headers, extra=self.extra
        )


def problem(
    code: str,
    detail: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Problem:
    """Return the error to raise for `code`; its status is that of the table unless given.

    Example:
        >>> problem("rate_limited", "too many requests", headers={"Retry-After": "3"}).status_code
        429
    """
    return Problem(status or STATUS.get(code, 400), code, detail, headers=headers, extra=extra)


def invalid(loc: Sequence[str | int], message: str, kind: str = "value_error") -> Problem:
    """Return a 422 about one member.

    Args:
        loc: where it is: `("body", "title")`, `("query", "limit")`.
    """
    return Problem(422, "invalid", [{"loc": list(loc), "msg": message, "type": kind}])


def problem_response(
    status: int,
    code: str,
    detail: str | list[dict[str, Any]],
    *,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """Return an error as a response, for places that no route encloses (middleware)."""
    body: dict[str, Any] = {"detail": detail, "code": code, **dict(extra or {})}
    return Response(
        msgspec.json.encode(body), status, headers=dict(headers) if headers else None, media_type=JSON
    )


STATUS: Mapping[str, int] = {
    "bad_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "key_reused": 409,
    "not_running": 409,
    "already_answered": 409,
    "stale": 409,
    "landing_refused": 409,
    "nothing_to_land": 409,
    "conflict": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "range_not_satisfiable": 416,
    "misdirected": 421,
    "rate_limited": 429,
    "internal_error": 500,
    "overloaded": 503,
    "not_ready": 503,
    "storage_full": 507,
}

# The most derived class wins. None as text = the error's own message, masked.
_KNOWN: Mapping[type[BaseException], tuple[int, str | None]] = {
    core.UnknownSession: (404, None),
    core.NoPendingRequest: (404, None),
    core.TurnRunning: (409, None),
    core.AlreadyAnswered: (409, None),
    core.SessionError: (409, None),
    core.NotAllowed: (403, None),
    core.NotFound: (404, None),
    core.Hidden: (404, None),
    core.PathEscape: (403, None),
    core.ReadOnly: (403, None),
    core.Stale: (409, None),
    core.LandingRefused: (409, None),
    core.BranchBusy: (409, None),
    core.LimitExceeded: (413, None),
    core.MessageTooLarge: (413, None),
    core.InvalidWorkspace: (409, None),  # it is registered, or was there when the conversation began
    core.InvalidPath: (404, None),
    core.WorkspaceError: (409, None),
    core.ConfigError: (503, None),
    core.ExtraMissing: (501, None),
    core.ModelError: (502, None),
    core.SandboxUnavailable: (503, None),
    core.StorageFull: (507, "the disk is full, or less than store.min_free_mb is free; nothing was stored"),
    core.DataGone: (503, "the data directory is gone; bring it back and restart the server"),
    core.StoreBusy: (503, "the database is busy; try again"),
    core.LeaseLost: (409, "another process took this conversation over; try again"),
    core.StoreError: (503, "the database refused the operation; the server's log says why"),
}
_RETRY_S = {"store_busy": 2}
_FULL = "the disk is full; free some space and send it again"
_KEPT_OUT = "the system keeps the server from a file that it needs ({}); its log names the file"
# What the system refused, wherever in our code that was.
_SYSTEM: Mapping[int, tuple[int, str, str]] = {
    errno.ENOSPC: (507, "storage_full", _FULL),
    errno.EDQUOT: (507, "storage_full", _FULL),
    errno.EACCES: (503, "no_access", _KEPT_OUT.format("permission denied")),
    errno.EPERM: (503, "no_access", _KEPT_OUT.format("not permitted")),
    errno.EROFS: (503, "no_access", _KEPT_OUT.format("its disk is read-only")),
}


def problem_of(error: BaseException) -> Problem | None:
    """Return how an error of ours is answered, None for one that is not ours."""
    if isinstance(error, core.QueueFull):
        retry = {"Retry-After": str(max(1, round(error.retry_after_s)))}
        return Problem(503, "overloaded", in_wire_words(said(str(error))), headers=retry)
    if (lack := descriptors.ran_out(error)) is not None:
        return Problem(503, "overloaded", descriptors.words(lack), headers={"Retry-After": "2"})
    if isinstance(error, OSError) and (known := _SYSTEM.get(error.errno or 0)) is not None:
        status, code, text = known
        return Problem(status, code, text)
    if isinstance(error, core.InvalidArgument) and type(error) not in _KNOWN:
        return invalid(("body",), said(str(error)))
    for kind in type(error).__mro__:
        if kind not in _KNOWN or not isinstance(error, core.BowerbirdError):
            continue
        status, text = _KNOWN[kind]
        retry_s = _RETRY_S.get(error.code)
        extra = {"refused": error.refused} if isinstance(error, core.LandingRefused) else None
        headers = {"Retry-After": str(retry_s)} if retry_s else None
        own = text or said(str(error))
        detail = in_wire_words(own) if isinstance(error, core.SessionError) else own
        return Problem(status, error.code, detail, headers=headers, extra=extra)
    return None


def _cause(app: Any, error: Exception) -> Exception:
    """Return what lies behind an error of the file system: a lost data directory, or `error` itself."""
    if not isinstance(error, OSError | core.WorkspaceError) or not app.state.context.store.space.is_gone():
        return error
    return core.DataGone(f"the data directory is gone ({error})")


def internal_error(error: BaseException, where: str) -> Response:
    """Log an error nobody expected and return the 500 that names the log line."""
    request_id = new_id("req")
    _log.error("%s failed [request_id %s]", where, request_id, exc_info=error)
    return problem_response(
        500,
        "internal_error",
        "something went wrong in the server; its log has the details under this request_id",
        extra={"request_id": request_id},
    )


def handle_errors(app: "FastAPI", lost: Callable[["Request"], Response | None] = lambda _: None) -> None:
    """Answer every exception of `app` in the one form; all but our own types are 500s.

    Args:
        lost: gives the answer to a request for an address that nothing has; None = the usual form.
    """
    from fastapi.exceptions import RequestValidationError

    async def ours(request: "Request", error: Exception) -> Response:
        found = problem_of(_cause(app, error))
        if found is None:
            return internal_error(error, f"{request.method} {request.url.path}")
        if found.status_code >= 500:
            _log.warning("%s %s: %s", request.method, request.url.path, error)
        return found.response()

    async def http(request: "Request", error: Exception) -> Response:
        shown = lost(request) if getattr(error, "status_code", None) == 404 else None
        if shown is not None and not isinstance(error, Problem):
            return shown
        return _http_response(request, cast("HTTPException", error))

    async def validation(_: "Request", error: Exception) -> Response:
        rows = cast("RequestValidationError", error).errors()
        detail = [
            {"loc": [_plain(part) for part in row["loc"]], "msg": said(str(row["msg"])), "type": row["type"]}
            for row in rows
        ]
        return problem_response(422, "invalid", detail)

    app.add_exception_handler(core.BowerbirdError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, validation)


def _plain(part: object) -> str | int:
    return part if isinstance(part, str | int) else str(part)


_NAMES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "unsupported_media_type",
    416: "range_not_satisfiable",
}


def _http_response(request: "Request", error: HTTPException) -> Response:
    if isinstance(error, Problem):
        return error.response()
    status = error.status_code
    headers = dict(error.headers or {})
    detail = str(error.detail)
    if status == 400 and "parsing the body" in detail:  # FastAPI's words for bytes that are no text
        return invalid(("body",), "the body cannot be read as JSON", "json_invalid").response()
    if status == 404:
        detail = f"there is nothing at {request.url.path}"
    elif status == 405:
        headers["Allow"] = ", ".join(methods_at(request.app, str(request.scope["path"])))
        detail = f"{request.method} is not possible here; possible: {headers['Allow']}"
    return problem_response(status, _NAMES.get(status, "error"), detail, headers=headers)


def methods_at(app: Any, path: str) -> list[str]:
    """Return every method that some route of `app` has for a path, in order of the alphabet."""
    patterns: Sequence[tuple[re.Pattern[str], Collection[str]]] = app.state.patterns
    found = {method for pattern, methods in patterns if pattern.match(path) for method in methods}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


class Guard:
    """ASGI: the outermost layer; what gets this far is answered with a 500 and is in the log."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: "Message") -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        if scope["method"] in ("GET", "HEAD") and not scope["path"].endswith("/events"):
            READ_PATIENCE_S.set(LOOKING_S)  # of this request's own context
        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            return  # in the middle of its body: nobody is left to answer, and nothing failed here
        except Exception as error:  # noqa: BLE001 - every bug ends here: an id for the client, a traceback in the log
            found = error if isinstance(error, Problem) else problem_of(_cause(scope["app"], error))
            where = f"{scope['method']} {scope['path']}"
            if started:
                _log.error("%s failed after its answer had begun", where, exc_info=error)
                return
            if found is not None and isinstance(error, OSError):
                _log.warning("%s: %s", where, error)
            response = found.response() if found is not None else internal_error(error, where)
            await response(scope, receive, send)
