"""The open conversations of a process: rooms, counts, what must be looked at now and then (SV-49 … SV-51).

Here: opening and closing rooms, limits of viewers, stalled ones, revoked credentials, the end of the
server, commits of other processes. Not here: one room (`room.py`), connections (`endpoint.py`, `streams.py`).
"""

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bowerbird.core import wire
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.tasks import Tasks
from bowerbird.server.access.admission import Admission
from bowerbird.server.access.identity import withdrawn
from bowerbird.server.common.errors import problem
from bowerbird.server.socket.frames import Frame, placed
from bowerbird.server.socket.request_frames import error as error_frame
from bowerbird.server.socket.room import Room
from bowerbird.server.socket.viewer import (
    GOING_AWAY,
    TRY_AGAIN,
    UNAUTHORIZED,
    UNKNOWN,
    Farewell,
    Viewer,
)
from bowerbird.server.socket.viewers_rule import ViewersRule
from bowerbird.sessions.live.from_journal import Now, heads, present
from bowerbird.sessions.live.hub import TurnMark

if TYPE_CHECKING:
    from bowerbird.server.common.context import Caller, ServerContext

_log = logging.getLogger(__name__)

MOST_SOCKETS, MOST_PER_CONVERSATION, MOST_PER_USER = 5000, 2000, 200
KNOWN_IDS = 1000
LOOK_S = 0.25  # commits of other processes (SE-33)
SWEEP_S = 1.0
CREDENTIALS_S = 2.0


@dataclass(eq=False, slots=True)
class Seat:
    """A conversation that somebody watches, or whose turn a leaving viewer would stop.

    Attributes:
        opening: done when the room is open; its result is how the session stood then.
        guests: viewers in it or on their way into it.
        seen: ids of the clients' frames that are no inputs, with the turn they were about.
        answered: questions of subagents that an answer was taken for, until they are gone.
    """

    room: Room
    opening: "asyncio.Future[Now]"
    attendance: ViewersRule = field(default_factory=ViewersRule)
    guests: int = 0
    seen: "OrderedDict[str, str | None]" = field(default_factory=OrderedDict[str, "str | None"])
    answered: set[str] = field(default_factory=set[str])

    @property
    def keeps(self) -> bool:
        """Whether somebody who watches asked that turns go on without them."""
        return any(viewer.on_disconnect == "continue" for viewer in self.room.audience.viewers)

    def remember(self, frame_id: str, turn_id: str | None) -> None:
        """Know a frame's id again."""
        self.seen[frame_id] = turn_id
        if len(self.seen) > KNOWN_IDS:
            self.seen.popitem(last=False)


