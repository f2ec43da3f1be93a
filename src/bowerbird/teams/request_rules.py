"""Requests between a lead and a teammate: shutdown and plan (DE-62 … DE-64). Pure.

Here: which answer belongs to which request, what a decision makes of it, how it is shown. Not here: rows,
messages, who is stopped.

    pending → approved | rejected   somebody answered
            → expired               nobody did in time
            → void                  there is nobody left to ask, or to do it
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.team_mail import RequestRow

Kind = Literal["shutdown", "plan"]
Status = Literal["pending", "approved", "rejected", "expired", "void"]
FINAL: frozenset[str] = frozenset(("approved", "rejected", "expired", "void"))


def find(requests: Iterable[RequestRow], request_id: str, kind: Kind | None = None) -> RequestRow:
    """Return the request of this id.

    Raises:
        InvalidArgument: unknown, or of another kind.
    """
    wanted = request_id.strip()
    found = next((r for r in requests if r.request_id == wanted), None)
    if found is None or kind not in (None, found.kind):
        named = f"{kind} request" if kind is not None else "request"
        raise InvalidArgument(f"there is no {named} {request_id!r}; check_protocol lists the open ones")
    return found


def answered(requests: Sequence[RequestRow], kind: Kind, request_id: str = "") -> RequestRow:
    """Return the open request that an answer belongs to.

    Args:
        requests: those between the two. request_id: "" when the answer named none.

    Raises:
        InvalidArgument: unknown, decided already, none open, or several when none was named.
    """
    if request_id.strip():
        found = find(requests, request_id, kind)
        if found.status in FINAL:
            raise InvalidArgument(f"{kind} request {found.request_id} is {found.status} already")
        return found
    pending = [r for r in requests if r.kind == kind and r.status == "pending"]
    if not pending:
        raise InvalidArgument(f"no {kind} request is open between you two")
    if len(pending) > 1:
        ids = ", ".join(r.request_id for r in pending)
        raise InvalidArgument(f"several {kind} requests are open ({ids}); give request_id")
    return pending[0]


def decided(status: str, approve: bool) -> Status:
    """Return the state after an answer; raises InvalidArgument when there was one before.

    Example:
        >>> decided("pending", True)
        'approved'
    """
    if status in FINAL:
        raise InvalidArgument(f"the request is {status} already")
    return "approved" if approve else "rejected"


def may_force(requests: Iterable[RequestRow], name: str) -> None:
    """Raise InvalidArgument unless a shutdown request of this teammate expired or was refused."""
    states = {r.status for r in requests if r.kind == "shutdown"}
    if not states & {"expired", "rejected"}:
        raise InvalidArgument(
            f"force is for a shutdown request that {name} did not agree to; ask first, without force"
        )


def record(request: RequestRow, name: str) -> dict[str, Any]:
    """Return a request as `check_protocol` shows it."""
    return {
        "request_id": request.request_id,
        "kind": request.kind,
        "teammate": name,
        "status": request.status,
        "created": request.created_at,
        "answered": request.answered_at,
        "detail": request.detail,
    }
