"""The WebSocket `/api/chat/{conversation_id}/ws` (SV-35 … SV-51).

Here: one connection from its acceptance to its close, and what its client says: text to a command, or to why
it is none. Not here: who may connect (`access/`), the commands' form (`core/wire/commands.py`), doing them
(`actions.py`), events.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, cast

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from bowerbird.core import wire
from bowerbird.core.errors import BowerbirdError, UnknownSession
from bowerbird.core.forms import convert, decode
from bowerbird.core.wire import CLIENT_FRAMES, ClientFrame
from bowerbird.server.common.context import caller_of, context_of
from bowerbird.server.common.errors import Problem
from bowerbird.server.common.ownership import owned_session, unknown
from bowerbird.server.socket.actions import Actions
from bowerbird.server.socket.frames import Frame
from bowerbird.server.socket.hub import Hub, Seat
from bowerbird.server.socket.viewer import (
    BROKEN,
    POLICY,
    TOO_BIG,
    TOO_MANY,
    TRY_AGAIN,
    UNKNOWN,
    Farewell,
    OnDisconnect,
    Viewer,
)

if TYPE_CHECKING:
    from bowerbird.server.access.overload import Overload
    from bowerbird.server.common.context import ServerContext


_COMMAND: Any = Union[tuple(CLIENT_FRAMES.values())]  # noqa: UP007 - made of the table

_FRAME = re.compile(rf'\s*\{{\s*"type"\s*:\s*"(?:{"|".join(CLIENT_FRAMES)})"')
MAX_FRAME = 1 << 20
MOST_BAD, BAD_S = 50, 10.0
GOODBYE_S = 40.0  # a peer that takes nothing for so long is dead


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Why a frame is no command."""

    reason: str


def parse(raw: str) -> ClientFrame | BadFrame:
    """Return the command in a text frame.

    Text that is not JSON is a message; an object without `type` but with text as `content` too. What begins
    as a frame of a type and is no JSON (cut off, half a character, NaN) is refused: as a message, the model
    would read the frame itself.

    Example:
        >>> parse("hello").content, parse('{"type": "ping"}')
        ('hello', Ping(id=None, request_id=None))
    """
    try:
        value = decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        if _FRAME.match(raw):
            return BadFrame(f"the frame is no valid JSON: {error}")
        value = {"type": "message", "content": raw}
    except RecursionError:
        return BadFrame("nested too deeply")
    if not isinstance(value, dict):
        return BadFrame("a frame is a JSON object or plain text")
    frame = cast("dict[str, Any]", value)
    if "type" not in frame and isinstance(frame.get("content"), str):
        frame["type"] = "message"
    kind = frame.get("type")
    if not isinstance(kind, str) or kind not in CLIENT_FRAMES:
        return BadFrame(f"type must be one of {', '.join(CLIENT_FRAMES)}")
    try:
        return cast("ClientFrame", convert(frame, _COMMAND))
    except msgspec.ValidationError as error:
        return BadFrame(f"{kind}: {error}")


def hub_of(connection: Any) -> Hub:
    """Return the one hub of the application, made when it is first needed."""
    state = connection.app.state
    if not hasattr(state, "viewers"):
        state.viewers = Hub(context_of(connection))
    return cast("Hub", state.viewers)


async def chat_socket(websocket: WebSocket) -> None:
    """Serve one socket until it closes."""
    context, hub, caller = context_of(websocket), hub_of(websocket), caller_of(websocket)
    await websocket.accept()
    thread_id = str(websocket.path_params["conversation_id"])
    query = websocket.query_params
    v2 = query.get("v") == "2"
    unknown_value = refused_query(query)
    viewer = Viewer(
        caller=caller,
        v2=v2,
        on_disconnect=on_disconnect_of(query.get("on_disconnect"), context, v2=v2),
        send=_sender(websocket),
        expires_at=websocket.scope["state"].get("expires_at"),
    )
    connection = _Connection(websocket, context, hub, viewer)
    if unknown_value is not None:
        await connection.refuse(unknown_value, "invalid", POLICY)
        return
    try:
        session = await owned_session(context, caller, thread_id)
        hub.admit(session.thread_id, caller)
        seat = await hub.seat(session.thread_id, viewer)
    except Problem as refused:
        code = TOO_MANY if refused.code == "rate_limited" else UNKNOWN
        await connection.refuse(str(refused.detail), refused.code, code)
        return
    except UnknownSession:
        refused = unknown(thread_id)
        await connection.refuse(str(refused.detail), refused.code, UNKNOWN)
        return
    except BowerbirdError as error:  # say the database is locked
        await connection.refuse("the conversation cannot be opened now", error.code, BROKEN)
        return
    # Who reads too slowly is no longer watching, however long it takes to hear so.
    viewer.farewell.add_done_callback(
        lambda told: hub.leave(session.thread_id, viewer) if told.result().code == TRY_AGAIN else None
    )
    try:
        await connection.serve(seat, query.get("after"))
    finally:
        hub.leave(session.thread_id, viewer)
        viewer.stop()


_KNOWN = {"v": ("1", "2"), "on_disconnect": ("stop", "continue")}


