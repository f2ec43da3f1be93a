"""The one place where a driver's error becomes one of ours; no SQL goes further (SE-15, 60, 61).

Here: the mapping. Not here: retrying, or what a turn does about it.
"""

import errno
import os
import resource
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError

from bowerbird.core.errors import StorageFull, StoreBusy, StoreCorrupt, StoreError

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# A full disk shows as one of these when the write-ahead index cannot grow.
_NO_ROOM = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_WRITE}
# A directory in which the write-ahead log cannot be made shows as the second.
_CLOSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_OPENS = 6  # a database with its log and index, their directory, and what was let go of since
_PRIMARY = 0xFF  # extended result codes carry the primary one in their low byte


# PostgreSQL's states (SQLSTATE): the server is away or will be back; two writers collided.
_OUTAGES = ("08", "57P01", "57P02", "57P03", "25P03", "53300")
_RACES = ("40001", "40P01")
_STATES: dict[str, type[StoreError]] = {"53100": StorageFull, "55P03": StoreBusy, "57014": StoreBusy}

_STATE_TEXTS = {
    "53100": "{where}: the server's disk is full; free some space and try again",
    "55P03": "{where} stayed locked longer than store.busy_timeout_s; the turn can be resumed",
    "57014": "{where} took longer than it may; the turn can be resumed",
}


class Conflict(StoreError):
    """Two writers wanted the same row; the caller looks again and decides."""


def is_outage(error: BaseException) -> bool:
    """Whether the server could not be reached or ended the connection: asking again may help."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _state(error).startswith(_OUTAGES)
    return isinstance(error, OSError | TimeoutError)


def is_race(error: BaseException) -> bool:
    """Whether two transactions of several processes collided; doing this one again is right."""
    return isinstance(error, DBAPIError) and _state(error) in _RACES


def _state(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")


def store_error(error: BaseException, where: str) -> StoreError:
    """Return what `error` of a database driver means to people.

    Args:
        error: from SQLAlchemy or sqlite3.
        where: the database as a person knows it: a file name or host, without secrets.
    """
    if isinstance(error, IntegrityError):
        return Conflict(f"{where}: another writer was first, or a reference is missing")
    original = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(original, "sqlite_errorcode", None)
    primary = code & _PRIMARY if isinstance(code, int) else None
    state = _state(error) if isinstance(error, DBAPIError) else ""
    if state in _STATES:
        return _STATES[state](_STATE_TEXTS[state].format(where=where))
    if state.startswith("XX"):
        return StoreCorrupt(f"{where} reports damaged data; restore it from a backup of the server")
    if primary in _BUSY:
        return StoreBusy(f"{where} stayed locked longer than store.busy_timeout_s; the turn can be resumed")
    if primary == sqlite3.SQLITE_FULL or code in _NO_ROOM:
        return StorageFull(f"{where}: {_no_room()} and try again")
    if primary in _CORRUPT:
        return corrupt(where)
    if primary in _CLOSED:
        return StoreError(f"{where} cannot be opened or written: {_closed()}")
    return StoreError(f"{where} refused the operation ({type(original).__name__})")


def _no_room() -> str:
    """Return why nothing more can be written and what to do; SQLite does not say which of two it was."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit == resource.RLIM_INFINITY:
        return "the disk is full; free some space"
    return (
        f"the disk is full, or the file may not grow above {limit >> 10} KiB here; free some space or raise "
        "`ulimit -f`"
    )


def _closed() -> str:
    """Return why a file cannot be opened; SQLite says the same of a full table of open files."""
    opened: list[int] = []
    try:
        for _ in range(_OPENS):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - to be closed
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return "too many open files; raise `ulimit -n`"
    finally:
        for handle in opened:
            os.close(handle)
    return "check the permissions of the file and its directory"


def corrupt(where: str) -> StoreCorrupt:
    """Return the error that names a damaged database file and the way back."""
    return StoreCorrupt(
        f"{where} is damaged and was not written to. Move it away and restore the last "
        "`bowerbird state export` with `bowerbird state import DIR`"
    )


@contextmanager
def translated(where: str) -> Generator[None]:
    """Raise our errors for the driver's within the block.

    Example:
        >>> with translated("agent.db"):
        ...     pass
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise store_error(error, where) from error
