"""Reading sessions: history, messages, calls, open questions, queues, totals, watching (SV-8, 9, 24, 29).

Here: the reading half of the session service, over committed rows; following what happens. Not here:
changing anything, wire forms of a door.
"""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from bowerbird.core.errors import UnknownSession
from bowerbird.core.events import LandingProgress
from bowerbird.core.forms import decode
from bowerbird.sessions.catalogue import Catalogue
from bowerbird.sessions.inbox.accept import positions
from bowerbird.sessions.journal.audit_log import content_text
from bowerbird.sessions.journal.messages import call_view, message_views, pending_requests, shown_sender
from bowerbird.sessions.live.follow import follow
from bowerbird.sessions.live.hub import Published, Subscription
from bowerbird.sessions.thread_ids import root_of
from bowerbird.sessions.turn.begin_transaction import sender_of
from bowerbird.sessions.values import (
    CallView,
    MessageView,
    PendingRequest,
    QueuedInput,
    Tokens,
    TurnInfo,
)
from bowerbird.sessions.views import all_turns, has_expired, turn_info
from bowerbird.store.journal.journal import Record
from bowerbird.store.journal.reading import read_turn_records
from bowerbird.store.rows.sessions import SessionRow, find_session, get_session
from bowerbird.store.rows.turns import (
    OPEN,
    InboxRow,
    get_turn,
    inputs_of,
    open_turns_with,
    threads_waiting_for,
    turns_of,
)
from bowerbird.store.rows.usage import session_usage


class Reader(Catalogue):
    """What can be read of sessions; the base of `SessionService`."""

    def subscribe(self, thread_id: str) -> Subscription:
        """Watch what this process does in a session, from now on."""
        return self._context.live.subscribe(thread_id)

    def follow(self, thread_id: str, after: int | None = None) -> AsyncGenerator[Published, None]:
        """Watch a session whoever drives it, from a place in its journal; see `follow.follow`."""
        return follow(self.store, self._context.live, thread_id, after)

    def landing(self, thread_id: str) -> LandingProgress | None:
        """Return how far the landing or undo of many files is that runs in a session, None when none does."""
        return self._context.live.landing(thread_id)

    def landings(self) -> dict[str, LandingProgress]:
        """Return all of them that this process knows of, by session."""
        return self._context.live.landings()

    async def turn(self, turn_id: str) -> TurnInfo:
        """Return a turn; raises UnknownSession."""
        return await self.store.read(lambda c: turn_info(get_turn(c, turn_id)))

    async def turns(self, thread_id: str) -> list[TurnInfo]:
        """Return the turns of a session's history in order."""
        return await self.store.read(lambda c: all_turns(c, thread_id))

    async def history(self, thread_id: str, *, after: int = 0, limit: int | None = None) -> list[Record]:
        """Return a session's records with seq > `after`, in order, a fork's inherited ones included."""
        return await self.store.records(thread_id, after=after, limit=limit)

    async def messages(
        self, thread_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[MessageView]:
        """Return what people said and were answered, in order.

        Args:
            after: only messages with a greater cursor.
            limit: at most so many, the oldest first.

        Raises:
            UnknownSession: there is no such session.
        """
        await self.store.read(lambda c: get_session(c, thread_id))
        return message_views(await self.store.records(thread_id, after=after), limit)

    async def call(self, thread_id: str, call_id: str) -> CallView:
        """Return a tool call with its full input and result; raises UnknownSession for an unknown call."""
        found = call_view(await self.store.records(thread_id), call_id)
        if found is None:
            raise UnknownSession(f"session {thread_id} has no tool call {call_id}")
        return found

    async def pending(
        self, thread_id: str | None = None, *, owner: str | None = None
    ) -> list[PendingRequest]:
        """Return the questions that wait for a person, oldest first.

        Args:
            thread_id: only of this session. owner: only of this user's sessions.
        """
        now = datetime.now(UTC)

        def find(connection: Connection) -> list[PendingRequest]:
            turns = (
                open_turns_with(connection) if thread_id is None else turns_of(connection, thread_id, OPEN)
            )
            found: list[PendingRequest] = []
            for turn in turns:
                session = find_session(connection, turn.thread_id)
                if session is None or (owner is not None and session.owner != owner):
                    continue
                records = read_turn_records(connection, turn.thread_id, turn.turn_id)
                found += pending_requests(records, turn.thread_id, (turn.turn_id,), now)
            return sorted(found, key=lambda request: (request.asked_at, request.request_id))

        return await self.store.read(find)

    async def asking(self) -> set[str]:
        """Return the sessions that wait for an approval; a subagent's question is its session's."""

        def find(connection: Connection) -> set[str]:
            waiting = threads_waiting_for(connection, "approval")
            return {root_of(one) for one in waiting if not has_expired(connection, one, "approval")}

        return await self.store.read(find)

    async def queued(self, thread_id: str) -> list[QueuedInput]:
        """Return the accepted inputs whose turn has not begun, in the order they will run."""

        def find(connection: Connection) -> list[QueuedInput]:
            get_session(connection, thread_id)
            places = positions(turns_of(connection, thread_id, OPEN))
            rows = inputs_of(connection, thread_id=thread_id, states=("queued",))
            waiting = [row for row in rows if row.kind in ("message", "steer", "interrupt")]
            return sorted((_queued(row, places) for row in waiting), key=lambda found: found.position)

        return await self.store.read(find)

    async def tokens(self, thread_id: str) -> Tokens:
        """Return the totals of every model call of a session, its subagents' included."""

        def total(connection: Connection) -> Tokens:
            found = session_usage(connection, thread_id)
            return Tokens(
                found.input_tokens,
                found.output_tokens,
                found.cache_read_tokens,
                found.cache_write_tokens,
                found.calls,
                found.cost,
            )

        return await self.store.read(total)

    async def find(self, thread_id: str, *, deleted: bool = False) -> SessionRow | None:
        """Return a session's row as stored, None when there is none; `deleted`: a deleted one, too."""
        return await self.store.read(lambda c: find_session(c, thread_id, deleted=deleted))

    async def row(self, thread_id: str) -> SessionRow:
        """Return a session's row as stored; raises UnknownSession."""
        found = await self.find(thread_id)
        if found is None:
            raise UnknownSession(f"no session {thread_id}")
        return found


def _queued(row: InboxRow, places: dict[str, int]) -> QueuedInput:
    body = decode(row.body, dict[str, Any])
    return QueuedInput(
        inbox_id=row.id,
        turn_id=row.turn_id or "",
        position=places.get(row.turn_id or "", 0),
        kind=row.kind,
        text=content_text(body.get("content")),
        sender=shown_sender(sender_of(row)),
        received_at=row.received_at,
    )
