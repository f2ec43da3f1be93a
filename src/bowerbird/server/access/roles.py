"""What a route asks of its caller (SV-56).

Here: the one dependency. Not here: finding out who calls (`identity.py`).
"""

from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection

from bowerbird.server.common.context import Caller, Role, caller_of
from bowerbird.server.common.errors import problem


def require(role: Role) -> Callable[[HTTPConnection], Awaitable[Caller]]:
    """Return a dependency that gives the caller, or answers 403 when `role` is more than theirs."""

    async def caller(connection: HTTPConnection) -> Caller:
        found = caller_of(connection)
        if not found.may(role):
            raise problem("forbidden", f"this needs the role {role}")
        return found

    return caller
