"""Committed events read back from the journal, as they were published (SV-46).

Here: records to published events, how a session stands, pages. Not here: live events (`hub.py`), when a door
replays.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from sqlalchemy import Connection, func, select

from bowerbird.core.errors import UnknownSession
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, RunError, UserStep
from bowerbird.core.forms import convert, decode
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.live.hub import InputMark, Published, TurnMark
from bowerbird.store.journal.journal import Record
from bowerbird.store.journal.reading import read_turn_records
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.rows.turns import OPEN, TurnRow, turns_of, waiting_below
from bowerbird.store.sql.tables import journal, sessions

if TYPE_CHECKING:
    from bowerbird.store.store import Store

PAGE = 200


class Now(msgspec.Struct, frozen=True):
    """A session as it lies in the database: its row, its open turns in order, what its subagents ask."""

    session: SessionRow
    open_turns: list[TurnRow]
    asked_below: list[Published]

    @property
    def active(self) -> TurnRow | None:
        """The turn that runs or waits for a person."""
        return next((turn for turn in self.open_turns if turn.state in ("running", "waiting")), None)

    @property
    def queued(self) -> int:
        """How many turns wait for their turn."""
        return sum(1 for turn in self.open_turns if turn.state == "queued")


async def present(store: "Store", thread_id: str) -> Now:
    """Return how a session stands; raises UnknownSession."""

    def read(connection: Connection) -> Now:
        session = get_session(connection, thread_id)
        below = [
            published
            for turn in waiting_below(connection, thread_id)
            for published in _asked(connection, turn)
        ]
        return Now(session, turns_of(connection, thread_id, OPEN), below)

    return await store.read(read)


def _asked(connection: Connection, turn: TurnRow) -> list[Published]:
    """Return a waiting turn's questions and their answers, in order."""
    pairs = events_of(read_turn_records(connection, turn.thread_id, turn.turn_id))
    return [
        Published(turn.thread_id, turn.turn_id, None, event)
        for _, event in pairs
        if isinstance(event, ApprovalRequest | ApprovalAnswer)
    ]


def published_of(records: Sequence[Record], thread_id: str) -> list[Published]:
    """Return what viewers are shown of these records."""
    shown: list[Published] = []
    inputs: dict[str | None, list[str]] = {}  # of turns, in the order of their `user` records
    for record, event in events_of(records):
        if record.type == "turn_started":
            inputs[record.turn] = [str(inbox_id) for inbox_id in record.body.get("inbox") or ()]
        if record.type == "turn_ended":
            shown.append(Published(thread_id, record.turn, record.seq, mark_of(record.body)))
        elif record.type == "turn_started":
            shown.append(Published(thread_id, record.turn, record.seq, TurnMark("running")))
        elif isinstance(event, UserStep):
            known = inputs.get(record.turn)
            inbox_id = known.pop(0) if known and not event.steer else ""
            shown.append(Published(thread_id, record.turn, record.seq, _input_of(record, event, inbox_id)))
        elif event is not None:
            shown.append(Published(thread_id, record.turn, record.seq, event))
    return shown


def mark_of(body: dict[str, Any]) -> TurnMark:
    """Return the mark that a `turn_ended` record stands for."""
    usage, error = body.get("usage"), body.get("error")
    return TurnMark(
        str(body.get("state")),
        stop_reason=body.get("stop_reason"),
        snapshot=body.get("snapshot"),
        usage=convert(usage, Usage) if usage else None,
        error=convert(error, RunError) if error else None,
    )


def paused_mark(turn: TurnRow) -> TurnMark | None:
    """Return the mark of a turn that stopped to wait for a person, None when it goes on."""
    if turn.state != "waiting" or turn.stop_reason is None:
        return None
    usage = decode(turn.usage, Usage) if turn.usage else None
    return TurnMark("waiting", turn.waiting_for, stop_reason=turn.stop_reason, usage=usage)


async def read_page(store: "Store", thread_id: str, after: int, upto: int) -> list[Record]:
    """Return the next records with `after` < seq ≤ `upto`, at most a page of them."""
    return await store.records(thread_id, after=after, upto=upto, limit=PAGE)


async def records_of_turn(store: "Store", thread_id: str, turn_id: str, upto: int) -> list[Record]:
    """Return what a turn has recorded up to record `upto`."""
    first = await store.read(lambda c: _first_of(c, turn_id))
    if first > upto:
        return []
    known = await store.records(thread_id, after=first - 1, upto=upto)
    return [record for record in known if record.turn == turn_id]


async def before(store: "Store", thread_id: str, records: Sequence[Record], after: int) -> list[Record]:
    """Return what came up to record `after` in the turn that `records` begin in the middle of."""
    first = next((record for record in records if record.turn is not None), None)
    if first is None or first.turn is None or first.type == "turn_started":
        return []
    return await records_of_turn(store, thread_id, first.turn, after)


def calls_of(records: Sequence[Record]) -> list[Record]:
    """Return what later records of the newest turn among these refer to: its answers, whose calls outcomes
    name only by id, and its beginning, which names its inputs."""
    turn = next((record.turn for record in reversed(records) if record.turn is not None), None)
    wanted = ("turn_started", "assistant")
    return [record for record in records if record.turn == turn and record.type in wanted]


def heads(connection: Connection, thread_ids: Sequence[str]) -> dict[str, int | None]:
    """Return the newest record's number of each session, None for a deleted one."""
    found: dict[str, int | None] = {}
    for start in range(0, len(thread_ids), 500):
        part = thread_ids[start : start + 500]
        columns = select(sessions.c.thread_id, sessions.c.last_seq, sessions.c.deleted_at)
        for thread, last, deleted in connection.execute(columns.where(sessions.c.thread_id.in_(part))):
            found[thread] = None if deleted is not None else int(last)
    return found


def last_seq(connection: Connection, thread_id: str) -> int:
    """Return the number of a session's newest record; raises UnknownSession."""
    head = heads(connection, [thread_id]).get(thread_id)
    if head is None:
        raise UnknownSession(f"no session {thread_id}")
    return head


def _first_of(connection: Connection, turn_id: str) -> int:
    found = connection.scalar(select(func.min(journal.c.seq)).where(journal.c.turn_id == turn_id))
    return int(found or 1)


def _input_of(record: Record, event: UserStep, inbox_id: str) -> InputMark:
    return InputMark(
        inbox_id=inbox_id,
        turn_id=record.turn or "",
        kind="steer" if event.steer else "message",
        sender=cast("dict[str, Any]", record.body.get("sender") or {}),
        text=event.message.text,
    )
