"""Who may come in, in which role, from which address and how often (SV-54 … SV-61).

Lives here: authentication, roles, Host, Origin, CORS, security headers, rate limits, overload, the routes
of `/api/auth`. Must not be here: what other routes do, whose conversation it is (`common/ownership.py`).
"""

from typing import TYPE_CHECKING

from starlette.middleware import Middleware

from bowerbird.server.access.gate import OPEN_PATHS, Gate
from bowerbird.server.access.identity import require
from bowerbird.server.access.overload import Overload
from bowerbird.server.access.proxies import Forwarded
from bowerbird.server.access.routes import router

if TYPE_CHECKING:
    from bowerbird.server.common.context import ServerContext

__all__ = ("OPEN_PATHS", "Gate", "Overload", "middleware_for", "require", "router")


def middleware_for(context: "ServerContext") -> list[Middleware]:
    """Return the layers of access control, outermost first."""
    trusted = context.settings.trusted_proxies
    proxies = [Middleware(Forwarded, trusted=trusted)] if trusted else []
    return [*proxies, Middleware(Gate, context=context)]
