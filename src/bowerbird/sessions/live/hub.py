"""What happens in sessions right now, for whoever watches in this process (SE-14, 33).

Here: subscriptions and their queues, the text so far of the message under way. Not here: how
events reach other processes (`store/sql/notify.py`; `follow.py` reads their records from the
journal), translation for a door.

A slow viewer delays nobody: adjacent deltas of one message are merged in its queue, and when
that is full all the same it is told to read on from the journal. A viewer that comes late gets
the text so far of the message under way first (SV-46).
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    LandingProgress,
    LiveEvent,
    MessageRestart,
    RunError,
    StepEvent,
    TextLive,
    ThinkingLive,
)
from bowerbird.core.usage import Usage
from bowerbird.sessions.thread_ids import root_of

MAX_EVENTS = 1000
SILENT_S = 20.0
"""A landing that nothing was heard of for so long is over: its process died, or its last word was lost."""
_QUESTIONS = frozenset((ApprovalRequest, ApprovalAnswer))


class TurnMark(msgspec.Struct, frozen=True, tag="turn"):
    """A turn changed its state.

    Attributes:
        state: as in the turns table. stop_reason: in the journal's words, when it stopped.
        text: the final answer of a turn that is `done`. snapshot: the branch's state then.
        head: of a turn that runs: number of the session's newest record when it began.
    """

    state: str
    waiting_for: str | None = None
    stop_reason: str | None = None
    snapshot: str | None = None
    usage: Usage | None = None
    text: str = ""
    error: RunError | None = None
    head: int = 0

    @property
    def has_stopped(self) -> bool:
        """Whether nothing more comes from this turn until someone does something."""
        return self.state not in ("queued", "running")


class Lagged(msgspec.Struct, frozen=True, tag="lagged"):
    """The viewer was too slow: events are missing; committed ones can be read from the journal."""


class InputMark(msgspec.Struct, frozen=True, tag="input"):
    """An input was accepted, or taken back before its turn began (SV-47: `turn_queued`).

    Attributes:
        state: `queued`, or `cancelled` when somebody took it back.
        position: turns of the session that run or wait before it.
        sender: `id`, `name`, `door`. text: what was said.
    """

    inbox_id: str
    turn_id: str
    position: int = 0
    kind: str = "message"
    state: Literal["queued", "cancelled"] = "queued"
    sender: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    text: str = ""


class BranchChanged(msgspec.Struct, frozen=True, tag="branch_changed"):
    """The branch differs from its directory in another way than before: by a door, a command, a landing."""

    changed: int


SessionEvent = StepEvent | LiveEvent | TurnMark | InputMark | Lagged | BranchChanged


class Published(msgspec.Struct, frozen=True):
    """One event of a session.

    Attributes:
        seq: the journal record it was committed as, None for live-only events.
    """

    thread_id: str
    turn_id: str | None
    seq: int | None
    event: SessionEvent


class Subscription:
    """One viewer's queue; iterate it, and close it at the end.

    Example:
        with live.subscribe("0123456789ab") as events:
            async for published in events:
                ...
    """

    def __init__(self, hub: "Live", thread_id: str, so_far: tuple[Published, ...] = ()) -> None:
        self._hub = hub
        self._thread_id = thread_id
        self._events: deque[Published] = deque(so_far)
        self._wake = asyncio.Event()
        self._closed = False

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Published]:
        return self

    async def __anext__(self) -> Published:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

    async def news_of(self, turn_id: str, within_s: float) -> None:
        """Return when a turn may have stopped: it said so here, or a moment has passed elsewhere."""
        try:
            async with asyncio.timeout(within_s):
                async for published in self:
                    event = published.event
                    if published.turn_id == turn_id and isinstance(event, TurnMark) and event.has_stopped:
                        return
                await asyncio.sleep(within_s)  # the service stopped; another process may drive the turn
        except TimeoutError:
            return

    def close(self) -> None:
        """Stop watching; an iteration under way ends after what is queued."""
        self._closed = True
        self._hub.forget(self._thread_id, self)
        self._wake.set()

    def skip_to(self, seq: int) -> None:
        """Drop what is queued up to the newest event committed as `seq` or before.

        For who has read the journal up to `seq`: deltas that came before such an event belong to
        messages that were read whole.
        """
        last = max((i for i, p in enumerate(self._events) if p.seq is not None and p.seq <= seq), default=-1)
        for _ in range(last + 1):
            self._events.popleft()

    def put(self, published: Published) -> None:
        """Queue one event; for the hub."""
        merged = _merged(self._events[-1], published) if self._events else None
        if merged is not None:
            self._events[-1] = merged
        elif len(self._events) >= MAX_EVENTS:
            if not isinstance(self._events[-1].event, Lagged):
                self._events.append(Published(self._thread_id, None, None, Lagged()))
        else:
            self._events.append(published)
        self._wake.set()


class Tap:
    """A viewer that takes each event in the publisher's own call instead of queueing it.

    Args:
        sink: must return at once and never raise.
        ended: called when the service stops.
    """

    __slots__ = ("_closed", "_ended", "_hub", "_sink", "_thread_id")

    def __init__(
        self, hub: "Live", thread_id: str, sink: Callable[[Published], None], ended: Callable[[], None]
    ) -> None:
        self._hub = hub
        self._thread_id = thread_id
        self._sink = sink
        self._ended = ended
        self._closed = False

    def put(self, published: Published) -> None:
        """Hand the event on."""
        self._sink(published)

    def close(self) -> None:
        """Stop watching."""
        if not self._closed:
            self._closed = True
            self._hub.forget(self._thread_id, self)
            self._ended()


class _UnderWay(msgspec.Struct):
    """The message that a turn's model is saying: its pieces, not yet joined."""

    turn_id: str | None
    pieces: list[TextLive | ThinkingLive] = msgspec.field(default_factory=list[TextLive | ThinkingLive])

    @property
    def message_id(self) -> str:
        return self.pieces[-1].message_id


