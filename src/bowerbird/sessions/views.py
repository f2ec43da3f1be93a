"""Sessions and turns as doors show them. Functions of a connection or of rows; no changes.

Not here: the model's history (`journal/history.py`), wire forms of a door.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import UnknownSession
from bowerbird.core.forms import decode
from bowerbird.sessions.inbox.accept import Offered
from bowerbird.sessions.journal.messages import pending_requests
from bowerbird.sessions.live.hub import InputMark
from bowerbird.sessions.values import Receipt, SessionInfo, TurnInfo
from bowerbird.store.journal.reading import read_turn_records
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.sessions import SessionRow, find_session, sessions_like
from bowerbird.store.rows.turns import TurnRow, TurnSums, last_turn_number, turn_sums, turns_of

LEAST_PREFIX = 4
EVER = datetime.min.replace(tzinfo=UTC)  # before any question's end


def session_by_prefix(connection: Connection, prefix: str) -> SessionRow:
    """Return the session with this id, or the only one whose id begins so, whatever subagents it has.

    Raises:
        UnknownSession: none, several (they are named), or fewer than 4 characters.
    """
    exact = find_session(connection, prefix)
    if exact is not None:
        return exact
    if len(prefix) < LEAST_PREFIX:
        raise UnknownSession(f"no session {prefix!r}; a prefix needs at least {LEAST_PREFIX} characters")
    found = sessions_like(connection, prefix, below=False) or sessions_like(connection, prefix)
    if not found:
        raise UnknownSession(f"no session {prefix!r}")
    if len(found) > 1:
        names = ", ".join(f"{row.thread_id} ({row.title or 'untitled'})" for row in found[:10])
        raise UnknownSession(f"{prefix!r} fits {len(found)} sessions: {names}")
    return found[0]


def input_mark(offered: Offered, receipt: Receipt) -> InputMark:
    """Return what viewers are told of an accepted input."""
    return InputMark(
        receipt.inbox_id,
        receipt.turn_id,
        receipt.position,
        offered.kind,
        sender={**offered.sender, "door": offered.door},
        text=offered.text,
    )


def session_info(connection: Connection, row: SessionRow) -> SessionInfo:
    """Return one session as lists show it."""
    return session_infos(connection, [row])[0]


def session_infos(connection: Connection, rows: Sequence[SessionRow]) -> list[SessionInfo]:
    """Return sessions as lists show them, in the given order; few queries, however many rows."""
    sums = turn_sums(connection, [row.thread_id for row in rows])
    return [_info(connection, row, sums.get(row.thread_id, TurnSums())) for row in rows]


def _info(connection: Connection, row: SessionRow, sums: TurnSums) -> SessionInfo:
    last = sums.last_n
    if last is None:  # nothing asked yet: the number of a fork's history is its ancestors'
        last = 0 if row.parent_thread_id is None else last_turn_number(connection, row.thread_id)
    return SessionInfo(
        thread_id=row.thread_id,
        kind=row.kind,
        title=row.title,
        status=status_of(connection, row),
        workspace=row.workspace,
        branch_id=row.branch_id,
        preset=row.preset,
        owner=row.owner,
        flags=row.flags,
        auto_approve=row.auto_approve,
        turns=last,
        queued=sums.queued,
        cost=sums.cost,
        last_seq=row.last_seq,
        parent=row.parent_thread_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        system_prompt=row.system_prompt,
        thinking_effort=row.thinking_effort,
        messages=row.messages,
        pending=None if has_expired(connection, row.thread_id, sums.waiting_for) else sums.waiting_for,
        changed_files=row.changed_files,
        stop_reason=sums.stop_reason,
    )


def has_expired(connection: Connection, thread_id: str, waiting_for: str | None) -> bool:
    """Return whether what a session's turn waits for can no longer be answered: its time is over."""
    if waiting_for is None:
        return False
    now, asked = datetime.now(UTC), False
    for turn in turns_of(connection, thread_id, ("waiting",)):
        records = read_turn_records(connection, thread_id, turn.turn_id, types=("request", "answer"))
        if pending_requests(records, thread_id, (turn.turn_id,), now):
            return False
        asked = asked or bool(pending_requests(records, thread_id, (turn.turn_id,), EVER))
    return asked


def status_of(connection: Connection, row: SessionRow) -> str:
    """Return what a session does now: a turn whose process was killed does not run, it waits."""
    is_orphaned = row.status == "running" and lease_is_free(connection, row.thread_id)
    return "queued" if is_orphaned else row.status


def turn_info(row: TurnRow) -> TurnInfo:
    """Return one turn as doors show it."""
    values: dict[str, Any] = msgspec.structs.asdict(row)
    values.pop("epoch")
    for name in ("error", "usage"):
        values[name] = None if values[name] is None else decode(values[name])
    return TurnInfo(**values)


def all_turns(connection: Connection, thread_id: str) -> list[TurnInfo]:
    """Return the turns of a session's history in order, those a fork inherited first."""
    found: list[TurnRow] = []
    thread: str | None = thread_id
    before: int | None = None
    while thread is not None:
        session = find_session(connection, thread, deleted=True)
        if session is None:
            raise UnknownSession(f"no session {thread}")
        own = turns_of(connection, thread)
        found = [turn for turn in own if before is None or turn.n <= before] + found
        thread = session.parent_thread_id
        before = _number_at_fork(connection, session) if thread is not None else None
    return [turn_info(turn) for turn in found]


def _number_at_fork(connection: Connection, child: SessionRow) -> int:
    own = turns_of(connection, child.thread_id)
    first: Sequence[TurnRow] = own[:1]
    return first[0].n - 1 if first else last_turn_number(connection, child.thread_id)
