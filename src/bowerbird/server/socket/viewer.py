"""One viewer: its backlog, and how far it has been sent (SV-36, SV-51).

Here: what it has not been sent yet (bounded), its state, and the loop that sends to it. Not here: where
frames come from (`room.py`), the protocol (a socket or an event stream, given as `send`).

When a backlog fills, adjacent deltas of one message are joined. When that does not help, it takes nothing
more until it is empty: the viewer reads the missing part from the journal then, so nothing is lost and the
memory of a stalled viewer stays bounded.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from bowerbird.server.common.context import Caller
from bowerbird.server.socket.frames import Frame, joined

MAX_EVENTS = 1000
MAX_BYTES = 1 << 20

OnDisconnect = Literal["stop", "continue"]

STALLED_S = 10.0
UNAUTHORIZED, UNKNOWN, TOO_MANY = 4001, 4004, 4029
GOING_AWAY, TRY_AGAIN, POLICY, TOO_BIG, BROKEN = 1012, 1013, 1008, 1009, 1011


class Backlog:
    """Frames in order.

    Args:
        max_events, max_bytes: limits; a single larger frame is taken when the queue is empty.

    Example:
        >>> backlog = Backlog(max_events=1)
        >>> backlog.put(Frame(Pong())), backlog.put(Frame(Pong())), backlog.is_lossy
        (True, False, True)
    """

    __slots__ = ("_bytes", "_frames", "_max_bytes", "_max_events", "is_lossy")

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._frames: deque[Frame] | None = None  # made when needed: an idle viewer has none
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes
        self.is_lossy = False

    def __len__(self) -> int:
        return len(self._frames or ())

    @property
    def size(self) -> int:
        """Characters queued."""
        return self._bytes

    def put(self, frame: Frame) -> bool:
        """Queue a frame; False when it, and all that follow until `restart`, are not taken."""
        if self.is_lossy:
            return False
        size = len(frame.text)
        if not self._fits(size):
            self._shrink()
            if not self._fits(size):
                self.is_lossy = True
                return False
        if self._frames is None:
            self._frames = deque()
        self._frames.append(frame)
        self._bytes += size
        return True

    def take(self) -> Frame | None:
        """Return the next frame, None when there is none."""
        if not self._frames:
            self._frames = None
            return None
        frame = self._frames.popleft()
        self._bytes -= len(frame.text)
        return frame

    def restart(self) -> None:
        """Take frames again; what is queued is dropped."""
        self._frames = None
        self._bytes = 0
        self.is_lossy = False

    def _fits(self, size: int) -> bool:
        if not self._frames:
            return True
        return len(self._frames) < self._max_events and self._bytes + size <= self._max_bytes

    def _shrink(self) -> None:
        frames = joined(self._frames or ())
        self._frames = deque(frames)
        self._bytes = sum(len(frame.text) for frame in frames)


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
