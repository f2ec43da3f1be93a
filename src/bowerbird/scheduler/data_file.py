"""The file of tasks that an earlier program left (`scheduler.data_file`): read once, and never again.

Here: that import. Not here: its form (`sessions/transfer/import_files.py`), the first times of its tasks
(`firing.plan`).
"""

import logging
from pathlib import Path

from sqlalchemy import Connection

from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.transfer.import_files import Bad, Entry, tasks_in
from bowerbird.store.journal.quarantine import put_aside
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.rows.schedules import alone, has_task, store_task
from bowerbird.store.store import Store

DONE = "scheduler_data_file"

_log = logging.getLogger(__name__)


async def import_file(store: Store, path: Path) -> int:
    """Import the tasks of a file if none was imported before; returns how many were new.

    A task that cannot be read is set aside and named in the log; the others are imported.
    """
    if await store.read(lambda c: get_meta(c, DONE)) is not None or not await to_thread(path.is_file):
        return 0
    bad: list[Bad] = []
    entries = await to_thread(tasks_in, path, bad)

    def change(connection: Connection) -> int:
        alone(connection)
        if get_meta(connection, DONE) is not None:
            return 0  # another server was first
        set_meta(connection, DONE, str(path))
        _set_aside(connection, bad)
        return _stored(connection, entries)

    added = await store.write(change)
    for thing in bad:
        _log.warning("%s: task %s is set aside: %s", path.name, thing.key, thing.reason)
    if added:
        _log.info("%d scheduled tasks were imported from %s", added, path)
    return added


def _stored(connection: Connection, entries: list[Entry]) -> int:
    fresh = [entry for entry in entries if not has_task(connection, entry.key)]
    for entry in {entry.key: entry for entry in fresh}.values():
        store_task(connection, entry.value)
    return len(fresh)


def _set_aside(connection: Connection, bad: list[Bad]) -> None:
    for thing in bad:
        source = f"import:{thing.file}"
        put_aside(connection, source=source, key=thing.key, reason=thing.reason, raw=thing.raw, at=now_iso())
