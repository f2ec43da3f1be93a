"""How a turn stops: the state it gets, and the transaction that says so (SE-20, 21, 35, 54).

Here: from the loop's `Done` to the turn's state, and the commits of an end and of a wait. Not
here: freezing the branch, landing, who is told.
"""

from typing import Any, Literal

import msgspec
from sqlalchemy import Connection

from bowerbird.core.events import Done, RunError, wire_stop
from bowerbird.core.ids import new_id
from bowerbird.core.processes import descriptors
from bowerbird.core.usage import Usage
from bowerbird.sessions.inbox.accept import requeue_steers
from bowerbird.sessions.turn.step_records import followed_by
from bowerbird.store.journal.journal import Append, NewRecord, Record, append_one
from bowerbird.store.rows.leases import release_lease
from bowerbird.store.rows.sessions import lock_session, set_status, update_session
from bowerbird.store.rows.signals import drop_signals
from bowerbird.store.rows.turns import (
    OPEN,
    SnapshotRow,
    TurnRow,
    find_snapshot_by_id,
    get_turn,
    inputs_of,
    insert_snapshot,
    message_behind,
    turns_of,
    update_inputs,
    update_turn,
)

EndState = Literal["done", "failed", "cancelled", "interrupted"]
WaitingFor = Literal["approval", "plan", "effect", "budget", "user"]


class Ending(msgspec.Struct, frozen=True):
    """How a turn ended; `stop_reason` in the journal's words."""

    state: EndState
    stop_reason: str
    usage: Usage
    text: str = ""
    error: RunError | None = None


class Pause(msgspec.Struct, frozen=True):
    """The turn waits for a person; `request` is recorded when nobody asked yet."""

    waiting_for: WaitingFor
    stop_reason: str
    usage: Usage
    request: NewRecord | None = None


class Frozen(msgspec.Struct, frozen=True):
    """The branch's state at the end, as rows know it; None in `Ended` when there is no branch.

    Attributes:
        changed: how many paths of the branch differ from the workspace; None = as before.
    """

    snapshot_id: str
    branch_id: str
    layer: int
    paths: int
    bytes: int
    changed: int | None = None


class Ended(msgspec.Struct, frozen=True):
    """What the end's transaction did: its record, the turn to drive next, and the last step's records."""

    record: Record
    following: TurnRow | None
    steps: tuple[Record, ...] = ()


def conclude(done: Done, asked: WaitingFor | None) -> Ending | Pause:
    """Return what a finished run means for its turn. Pure.

    Args:
        done: the loop's last event.
        asked: the kind of the newest unanswered request.

    Example:
        >>> conclude(Done("completed", "ok", Usage(), 1), None).state
        'done'
    """
    stop = wire_stop(done.stop_reason)
    match done.stop_reason:
        case "awaiting_approval":
            return Pause(asked or "approval", "budget" if asked == "budget" else stop, done.usage)
        case "awaiting_user":
            return Pause("user", stop, done.usage)
        case "plan_ready":
            return Pause("plan", stop, done.usage, _plan_request(done.text))
        case "cancelled":
            state: EndState = "cancelled"
        case "interrupted":
            state = "interrupted"
        case "model_error":
            state = "failed"
        case _:
            state = "done"
    return Ending(state, stop, done.usage, done.text, done.error)


def failure(error: Exception, usage: Usage, *, retryable: bool = True) -> Ending:
    """Return the ending of a turn that an error stopped; it can be resumed."""
    if (lack := descriptors.ran_out(error)) is not None:
        return Ending("failed", "error", usage, error=RunError("OutOfFiles", descriptors.words(lack), True))
    return Ending("failed", "error", usage, error=RunError(type(error).__name__, str(error), retryable))


def crash_loop(attempts: int, last_intent: str, usage: Usage) -> Ending:
    """Return the ending of a turn with which too many processes died."""
    during = f" The last thing it began was: {last_intent}" if last_intent else ""
    text = f"{attempts} processes died while driving this turn, so it is not tried again by itself.{during}"
    return Ending("failed", "crash_loop", usage, error=RunError("CrashLoop", text, retryable=True))


def _plan_request(plan: str) -> NewRecord:
    calls: list[str] = []
    body = {"id": new_id("r"), "kind": "plan", "calls": calls, "expires_at": None, "text": plan}
    return NewRecord("request", body)


