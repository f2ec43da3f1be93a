"""Connections that cannot be held open, or made to grow, by whoever only connects (D-11, SV-60).

Here: uvicorn's protocols with a limit on each thing that a peer decides alone: the bytes and the time of a
head, the time of a body, how long it takes nothing of an answer, how many connections there are. Not here:
the counting (`common/doorstep.py`), what an admitted request may do (`access/`).

Bytes that neither complete a head nor belong to a body are counted whatever they are: lines of a head,
blank lines before it, extensions of chunks, trailers.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from bowerbird.server.common.doorstep import Doorstep, Place

_log = logging.getLogger(__name__)

LINGER_S = 5.0  # for what was already on its way when the answer was given, and for a peer to take the answer
PIPELINED = 32  # requests of one connection that wait for the answer before theirs
SAID_S = 60.0
SLICE = 8 * 1024  # bytes of a WebSocket that are parsed in one turn: at most a thousand frames
RESTS = 2.0  # a socket that sends without a pause rests so many times as long as it kept us busy
FRAGMENTS = 4096  # of one message
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")

_TEXTS = {
    400: "Invalid HTTP request received.",
    408: "The request did not come in time.",
    414: "The address is too long.",
    431: "The headers are too large.",
    503: "Too many connections.",
}


class DoorConfig(uvicorn.Config):
    """A configuration whose connections stand on one `Doorstep`.

    Example:
        DoorConfig(app, Doorstep(DoorLimits()), lifespan="off")
    """

    def __init__(self, app: Any, doorstep: Doorstep, **more: Any) -> None:
        super().__init__(app, http=LimitedHttp, ws=LimitedSocket, **more)
        self.doorstep = doorstep
        self.said_at = float("-inf")

    def say_full(self, now: float) -> None:
        """Tell the operator that people are turned away, now and then."""
        if now - self.said_at >= SAID_S:
            self.said_at = now
            door = self.doorstep
            _log.warning(
                "connections are turned away: %d are open, %d were refused so far"
                " (server.max_connections, server.max_connections_per_address)",
                door.open, door.turned_away,
            )  # fmt: skip


class _TooMuch(Exception):
    """Raised in a parser's callback: the request is refused with this status."""


