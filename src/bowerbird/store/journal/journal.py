"""The journal: records that are appended once and never changed (SE-7, 8, 28, 59).

Here: the record's form, appending a group of records under the lease's fence. Not here: reading
them back (`reading.py`), what a record's body means (`sessions`), transactions and batching
(`group_commit.py`), blobs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Connection, and_, bindparam, select

from bowerbird.core.errors import LeaseLost, StoreError, UnknownSession
from bowerbird.core.json_text import json_text
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.statements import Prepared, PreparedLookup
from bowerbird.store.sql.tables import effects, journal, leases, sessions, usage

VERSION = 1
CORRUPT = "corrupt"  # type of the stand-in for a record that cannot be read; never written

LedgerClass = Literal["read", "branch", "store", "keyed", "external"]

# Types whose loss in a power failure a person or the outside world would notice.
FLUSHED_TYPES = frozenset({"user", "assistant", "tool_outcome", "answer", "turn_ended"})
FLUSHED_CLASSES = frozenset({"keyed", "external"})


class Record(msgspec.Struct, frozen=True):
    """One journal record, with the keys and their order of SE-7."""

    v: int
    seq: int
    turn: str | None
    type: str
    at: str
    epoch: int
    body: dict[str, Any]


class NewRecord(msgspec.Struct, frozen=True):
    """A record before it has a number: its type, body, and turn (None outside of turns)."""

    type: str
    body: Mapping[str, Any]
    turn: str | None = None


class Intent(msgspec.Struct, frozen=True):
    """A ledger row: the call is about to run; `record` is its intent's index in the append."""

    call: str
    turn: str
    tool: str
    ledger_class: LedgerClass
    mark: str | None
    record: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """A ledger change: the call ended, or is given up; `record` is its outcome's index."""

    call: str
    state: Literal["outcome", "abandoned"]
    record: int = 0


class UsageRow(msgspec.Struct, frozen=True):
    """What one model call used; `cost` None means the price is unknown."""

    turn: str | None
    agent: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: float | None
    estimated: bool = False


