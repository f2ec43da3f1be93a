"""Blobs that only forgotten sessions named (reliability 10).

Here: which blobs a session's rows name, noting them before the rows go, removing those that nothing names any
more. Not here: when (`sessions/upkeep/forgetting.py`), how a blob is stored (`journal/blobs.py`).

Only what sessions of this database named is ever removed: a directory may serve another database, too.
The note is written first and taken away last, so that a kill in between costs nothing but another pass.
"""

import re
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from sqlalchemy import Connection, Text, select

from bowerbird.core.atomic import replace_file
from bowerbird.store.journal.blobs import Blobs
from bowerbird.store.sql.schema import metadata

NOTE = "blobs.unreferenced"
STORED_AGAIN_S = 3600.0  # bytes stored before the record that names them, by whom a turn has just run for

_NAME = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def names_in_rows(connection: Connection, threads: Collection[str] | None = None) -> set[str]:
    """Return what looks like a blob's name in the rows of some sessions, or in every row there is."""
    found: set[str] = set()
    for table in metadata.sorted_tables:
        texts = [column for column in table.c if isinstance(column.type, Text)]
        if not texts or (threads is not None and "thread_id" not in table.c):
            continue
        query = select(*texts)
        if threads is not None:
            query = query.where(table.c.thread_id.in_(threads))
        for row in connection.execute(query.execution_options(yield_per=500)):
            for text in row:
                found.update(_NAME.findall(text or ""))
    return found


def with_inner(blobs: Blobs, names: Iterable[str]) -> set[str]:
    """Add the names in stored records: a large record lies in a blob itself, and may name images."""
    found, waiting = set[str](), set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= set(_NAME.findall(blobs.record_text(name))) - found
    return found


def note(data_dir: Path, names: Iterable[str]) -> None:
    """Add to what may have lost its last record."""
    noted = sorted({*_noted(data_dir), *names})
    if noted:
        replace_file(data_dir / NOTE, ("\n".join(noted) + "\n").encode())


def has_noted(data_dir: Path) -> bool:
    """Whether something was noted that has not been looked at."""
    return bool(_noted(data_dir))


def remove_unreferenced(connection: Connection, blobs: Blobs, data_dir: Path) -> int:
    """Remove the noted blobs that no row and no stored record names; returns how many went."""
    began = time.time()
    noted = _noted(data_dir)
    if not noted:
        return 0
    used = with_inner(blobs, names_in_rows(connection))
    removed = sum(blobs.remove(name, stored_before_s=began - STORED_AGAIN_S) for name in noted - used)
    # What was stored again a moment ago may still lose its record: it stays noted.
    left = {name for name in noted - used if blobs.has(name)}
    (data_dir / NOTE).unlink()
    note(data_dir, left)
    return removed


def _noted(data_dir: Path) -> set[str]:
    try:
        return set(_NAME.findall((data_dir / NOTE).read_text()))
    except FileNotFoundError:
        return set()
