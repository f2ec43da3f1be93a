"""The routes of viewers: the socket and the streams. Not here: what they do."""

from fastapi import APIRouter

from bowerbird.server.socket.endpoint import chat_socket
from bowerbird.server.socket.streams import router as _streams

router = APIRouter()
router.include_router(_streams)
router.add_websocket_route("/api/chat/{conversation_id}/ws", chat_socket)
