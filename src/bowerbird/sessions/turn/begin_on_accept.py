"""Turns that begin in the transaction that accepts their message (SE-17, 22, 28).

Here: when that may be, and what became of a turn that was begun and is not driven. Not here: accepting
(`inbox/accept.py`), beginning (`begin_transaction.py`), driving.

A message to a session that is at rest is accepted, and its turn is begun a moment later by the same
process: one commit serves both. A process that dies then leaves what it leaves after any begin.
"""

from sqlalchemy import Connection

from bowerbird.sessions.inbox.accept import Accepted, Offered, accept
from bowerbird.sessions.turn.begin_transaction import Begun, begin_accepted
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.store.rows.sessions import update_session
from bowerbird.store.rows.turns import find_turn, update_turn
from bowerbird.store.store import Store


class EarlyStarts:
    """The turns of one process that were begun with their message and whose driver has not come yet."""

    def __init__(self) -> None:
        self._begun: dict[str, Begun] = {}
        self._under_way = 0

    async def accept(self, context: DriverContext, offered: Offered, room: int) -> Accepted:
        """Accept an input, and begin its turn in the same transaction where that may be.

        Args:
            room: turns that may begin to run beside those that run.

        Raises:
            UnknownSession, QueueFull: nothing is stored.
        """
        may_begin = room > self._under_way + len(self._begun)

        def change(connection: Connection) -> tuple[Accepted, Begun | None]:
            accepted = accept(connection, offered, context.settings)
            return accepted, _begun(connection, accepted, context) if may_begin else None

        self._under_way += may_begin
        try:
            accepted, begun = await context.store.write(change)
        finally:
            self._under_way -= may_begin
        if begun is not None:
            self._begun[begun.turn.turn_id] = begun
        return accepted

    def take(self, turn_id: str) -> Begun | None:
        """Return what was begun of a turn, once."""
        return self._begun.pop(turn_id, None)

    async def put_back(self, store: Store) -> None:
        """Queue again what nobody will drive here; nothing died, so no attempt is counted."""
        left, self._begun = list(self._begun.values()), {}
        for begun in left:
            await store.write(lambda c, begun=begun: _put_back(c, begun))


def _begun(connection: Connection, accepted: Accepted, context: DriverContext) -> Begun | None:
    """Begin the turn of a message that was accepted in this transaction; None when it has to wait.

    A turn that waited for a person, or that goes before others, takes the longer way.
    """
    session, turn, row = accepted.session, accepted.wake, accepted.input
    if session is None or turn is None or row is None or accepted.interrupt is not None:
        return None
    return begin_accepted(connection, session, turn, row, context)


def _put_back(connection: Connection, begun: Begun) -> None:
    turn = find_turn(connection, begun.turn.turn_id)
    if turn is None or turn.state != "running" or turn.epoch != begun.turn.epoch:
        return  # somebody else has it by now
    update_turn(connection, turn.turn_id, state="queued", attempt=max(0, turn.attempt - 1))
    update_session(connection, turn.thread_id, status="queued")
