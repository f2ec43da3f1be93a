"""What is mended before a service takes turns: counters and audit logs (SE-4, SE-40).

Here: comparing what the store says with what files say. Not here: orphaned turns (dispatcher),
branches and landings (`workspace` mends its own at opening).
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import from_iso
from bowerbird.sessions.journal.audit_log import AuditLog, audit_lines
from bowerbird.sessions.thread_ids import chat_of_thread
from bowerbird.store.journal.journal import Record
from bowerbird.store.rows.sessions import SessionRow, list_sessions, raise_counter, thread_ids
from bowerbird.store.store import Store

_EVERY = 1_000_000

_log = logging.getLogger(__name__)


async def raise_counters(store: Store, audit_directory: Path) -> None:
    """Raise each chat's counter to the highest reset found among sessions and audit logs."""
    names = await to_thread(_file_names, audit_directory)
    stored = await store.read(thread_ids)
    highest: dict[str, int] = {}
    for thread_id in {*names, *stored}:
        chat = chat_of_thread(thread_id)
        if chat is not None and chat.counter:
            highest[chat.base_key] = max(highest.get(chat.base_key, 0), chat.counter)
    if not highest:
        return

    def lift(connection: Connection) -> None:
        for base_key, count in highest.items():
            raise_counter(connection, base_key, count)

    await store.write(lift)


async def late_logs(store: Store, audit: AuditLog) -> list[SessionRow]:
    """Return the sessions that changed after their audit logs did; no journal is read for it."""
    rows = await store.read(lambda c: list_sessions(c, limit=_EVERY))
    late = await to_thread(_older_than_session, audit, rows)
    audit.suspect(row.thread_id for row in late)
    return late


async def mend_audit_logs(store: Store, audit: AuditLog, late: Sequence[SessionRow]) -> int:
    """Append the lines that a crash kept from the audit logs of `late`; returns how many."""
    mended = 0
    if late:
        _log.info("%d sessions changed after their audit logs; their journals are read", len(late))
    for row in late:
        records = await store.records(row.thread_id, after=row.parent_seq or 0)
        # In the thread too: the lines of a long journal would hold the event loop for 40 ms.
        mended += await to_thread(_mend_one, audit, row, records)
    return mended


def _mend_one(audit: AuditLog, row: SessionRow, records: Sequence[Record]) -> int:
    return audit.repair(row.thread_id, audit_lines(records, row.channel or row.kind))


def _older_than_session(audit: AuditLog, rows: list[SessionRow]) -> list[SessionRow]:
    late: list[SessionRow] = []
    for row in rows:
        if row.last_seq <= (row.parent_seq or 0):
            continue
        path = audit.path(row.thread_id)
        if not path.exists() or path.stat().st_mtime < from_iso(row.updated_at).timestamp():
            late.append(row)
    return late


def _file_names(directory: Path) -> list[str]:
    return [path.stem for path in directory.glob("*.jsonl")] if directory.is_dir() else []