class LimitedHttp(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(self, config: uvicorn.Config, *more: Any, **named: Any) -> None:
        super().__init__(config, *more, **named)
        self._door_config = cast(DoorConfig, config)
        self._doorstep = self._door_config.doorstep
        self._limits = self._doorstep.limits
        self._place: Place | None = None
        self._status = 400
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head = 0  # bytes of the request's line and headers, as far as the parser tells
        self._loose = 0  # bytes read since something was complete
        self._moved = False
        self._body: tuple[float, int] | None = None  # when the body began, its bytes so far
        self._running: RequestResponseCycle | None = None  # uvicorn knows the newest request only

    # ------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        turned_away = self._doorstep.turned_away
        self._place = self._doorstep.come(self.client[0] if self.client else "", transport.abort)
        if self._doorstep.turned_away != turned_away:
            self._door_config.say_full(self.loop.time())
        if self._place is None:
            self._refuse(503)
            return
        self._wait(self._limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._running is not None and not self._running.response_complete:
            # Another request came behind it: it would go on, and write to a connection that is closed.
            self._running.disconnected = True
            self._running.message_event.set()
        self._unset_keepalive_if_required()
        self._stop_timers()
        if self._place is not None:
            self._doorstep.left(self._place)
            self._place = None

    def handle_websocket_upgrade(self) -> None:
        self._stop_timers()
        place, self._place = self._place, None
        transport = self.transport
        super().handle_websocket_upgrade()
        cast(LimitedSocket, transport.get_protocol()).stand(self._doorstep, place)

    # ------------------------------------------------------------ what comes in

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._moved = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._loose = 0 if self._moved else self._loose + len(data)
        if self._loose > self._limits.head_bytes:
            self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        if self._answered():
            self._wait(self._limits.head_s)

    def on_url(self, url: bytes) -> None:
        self._count(len(url), 414)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4, 431)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            self._status = 400
            raise _TooMuch
        self._moved = True
        if self._place is not None:
            self._doorstep.known(self._place)
        self._body = (self.loop.time(), 0)
        self._wait(self._limits.body_s)
        self._name_target()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self._body is not None:
            self._body = (self._body[0], self._body[1] + len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._moved = True
        self._body = None
        self._rest()
        super().on_message_complete()
        if self._answered():
            self._wait(self._limits.head_s)

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _name_target(self) -> None:
        """Let the host of an address in absolute form count as a Host header (RFC 9112, 3.2.2)."""
        found = _ABSOLUTE.match(self.url)
        if found is None:
            return
        target = found[1].lower()
        if target not in [value.lower() for name, value in self.headers if name == b"host"]:
            self.headers.append((b"host", target))

    def _count(self, size: int, status: int) -> None:
        self._head += size
        if self._head > self._limits.head_bytes:
            self._status = status
            raise _TooMuch

    def _answered(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first head
        return cycle is None or cycle.response_complete

    # ------------------------------------------------------------ what goes out

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._expect_taken()
        if self.transport.is_closing():
            return
        if self._body is not None:
            # Nobody waits for the rest of this body; what is on its way is read, so that the answer arrives.
            self._wait(LINGER_S, self.transport.close)
        elif not self.pipeline:
            self._wait(self._limits.head_s)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taken()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _expect_taken(self) -> None:
        if self._stalled is None:
            left = self.transport.get_write_buffer_size()
            self._stalled = self.loop.call_later(self._limits.stall_s, self._not_taken, left)

    def _not_taken(self, before: int) -> None:
        self._stalled = None
        left = self.transport.get_write_buffer_size()
        if left >= before and left:
            self.transport.abort()
        elif left:
            self._expect_taken()

    # ------------------------------------------------------------ time

    def _wait(self, seconds: float, late: Callable[[], None] | None = None) -> None:
        self._rest()
        self._timer = self.loop.call_later(seconds, late or self._late)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_timers(self) -> None:
        self._rest()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _late(self) -> None:
        """The head or the body is not there yet: give it what time it has left, or end."""
        self._timer = None
        if self.flow.read_paused:  # it is we who are slow
            self._wait(self._limits.body_s)
            return
        if self._body is not None:
            began, size = self._body
            left = began + self._limits.body_s + size / self._limits.body_rate - self.loop.time()
            if left > 0:
                self._wait(left)
                return
        if not self._head and self._answered():  # it never began: nobody is there to be told
            self.transport.close()
            return
        self._refuse(408)

    # ------------------------------------------------------------ refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._status)

    def _refuse(self, status: int) -> None:
        """Answer, when no other answer has begun, and end."""
        self._unset_keepalive_if_required()
        self._stop_timers()
        if self._answered() or not self.cycle.response_started:
            text = _TEXTS[status].encode()
            head = (
                b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
                % len(text)
            )
            self.transport.write(STATUS_LINE[status] + head + text)
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._timer = self.loop.call_later(LINGER_S, self.transport.abort)


class LimitedSocket(WebSocketsSansIOProtocol):
    """One WebSocket; it has the place of the HTTP connection that it began as.

    What it sends is read in slices, one a turn of the event loop, and only when the application has taken
    what came before: thousands of tiny frames in one packet hold up nobody else.
    """

    _stands: tuple[Doorstep, Place] | None = None
    _turn: asyncio.Handle | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unread = bytearray()

    def stand(self, doorstep: Doorstep, place: Place | None) -> None:
        """Take over a place, until the connection is lost."""
        self._stands = (doorstep, place) if place is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        super().connection_lost(exc)
        if self._stands is not None:
            doorstep, place = self._stands
            self._stands = None
            doorstep.left(place)

    # ------------------------------------------------------------ what comes in

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if self._turn is None:
            self._read_on()

    def _read_on(self) -> None:
        """Parse one slice; the next one follows when others had their turn."""
        self._turn = None
        if self.transport.is_closing():
            self._unread.clear()
            return
        if self.read_paused:  # the application has not taken what is there; `receive` goes on
            return
        began = self.loop.time()
        if self._unread:
            piece = bytes(self._unread[:SLICE])
            del self._unread[:SLICE]
            super().data_received(piece)
        if self.transport.is_closing():
            return
        if self._unread:
            if self.transport.is_reading():
                self.transport.pause_reading()
            self._turn = self.loop.call_later((self.loop.time() - began) * RESTS, self._read_on)
        elif not self.read_paused and not self.transport.is_reading():
            self.transport.resume_reading()

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAGMENTS:  # empty ones have no size that anything else would limit
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"over {FRAGMENTS} fragments")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log a traceback for whatever anybody sends
                self.frames = []
                self.conn.fail(CloseCode.INVALID_DATA, "a text frame is UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        if self.close_sent or self.conn.close_sent is None:  # the other side has left already
            self.transport.close()
            return
        super().handle_parser_exception()

    async def receive(self) -> ASGIReceiveEvent:
        message = await self.queue.get()
        await asyncio.sleep(0)  # a queue that is never empty would be taken without a turn for others
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._go_on()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.close_sent:  # what follows is read for the peer's own close only
            # Refused before it opened: that was answered, and uvicorn would log it as an error.
            self.handshake_complete = True
            self._go_on()

    def _go_on(self) -> None:
        if self._turn is None:
            self._turn = self.loop.call_soon(self._read_on)