class Live:
    """The hub of one process; owned by the session service."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, list[Subscription | Tap]] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._relays: list[Callable[[Published], None]] = []
        self._heads: dict[str, int] = {}
        self._landing: dict[str, tuple[LandingProgress, float]] = {}

    def subscribe(self, thread_id: str) -> Subscription:
        """Return a queue of everything published for `thread_id` from now on.

        It begins with the text so far of the message under way, if there is one.
        """
        subscription = Subscription(self, thread_id, self.so_far(thread_id))
        self._subscriptions.setdefault(thread_id, []).append(subscription)
        return subscription

    def tap(self, thread_id: str, sink: Callable[[Published], None], ended: Callable[[], None]) -> Tap:
        """Hand everything published for `thread_id` to `sink`, first what `subscribe` would begin with."""
        tap = Tap(self, thread_id, sink, ended)
        for published in self.so_far(thread_id):
            tap.put(published)
        self._subscriptions.setdefault(thread_id, []).append(tap)
        return tap

    def head(self, thread_id: str) -> int | None:
        """Return the newest record that was published of a session whose turn is shown live here.

        A record that is in the journal already may be published a moment later. None: no turn runs that
        this process is told of.
        """
        return self._heads.get(thread_id)

    def so_far(self, thread_id: str) -> tuple[Published, ...]:
        """Return the deltas of the message under way, adjacent ones of a kind as one."""
        found = self._under_way.get(thread_id)
        if found is None:
            return ()
        joined: list[Published] = []
        for piece in found.pieces:
            published = Published(thread_id, found.turn_id, None, piece)
            merged = _merged(joined[-1], published) if joined else None
            if merged is None:
                joined.append(published)
            else:
                joined[-1] = merged
        found.pieces = [event.event for event in joined if isinstance(event.event, TextLive | ThinkingLive)]
        return tuple(joined)

    def landing(self, thread_id: str) -> LandingProgress | None:
        """Return how far the landing or undo of many files is that runs in a session, None when none does."""
        found, at = self._landing.get(thread_id, (None, 0.0))
        if found is not None and time.monotonic() - at > SILENT_S:
            del self._landing[thread_id]
            return None
        return found

    def landings(self) -> dict[str, LandingProgress]:
        """Return all of them, by session."""
        found = {thread_id: self.landing(thread_id) for thread_id in tuple(self._landing)}
        return {thread_id: progress for thread_id, progress in found.items() if progress is not None}

    def viewers(self, thread_id: str) -> int:
        """Return how many watch a session in this process."""
        return len(self._subscriptions.get(thread_id, ()))

    def watched(self) -> tuple[str, ...]:
        """Return the sessions that somebody watches in this process."""
        return tuple(self._subscriptions)

    def publish(self, published: Published) -> None:
        """Hand an event to every viewer; committed ones only after their commit."""
        self.show(published)
        for relay in self._relays:
            relay(published)

    def show(self, published: Published) -> None:
        """Hand an event of another process to this one's viewers; it is not relayed again."""
        broken = self._broken_off(published)
        if broken is not None:
            self.show(broken)
        self._note(published)
        for subscription in tuple(self._subscriptions.get(published.thread_id, ())):
            subscription.put(published)
        if type(published.event) in _QUESTIONS:
            self._show_above(published)

    def _show_above(self, published: Published) -> None:
        """Show a question of a subagent or teammate to who watches the session it works for."""
        root = root_of(published.thread_id)
        if root != published.thread_id:
            above = msgspec.structs.replace(published, seq=None)
            for subscription in tuple(self._subscriptions.get(root, ())):
                subscription.put(above)

    def relay(self, relay: Callable[[Published], None]) -> None:
        """Have each event of this process handed on, say to other processes."""
        self._relays.append(relay)

    def forget(self, thread_id: str, subscription: Subscription | Tap) -> None:
        """Take a viewer off the list."""
        watching = self._subscriptions.get(thread_id, [])
        if subscription in watching:
            watching.remove(subscription)
        if not watching:
            self._subscriptions.pop(thread_id, None)

    def close(self) -> None:
        """End every subscription."""
        for subscriptions in tuple(self._subscriptions.values()):
            for subscription in tuple(subscriptions):
                subscription.close()

    def _broken_off(self, published: Published) -> Published | None:
        """Say that a message is void once its turn begins again or says another: its driver died."""
        event, found = published.event, self._under_way.get(published.thread_id)
        if found is None or found.turn_id != published.turn_id:
            return None
        another = isinstance(event, TextLive | ThinkingLive) and event.message_id != found.message_id
        if not another and not (isinstance(event, TurnMark) and event.state == "running"):
            return None
        restart = MessageRestart(found.message_id, "the process that drove the turn ended")
        return Published(published.thread_id, published.turn_id, None, restart)

    def _note(self, published: Published) -> None:
        event, thread_id = published.event, published.thread_id
        if isinstance(event, TextLive | ThinkingLive):
            found = self._under_way.get(thread_id)
            if found is None or found.turn_id != published.turn_id:
                found = self._under_way[thread_id] = _UnderWay(published.turn_id)
            found.pieces.append(event)
            return
        if isinstance(event, LandingProgress):
            self._landing.pop(thread_id, None)
            if event.phase != "over":
                self._landing[thread_id] = (event, time.monotonic())
            return
        if isinstance(event, AssistantStep | TurnMark | MessageRestart | Lagged):  # Lagged: it may be any
            self._under_way.pop(thread_id, None)
        if isinstance(event, TurnMark):
            if event.state in ("running", "waiting") and event.stop_reason is None:
                self._heads[thread_id] = max(self._heads.get(thread_id, 0), published.seq or event.head)
            else:
                self._heads.pop(thread_id, None)
        elif published.seq is not None and thread_id in self._heads:
            self._heads[thread_id] = max(self._heads[thread_id], published.seq)


def _merged(last: Published, new: Published) -> Published | None:
    for kind in (TextLive, ThinkingLive):
        if isinstance(last.event, kind) and isinstance(new.event, kind):
            before, piece = last.event, new.event
            follows = piece.offset == before.offset + len(before.content)
            if before.message_id != piece.message_id or not follows:
                return None
            joined = kind(before.content + piece.content, before.message_id, before.offset)
            return Published(new.thread_id, new.turn_id, None, joined)
    return None
