"""One viewer: its backlog, and how far it has been sent (SV-36, SV-51).

Here: the state of a viewer and the loop that sends to it. Not here: where frames come from (`room.py`),
the protocol (a socket or an event stream, given as `send`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from bowerbird.server.common.context import Caller
from bowerbird.server.socket.backlog import Backlog
from bowerbird.server.socket.frames import Frame

OnDisconnect = Literal["stop", "continue"]

STALLED_S = 10.0
UNAUTHORIZED, UNKNOWN, TOO_MANY = 4001, 4004, 4029
GOING_AWAY, TRY_AGAIN, POLICY, TOO_BIG, BROKEN = 1012, 1013, 1008, 1009, 1011


@dataclass(frozen=True, slots=True)
class Farewell:
    """How a viewer is closed: a close code, a short reason, and a last event, if any."""

    code: int
    reason: str = ""
    frame: Frame | None = None


@dataclass(eq=False, slots=True)
class Viewer:
    """One open socket or event stream.

    Attributes:
        caller: who it is. expires_at: when their credential ends, in seconds since the epoch; None = never.
        v2: it asked for `v=2`. on_disconnect: what becomes of the turn when it leaves.
        send: hands one frame to the connection and returns when there is room for the next.
        bring_up: brings the viewer to the present again after frames were lost; set by its room.
        sent: the cursor of the last frame that was handed over. count: frames not yet counted elsewhere.
    """

    caller: Caller
    v2: bool
    on_disconnect: OnDisconnect
    send: Callable[[Frame], Awaitable[None]]
    expires_at: float | None = None
    sent: int = 0
    count: int = 0
    backlog: Backlog = field(default_factory=Backlog)
    farewell: "asyncio.Future[Farewell]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    full_since: float | None = None
    bring_up: Callable[["Viewer"], Awaitable[None]] | None = None
    _sending: asyncio.Task[None] | None = None

    def put(self, frame: Frame) -> None:
        """Queue a frame; never waits."""
        if not self.backlog.put(frame):
            if self.full_since is None:
                self.full_since = time.monotonic()
            return
        if self._sending is None and not self.farewell.done():
            # A task for as long as there is something to send: an idle viewer costs none.
            self._sending = asyncio.get_running_loop().create_task(self._drain(), name="viewer")

    def close(self, farewell: Farewell) -> None:
        """Ask the connection's owner to end it; the first reason counts."""
        if not self.farewell.done():
            self.farewell.set_result(farewell)

    @property
    def is_stalled(self) -> bool:
        """Whether it was full for longer than a slow reader may be."""
        return self.full_since is not None and time.monotonic() - self.full_since > STALLED_S

    async def drained(self) -> None:
        """Return when everything that was put was sent."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    async def hand_over(self, frame: Frame) -> None:
        """Send one frame now, past the backlog; for replays, before the viewer is in its room."""
        self.full_since = time.monotonic()  # a viewer that does not read is not waited for
        await self.send(frame)
        self.full_since = None
        self.sent = frame.cursor
        self.count += 1

    def stop(self) -> None:
        """Stop sending and forget what is queued."""
        self.backlog.restart()
        if self._sending is not None:
            self._sending.cancel()

    async def _drain(self) -> None:
        backlog, send = self.backlog, self.send
        try:
            while True:
                frame = backlog.take()
                if frame is not None:
                    await send(frame)
                    self.sent = frame.cursor
                    self.count += 1
                elif backlog.is_lossy and self.bring_up is not None:
                    self.full_since = None
                    backlog.restart()
                    await self.bring_up(self)
                else:
                    return
        except ConnectionError:
            self.close(Farewell(GOING_AWAY))  # the reader of this connection sees its end too
        finally:
            self._sending = None
