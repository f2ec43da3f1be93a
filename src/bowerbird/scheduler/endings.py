"""What the end of a run means for its task, and who is told (AS-35, AS-36, AS-38).

Here: those changes, inside the transaction that ends the turn, or in one of its own where a turn ended
without its driver. Not here: beginning a run (`firing.py`), the decision when to look (`clock.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import InvalidThreadId
from bowerbird.core.events import RunError
from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso, to_iso
from bowerbird.sessions.delivery.messages import Parcel, ordered_ids
from bowerbird.sessions.thread_ids import thread_of_chat
from bowerbird.sessions.turn.end_transaction import Ending
from bowerbird.store.rows.outbox import OutboxRow, insert_parcels
from bowerbird.store.rows.schedules import RunRow, TaskRow, find_task, update_run, update_task
from bowerbird.store.rows.sessions import SessionRow, counter_of, find_session
from bowerbird.store.rows.turns import TurnRow, find_turn

RETRY_S = (60, 300, 900)
MOST_FAILURES = 5  # in a row, then a repeating task is paused
STATUS_CHARS = 500
NO_REPLY = "NO_REPLY"

Parts = Callable[[str, str], Sequence[Mapping[str, Any]]]
"""Cuts a text into messages that a channel takes: (channel, text)."""


class Around(msgspec.Struct, frozen=True):
    """The present, and how channels cut texts."""

    now: datetime
    parts: Parts


class Verdict(msgspec.Struct, frozen=True):
    """What an end of a turn is for a run.

    Attributes:
        status: of the run. retry_s: when it is tried again, None for never. error: in words.
    """

    status: str
    retry_s: float | None = None
    error: str = ""


def judge(state: str, stop_reason: str | None, error: RunError | None, tries: int) -> Verdict:
    """Return what a turn's end means. Pure.

    Args:
        tries: how often the run was tried again.

    Example:
        >>> judge("failed", "error", RunError("ModelError", "busy", True), 1).retry_s
        300
    """
    if state == "done":
        return Verdict("done")
    if state != "failed":
        return Verdict("cancelled", error=stop_reason or state)
    said = error.message if error is not None else stop_reason or "failed"
    may_retry = error is None or error.retryable
    if may_retry and tries < len(RETRY_S):
        return Verdict("retrying", RETRY_S[tries], said)
    return Verdict("failed", error=said)


def settle(
    connection: Connection, run: RunRow, turn: TurnRow | None, ending: Ending | None, around: Around
) -> None:
    """Record a run's end; one that was settled before is only brought up to date.

    Args:
        turn: the row as it is; None when it is gone. ending: of the attempt that ends just now.
    """
    task = find_task(connection, run.task_id)
    if task is None:
        return
    state, stop, error, text, cost = _how(turn, ending)
    verdict = judge(state, stop, error, run.tries)
    now = around.now
    status, said = verdict.status, verdict.error[:STATUS_CHARS]
    retry_at = None if verdict.retry_s is None else to_iso(now + timedelta(seconds=verdict.retry_s))
    if run.ended_at is not None and retry_at is not None:
        status, retry_at = "failed", None  # a person tried once more, and it failed again
    tries = run.tries + (retry_at is not None)
    is_over = retry_at is None
    ended_at = to_iso(now) if is_over else None
    update_run(
        connection, run, status=status, ended_at=ended_at, retry_at=retry_at, cost=cost, error=said or None,
        tries=tries,
    )  # fmt: skip
    session = None if turn is None else find_session(connection, turn.thread_id)
    if run.ended_at is not None:
        return
    values = task_values(task, status, said)
    update_task(connection, task.id, **values)
    if session is not None and turn is not None:
        if status == "done":
            _answer(connection, task, session, turn, text, around.parts)
        elif status == "failed":
            _tell(
                connection,
                session,
                f"{turn.turn_id}:failed",
                _failed(task, said, paused=bool(values.get("paused"))),
            )


def task_values(task: TaskRow, status: str, said: str) -> dict[str, Any]:
    """Return the columns of a task that a run's end changes. Pure."""
    named = status if not said or status == "done" else f"{status}: {said}"
    values: dict[str, Any] = {"last_status": named[:STATUS_CHARS]}
    if status == "retrying":
        return values
    if status == "done":
        values["fail_count"] = 0
    elif status == "failed":
        values["fail_count"] = task.fail_count + 1
        if task.type != "once" and task.fail_count + 1 >= MOST_FAILURES:
            values["paused"] = True
    if task.type == "once" and task.next_run is None:
        values["active"] = False
    return values


