"""The WebSocket and the event streams (SV-20, SV-35 … SV-51).

Lives here: viewers of conversations, from the session service's events to frames and from clients' frames
to its calls. Must not be here: who may connect (`access/`), REST, how a turn is driven (`sessions`).
"""

from fastapi import APIRouter

from bowerbird.server.socket.endpoint import chat_socket, hub_of
from bowerbird.server.socket.hub import Hub
from bowerbird.server.socket.streams import router as _streams

__all__ = ("Hub", "hub_of", "router")

router = APIRouter()
router.include_router(_streams)
router.add_websocket_route("/api/chat/{conversation_id}/ws", chat_socket)
