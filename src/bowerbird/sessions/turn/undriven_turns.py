"""Turns that nobody drives: cancelled while they wait, queued again after a failure (SE-20, 22).

Here: those transactions. Not here: stopping a driver (`dispatch/dispatcher.py` signals it).
"""

from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument, SessionError, TurnRunning
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.inbox.accept import ANSWER_DOOR
from bowerbird.sessions.values import DISCONNECTED
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.sessions import lock_session, update_session
from bowerbird.store.rows.turns import (
    OPEN,
    InboxRow,
    TurnRow,
    find_turn,
    get_turn,
    inputs_of,
    insert_input,
    turns_of,
    update_inputs,
    update_turn,
)


def cancel_undriven(connection: Connection, turn_id: str) -> TurnRow:
    """Cancel a turn that no driver of this process has; returns it as it is now.

    One that never began is over at once (`cancelled`). A waiting one is queued, with a note, and ends
    as cancelled when it is driven next. A running one is left: its driver must be told.
    """
    turn = get_turn(connection, turn_id)
    lock_session(connection, turn.thread_id)
    turn = get_turn(connection, turn_id)
    if turn.state == "queued" and turn.started_at is None:
        update_turn(connection, turn_id, state="cancelled", stop_reason="cancelled", ended_at=now_iso())
        left = inputs_of(connection, turn_id=turn_id, states=("queued",))
        update_inputs(connection, [row.id for row in left], state="cancelled")
        if not turns_of(connection, turn.thread_id, OPEN):
            update_session(connection, turn.thread_id, status="idle")
    elif turn.state in ("waiting", "queued"):
        _note_cancel(connection, turn)
        update_turn(connection, turn_id, state="queued", waiting_for=None)
    return get_turn(connection, turn_id)


def cancel_paused(connection: Connection, turn_id: str) -> TurnRow | None:
    """Cancel a turn that came to wait for a person in the moment of its cancel; None when it did not."""
    turn = find_turn(connection, turn_id)
    return cancel_undriven(connection, turn_id) if turn is not None and turn.is_paused else None


def give_up(connection: Connection, turn_id: str) -> bool:
    """End a turn that nobody drives; False when somebody does."""
    turn = get_turn(connection, turn_id)
    if turn.is_ended:
        return True
    if turn.state == "running" and not lease_is_free(connection, turn.thread_id):
        return False
    update_turn(
        connection, turn.turn_id, state="cancelled", waiting_for=None, stop_reason="cancelled",
        ended_at=now_iso(),
    )  # fmt: skip
    left = inputs_of(connection, turn_id=turn.turn_id, states=("queued", "taken"))
    update_inputs(connection, [row.id for row in left], state="cancelled")
    return True


def _note_cancel(connection: Connection, turn: TurnRow) -> None:
    insert_input(
        connection,
        InboxRow(
            id=new_id("i"),
            thread_id=turn.thread_id,
            door=ANSWER_DOOR,
            dedupe_key=f"cancel:{turn.turn_id}:{turn.attempt}:{new_id('i')}",
            kind="notification",
            sender="{}",
            body='{"cancel":true}',
            turn_id=turn.turn_id,
        ),
    )


def queue_again(connection: Connection, turn_id: str | None, thread_id: str | None) -> TurnRow:
    """Queue a failed or orphaned turn for another attempt; a person asked, so no attempt is counted.

    Raises:
        TurnRunning: a living process drives it. SessionError: there is nothing to go on with.
    """
    if turn_id is None and thread_id is None:
        raise InvalidArgument("name a turn, or the session whose newest turn is meant")
    turn = get_turn(connection, turn_id) if turn_id is not None else _newest(connection, str(thread_id))
    lock_session(connection, turn.thread_id)
    if turn.state in ("running", "queued"):
        if not lease_is_free(connection, turn.thread_id):
            raise TurnRunning(f"turn {turn.turn_id} is running; watch it, or cancel it")
    elif turn.state == "waiting":
        raise SessionError(f"turn {turn.turn_id} waits for {turn.waiting_for}; answer that")
    elif turn.state != "failed" and turn.stop_reason != DISCONNECTED:
        raise SessionError(f"turn {turn.turn_id} ended ({turn.state}); send a new message")
    later = [t for t in turns_of(connection, turn.thread_id) if t.n > turn.n and t.started_at is not None]
    if later:
        raise SessionError(f"turn {turn.turn_id} is not the newest: turn {later[-1].turn_id} ran after it")
    # `queued`, not `running`: the next attempt does not look like another death.
    update_turn(connection, turn.turn_id, state="queued", waiting_for=None, ended_at=None)
    update_session(connection, turn.thread_id, status="queued")
    return get_turn(connection, turn.turn_id)


def _newest(connection: Connection, thread_id: str) -> TurnRow:
    turns = turns_of(connection, thread_id)
    chosen = next((turn for turn in turns if turn.state in OPEN), None)
    if chosen is None:
        chosen = next((turn for turn in reversed(turns) if turn.started_at is not None), None)
    if chosen is None:
        raise SessionError(f"session {thread_id} has no turn to go on with")
    return chosen