class Append(msgspec.Struct, frozen=True):
    """Records that belong together, and the ledger and usage rows of the same commit.

    Attributes:
        epoch: the lease's epoch under which the caller writes; None outside of a turn.
        bodies: the JSON text of each record's body, as it is stored.
    """

    thread_id: str
    epoch: int | None
    records: tuple[NewRecord, ...]
    intents: tuple[Intent, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    usage: tuple[UsageRow, ...] = ()
    bodies: tuple[str, ...] = ()

    @property
    def is_flushed(self) -> bool:
        """Whether this must survive a power failure under `store.durability: full`."""
        for record in self.records:
            if record.type in FLUSHED_TYPES:
                return True
        return any(intent.ledger_class in FLUSHED_CLASSES for intent in self.intents)

    @property
    def size(self) -> int:
        """Characters of the bodies, about the bytes this adds to a batch."""
        return sum(map(len, self.bodies))


def encode_body(body: Mapping[str, Any]) -> str:
    """Return the JSON text under which a body is stored; bytes that are no UTF-8 show as `\\xHH`."""
    return json_text(body)


# ---------------------------------------------------------------- appending

_FENCE = PreparedLookup(
    lambda threads: (
        select(
            sessions.c.thread_id,
            sessions.c.last_seq,
            sessions.c.deleted_at,
            leases.c.epoch,
            (leases.c.expires_at > DbNow()).label("alive"),
        )
        .select_from(sessions.outerjoin(leases, leases.c.thread_id == sessions.c.thread_id))
        .where(sessions.c.thread_id.in_(threads))
        # Taking a lease locks the same row, so an epoch cannot change meanwhile.
        .with_for_update(of=sessions)
    )
)
_of_call = and_(effects.c.thread_id == bindparam("b_thread"), effects.c.call_id == bindparam("b_call"))

_INSERT_RECORD = Prepared(
    journal.insert(), ("thread_id", "seq", "turn_id", "epoch", "v", "type", "at", "body")
)
_FORGET_INTENT = Prepared(effects.delete().where(_of_call), ("b_thread", "b_call"))
_INSERT_INTENT = Prepared(
    effects.insert(), ("thread_id", "call_id", "turn_id", "tool", "class", "state", "intent_seq", "mark")
)
_SETTLE = Prepared(
    effects.update().where(_of_call).values(state=bindparam("b_state"), outcome_seq=bindparam("b_seq")),
    ("b_state", "b_seq", "b_thread", "b_call"),
)
_INSERT_USAGE = Prepared(
    usage.insert(),
    (
        "thread_id", "turn_id", "agent", "purpose", "model", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "cost", "priced", "estimated", "at",
    ),
)  # fmt: skip
_LAST_SEQ = Prepared(
    sessions.update()
    .where(sessions.c.thread_id == bindparam("b_thread"))
    .values(last_seq=bindparam("b_seq"), bytes=sessions.c.bytes + bindparam("b_more")),
    ("b_seq", "b_more", "b_thread"),
)

_Row = tuple[Any, ...]


class _Fence(NamedTuple):
    """What decides about an append: the session's head, and who holds it."""

    thread_id: str
    last_seq: int
    deleted_at: str | None
    epoch: int | None
    alive: bool | None


class _Rows(msgspec.Struct):
    """The rows of a group of appends, by statement."""

    records: list[_Row] = msgspec.field(default_factory=list[_Row])
    heads: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    grown: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    forgotten: list[_Row] = msgspec.field(default_factory=list[_Row])
    intents: list[_Row] = msgspec.field(default_factory=list[_Row])
    settled: list[_Row] = msgspec.field(default_factory=list[_Row])
    usage: list[_Row] = msgspec.field(default_factory=list[_Row])


def append_group(
    connection: Connection, appends: Sequence[Append]
) -> list[tuple[Record, ...] | StoreError | UnknownSession]:
    """Write a group of appends in the present transaction; one refused append spares the others.

    Args:
        connection: inside a write transaction.
        appends: in order; several may be of one thread.

    Returns:
        For each append its records, numbered, or why it was refused (LeaseLost, UnknownSession).
    """
    threads = list({append.thread_id for append in appends})
    fence = {found[0]: _Fence(*found) for found in _FENCE.run(connection, threads)}
    rows = _Rows()
    at = now_iso()
    results: list[tuple[Record, ...] | StoreError | UnknownSession] = []
    for append in appends:
        row = fence.get(append.thread_id)
        refusal = _refusal(append, row)
        if refusal is not None or row is None:
            results.append(refusal or UnknownSession(f"no session {append.thread_id}"))
            continue
        epoch = append.epoch if append.epoch is not None else row.epoch or 0
        head = rows.heads.get(append.thread_id) or row.last_seq
        records = tuple(
            Record(VERSION, seq, new.turn, new.type, at, epoch, dict(new.body))
            for seq, new in enumerate(append.records, head + 1)
        )
        _collect(rows, append, records, at)
        results.append(records)
    _execute(connection, rows)
    return results


def append_one(connection: Connection, append: Append) -> tuple[Record, ...]:
    """Write one append in the present transaction and return its records.

    Raises:
        LeaseLost: the epoch is old or the lease has expired. UnknownSession: no such session.
    """
    result = append_group(connection, (append,))[0]
    if isinstance(result, Exception):
        raise result
    return result


def _refusal(append: Append, row: _Fence | None) -> StoreError | UnknownSession | None:
    if row is None or row.deleted_at is not None:
        return UnknownSession(f"no session {append.thread_id}")
    if append.epoch is None or (row.epoch == append.epoch and row.alive):
        return None
    return LeaseLost(
        f"session {append.thread_id}: the lease of epoch {append.epoch} is over (now {row.epoch}); "
        "another process may continue this turn"
    )


def _collect(rows: _Rows, append: Append, records: tuple[Record, ...], at: str) -> None:
    thread = append.thread_id
    bodies = append.bodies or tuple(encode_body(r.body) for r in append.records)
    rows.grown[thread] = rows.grown.get(thread, 0) + sum(map(len, bodies))
    for r, body in zip(records, bodies, strict=True):
        rows.records.append((thread, r.seq, r.turn, r.epoch, r.v, r.type, r.at, body))
        rows.heads[thread] = r.seq
    for intent in append.intents:
        seq = records[intent.record].seq
        rows.forgotten.append((thread, intent.call))
        rows.intents.append(
            (thread, intent.call, intent.turn, intent.tool, intent.ledger_class, "intent", seq, intent.mark)
        )
    for outcome in append.outcomes:
        rows.settled.append((outcome.state, records[outcome.record].seq, thread, outcome.call))
    for row in append.usage:
        tokens = (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)
        priced = (row.cost, row.cost is not None, row.estimated, at)
        rows.usage.append((thread, row.turn, row.agent, row.purpose, row.model, *tokens, *priced))


def _execute(connection: Connection, rows: _Rows) -> None:
    _INSERT_RECORD.run(connection, rows.records)
    # An intent of an earlier attempt is replaced before outcomes of the same group settle it.
    _FORGET_INTENT.run(connection, rows.forgotten)
    _INSERT_INTENT.run(connection, rows.intents)
    _SETTLE.run(connection, rows.settled)
    _INSERT_USAGE.run(connection, rows.usage)
    _LAST_SEQ.run(connection, [(seq, rows.grown[thread], thread) for thread, seq in rows.heads.items()])
