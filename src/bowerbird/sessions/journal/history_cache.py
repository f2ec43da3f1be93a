"""Histories kept in memory, so that a turn reads only what was added since the last one (SE-8).

Here: which sessions are kept, and when what is kept no longer counts. Not here: what records mean
(`events_as_records.py`), the history of one turn (`history.py`).

The journal only grows, so what was read once, or written by a driver of this process, stays right. A
session of 1,000 messages would else be read and decoded anew for each message.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from bowerbird.core.forms import decode
from bowerbird.sessions.journal.history import Fold, Loaded
from bowerbird.store.journal.journal import CORRUPT, Record, encode_body
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.store import Store

AT_ONCE = 200  # records folded in one go, about 5 ms
READ_AT_ONCE = (
    1_000  # records read in one go; all of a long journal would be a heap of objects to look through
)
MOST_SESSIONS = 32
MOST_BYTES = 16 << 20  # of records as they are stored, in all sessions that are kept


class _Kept(msgspec.Struct):
    """The events of one session up to `last_seq`."""

    created_at: str
    last_seq: int = 0
    size: int = 0
    fold: Fold = msgspec.field(default_factory=Fold)

    def add(self, records: Sequence[Record]) -> None:
        """Take the records that follow."""
        self.fold.add(records)
        self.last_seq = records[-1].seq if records else self.last_seq


def _as_read(record: Record) -> Record:
    """Return a record as the journal gives it back: JSON knows neither tuples nor lone surrogates."""
    return msgspec.structs.replace(record, body=decode(encode_body(record.body)))


class Recall:
    """The histories of one process; whoever drives a session asks while it holds the lease.

    Args:
        store: whose journal.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def load(self, session: SessionRow, turn_id: str, first: Sequence[Record] = ()) -> Loaded:
        """Return the history of `session` and the state of the turn, as `history.load` does.

        Args:
            session: read under the lease; its id may have been another session's before.
            first: what was appended directly after that.

        Raises:
            UnknownSession: it was deleted meanwhile.
        """
        thread = session.thread_id
        kept = self._kept.pop(thread, None)
        if kept is None or kept.created_at != session.created_at or kept.last_seq > session.last_seq:
            kept = _Kept(session.created_at)
        sound = True
        if kept.last_seq == session.last_seq:
            kept.add([_as_read(record) for record in first])
        else:
            async with aclosing(self._read(thread, kept.last_seq, session.last_seq)) as pages:
                async for page in pages:
                    sound = sound and not any(record.type == CORRUPT for record in page)
                    for at in range(0, len(page), AT_ONCE):
                        if at:
                            await asyncio.sleep(0)  # a journal may have 100,000 records; others go on
                        kept.add(page[at : at + AT_ONCE])
        kept.size = session.bytes
        if sound:
            self._kept[thread] = kept
            self._make_room()
        return kept.fold.at(turn_id)

    async def _read(self, thread_id: str, after: int, last: int) -> AsyncGenerator[list[Record], None]:
        """Yield the records that follow `after`, in parts as long as `last` is far."""
        while last - after > READ_AT_ONCE:
            page = await self._store.records(thread_id, after=after, upto=after + READ_AT_ONCE)
            if not page:
                break  # a gap: what comes after it says how long it is
            yield page
            after = page[-1].seq
        yield await self._store.records(thread_id, after=after)

    def note(self, thread_id: str, records: Sequence[Record]) -> None:
        """Add what a driver has committed, so that the next turn need not read it.

        Where something else was appended between, the next turn reads both.
        """
        kept = self._kept.get(thread_id)
        if kept is not None and records and records[0].seq == kept.last_seq + 1:
            kept.add([_as_read(record) for record in records])

    def _make_room(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while self._kept and (len(self._kept) > MOST_SESSIONS or size > MOST_BYTES):
            size -= self._kept.popitem(last=False)[1].size
