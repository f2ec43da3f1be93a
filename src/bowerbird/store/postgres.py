"""What only PostgreSQL needs: engines, one writer's transactions, outages (SE-13, 15, 33, 58).

Here: asyncpg under SQLAlchemy's async engines, commits that survive a lost connection, reads
from one consistent view. Not here: tables, queries, SQLite, notices to other processes
(`sql/notify.py`).

A connection may break after COMMIT was sent and before its answer came. Each batch knows its
transaction's id, so after reconnecting the server itself says whether it was committed; only
when it was not is the batch done again. Nothing is written twice, nothing is lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bowerbird.core.errors import ConfigError, StoreBusy
from bowerbird.store.journal.group_commit import Job, Result, Write, apply_alone, apply_batch
from bowerbird.store.migrate import is_current, upgrade
from bowerbird.store.rows.leases import lengthen_all
from bowerbird.store.sql.failures import Conflict, is_outage, is_race, store_error
from bowerbird.store.sql.patience import READ_PATIENCE_S
from bowerbird.store.sql.postgres_url import NUMBERS, number

if TYPE_CHECKING:
    from bowerbird.store.options import StoreOptions

T = TypeVar("T")

READERS = 8
CONNECTIONS = 10  # of one process: one writes, one hears notices, READERS read
_POOLER_STATES = frozenset({"08P01", "42P05", "26000"})  # refused at startup; prepared statements mixed up
OUTAGE_S = 60.0  # added to store.busy_timeout_s: a server that restarts must not fail turns (SE-58)
MAX_TRIES = 5  # of one batch against deadlocks and races of several processes
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0
_MIGRATION_LOCK = 0x626F776572  # "bower"; any fixed number that all our processes use


def make_engine(url: URL, options: "StoreOptions", *, size: int, purpose: str) -> AsyncEngine:
    """Return an engine; its connections wait for locks as long as settings say.

    Args:
        size: connections at most.
        purpose: shown in the server's list of connections.
    """
    query = dict(url.query)
    numbers = {name: number(name, query.pop(name)) for name in NUMBERS if name in query}
    lock_ms = max(1, int(options.busy_timeout_s * 1000))
    return create_async_engine(
        url.set(query=query),
        pool_size=size,
        max_overflow=0,
        pool_timeout=options.busy_timeout_s,
        connect_args={
            "timeout": 5.0,
            **numbers,
            "server_settings": {
                "application_name": f"bowerbird-{purpose}",
                "lock_timeout": str(lock_ms),
                # A stopped process must not keep a session's row from the one that takes over.
                "idle_in_transaction_session_timeout": "10000",
            },
        },
    )


async def prepare(engine: AsyncEngine, name: str, *, adopt: bool) -> None:
    """Create or migrate the schema in one transaction; other processes wait for it.

    Raises:
        ConfigError: the server cannot be reached or refuses us, or the database is another's.
        StoreTooNew: nothing was changed.
    """

    def bring_up_to_date(connection: Connection) -> None:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        if not is_current(connection):
            upgrade(connection, adopt=adopt)

    try:
        async with engine.begin() as connection:
            await connection.run_sync(bring_up_to_date)
    except (DBAPIError, OSError, TimeoutError) as error:
        raise _cannot_open(error, name) from error


async def refuse_pooler(writer: AsyncEngine, reader: AsyncEngine, name: str) -> None:
    """Refuse a pooler that gives one server process to several connections; raises ConfigError.

    Locks, prepared statements and settings of a connection would be somebody else's after each transaction.
    """
    try:
        async with writer.connect() as first, reader.connect() as second:
            before = await _process(first)
            async with second.begin():
                is_shared = await _process_within(second) == before or await _process(first) != before
    except (DBAPIError, OSError, TimeoutError) as error:
        raise _cannot_open(error, name) from error
    if is_shared:
        raise _pooled(name)


async def _process(connection: AsyncConnection) -> int:
    async with connection.begin():
        return await _process_within(connection)


async def _process_within(connection: AsyncConnection) -> int:
    return int((await connection.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one())


def _pooled(name: str) -> ConfigError:
    return ConfigError(
        f"store.url: {name} is behind a pooler in transaction mode, or one that refuses lock_timeout; "
        "use a direct connection, or session mode (docs/server.md, PostgreSQL)"
    )


def _cannot_open(error: Exception, name: str) -> Exception:
    state = str(getattr(getattr(error, "orig", None), "sqlstate", "") or "")
    if state in _POOLER_STATES:
        return _pooled(name)
    if state == "53300":
        return ConfigError(
            f"store.url: {name} has too many connections for this user; a process needs {CONNECTIONS}"
        )
    if is_outage(error) or isinstance(error, OSError | TimeoutError):
        return ConfigError(f"store.url: {name} cannot be reached (is the server running? the address right?)")
    if state.startswith("28"):
        return ConfigError(f"store.url: {name} refuses this user or password")
    if state == "3D000":
        return ConfigError(f"store.url: {name}: there is no such database; create it first")
    return store_error(error, name)


class PgCommitter:
    """Commits batches on one connection; an outage makes them wait, not fail.

    Args:
        engine: of one connection, for this writer alone.
        name: the database as errors name it.
        full: `store.durability` is `full`: batches that hold something important wait for the disk.
        patience_s: how long an unreachable server is waited for, then StoreBusy.
    """

    def __init__(self, engine: AsyncEngine, name: str, *, full: bool, patience_s: float) -> None:
        self._engine = engine
        self._name = name
        self._full = full
        self._patience_s = patience_s
        self._connection: AsyncConnection | None = None
        self._was_away = False

    async def commit(self, batch: Sequence[Job]) -> list[Result]:
        """Commit `batch`; raises StoreError when all of it failed."""
        results = await self._commit(batch)
        for index, result in enumerate(results):
            # Another process was first with the same key: look again, now that its row is there.
            if isinstance(result, Conflict) and isinstance(batch[index], Write):
                (results[index],) = await self._commit((batch[index],))
        return results

    async def _commit(self, batch: Sequence[Job]) -> list[Result]:
        attempt = _Attempt(batch, self._full and any(job.is_flushed for job in batch))

        async def once() -> list[Result]:
            return await self._once(attempt)

        return await patiently(once, self._name, self._patience_s, self._broken)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._broken()
        await self._engine.dispose()

    async def _once(self, attempt: "_Attempt") -> list[Result]:
        connection = await self._open()
        if attempt.sent is not None and await _was_committed(connection, attempt.sent):
            return attempt.results
        attempt.sent = None
        async with connection.begin() as transaction:
            xid = await _begin(connection, attempt.is_flushed)
            if len(attempt.batch) == 1:  # its transaction is all the savepoint it needs
                result, is_done = await connection.run_sync(apply_alone, attempt.batch[0], self._name)
                attempt.results = [result]
            else:
                attempt.results, is_done = (
                    await connection.run_sync(apply_batch, attempt.batch, self._name),
                    True,
                )
            if is_done:
                attempt.sent = xid
                await transaction.commit()
            else:
                await transaction.rollback()
        return attempt.results

    async def _open(self) -> AsyncConnection:
        if self._connection is None:
            self._connection = await self._engine.connect()
            if self._was_away:
                await self._come_back(self._connection)
        return self._connection

    async def _come_back(self, connection: AsyncConnection) -> None:
        # Nobody could renew a lease while the server was away. Those that nobody took are ours still.
        async with connection.begin():
            await connection.run_sync(lengthen_all)
        self._was_away = False

    async def _broken(self) -> None:
        connection, self._connection = self._connection, None
        self._was_away = True
        if connection is not None:
            await _let_go(connection)


class _Attempt:
    """One batch while it is being committed; `sent` is the transaction whose end is unknown."""

    def __init__(self, batch: Sequence[Job], is_flushed: bool) -> None:
        self.batch = batch
        self.is_flushed = is_flushed
        self.results: list[Result] = []
        self.sent: str | None = None


async def _begin(connection: AsyncConnection, is_flushed: bool) -> str:
    found = await connection.exec_driver_sql(
        "SELECT pg_current_xact_id()::text, set_config('synchronous_commit', $1, true)",
        ("on" if is_flushed else "off",),
    )
    return str(found.scalar_one())


async def _was_committed(connection: AsyncConnection, xid: str) -> bool:
    """Whether a transaction whose answer never came was committed; waits until it is decided."""
    while True:
        async with connection.begin():
            row = await connection.exec_driver_sql("SELECT pg_xact_status($1::text::xid8)", (xid,))
            status = row.scalar()
        if status != "in progress":
            return status == "committed"
        await asyncio.sleep(_FIRST_WAIT_S)


async def _let_go(connection: AsyncConnection) -> None:
    try:
        await connection.invalidate()
        await connection.close()
    except (DBAPIError, OSError):
        return  # it was broken: nothing is left to close


async def patiently(
    once: Callable[[], Awaitable[T]], name: str, patience_s: float, broken: Callable[[], Awaitable[None]]
) -> T:
    """Return what `once` returns, asking again while the server is away or two writers collide.

    Args:
        broken: called after each failure that asks for a new connection.

    Raises:
        StoreError: what the failure means, after `patience_s` or at once when waiting cannot help.
    """
    until = time.monotonic() + patience_s
    wait_s, races = _FIRST_WAIT_S, 0
    while True:
        try:
            return await once()
        except PoolTimeout as error:
            raise StoreBusy(f"{name}: every connection stayed in use for store.busy_timeout_s") from error
        except (DBAPIError, OSError, TimeoutError) as error:
            if is_race(error) and races < MAX_TRIES:
                races += 1
            elif is_outage(error):
                await broken()
                if time.monotonic() + wait_s > until:
                    raise StoreBusy(
                        f"{name} was not reachable for {patience_s:.0f} s; the turn can be resumed"
                    ) from error
            else:
                await broken()
                raise store_error(error, name) from error
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


class PgReader:
    """Runs queries, each in one read-only snapshot of the database."""

    def __init__(self, engine: AsyncEngine, name: str, patience_s: float) -> None:
        self._engine = engine
        self._name = name
        self._patience_s = patience_s
        self._views = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def run(self, query: Callable[[Connection], T]) -> T:
        """See `Store.read`."""

        patience_s = min(self._patience_s, READ_PATIENCE_S.get())

        async def once() -> T:
            async with asyncio.timeout(patience_s), self._views.connect() as connection, connection.begin():
                return await connection.run_sync(query)

        return await patiently(once, self._name, patience_s, _nothing)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._engine.dispose()


async def _nothing() -> None:
    """The pool throws broken connections away by itself."""


def refuse_nul(engine: AsyncEngine) -> None:
    """PostgreSQL's text holds every character but NUL; keep the neighbours of one by replacing it."""

    def without(value: Any) -> Any:
        return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value

    def clean(parameters: Any) -> Any:
        if isinstance(parameters, dict):
            return {key: without(value) for key, value in cast("dict[Any, Any]", parameters).items()}
        if isinstance(parameters, tuple):
            return tuple(without(value) for value in cast("tuple[Any, ...]", parameters))
        return parameters

    @event.listens_for(engine.sync_engine, "before_cursor_execute", retval=True)
    def _clean(  # pyright: ignore[reportUnusedFunction]  the event calls it
        _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool
    ) -> tuple[str, Any]:
        return statement, [clean(row) for row in parameters] if many else clean(parameters)
