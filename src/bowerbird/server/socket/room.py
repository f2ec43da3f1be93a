"""One conversation as its viewers see it: one order, each event translated and encoded once (SV-44 … SV-47).

Here: from the session's events to frames for all viewers; a viewer's way to the present. Not here:
connections, which conversations are open (`hub.py`), stopping turns (`viewers_rule.py`).

A viewer comes in two steps. It reads the journal up to the room's head, sending as fast as it takes it;
at the moment when nothing is missing, with no await in between, it gets the text so far and is entered.
From then on it gets what all get. So there is neither gap nor duplicate, whoever drives the turn.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from bowerbird.core.errors import BowerbirdError, UnknownSession
from bowerbird.core.events import TextLive, ThinkingLive, ToolOutcome
from bowerbird.core.tasks import Tasks
from bowerbird.core.wire import BranchUpdate, ServerFrame
from bowerbird.core.wire.turns import TurnState
from bowerbird.server.socket.audience import Audience
from bowerbird.server.socket.event_order import Order
from bowerbird.server.socket.files import BranchFiles
from bowerbird.server.socket.frames import Frame, placed
from bowerbird.server.socket.request_frames import error as error_frame
from bowerbird.server.socket.translate import Closing, Translator
from bowerbird.server.socket.viewer import BROKEN, GOING_AWAY, UNKNOWN, Farewell, Viewer
from bowerbird.sessions.live.from_journal import (
    PAGE,
    Now,
    Record,
    before,
    calls_of,
    last_seq,
    paused_mark,
    present,
    published_of,
    read_page,
    records_of_turn,
)
from bowerbird.sessions.live.hub import BranchChanged, Lagged, Published, Tap, TurnMark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from bowerbird.server.common.context import ServerContext

_log = logging.getLogger(__name__)
_DELTAS = (TextLive, ThinkingLive)

REACH_STEP_S, REACH_STEPS = 0.01, 200  # how long a place may be committed but not yet shown


class Room:
    """The viewers of one conversation in this process; made by the hub, opened before use.

    Args:
        context: what the server stands on. thread_id: the conversation.
        watcher: told of each change of a turn's state, before viewers are.
    """

    def __init__(
        self, context: "ServerContext", thread_id: str, watcher: Callable[[str | None, TurnMark], None]
    ) -> None:
        self.thread_id = thread_id
        self.audience = Audience()
        self.translator = Translator(thread_id=thread_id)
        self._context = context
        self.store = context.store
        self._watcher = watcher
        self._order: Order | None = None
        self._early: list[Published] = []
        self._files: BranchFiles | None = None
        self._tap: Tap | None = None
        self._reading: asyncio.Task[None] | None = None
        self._tasks = Tasks(f"viewers of session {thread_id}")

    # ------------------------------------------------------------ life

    async def open(self) -> Now:
        """Listen, then find out where the session stands; raises UnknownSession."""
        live = self._context.sessions.live
        self._tap = live.tap(self.thread_id, self._heard, self._ended)
        now = await present(self.store, self.thread_id)
        session, translator = now.session, self.translator
        translator.effort = session.thinking_effort or self._context.settings.defaults.thinking_effort
        translator.plan_mode = bool(session.flags.get("enable_plan_mode"))
        first = next((p.seq for p in self._early if p.seq is not None), None)
        shown = live.head(self.thread_id)
        # What was committed but not yet published comes as live: the text of its message does too.
        head = first - 1 if first is not None else min(session.last_seq, shown or session.last_seq)
        active = now.active
        if active is not None:
            known = await records_of_turn(self.store, self.thread_id, active.turn_id, head)
            _prime(translator, known, self.thread_id)
            translator.running, translator.state = active.turn_id, cast("TurnState", active.state)
            translator.paused = paused_mark(active)
        for published in now.asked_below:
            translator.frames(published)
        translator.cursor, translator.under_way = head, None
        self._order = Order(head)
        early, self._early = self._early, []
        for published in early:
            self._arrived(published)
        return now

    async def aclose(self) -> None:
        """Stop listening; viewers have gone."""
        self.audience.flush()
        if self._tap is not None:
            self._tap.close()
        await self._tasks.cancel()
        if self._files is not None:
            await self._files.aclose()

    @property
    def head(self) -> int:
        """Number of the newest committed event that viewers were shown."""
        return self.translator.cursor

    def tell(self, frame: ServerFrame) -> None:
        """Send a frame of this server's own to every viewer."""
        self.audience.show(placed(frame, self.translator.cursor, self.translator.running))

    # ------------------------------------------------------------ what happens

    def _heard(self, published: Published) -> None:
        """Take an event in the publisher's own call: it must neither wait nor fail."""
        try:
            if self._order is None:
                self._early.append(published)
            else:
                self._arrived(published)
        except Exception:  # noqa: BLE001  a defect here must not end the turn that published
            _log.exception("events of session %s cannot be shown", self.thread_id)
            self.audience.send_away(Farewell(BROKEN, "internal error"))

    def _ended(self) -> None:
        self.audience.send_away(Farewell(GOING_AWAY, "the server is shutting down"))

    def _arrived(self, published: Published) -> None:
        order = self._order
        assert order is not None, "events are kept until the room is open"
        if published.seq is None and not order.is_waiting:
            if isinstance(published.event, Lagged):
                self.look()
            else:
                self._emit([published])
            return
        self._emit(order.arrive(published))
        self._fill()

    def _emit(self, shown: Sequence[Published]) -> None:
        for index, published in enumerate(shown):
            event = published.event
            if isinstance(event, _DELTAS):
                frame = self.translator.delta(published)
                if frame is not None:
                    self.audience.show(frame)
                continue
            if isinstance(event, TurnMark):
                self._watcher(published.turn_id, event)
                if _stops(event) and not self._is_listed():
                    # The end waits for the list of files, and all that follows waits for the end.
                    self._hold(shown[index:])
                    return
            self._frames(published)
            if isinstance(event, ToolOutcome):
                self._branch_update()
            elif isinstance(event, BranchChanged) and self.audience.has_v2:
                self._tasks.spawn(self._look_again())

    def _frames(self, published: Published) -> None:
        closing = self._files.last if self._files is not None else Closing()
        for frame in self.translator.frames(published, closing):
            self.audience.show(frame)
        if isinstance(published.event, TurnMark):
            if published.event.state == "running":
                self._tasks.spawn(self._look_ahead())
            if published.event.stop_reason == "deleted":
                self.audience.send_away(Farewell(UNKNOWN, "deleted"))

    # ------------------------------------------------------------ the end of a turn

    def _is_listed(self) -> bool:
        return not self.audience.viewers or (self._files is not None and self._files.is_current)

    def _hold(self, rest: Sequence[Published]) -> None:
        assert self._order is not None, "only an open room shows events"
        self._order.hold()
        self._tasks.spawn(self._list_and_go_on(list(rest)))

    async def _list_and_go_on(self, rest: list[Published]) -> None:
        assert self._order is not None, "only an open room shows events"
        try:
            await self._closing()
        finally:
            self._frames(rest[0])
            self._emit([*rest[1:], *self._order.release()])
            self._fill()

    async def _closing(self) -> Closing:
        files = await self._branch_files()
        return await files.closing() if files is not None else Closing()

    async def _branch_files(self) -> BranchFiles | None:
        if self._files is None:
            try:
                branch = await self._context.sessions.branch(self.thread_id)
            except BowerbirdError as error:
                _log.info("session %s: no files are listed: %s", self.thread_id, error)
                return None
            if self._files is None:
                self._files = BranchFiles(branch)
        return self._files

    async def _look_ahead(self) -> None:
        if self.audience.viewers and (files := await self._branch_files()) is not None:
            files.look_ahead()

    def _branch_update(self) -> None:
        if self.audience.has_v2 and self._files is not None:
            files = self._files
            if not files.is_current:
                self._tasks.spawn(self._update(files))

    async def _look_again(self) -> None:
        """Tell of a change that no turn made."""
        if (files := await self._branch_files()) is not None:
            await self._update(files)

    async def _update(self, files: BranchFiles) -> None:
        rows, count = await files.changed()
        self.tell(BranchUpdate(rows, changed=count))

    # ------------------------------------------------------------ the journal

    def look(self) -> None:
        """Read what is missing: another process wrote, or events were lost on the way."""
        if self._order is not None and self._reading is None:
            self._reading = self._tasks.spawn(self._read())

    def _fill(self) -> None:
        if self._order is not None and self._order.gap is not None:
            self.look()

    async def _read(self) -> None:
        order = self._order
        assert order is not None, "only an open room reads"
        try:
            while True:
                gap = order.gap
                upto = gap[1] if gap is not None else await self.store.read(self._last_seq)
                if upto <= order.head or (order.is_held and gap is None):
                    return
                at = order.head
                records = await read_page(self.store, self.thread_id, at, upto)
                known = await before(self.store, self.thread_id, records, at)
                found = published_of([*known, *records], self.thread_id)
                self._emit(order.filled(found, records[-1].seq if len(records) >= PAGE else upto))
                if not order.is_held:
                    self.translator.cursor = max(self.translator.cursor, order.head)
        except UnknownSession:
            self.audience.send_away(Farewell(UNKNOWN, "deleted"))
        except BowerbirdError as error:
            _log.warning("session %s: the journal cannot be read: %s", self.thread_id, error)
        finally:
            self._reading = None

    def _last_seq(self, connection: "Connection") -> int:
        return last_seq(connection, self.thread_id)

    # ------------------------------------------------------------ viewers

    async def enter(self, viewer: Viewer, after: int | None, greeting: Frame | None = None) -> None:
        """Bring a viewer to the present and let it stay there.

        Args:
            after: replay what was committed later; None begins with the present.
            greeting: shown first. Where nothing is replayed, all that comes after it is live.
        """
        assert self._order is not None, "the hub opens rooms"
        viewer.bring_up = self._again
        replayed: int | None = None
        if after is not None:
            if await self._is_reachable(after):
                replayed = after
                await self._replay(viewer, after)
            else:
                named = f"cursor {after}" if after >= 0 else "what `after` names"
                text = f"{named} is not in this conversation's history; what follows is live"
                await viewer.hand_over(placed(error_frame(text, "bad_cursor"), self.head, None))
        paused = replayed is not None and self._unseen_pause(replayed)
        closing = await self._closing() if paused else Closing()
        if replayed is not None and viewer.sent < self.head:
            if greeting is not None:
                await viewer.hand_over(greeting)
                greeting = None
            await self._replay(viewer, max(viewer.sent, replayed))
        # From here to the end nothing is awaited: what comes next is live for this viewer as for all.
        self.audience.flush()
        if greeting is not None:
            viewer.put(greeting)
        for frame in self.translator.waiting() if replayed is not None else ():
            viewer.put(frame)
        for frame in self.translator.so_far():
            viewer.put(frame)
        for frame in self.translator.pending(below=replayed is not None):
            viewer.put(frame)
        if paused:
            for frame in self.translator.pause_again(closing):
                viewer.put(frame)
        viewer.sent = max(viewer.sent, self.head)
        self.audience.viewers.append(viewer)

    def leave(self, viewer: Viewer) -> None:
        """Take a viewer off the list."""
        self.audience.remove(viewer)

    async def _again(self, viewer: Viewer) -> None:
        """Bring a viewer whose backlog overflowed to the present; it stays in its place among others."""
        self.leave(viewer)
        await self.enter(viewer, viewer.sent)

    async def _replay(self, viewer: Viewer, after: int) -> None:
        translator = Translator(effort=self.translator.effort, replay=True, aliases=self.translator.aliases)
        closing = await self._closing()
        at, calls = after, None
        while at < self.head:
            upto = self.head
            records = await read_page(self.store, self.thread_id, at, upto)
            if calls is None:
                known = await before(self.store, self.thread_id, records, at)
                _prime(translator, known, self.thread_id)
                translator.cursor, calls = at, calls_of(known)
            ends = [record.seq for record in records if record.type == "turn_ended"]
            for published in published_of([*calls, *records], self.thread_id):
                if published.seq is not None and published.seq > at:
                    shown = closing if published.seq in ends[-1:] else Closing()
                    for frame in translator.frames(published, shown):
                        if viewer.v2 or not frame.v2:
                            await viewer.hand_over(frame)
            at = records[-1].seq if len(records) >= PAGE else upto
            translator.cursor, calls = at, calls_of([*calls, *records])
        viewer.sent = max(viewer.sent, at)

    async def _is_reachable(self, after: int) -> bool:
        """Whether `after` is a place in the history; one that is committed but not shown is waited for."""
        if after < 0:
            return False
        if after <= self.head:
            return True
        if after > await self.store.read(self._last_seq):
            return False
        self.look()
        for _ in range(REACH_STEPS):
            if self.head >= after:
                return True
            await asyncio.sleep(REACH_STEP_S)
        return False

    def _unseen_pause(self, after: int) -> bool:
        """Whether a viewer that knows all up to `after` may not know that the turn stopped to wait."""
        paused = self.translator.paused
        if paused is None:
            return False
        # A plan's end came with its question; an approval's came later, when its time was over.
        return after < self.head or paused.waiting_for == "approval"


def _stops(mark: TurnMark) -> bool:
    return mark.has_stopped and not (mark.state == "waiting" and mark.stop_reason is None)


def _prime(translator: Translator, known: "Sequence[Record]", thread_id: str) -> None:
    """Let a translator know the turn that it comes into the middle of."""
    for published in published_of(known, thread_id):
        translator.frames(published)
    started = next((record.body for record in known if record.type == "turn_started"), None)
    if started is not None and "mode" in started:
        translator.plan_mode = started["mode"] == "plan"
    # Whoever was shown the plan was told with it that its turn is done.
    if any(request.kind == "plan" for request in translator.requests.values()):
        translator.told_plan = next((record.turn for record in known), None)
