"""Deleted sessions go for good: rows, audit logs, and the blobs that nobody else names.

Here: their order. Not here: which sessions (`upkeep/retention.py`, `upkeep/trash.py`), SQL.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from bowerbird.core.processes.alone import alone_when, claim_in
from bowerbird.core.threads import in_thread
from bowerbird.sessions.journal.audit_log import AuditLog
from bowerbird.store.journal.unreferenced import (
    has_noted,
    names_in_rows,
    note,
    remove_unreferenced,
    with_inner,
)
from bowerbird.store.rows.retention import forget_sessions
from bowerbird.store.store import Store

AT_ONCE = 20  # sessions with all their records, in one transaction
BREATH_S = 0.02  # between two batches: the writer is the turns' first of all


async def forget(store: Store, audit: AuditLog, threads: Sequence[str]) -> None:
    """Remove sessions with everything of theirs; their blobs go with the next `free_blobs`."""
    for first in range(0, len(threads), AT_ONCE):
        some = threads[first : first + AT_ONCE]
        async with _alone(store):
            named = await store.read(lambda c, some=some: names_in_rows(c, some))
            if named:
                every = await in_thread(with_inner, store.blobs, named)
                await in_thread(note, store.data_dir, {name for name in every if store.blobs.has(name)})
            await store.write(lambda c, some=some: forget_sessions(c, some))
        await in_thread(audit.remove, some)
        await asyncio.sleep(BREATH_S)


async def free_blobs(store: Store) -> int:
    """Remove the blobs of forgotten sessions that nothing else names; returns how many."""
    if not await in_thread(has_noted, store.data_dir):
        return 0
    async with _alone(store):
        return await store.read(lambda c: remove_unreferenced(c, store.blobs, store.data_dir))


@asynccontextmanager
async def _alone(store: Store) -> AsyncGenerator[None]:
    """Keep others, in any process, from noting or removing: what is noted is named by rows until these go.

    Who removed meanwhile would take the blob for one in use, and drop it from the note: it stayed for ever.
    """
    async with alone_when(lambda: claim_in(store.data_dir)):
        yield