class Hub:
    """All viewers of one process; belongs to one event loop.

    Args:
        context: what the server stands on.
    """

    def __init__(self, context: "ServerContext") -> None:
        self.context = context
        self._seats: dict[str, Seat] = {}
        self._users: dict[str, int] = {}
        self._viewers: set[Viewer] = set()
        self._tasks = Tasks("viewers")
        self._keeper: asyncio.Task[None] | None = None

    def admit(self, thread_id: str, caller: "Caller") -> None:
        """Refuse one viewer too many; raises Problem `rate_limited`."""
        seat = self._seats.get(thread_id)
        if len(self._viewers) >= MOST_SOCKETS:
            raise problem("rate_limited", f"{MOST_SOCKETS} viewers are connected to this server")
        if seat is not None and seat.guests >= MOST_PER_CONVERSATION:
            raise problem("rate_limited", f"{MOST_PER_CONVERSATION} viewers watch this conversation")
        # Without auth there is one user: everybody.
        if self.context.settings.auth != "none" and self._users.get(caller.user_id, 0) >= MOST_PER_USER:
            raise problem("rate_limited", f"you have {MOST_PER_USER} connections open")

    async def seat(self, thread_id: str, viewer: Viewer) -> Seat:
        """Count a viewer in and return its conversation, opened.

        Raises:
            UnknownSession: the viewer is counted out again.
        """
        self._begin()
        seat = self._seats.get(thread_id)
        if seat is None:
            room = Room(self.context, thread_id, lambda turn, mark: self._marked(thread_id, turn, mark))
            opening = asyncio.ensure_future(room.open())
            seat = self._seats[thread_id] = Seat(room, opening)
        seat.guests += 1
        user = viewer.caller.user_id
        self._viewers.add(viewer)
        self._users[user] = self._users.get(user, 0) + 1
        self.context.presence.joined(thread_id)
        self.context.metrics.viewers.inc()
        try:
            await asyncio.shield(seat.opening)
        except BaseException:
            self.leave(thread_id, viewer)
            raise
        seat.attendance.joined(kept=viewer.on_disconnect == "continue")
        if self.context.life.draining.is_set():
            viewer.close(self._shutting_down(viewer.sent))
        return seat

    async def hello(self, seat: Seat, after: int | None) -> Frame:
        """Return the first event of a `v=2` viewer, which has what was committed up to `after`."""
        now = await present(self.context.store, seat.room.thread_id)
        status = await self.context.sandbox_status()
        head = seat.room.head
        hello = wire.Hello(seat.room.translator.state, status.tier, seat.guests, now.queued, head)
        return placed(hello, head if after is None else min(after, head), None)

    def leave(self, thread_id: str, viewer: Viewer) -> None:
        """Count a viewer out; when it was the last, its turn may have to stop."""
        if viewer not in self._viewers:
            return
        self._viewers.discard(viewer)
        self._tally(viewer)
        user = viewer.caller.user_id
        self._users[user] -= 1
        if not self._users[user]:
            del self._users[user]
        self.context.presence.left(thread_id)
        self.context.metrics.viewers.dec()
        seat = self._seats.get(thread_id)
        if seat is None:
            return
        seat.guests -= 1
        seat.room.leave(viewer)
        if seat.guests == 0:
            turn = seat.attendance.emptied()
            # The server's own end is no leaving: its turns go on when it is back.
            if turn is not None and not self.context.life.draining.is_set():
                self._tasks.spawn(self._stop_turn(turn))
            self._close_if_idle(seat)

    # ------------------------------------------------------------ turns

    def _marked(self, thread_id: str, turn_id: str | None, mark: TurnMark) -> None:
        seat = self._seats.get(thread_id)
        if seat is None:
            return
        if mark.state == "waiting" and mark.stop_reason is not None:
            seat.attendance.paused(turn_id)
        elif seat.attendance.marked(turn_id, mark.state, kept=seat.keeps) and turn_id is not None:
            self._tasks.spawn(self._stop_turn(turn_id))
        if seat.guests == 0:
            self._close_if_idle(seat)

    async def _stop_turn(self, turn_id: str) -> None:
        try:
            await self.context.sessions.disconnect(turn_id)
        except BowerbirdError as error:
            _log.warning("turn %s was not stopped after its last viewer left: %s", turn_id, error)

    def _close_if_idle(self, seat: Seat) -> None:
        if seat.guests or seat.attendance.ours:
            return
        if self._seats.get(seat.room.thread_id) is seat:
            del self._seats[seat.room.thread_id]
            self._tasks.spawn(seat.room.aclose())

    # ------------------------------------------------------------ now and then

    def _begin(self) -> None:
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), name="viewers")

    async def _keep(self) -> None:
        draining = self.context.life.draining
        swept = checked = time.monotonic()
        rules = (self.context.settings, self.context.in_force.revoked)
        while self._seats:
            try:
                async with asyncio.timeout(LOOK_S):
                    await draining.wait()
            except TimeoutError:
                pass
            else:
                self._send_all_away()
                return
            now = time.monotonic()
            try:
                await self._look()
                if now - swept >= SWEEP_S:
                    swept = now
                    self._sweep()
                in_force = (self.context.settings, self.context.in_force.revoked)
                if now - checked >= CREDENTIALS_S or in_force != rules:
                    checked, rules = now, in_force
                    await self._check_credentials()
            except BowerbirdError as error:
                _log.warning("viewers are not looked after: %s", error)
            except Exception:  # noqa: BLE001  one look failed; if that ended this task, revoked viewers would stay
                _log.exception("viewers are not looked after")

    async def _look(self) -> None:
        """Let rooms read what another process committed; one query for all of them."""
        live = self.context.sessions.live
        # While a turn is shown live here, its records come by themselves.
        quiet = [thread for thread in self._seats if live.head(thread) is None]
        if not quiet:
            return
        found = await self.context.store.read(lambda c: heads(c, quiet))
        for thread in quiet:
            seat = self._seats.get(thread)
            if seat is None or not seat.opening.done():
                continue
            head = found.get(thread)
            if head is None:
                seat.room.audience.send_away(Farewell(UNKNOWN, "deleted"))
            elif head > seat.room.head and live.head(thread) is None:
                seat.room.look()

    def _sweep(self) -> None:
        """Close who has been full for too long; what they miss is in the journal."""
        for viewer in tuple(self._viewers):
            self._tally(viewer)
            if viewer.is_stalled and not viewer.farewell.done():
                self.context.metrics.stalled.inc()
                text = "this client reads too slowly; connect again with after=cursor"
                frame = placed(error_frame(text, "too_slow", retryable=True), viewer.sent, None)
                viewer.close(Farewell(TRY_AGAIN, f"cursor={viewer.sent}", frame))

    def _tally(self, viewer: Viewer) -> None:
        sent, viewer.count = viewer.count, 0
        if sent:
            self.context.metrics.sent_events.inc(sent)

    async def _check_credentials(self) -> None:
        """Close viewers whose token was revoked, whose sign-in is over, or who may not be here."""
        now, rules = time.time(), Admission.of(self.context.settings)
        named = {v.caller.credential for v in self._viewers if v.caller.credential}
        gone = await withdrawn(self.context, named)
        for viewer in tuple(self._viewers):
            over = viewer.expires_at is not None and viewer.expires_at <= now
            if over or viewer.caller.credential in gone or not rules.stays(viewer.caller):
                text = "the credential was revoked or has expired"
                frame = placed(error_frame(text, "unauthorized"), viewer.sent, None)
                viewer.close(Farewell(UNAUTHORIZED, "unauthorized", frame))

    def _send_all_away(self) -> None:
        for seat in tuple(self._seats.values()):
            seat.room.audience.send_away(self._shutting_down(seat.room.head))
        for viewer in tuple(self._viewers):
            viewer.close(Farewell(GOING_AWAY, "shutting down"))

    def _shutting_down(self, cursor: int) -> Farewell:
        text = "the server is shutting down; connect again with after=cursor"
        frame = placed(error_frame(text, "shutting_down", retryable=True), cursor, None)
        return Farewell(GOING_AWAY, "shutting down", frame)
