"""The routes of viewers: the socket and the streams. Not here: what they do."""

from bowerbird.server.socket.endpoint import chat_socket
from bowerbird.server.socket.streams import router

# Not a router of its own: what includes others does not show their routes, for HEAD and the Allow of a 405.
router.add_websocket_route("/api/chat/{conversation_id}/ws", chat_socket)

__all__ = ["router"]
