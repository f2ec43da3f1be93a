"""Histories kept in memory, so that a turn reads only what was added since the last one (SE-8).

Here: which sessions are kept, and when what is kept no longer counts. Not here: what records mean
(`records.py`), the history of one turn (`history.py`).

The journal only grows, so what was read once stays right. A session of 1,000 messages would else be
read and decoded anew for each message.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from bowerbird.core.events import StepEvent
from bowerbird.sessions.history import Loaded, load_pairs
from bowerbird.sessions.records import MessageSeqs, events_of
from bowerbird.store.journal import CORRUPT, Record
from bowerbird.store.store import Store
from bowerbird.store.threads import SessionRow

MOST_SESSIONS = 32
MOST_BYTES = 16 << 20  # of records as they are stored, in all sessions that are kept


@dataclass(slots=True)
class _Kept:
    """The events of one session up to `last_seq`."""

    created_at: str
    last_seq: int = 0
    size: int = 0
    pairs: list[tuple[Record, StepEvent | None]] = field(
        default_factory=list[tuple[Record, StepEvent | None]]
    )
    seqs: MessageSeqs = field(default_factory=MessageSeqs)
    tools: dict[str, str] = field(default_factory=dict[str, str])


class Recall:
    """The histories of one process; whoever drives a session asks while it holds the lease.

    Args:
        store: whose journal.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def load(self, session: SessionRow, turn_id: str) -> Loaded:
        """Return the history of `session` and the state of the turn, as `history.load` does.

        Args:
            session: read under the lease; its id may have been another session's before.

        Raises:
            UnknownSession: it was deleted meanwhile.
        """
        thread = session.thread_id
        kept = self._kept.pop(thread, None)
        if kept is None or kept.created_at != session.created_at or kept.last_seq > session.last_seq:
            kept = _Kept(session.created_at)
        records = await self._store.records(thread, after=kept.last_seq)
        kept.pairs += events_of(records, kept.seqs, kept.tools)
        kept.last_seq = records[-1].seq if records else kept.last_seq
        kept.size = session.bytes
        if not any(record.type == CORRUPT for record in records):
            self._kept[thread] = kept
            self._make_room()
        # A driver adds to its places what it commits, under the names of its own messages.
        return load_pairs(kept.pairs, kept.seqs.copy(), turn_id)

    def _make_room(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while self._kept and (len(self._kept) > MOST_SESSIONS or size > MOST_BYTES):
            size -= self._kept.popitem(last=False)[1].size
