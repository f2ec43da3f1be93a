"""Opening a database by its URL: which of the two it is, and its parts (SE-6, 31, 60).

Here: SQLite's and PostgreSQL's parts put together, the schema brought up to date. Not here:
what a store does with them (`store.py`).
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from sqlalchemy import Connection, Engine, event

from bowerbird.core.errors import ConfigError
from bowerbird.core.threads import to_thread, waking
from bowerbird.store.journal.group_commit import Committer, SqliteCommitter
from bowerbird.store.migrate import is_current, upgrade
from bowerbird.store.sql.failures import translated
from bowerbird.store.sql.sqlite import database_file, open_engine, refuse_unusable

if TYPE_CHECKING:
    from bowerbird.store.options import Reads, StoreOptions
    from bowerbird.store.sql.notify import Notices

T = TypeVar("T")


class Parts(msgspec.Struct, frozen=True):
    """What a store is made of."""

    name: str
    dialect: Literal["sqlite", "postgresql"]
    committer: Committer
    reader: "Reads"
    notices: "Notices | None" = None


async def open_parts(url: str, data_dir: Path, options: "StoreOptions") -> Parts:
    """Open the database at `url`; create or migrate its schema. See `Store.open` for errors."""
    await to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    path = database_file(url, data_dir)
    if path is None:
        return await _open_postgres(url, options)
    return await to_thread(_open_sqlite, path, options)


def _require_driver() -> None:
    if not all(map(find_spec, ("asyncpg", "greenlet"))):  # SQLAlchemy's asyncio module works in greenlets
        raise ConfigError(
            "store.url: PostgreSQL needs the extra `postgres`, which is not installed; "
            "run: pip install 'bowerbird[postgres]'"
        )


async def _open_postgres(url: str, options: "StoreOptions") -> Parts:
    _require_driver()
    from bowerbird.store.postgres import (
        OUTAGE_S,
        READERS,
        PgCommitter,
        PgReader,
        make_engine,
        prepare,
        refuse_nul,
        refuse_pooler,
    )
    from bowerbird.store.sql.notify import PgNotices
    from bowerbird.store.sql.postgres_url import name_of, postgres_url

    parsed = postgres_url(url)
    name = name_of(parsed)
    writer = make_engine(parsed, options, size=1, purpose="writer")
    reader = make_engine(parsed, options, size=READERS, purpose="reader")
    refuse_nul(writer)
    try:
        await prepare(writer, name, adopt=options.adopt)
        await refuse_pooler(writer, reader, name)
    except BaseException:
        await writer.dispose()
        await reader.dispose()
        raise
    patience_s = options.busy_timeout_s + OUTAGE_S
    return Parts(
        name,
        "postgresql",
        PgCommitter(writer, name, full=options.durability == "full", patience_s=patience_s),
        PgReader(reader, name, patience_s),
        PgNotices(parsed),
    )


def _open_sqlite(path: Path, options: "StoreOptions") -> Parts:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_unusable(path)
    writer = open_engine(path, options.busy_timeout_s, writer=True)
    try:
        with translated(str(path)), writer.connect() as connection, connection.begin():
            if not is_current(connection):
                upgrade(connection, adopt=options.adopt)
    except BaseException:
        writer.dispose()
        raise
    path.chmod(0o600)
    reader = open_engine(path, options.busy_timeout_s, writer=False)
    event.listen(reader, "connect", _tolerant_text)
    committer = SqliteCommitter(writer, str(path), full=options.durability == "full")
    return Parts(str(path), "sqlite", committer, SqliteReader(reader, str(path)))


class SqliteReader:
    """Runs queries in worker threads, each on a connection that cannot write."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="bowerbird-store")
        self._own = threading.local()  # each thread keeps its connection
        self._opened: list[Connection] = []

    async def run(self, query: Callable[[Connection], T]) -> T:
        """See `Store.read`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, waking(self._read), query)

    async def aclose(self) -> None:
        """Close the connections and end the threads."""
        await to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown()
        for connection in self._opened:
            connection.close()
        self._engine.dispose()

    def _read(self, query: Callable[[Connection], T]) -> T:
        with translated(self._name):
            connection: Connection | None = getattr(self._own, "connection", None)
            if connection is None or connection.closed or connection.invalidated:
                connection = self._own.connection = self._engine.connect()
                self._opened.append(connection)
            with connection.begin():
                return query(connection)


def _tolerant_text(raw: Any, _record: Any) -> None:
    # One damaged text must not keep its neighbours from being read.
    raw.text_factory = _text


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
