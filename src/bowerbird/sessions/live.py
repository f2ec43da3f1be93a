"""What happens in sessions right now, for whoever watches in this process (SE-14, 33).

Here: subscriptions and their queues. Not here: events of other processes (`follow.py` reads
them from the journal), translation for a door.

A slow viewer delays nobody: adjacent deltas of one message are merged in its queue, and when
that is full all the same it is told to read on from the journal.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import msgspec

from bowerbird.core.events import LiveEvent, RunError, StepEvent, TextLive, ThinkingLive
from bowerbird.core.usage import Usage

MAX_EVENTS = 1000


class TurnMark(msgspec.Struct, frozen=True, tag="turn"):
    """A turn changed its state.

    Attributes:
        state: as in the turns table. stop_reason: in the journal's words, when it stopped.
        text: the final answer of a turn that is `done`. snapshot: the branch's state then.
    """

    state: str
    waiting_for: str | None = None
    stop_reason: str | None = None
    snapshot: str | None = None
    usage: Usage | None = None
    text: str = ""
    error: RunError | None = None

    @property
    def has_stopped(self) -> bool:
        """Whether nothing more comes from this turn until someone does something."""
        return self.state not in ("queued", "running")


class Lagged(msgspec.Struct, frozen=True, tag="lagged"):
    """The viewer was too slow: events are missing; committed ones can be read from the journal."""


SessionEvent = StepEvent | LiveEvent | TurnMark | Lagged


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

    def __init__(self, hub: "Live", thread_id: str) -> None:
        self._hub = hub
        self._thread_id = thread_id
        self._events: deque[Published] = deque()
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

    def close(self) -> None:
        """Stop watching; an iteration under way ends after what is queued."""
        self._closed = True
        self._hub.forget(self._thread_id, self)
        self._wake.set()

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


class Live:
    """The hub of one process; owned by the session service."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, list[Subscription]] = {}

    def subscribe(self, thread_id: str) -> Subscription:
        """Return a queue of everything published for `thread_id` from now on."""
        subscription = Subscription(self, thread_id)
        self._subscriptions.setdefault(thread_id, []).append(subscription)
        return subscription

    def publish(self, published: Published) -> None:
        """Hand an event to every viewer; committed ones only after their commit."""
        for subscription in tuple(self._subscriptions.get(published.thread_id, ())):
            subscription.put(published)

    def forget(self, thread_id: str, subscription: Subscription) -> None:
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


def _merged(last: Published, new: Published) -> Published | None:
    for kind in (TextLive, ThinkingLive):
        if isinstance(last.event, kind) and isinstance(new.event, kind):
            if last.event.message_id != new.event.message_id:
                return None
            joined = kind(last.event.content + new.event.content, new.event.message_id)
            return Published(new.thread_id, new.turn_id, None, joined)
    return None
