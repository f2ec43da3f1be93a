"""Background commands that ended: whom it is told to, and how often (DE-29, DE-30).

Here: the row of each end, the event for viewers, the turn of an idle session, and what the loop puts
before the model. Not here: running commands (`sandbox/`), finding ends of earlier processes (`app/`).

An end is a row before anybody hears of it. The model is told once: the loop's record names the row's key,
and a row whose key is on record is not given again, whatever happened in between.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import BackgroundResult, Injected
from bowerbird.core.ids import new_id
from bowerbird.core.messages import user_text
from bowerbird.core.tasks import Tasks
from bowerbird.sessions.live.hub import Live, Published, TurnMark
from bowerbird.sessions.turn.approver_and_inbox import DoorInbox
from bowerbird.sessions.turn.begin_transaction import MESSAGE_KINDS
from bowerbird.store.rows.notifications import (
    Notification,
    insert_notification,
    mark_delivered,
    pending_notifications,
    threads_to_wake,
    told_before,
)
from bowerbird.store.rows.sessions import find_session, lock_session, update_session
from bowerbird.store.rows.turns import (
    OPEN,
    InboxRow,
    TurnRow,
    inputs_of,
    insert_turn,
    last_turn_number,
    turns_of,
)
from bowerbird.store.store import Store

SOURCE = "background"
MOST_IN_A_ROW = 10  # turns that ends of commands start, without a person saying something
UNASKED = ("background", "inbox")  # kinds of turns that nobody asked for

DRIVEN_BY_OTHERS = ("subagent", "teammate")  # whoever made them says when they work

_log = logging.getLogger(__name__)


class CommandEnd(msgspec.Struct, frozen=True):
    """A background command that ended.

    Attributes:
        body: `{task_id, status, command, result}`, what viewers are told.
        content: what the model is told. wakes: an idle session starts a turn for it.
        known: the model knows already, say because it stopped the command.
    """

    thread_id: str
    task_id: str
    body: dict[str, str]
    content: str
    wakes: bool = False
    known: bool = False


class StoredNotices:
    """`agent.turn.Notices` of one session, over its rows.

    Args:
        inbox: polled by the loop directly after these notices: one read serves both.
    """

    def __init__(self, store: Store, thread_id: str, inbox: DoorInbox) -> None:
        self._inbox = inbox
        self._store = store
        self._thread_id = thread_id
        self._given: list[str] = []

    async def poll(self) -> Sequence[Injected]:
        """See `Notices`."""
        rows, told, waiting = await self._store.read(self._pending)
        self._inbox.give(waiting)
        repeated = [row.id for row in rows if row.key in told]
        if repeated:  # a process died between the record and the mark
            await self._store.write(lambda c: mark_delivered(c, self._thread_id, repeated))
        fresh = [row for row in rows if row.key not in told]
        self._given = [row.id for row in fresh]
        return [Injected("background", user_text(row.content), ids=(row.key,)) for row in fresh]

    async def told(self) -> None:
        """See `Notices`."""
        given, self._given = self._given, []
        if given:
            await self._store.write(lambda c: mark_delivered(c, self._thread_id, given))

    def _pending(self, connection: Connection) -> tuple[list[Notification], set[str], list[InboxRow]]:
        rows = pending_notifications(connection, self._thread_id)
        keys = [row.key for row in rows]
        told: set[str] = told_before(connection, self._thread_id, keys) if keys else set()
        return rows, told, self._inbox.waiting(connection)


class CommandNotices:
    """Ends of a process's background commands; belongs to its event loop.

    Args:
        wake: drives a queued turn.
    """

    def __init__(self, store: Store, live: Live, wake: Callable[[TurnRow], Awaitable[object]]) -> None:
        self._store = store
        self._live = live
        self._wake = wake
        self._tasks = Tasks("notices of background commands")
        self._quiet = False
        self._waking: set[str] = set()  # threads that may have notices for a turn of their own
        live.relay(self._after)

    async def ended(self, end: CommandEnd) -> None:
        """Record an end, show it to viewers at once, and start a turn where that was asked for.

        An end that is on record already is shown to nobody again.
        """
        row = Notification(
            thread_id=end.thread_id,
            source=SOURCE,
            key=end.task_id,
            body=end.body,
            content=end.content,
            wakes=end.wakes and not end.known,
            state="delivered" if end.known else "pending",
        )
        if not await self._store.write(lambda c: insert_notification(c, row)):
            return
        self._live.publish(Published(end.thread_id, None, None, BackgroundResult((end.body,))))
        if row.wakes:
            self._waking.add(end.thread_id)
            await self.wake_idle(end.thread_id)

    async def wake_idle(self, thread_id: str) -> TurnRow | None:
        """Start a turn for a session's notices, when it is idle; returns it."""
        if self._quiet:
            return None
        turn = await self._store.write(lambda c: notice_turn(c, thread_id))
        if turn is not None:
            await self._wake(turn)
        return turn

    async def start(self) -> None:
        """Start the turns that a process which died did not."""
        for thread_id in await self._store.read(threads_to_wake):
            self._waking.add(thread_id)
            await self.wake_idle(thread_id)

    def quiet(self) -> None:
        """Start no more turns; the next process does."""
        self._quiet = True

    async def aclose(self) -> None:
        """Wait for what is under way."""
        await self._tasks.finish()

    def _after(self, published: Published) -> None:
        # A turn that ended may have been too far to tell its model of what came.
        event = published.event
        if isinstance(event, TurnMark) and event.has_stopped and published.thread_id in self._waking:
            self._tasks.spawn(self._again(published.thread_id))

    async def _again(self, thread_id: str) -> None:
        try:
            await self.wake_idle(thread_id)
        except BowerbirdError as error:
            _log.warning("session %s was not woken: %s", thread_id, error)


def notice_turn(connection: Connection, thread_id: str) -> TurnRow | None:
    """Queue a turn for a session's notices; None when it is not idle, or has had too many in a row.

    A subagent's or teammate's session is never woken: its notices wait for its next turn.
    """
    session = find_session(connection, thread_id)
    if session is None or session.kind in DRIVEN_BY_OTHERS:
        return None
    lock_session(connection, thread_id)
    if not any(row.wakes for row in pending_notifications(connection, thread_id)):
        return None
    turns = turns_of(connection, thread_id)
    if any(turn.state in OPEN for turn in turns) or turns_in_a_row(connection, turns) >= MOST_IN_A_ROW:
        return None
    number = last_turn_number(connection, thread_id) + 1
    turn = TurnRow(turn_id=new_id("t"), thread_id=thread_id, n=number, kind=SOURCE)
    insert_turn(connection, turn)
    update_session(connection, thread_id, status="queued")
    return turn


def turns_in_a_row(connection: Connection, turns: Sequence[TurnRow]) -> int:
    """Return how many turns that nobody asked for were the last ones; what a person says ends the row."""
    count = 0
    for turn in sorted(turns, key=lambda turn: -turn.n)[: MOST_IN_A_ROW + 1]:
        if turn.kind not in UNASKED or inputs_of(connection, turn_id=turn.turn_id, kinds=MESSAGE_KINDS):
            break
        count += 1
    return count
