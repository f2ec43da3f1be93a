"""Once a while: what settings no longer keep goes (SE-48).

Here: the order of rows and files, and what each age is. Not here: SQL (`store/rows/retention.py`), how the
trash of branches is emptied (`workspace`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count

import msgspec
from sqlalchemy import Connection

from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import to_iso
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.journal.audit_log import AuditLog
from bowerbird.sessions.settings import SessionSettings
from bowerbird.store.rows.sessions import get_session
from bowerbird.store.store import Store

FIRST_S = 5.0  # a command that is over sooner leaves it to the next
EVERY_S = 3600.0
OFTEN_S = 60.0
NEWEST_SNAPSHOTS = 50
EVERY_TENTH = 10

_log = logging.getLogger(__name__)


class Removed(msgspec.Struct, frozen=True):
    """What one pass removed."""

    rows: int = 0
    usage: int = 0
    deleted: int = 0
    forgotten: int = 0
    snapshots: int = 0
    branches: int = 0
    landings: int = 0
    blobs: int = 0


async def tidy(
    store: Store,
    audit: AuditLog,
    settings: SessionSettings,
    delete: Callable[[str], Awaitable[None]],
    now: datetime | None = None,
    *,
    branches: Branches | None = None,
) -> Removed:
    """Remove what is too old; returns how much that was.

    Args:
        delete: deletes a session that nobody used for `retention.sessions_days`.
        branches: whose trash is emptied of what no session can be restored with any more.
        now: the clock's when None.
    """
    from bowerbird.sessions.upkeep.forgetting import forget, free_blobs
    from bowerbird.store.rows.retention import (
        branches_of_sessions,
        finished_before,
        forgettable_sessions,
        idle_sessions,
        long_sessions,
        roll_up_usage,
    )

    at = now or datetime.now(UTC)

    def ago(days: float) -> str:
        return to_iso(at - timedelta(days=days))

    rows = usage = deleted = forgotten = 0
    if settings.detail_days:
        detail, inputs = ago(settings.detail_days), ago(max(settings.dedupe_days, settings.detail_days))
        rows = await _in_batches(store, lambda c: finished_before(c, inputs, detail))
        usage = await _in_batches(store, lambda c: roll_up_usage(c, detail))
    if settings.sessions_days:
        for thread_id in await store.read(lambda c: idle_sessions(c, ago(settings.sessions_days))):
            await delete(thread_id)
            deleted += 1
    if settings.deleted_days:
        gone = await store.read(lambda c: forgettable_sessions(c, ago(settings.deleted_days)))
        await forget(store, audit, gone)
        forgotten = len(gone)
    thinned = 0
    for thread_id in await store.read(lambda c: long_sessions(c, NEWEST_SNAPSHOTS)):
        thinned += await _thin(store, branches, thread_id)
    await to_thread(store.blobs.remove_leftovers)
    blobs = await free_blobs(store)
    freed = landings = 0
    if branches is not None:
        # After the rows: a session that can still be restored finds its branch.
        if settings.deleted_days:
            wanted = set(await store.read(branches_of_sessions))
            freed = await branches.empty_trash(settings.deleted_days, wanted, at.timestamp())
        freed += await branches.remove_left()
        landings = await branches.forget_landings()
    return Removed(rows, usage, deleted, forgotten, thinned, freed, landings, blobs)


async def _thin(store: Store, branches: Branches | None, thread_id: str) -> int:
    """Drop old snapshots of a session, first their rows and then their layers; returns how many rows went.

    Killed in between, the next pass finds from what is left in the database which layers nobody needs.
    """
    from bowerbird.store.rows.retention import thin_snapshots, thinned_turns

    gone = await store.write(lambda c: thin_snapshots(c, thread_id, NEWEST_SNAPSHOTS, EVERY_TENTH))
    branch_id = (await store.read(lambda c: get_session(c, thread_id))).branch_id
    if branches is not None and branch_id is not None:
        turns, kept = await store.read(lambda c: thinned_turns(c, thread_id, NEWEST_SNAPSHOTS))
        await branches.forget_snapshots(branch_id, turns, kept)
    return gone


async def _in_batches(store: Store, batch: Callable[[Connection], int]) -> int:
    """Do `batch` until it finds nothing more; turns are written between two of them."""
    from bowerbird.sessions.upkeep.forgetting import BREATH_S

    total = 0
    while done := await store.write(batch, flush=False):
        total += done
        await asyncio.sleep(BREATH_S)
    return total


async def keep_tidy(work: Callable[[], Awaitable[Removed]], often: Callable[[], Awaitable[object]]) -> None:
    """Do `work` soon and every hour, and `often` every minute, until cancelled; a failure is a warning."""
    await asyncio.sleep(FIRST_S)
    for minute in count():
        await _tried(often)
        if minute % (EVERY_S // OFTEN_S) == 0:
            done = await _tried(work)
            if done not in (None, Removed()):
                _log.info("retention: %s", done)
        await asyncio.sleep(OFTEN_S)


async def _tried(work: Callable[[], Awaitable[object]]) -> object:
    try:
        return await work()
    except Exception:  # noqa: BLE001  whatever it met, the next pass must still come
        _log.warning("retention", exc_info=True)
        return None