def end_turn(
    connection: Connection,
    turn: TurnRow,
    epoch: int,
    ending: Ending,
    frozen: Frozen | None,
    last: Append | None = None,
) -> Ended:
    """Write the end: `turn_ended`, snapshot, turn, inputs, session; give the lease back.

    Args:
        last: the turn's last step, prepared, when it was not recorded before.

    Raises:
        LeaseLost: another process drives the turn; nothing is written.
    """
    error = None if ending.error is None else msgspec.to_builtins(ending.error)
    usage = msgspec.to_builtins(ending.usage)
    body: dict[str, Any] = {
        "state": ending.state,
        "stop_reason": ending.stop_reason,
        "usage": usage,
        "snapshot": None if frozen is None else frozen.snapshot_id,
        "error": error,
    }
    own = NewRecord("turn_ended", body, turn.turn_id)
    append = Append(turn.thread_id, epoch, (own,)) if last is None else followed_by(last, own)
    *steps, record = append_one(connection, append)
    if frozen is not None:
        row = _snapshot_row(connection, turn, record.seq, frozen)
        insert_snapshot(connection, row, replaces=turn.snapshot_id is not None)
    update_turn(
        connection,
        turn.turn_id,
        state=ending.state,
        waiting_for=None,
        stop_reason=ending.stop_reason,
        error=None if error is None else msgspec.json.encode(error).decode(),
        usage=msgspec.json.encode(usage).decode(),
        cost=ending.usage.cost,
        snapshot_id=body["snapshot"],
        ended_at=record.at,
    )
    _close_inputs(connection, turn)
    drop_signals(connection, turn.turn_id)
    following = next(iter(turns_of(connection, turn.thread_id, OPEN)), None)
    status = ending.state if following is None else "queued"
    set_status(connection, turn.thread_id, status, int(bool(ending.text) and ending.state != "failed"))
    if frozen is not None and frozen.changed is not None:
        update_session(connection, turn.thread_id, changed_files=frozen.changed)
    release_lease(connection, turn.thread_id, epoch)
    return Ended(record, following, tuple(steps))


class Paused(msgspec.Struct, frozen=True):
    """What the commit of a wait did: its request's record, and the turn when it must be driven again."""

    record: Record | None
    again: TurnRow | None


def pause_turn(connection: Connection, turn: TurnRow, epoch: int, pause: Pause) -> Paused:
    """Write that the turn waits for a person; give the lease back.

    What came in the last moment, and what waits behind a plan, decides about it: the turn is queued instead.
    Behind any other question messages wait, until a person answers it or it has expired.

    Raises:
        LeaseLost: another process drives the turn; nothing is written.
    """
    records = () if pause.request is None else (NewRecord("request", pause.request.body, turn.turn_id),)
    # An empty append still passes the fence.
    written = append_one(connection, Append(turn.thread_id, epoch, records))
    lock_session(connection, turn.thread_id)
    news: object = inputs_of(
        connection, turn_id=turn.turn_id, states=("queued",), kinds=("answer", "notification")
    )
    if not news and pause.waiting_for == "plan":
        news = message_behind(connection, turn)
    state = "queued" if news else "waiting"
    update_turn(
        connection,
        turn.turn_id,
        state=state,
        waiting_for=None if news else pause.waiting_for,
        stop_reason=pause.stop_reason,
        usage=msgspec.json.encode(pause.usage).decode(),
        cost=pause.usage.cost,
    )
    update_session(connection, turn.thread_id, status=state)
    release_lease(connection, turn.thread_id, epoch)
    again = get_turn(connection, turn.turn_id) if news else None
    return Paused(written[0] if written else None, again)


def leave_turn(connection: Connection, turn: TurnRow, epoch: int) -> None:
    """Put a turn that was stopped at a step's end back into the queue, for the next process.

    The attempt is not counted: nothing died.
    """
    append_one(connection, Append(turn.thread_id, epoch, ()))
    update_turn(connection, turn.turn_id, state="queued", attempt=max(0, turn.attempt - 1))
    update_session(connection, turn.thread_id, status="queued")
    release_lease(connection, turn.thread_id, epoch)


def _close_inputs(connection: Connection, turn: TurnRow) -> None:
    rows = inputs_of(connection, turn_id=turn.turn_id, states=("queued", "taken"))
    late = [row for row in rows if row.kind == "steer" and row.state == "queued"]
    following = requeue_steers(connection, turn, late)
    if following is not None:
        update_inputs(connection, [row.id for row in late], kind="message", turn_id=following.turn_id)
    update_inputs(connection, [row.id for row in rows if row not in late], state="done")


def _snapshot_row(connection: Connection, turn: TurnRow, seq: int, frozen: Frozen) -> SnapshotRow:
    known = find_snapshot_by_id(connection, frozen.snapshot_id)
    # A turn without changes ends in the state of the one before: its row has an id of its own.
    is_known = known is not None and known.turn_id != turn.turn_id
    return SnapshotRow(
        snapshot_id=new_id("s") if is_known else frozen.snapshot_id,
        thread_id=turn.thread_id,
        turn_id=turn.turn_id,
        seq=seq,
        branch_id=frozen.branch_id,
        layer=frozen.layer,
        paths=frozen.paths,
        bytes=frozen.bytes,
    )