def refused_query(query: Mapping[str, str]) -> str | None:
    """Return why a query cannot be obeyed; a value that is not known must not quietly mean another.

    Example:
        >>> refused_query({"v": "3"}), refused_query({"v": "2"})
        ("v is 1 or 2, not '3'", None)
    """
    for name, known in _KNOWN.items():
        given = query.get(name)
        if given and given not in known:
            return f"{name} is {' or '.join(known)}, not {given[:40]!r}"
    return None


def on_disconnect_of(asked: str | None, context: "ServerContext", *, v2: bool) -> OnDisconnect:
    """Return what becomes of the turn when this viewer leaves."""
    if asked == "stop":
        return "stop"
    if asked == "continue":
        return "continue"
    return "continue" if v2 and context.settings.on_disconnect is None else "stop"


def after_of(text: str | None) -> int | None:
    """Return the cursor that a query names, -1 (no place at all) for what is no number."""
    if text is None or text == "":
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else -1


def _sender(websocket: WebSocket) -> Any:
    async def send(frame: Frame) -> None:
        try:
            await websocket.send({"type": "websocket.send", "text": frame.text})
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionError("the socket is closed") from error

    return send


class _Connection:
    """One accepted socket."""

    def __init__(self, websocket: WebSocket, context: "ServerContext", hub: Hub, viewer: Viewer) -> None:
        self._websocket = websocket
        self._context = context
        self._hub = hub
        self._viewer = viewer
        self._bad: list[float] = []
        self._closing: asyncio.Task[None] | None = None
        self._is_reading = False

    async def refuse(self, message: str, code: str, close: int) -> None:
        """Say why nothing follows, and close."""
        frame = Frame(wire.Error(message, code, retryable=code == "rate_limited"))
        await self._goodbye(Farewell(close, code, frame))

    async def serve(self, seat: Seat, after: str | None) -> None:
        """Bring the viewer to the present, then obey it until it goes or is sent away."""
        viewer = self._viewer
        me = asyncio.current_task()
        viewer.farewell.add_done_callback(lambda done: self._send_away(done.result(), me))
        entering: asyncio.Task[None] | None = None
        self._is_reading = True
        try:
            cursor = after_of(after)
            hello = await self._hub.hello(seat, cursor) if viewer.v2 else None
            if cursor is None or cursor == seat.room.head:
                await seat.room.enter(viewer, cursor, hello)
            else:  # a long replay must not keep a cancel waiting
                if hello is not None:
                    await viewer.hand_over(hello)
                entering = asyncio.create_task(self._enter(seat, cursor), name="replay")
            await self._obey(seat)
        except (ConnectionError, WebSocketDisconnect):
            pass
        except BowerbirdError as error:
            viewer.close(Farewell(BROKEN, error.code))
        except asyncio.CancelledError:
            if self._closing is None:
                raise
        finally:
            self._is_reading = False
            if entering is not None:
                entering.cancel()
                await asyncio.wait([entering])
            if self._closing is not None:
                self._hub.leave(seat.room.thread_id, viewer)
                await asyncio.wait([self._closing])

    async def _enter(self, seat: Seat, cursor: int) -> None:
        try:
            await seat.room.enter(self._viewer, cursor)
        except ConnectionError:
            pass
        except BowerbirdError as error:
            self._viewer.close(Farewell(BROKEN, error.code))

    async def _obey(self, seat: Seat) -> None:
        overload = cast("Overload", self._websocket.scope["state"]["overload"])
        actions = Actions(self._context, seat, self._viewer, overload)
        receive = self._websocket.receive
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            command = self._read(message)
            if isinstance(command, BadFrame):
                actions.refuse(command.reason, "bad_frame")
                self._count_bad()
            elif command is not None:
                await actions.carry_out(command)

    def _read(self, message: Any) -> wire.ClientFrame | BadFrame | None:
        text = message.get("text")
        if text is None:
            return BadFrame("binary frames are not understood; send text")
        if len(text) > MAX_FRAME or (len(text) * 4 > MAX_FRAME and len(text.encode()) > MAX_FRAME):
            self._viewer.close(Farewell(TOO_BIG, "frame over 1 MiB"))
            return None
        return parse(text)

    def _count_bad(self) -> None:
        now = time.monotonic()
        self._bad = [*(at for at in self._bad if now - at <= BAD_S), now]
        if len(self._bad) > MOST_BAD:
            self._viewer.close(Farewell(POLICY, "too many bad frames"))

    def _send_away(self, farewell: Farewell, me: "asyncio.Task[Any] | None") -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._say_goodbye(farewell, me))

    async def _say_goodbye(self, farewell: Farewell, me: "asyncio.Task[Any] | None") -> None:
        self._viewer.stop()
        if not await self._goodbye(farewell) and me is not None and self._is_reading:
            me.cancel()  # it waits for a peer that will never answer; a closed socket would have told it

    async def _goodbye(self, farewell: Farewell) -> bool:
        """Say why and close; False when the peer is gone or takes nothing."""
        try:
            async with asyncio.timeout(GOODBYE_S):
                if farewell.frame is not None:
                    await self._viewer.send(farewell.frame)
                await self._websocket.close(farewell.code, farewell.reason)
        except (TimeoutError, ConnectionError, WebSocketDisconnect, RuntimeError):
            return False
        return True
