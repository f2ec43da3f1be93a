"""Group commit: one writer per process, many callers, one transaction per batch (SE-12, 13, 15).

Here: the queue, the batches, who gets which result. Not here: what is written; a write is a
function of a connection, or an `Append`.

Why no timer: the next batch starts when the last commit ended, so batches grow exactly as
fast as commits are slow, and a caller that is alone waits for nobody.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Engine, Transaction
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from bowerbird.core.errors import BowerbirdError, StoreError
from bowerbird.core.threads import receivable, waking
from bowerbird.store.journal.journal import Append, append_group, append_one
from bowerbird.store.sql.failures import is_outage, store_error
from bowerbird.store.sql.sqlite import set_synchronous

MAX_RECORDS = 512
MAX_BYTES = 1 << 20

_log = logging.getLogger(__name__)

# What the driver raises because of one statement's values, the transaction being sound.
_OWN_MISTAKES = (IntegrityError, InterfaceError, ProgrammingError, DataError)


class Write(msgspec.Struct, frozen=True):
    """A change as a function of the connection; it runs once, inside its own savepoint."""

    change: Callable[[Connection], Any]
    is_flushed: bool = True

    @property
    def size(self) -> int:
        """Bytes counted against a batch; a change is small."""
        return 1024


Job = Append | Write
Result = Any  # the records of an Append, what a Write's function returned, or the exception of either


class Committer(Protocol):
    """Commits one batch and returns a result per job; SQLite here, PostgreSQL beside it."""

    async def commit(self, batch: Sequence[Job]) -> list[Result]: ...

    async def aclose(self) -> None: ...


class GroupCommit:
    """The writer task: collects jobs while a commit runs, then commits them together.

    Example:
        writer = GroupCommit(SqliteCommitter(engine, "agent.db", full=True))
        records = await writer.submit(Append("thread", epoch=1, records=(...,)))
        await writer.aclose()
    """

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._pending: deque[tuple[Job, asyncio.Future[Result]]] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, job: Job) -> Result:
        """Return the job's result after its batch is committed.

        A caller that is cancelled while waiting does not take its job back: the batch may
        have it already. Numbers come from the database, so nothing else depends on the caller.

        Raises:
            StoreError: the job or the whole batch was refused; nothing of it is stored.
        """
        if self._closed:
            raise StoreError("the store is closed")
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="bowerbird-journal-writer")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append((job, future))
        self._wake.set()
        return await future

    async def aclose(self) -> None:
        """Commit what was submitted, then stop; later submits are refused."""
        self._closed = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._committer.aclose()

    async def _run(self) -> None:
        while not (self._closed and not self._pending):
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                await self._commit(self._next_batch())

    def _next_batch(self) -> list[tuple[Job, asyncio.Future[Result]]]:
        batch: list[tuple[Job, asyncio.Future[Result]]] = []
        records = size = 0
        while self._pending:
            job = self._pending[0][0]
            records += len(job.records) if isinstance(job, Append) else 1
            size += job.size
            if batch and (records > MAX_RECORDS or size > MAX_BYTES):
                break
            batch.append(self._pending.popleft())
        return batch

    async def _commit(self, batch: list[tuple[Job, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._committer.commit([job for job, _ in batch])
        except BowerbirdError as error:
            _refuse(batch, error)
            return
        except Exception as error:  # noqa: BLE001  a defect refuses this batch; the writer goes on for others
            _log.exception("a batch was not committed")
            _refuse(batch, StoreError(f"the commit failed: {type(error).__name__}: {error}"))
            return
        except BaseException:
            _refuse(batch, StoreError("the writer was stopped"))
            raise
        for (_, future), result in zip(batch, results, strict=True):
            _settle(future, result)


def _refuse(batch: Sequence[tuple[Job, asyncio.Future[Result]]], error: BowerbirdError) -> None:
    for _, future in batch:
        _settle(future, error)


def _settle(future: asyncio.Future[Result], result: Result) -> None:
    if future.done():  # its caller was cancelled
        return
    if isinstance(result, BaseException):
        future.set_exception(receivable(result))
    else:
        future.set_result(result)


class SqliteCommitter:
    """Commits batches on one connection in one thread of its own.

    Args:
        engine: opened with `open_engine(..., writer=True)`.
        name: the database as errors name it.
        full: `store.durability` is `full`: flush batches that hold something important.
    """

    def __init__(self, engine: Engine, name: str, *, full: bool) -> None:
        self._engine = engine
        self._name = name
        self._full = full
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bowerbird-journal")
        self._connection: Connection | None = None
        self._flushing: bool | None = None

    async def commit(self, batch: Sequence[Job]) -> list[Result]:
        """Commit `batch` in the thread; raises StoreError when the whole batch failed."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, waking(self._commit), batch)

    async def aclose(self) -> None:
        """Close the connection and end the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, waking(self._close))
        self._thread.shutdown()

    def _commit(self, batch: Sequence[Job]) -> list[Result]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            flushed = self._full and any(job.is_flushed for job in batch)
            if flushed != self._flushing:
                set_synchronous(self._connection, flushed)
                self._flushing = flushed
            connection = self._connection
            if len(batch) == 1:  # its transaction is all the savepoint it needs
                return [_guarded(connection.begin(), connection, batch[0], self._name)]
            with connection.begin():
                return apply_batch(connection, batch, self._name)
        except (DBAPIError, sqlite3.Error, OSError) as error:
            self._drop()
            raise store_error(error, self._name) from error

    def _drop(self) -> None:
        """Let go of a connection whose transaction failed to end: the next batch begins on a new one.

        A commit that finds the disk full leaves it in a transaction that nothing can be begun beside.
        """
        connection, self._connection, self._flushing = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(DBAPIError, sqlite3.Error, OSError):
                connection.invalidate()
                connection.close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._engine.dispose()


def apply_batch(connection: Connection, batch: Sequence[Job], name: str) -> list[Result]:
    """Run the jobs of a batch in order inside the present transaction.

    Neighbouring appends are written together. A job that fails is taken back to its own
    savepoint and its error is its result; only a failing transaction raises.
    """
    results: list[Result] = []
    index = 0
    while index < len(batch):
        if isinstance(batch[index], Write):
            results.append(_guarded(connection.begin_nested(), connection, batch[index], name))
            index += 1
            continue
        appends: list[Append] = []
        while index < len(batch) and isinstance(job := batch[index], Append):
            appends.append(job)
            index += 1
        results.extend(_append_all(connection, appends, name))
    return results


def _append_all(connection: Connection, appends: Sequence[Append], name: str) -> Sequence[Result]:
    savepoint = connection.begin_nested()
    try:
        results = append_group(connection, appends)
    except _OWN_MISTAKES as error:
        if is_outage(error):
            raise
        savepoint.rollback()
        # One of them breaks a constraint: find out which, so that only its caller hears of it.
        return [_guarded(connection.begin_nested(), connection, append, name) for append in appends]
    savepoint.commit()
    return results


def apply_alone(connection: Connection, job: Job, name: str) -> tuple[Result, bool]:
    """Do one job in the present transaction; False: it failed, and the transaction must be taken back."""
    try:
        return (append_one(connection, job) if isinstance(job, Append) else job.change(connection)), True
    except BowerbirdError as error:
        return error, False
    except _OWN_MISTAKES as error:
        if is_outage(error):
            raise
        return store_error(error, name), False
    except (DBAPIError, OSError):
        raise  # locked, full, damaged or away: it concerns the whole batch
    except Exception as error:  # noqa: BLE001  a caller's mistake reaches that caller, not its batch
        return error, False


def _guarded(transaction: Transaction, connection: Connection, job: Job, name: str) -> Result:
    """Do one job; its failure ends `transaction` only, and is returned."""
    result, is_done = apply_alone(connection, job, name)
    if is_done:
        transaction.commit()
    else:
        transaction.rollback()
    return result
