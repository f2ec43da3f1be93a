"""The event stream of a conversation over plain HTTP: SSE or NDJSON (SV-20).

Here: the route (and that of the socket), and frames as chunks. Not here: events (`room.py`), sockets.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.wire import Done
from bowerbird.server.access.identity import require
from bowerbird.server.common.context import Caller, ServerContext, context_of
from bowerbird.server.common.errors import problem_response
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.socket.endpoint import after_of, chat_socket, hub_of
from bowerbird.server.socket.frames import Frame
from bowerbird.server.socket.viewer import Farewell, Viewer
from bowerbird.sessions.live.from_journal import present

if TYPE_CHECKING:
    from bowerbird.server.socket.hub import Hub, Seat

router = APIRouter(tags=["events"])
SOCKET = "/api/chat/{conversation_id}/ws"
# Not a router of its own: what includes others does not show their routes, for HEAD and the Allow of a 405.
router.add_websocket_route(SOCKET, chat_socket)

SSE, NDJSON = "text/event-stream", "application/x-ndjson"
KEEP_ALIVE_S = 15.0
AHEAD = 16  # chunks that may wait for the connection, besides the viewer's backlog

# An event of the stream: `data` is the JSON text of one of the socket's events, `id` its cursor.
_EVENT = {
    "type": "object",
    "required": ["data"],
    "properties": {"id": {"type": "string"}, "data": {"type": "string"}},
}
_SHOWN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One event after the other, until either side ends it.",
        "content": {SSE: {"schema": _EVENT}, NDJSON: {"schema": {"type": "string"}}},
    }
}


@router.get(SOCKET, include_in_schema=False)
async def no_upgrade(conversation_id: str) -> Response:
    """Say how the socket is opened to who asked for it in plain HTTP (RFC 9110, 15.5.22)."""
    del conversation_id
    how = "this is a WebSocket: connect with ws:// or wss://; a proxy must pass on Upgrade and Connection"
    return problem_response(
        426, "upgrade_required", how, headers={"Upgrade": "websocket", "Connection": "Upgrade"}
    )


async def no_socket(websocket: WebSocket) -> None:
    """Refuse a socket at an address that has none, in words; without them it was a bare 403."""
    where = f"there is no WebSocket at {websocket.url.path}; that of a conversation is {SOCKET}"
    await websocket.send_denial_response(problem_response(404, "not_found", where))


@router.get(
    "/api/conversations/{conversation_id}/events",
    response_class=Response,
    responses=_SHOWN,
    summary="The same events as the socket, as a stream",
)
async def events(
    request: Request,
    context: Annotated[ServerContext, Depends(context_of)],
    caller: Annotated[Caller, Depends(require("viewer"))],
    conversation_id: Annotated[str, Path(description="Id of a conversation; opaque.")],
    after: Annotated[
        int | None, Query(ge=0, description="Replay what was committed after this cursor.")
    ] = None,
    v: Annotated[
        int, Query(ge=1, le=2, description="2 = also the types that plain clients do not know.")
    ] = 1,
    until: Annotated[
        Literal["done"] | None, Query(description="`done`: end with the turn, at once when nothing runs.")
    ] = None,
) -> Response:
    """`Accept: application/x-ndjson` gives lines of JSON, else SSE whose `id:` is the cursor.

    The later of `Last-Event-ID` and `after` counts: an EventSource that reconnects asks its first address
    again. Without `until` the stream stays open.
    """
    session = await owned_session(context, caller, conversation_id)
    hub = hub_of(request)
    hub.admit(session.thread_id, caller)
    lines = NDJSON in request.headers.get("accept", "")
    last = request.headers.get("last-event-id")
    places = [place for place in (after, after_of(last)) if place is not None]
    place = max(places, default=None)
    stream = _Stream(caller, request.scope["state"].get("expires_at"), v2=v == 2, lines=lines)
    stream.until_done = until == "done"
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    chunks = stream.chunks(hub, session.thread_id, place)
    return StreamingResponse(chunks, headers=headers, media_type=NDJSON if lines else SSE)


class _Stream:
    """One viewer whose frames become chunks of a response."""

    def __init__(self, caller: Caller, expires_at: float | None, *, v2: bool, lines: bool) -> None:
        self._lines = lines
        self.until_done = False
        self._is_live = False
        self._ready: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
        self.viewer = Viewer(
            caller=caller, v2=v2, on_disconnect="stop", send=self._send, expires_at=expires_at
        )

    async def chunks(self, hub: "Hub", thread_id: str, after: int | None) -> AsyncGenerator[bytes, None]:
        """Yield chunks until the viewer is sent away or the connection ends."""
        viewer = self.viewer
        viewer.farewell.add_done_callback(self._told_to_go)
        seat = await hub.seat(thread_id, viewer)
        entering = asyncio.create_task(self._enter(hub, seat, after), name="replay")
        try:
            if not self._lines:
                yield b": connected\n\n"
            while (chunk := await self._next()) is not None:
                yield chunk
            frame = viewer.farewell.result().frame if viewer.farewell.done() else None
            if frame is not None:
                yield self._chunk(frame)
        finally:
            # Nothing is awaited here: a connection that ended cancels every await.
            entering.cancel()
            viewer.stop()
            hub.leave(thread_id, viewer)

    async def _enter(self, hub: "Hub", seat: "Seat", after: int | None) -> None:
        try:
            hello = await hub.hello(seat, after) if self.viewer.v2 else None
            if hello is not None and after not in (None, seat.room.head):
                await self.viewer.hand_over(hello)
                hello = None
            await seat.room.enter(self.viewer, after, hello)
            if self.until_done:
                await self._end_if_quiet(seat)
        except BowerbirdError as error:
            self.viewer.close(Farewell(1011, error.code))

    async def _end_if_quiet(self, seat: "Seat") -> None:
        """End the stream once all is sent when nothing runs; else the next `done` ends it."""
        self._is_live = True
        room = seat.room
        active = (await present(room.store, room.thread_id)).active
        if active is not None and not active.is_paused:
            return
        await self.viewer.drained()
        await self._ready.put(None)

    async def _next(self) -> bytes | None:
        if self._lines:
            return await self._ready.get()
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                return await self._ready.get()
        except TimeoutError:
            return b": still here\n\n"

    async def _send(self, frame: Frame) -> None:
        await self._ready.put(self._chunk(frame))
        if self.until_done and self._is_live and frame.kind is Done:
            await self._ready.put(None)

    def _told_to_go(self, _: object) -> None:
        while self._ready.full():
            self._ready.get_nowait()
        self._ready.put_nowait(None)

    def _chunk(self, frame: Frame) -> bytes:
        if self._lines:
            return frame.text.encode() + b"\n"
        return b"id: %d\ndata: %s\n\n" % (frame.cursor, frame.text.encode())
