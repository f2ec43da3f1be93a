"""The WebSocket and the event streams (SV-20, SV-35 … SV-51).

Lives here: viewers of conversations, from the session service's events to frames and from clients' frames
to its calls. Must not be here: who may connect (`access/`), REST, how a turn is driven (`sessions`).

The names are imported when they are used: a command that only needs the mapping to frames has no web server.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.server.socket.endpoint import hub_of
    from bowerbird.server.socket.hub import Hub
    from bowerbird.server.socket.streams import no_socket, router

__all__ = ("Hub", "hub_of", "no_socket", "router")

__getattr__, __dir__ = lazy(
    __name__,
    {
        "endpoint": "hub_of",
        "hub": "Hub",
        "streams": "no_socket router",
    },
)