def _how(
    turn: TurnRow | None, ending: Ending | None
) -> tuple[str, str | None, RunError | None, str, float | None]:
    if ending is not None:
        return ending.state, ending.stop_reason, ending.error, ending.text, ending.usage.cost
    if turn is None:
        return "cancelled", "its conversation is gone", None, "", None
    error = None if turn.error is None else decode(turn.error, RunError)
    return turn.state, turn.stop_reason, error, "", turn.cost


def _answer(
    connection: Connection, task: TaskRow, session: SessionRow, turn: TurnRow, text: str, parts: Parts
) -> None:
    if task.notify == "never" or session.channel is None or not text.strip() or text.strip() == NO_REPLY:
        return
    contents = [{**part, "silent": task.notify == "silent"} for part in parts(session.channel, text)]
    _send(connection, session, f"{turn.turn_id}:schedule", contents, turn.turn_id)


def _failed(task: TaskRow, said: str, *, paused: bool) -> str:
    text = f"Scheduled task {task.id} failed: {said}\n\n{task.prompt[:200]}"
    if paused:
        text += (
            f"\n\nIt failed {MOST_FAILURES} times in a row and is paused; "
            f"`bowerbird tasks resume {task.id}` lets it run again."
        )
    return text


def invalid(connection: Connection, task: TaskRow, reason: str, session: SessionRow | None) -> None:
    """Take a task that cannot run out of the schedule, and tell its owner (AS-35).

    Args:
        session: of its runs; one that never ran has none, and is told of in its chat's own.
    """
    said = f"invalid: {reason}"[:STATUS_CHARS]
    update_task(connection, task.id, active=False, next_run=None, last_status=said)
    told = session or _session_of_chat(connection, task)
    if told is not None:
        text = f"Scheduled task {task.id} cannot run and is off: {reason}\n\n{task.prompt[:200]}"
        _tell(connection, told, f"{task.id}:{now_iso()}:invalid", text)


def _session_of_chat(connection: Connection, task: TaskRow) -> SessionRow | None:
    if task.channel is None or task.chat_id is None:
        return None
    try:
        base = thread_of_chat(task.channel, task.chat_id)
        return find_session(
            connection, thread_of_chat(task.channel, task.chat_id, counter_of(connection, base))
        )
    except InvalidThreadId:  # of a task that was imported, or written by another program
        return None


def _tell(connection: Connection, session: SessionRow, key: str, text: str) -> None:
    _send(connection, session, key, [{"text": text, "silent": False, "is_failure": True}], None)


def _send(
    connection: Connection,
    session: SessionRow,
    key: str,
    contents: Sequence[Mapping[str, Any]],
    turn: str | None,
) -> None:
    if session.channel is None or session.chat_id is None:
        return
    since = now_iso()
    rows = [
        OutboxRow(
            id=row_id,
            thread_id=session.thread_id,
            turn_id=turn,
            door=session.channel,
            address=session.chat_id,
            part=number,
            body=msgspec.json.encode(Parcel("schedule", dict(content), since)).decode(),
            dedupe_key=f"{key}:{number}",
        )
        for number, (row_id, content) in enumerate(zip(ordered_ids(len(contents)), contents, strict=True))
    ]
    insert_parcels(connection, rows)


def settle_left(connection: Connection, run: RunRow, around: Around) -> None:
    """Settle a run whose turn ended without a driver, say because it was cancelled while it waited."""
    settle(connection, run, find_turn(connection, run.turn_id), None, around)
