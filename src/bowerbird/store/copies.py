"""The whole database as one SQLite file, and such a file into an empty database.

Here: a copy from one consistent view, of SQLite or PostgreSQL, while others write. Not here: files beside
the database, which moment is kept (`sessions/transfer/backup.py`).

SQLite's own online backup is used for SQLite; rows of PostgreSQL are read in one repeatable-read
transaction.
"""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Integer, Table, func, insert, select, text
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DBAPIError

from bowerbird.core.errors import Exists, StoreCorrupt
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.store.migrate import is_current, upgrade
from bowerbird.store.sql.failures import store_error, translated
from bowerbird.store.sql.schema import metadata
from bowerbird.store.sql.sqlite import open_engine
from bowerbird.store.sql.tables import sessions
from bowerbird.store.store import Store

_ROWS = 1000
_BUSY_S = 30.0
T = TypeVar("T")


async def copy_to_file(store: Store, target: Path) -> None:
    """Write everything in the database to the new file `target`, as it is at one moment.

    Raises:
        Exists: the file is there already. StoreError: the database cannot be read.
        StorageFull: there is no room for the copy.
    """
    await in_thread(_begin, target)
    try:
        await _write_copy(store, target)
    except (sqlite3.Error, DBAPIError) as error:
        raise store_error(error, str(target)) from error


async def _write_copy(store: Store, target: Path) -> None:
    if store.dialect == "sqlite":
        await in_thread(_copy_sqlite, Path(store.name), target)
    else:
        engine = await to_thread(open_engine, target, _BUSY_S, writer=True)
        try:
            with engine.connect() as into, into.begin():
                upgrade(into)
                into.execute(metadata.tables["meta"].delete())
                await store.read(lambda rows: _copy_rows(rows, into))
        finally:
            await in_thread(engine.dispose)


def _begin(target: Path) -> None:
    try:
        target.touch(0o600, exist_ok=False)  # nobody else reads it, not even for a moment
    except FileExistsError:
        raise Exists(f"{target} is there already") from None


def _copy_sqlite(source: Path, target: Path) -> None:
    reading = sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=_BUSY_S)
    try:
        writing = sqlite3.connect(target)
        try:
            reading.backup(writing, pages=-1)  # one step: whoever writes meanwhile does not start it again
        finally:
            writing.close()
    finally:
        reading.close()


def _one_file(path: Path) -> None:
    """Bring what stands in the file's companions into it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    finally:
        connection.close()


def check_file(source: Path) -> None:
    """Look whether a file is a whole database; raises StoreCorrupt."""
    try:
        connection = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.OperationalError as error:  # it cannot be looked at, whatever is in it
        raise store_error(error, str(source)) from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{source} is damaged: {error}; nothing was changed") from error
    if not found or found[0] != "ok":
        raise StoreCorrupt(f"{source} is damaged: {found[0] if found else 'unreadable'}; nothing was changed")


def in_file(path: Path, work: Callable[[Connection], T]) -> T:
    """Return what `work` makes of a copy that nobody else has open, in one transaction."""
    engine = open_engine(path, _BUSY_S, writer=True)
    try:
        with translated(str(path)), engine.connect() as rows, rows.begin():
            done = work(rows)
    finally:
        engine.dispose()
    _one_file(path)
    return done


async def fill_from_file(store: Store, source: Path) -> None:
    """Put every row of `source` into an empty database, all or none.

    Args:
        source: of this program's schema or an older one; it is brought up to date itself.

    Raises:
        Exists: the database holds sessions. StoreTooNew: a newer program wrote the file.
    """
    engine = await to_thread(open_engine, source, _BUSY_S, writer=True)
    try:
        with translated(str(source)), engine.connect() as rows, rows.begin():
            if not is_current(rows):
                upgrade(rows)
        with translated(str(source)), engine.connect() as rows:
            await store.write(lambda into: _fill(rows, into, store))
    finally:
        await in_thread(engine.dispose)


def _fill(rows: Connection, into: Connection, store: Store) -> None:
    if into.scalar(select(func.count()).select_from(sessions)):
        raise Exists(f"{store.name} holds sessions already; restore into an empty database")
    for table in reversed(metadata.sorted_tables):
        into.execute(table.delete())
    _copy_rows(rows, into)
    if store.dialect == "postgresql":
        for table in metadata.sorted_tables:
            _count_on(into, table)


def _count_on(into: Connection, table: Table) -> None:
    """Let PostgreSQL number new rows after those that were brought."""
    column = table.autoincrement_column
    if column is None or not isinstance(column.type.dialect_impl(into.dialect), Integer):
        return
    sequence = into.scalar(
        text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": table.name, "column": column.name}
    )
    if sequence:
        highest = into.scalar(select(func.max(column)))
        into.execute(
            text("SELECT setval(:sequence, :highest, :used)"),
            {"sequence": sequence, "highest": highest or 1, "used": highest is not None},
        )


def _copy_rows(rows: Connection, into: Connection) -> None:
    for table in metadata.sorted_tables:
        query = select(table)
        if table is sessions:
            # Parents before their subagents and forks: PostgreSQL looks at each reference at once.
            _write(into, table, _parents_first(rows.execute(query).mappings().all()))
            continue
        found = rows.execution_options(yield_per=_ROWS).execute(query)
        for part in found.mappings().partitions(_ROWS):
            _write(into, table, [dict(row) for row in part])


def _write(into: Connection, table: Table, values: list[dict[str, Any]]) -> None:
    for first in range(0, len(values), _ROWS):
        into.execute(insert(table), values[first : first + _ROWS])


def _parents_first(rows: Iterable[RowMapping]) -> list[dict[str, Any]]:
    below: dict[str | None, list[dict[str, Any]]] = {}
    known: set[str] = set()
    for row in rows:
        below.setdefault(row["parent_thread_id"], []).append(dict(row))
        known.add(row["thread_id"])
    ordered = [row for parent, of in below.items() if parent is None or parent not in known for row in of]
    for row in ordered:  # grows while it is walked
        ordered += below.get(row["thread_id"], [])
    return ordered
