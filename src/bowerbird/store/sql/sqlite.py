"""What only SQLite needs: files, pragmas, refusals of files that cannot serve (SE-13, 31, 60).

Here: opening one database file safely. Not here: tables, queries, other databases.
"""

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url

from bowerbird.core.errors import ConfigError
from bowerbird.store.sql.failures import corrupt, store_error

# Locking or shared memory of these is not what SQLite's WAL needs.
NETWORK_FILESYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs fuse.sshfs 9p afs ceph glusterfs fuse.glusterfs lustre beegfs ncpfs".split()
)
_HEADER = b"SQLite format 3\x00"
_QUICK_CHECK_BYTES = 16 << 20  # checked at every open while that costs a few milliseconds


def database_file(url: str, base: Path) -> Path | None:
    """Return the file an SQLite URL names, None for another database.

    Args:
        url: SQLAlchemy URL; a relative path starts at `base`.
        base: the data directory.

    Raises:
        ConfigError: the URL is malformed or names a database in memory, which threads cannot share.

    Example:
        >>> database_file("sqlite+aiosqlite:///./agent.db", Path("/data"))
        PosixPath('/data/agent.db')
    """
    try:
        parsed: URL = make_url(url)
    except Exception as error:  # SQLAlchemy raises its own base class here, and ValueError for ports
        raise ConfigError("store.url: not a database URL (sqlite or postgresql)") from error
    if parsed.get_backend_name() != "sqlite":
        return None
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigError(
            "store.url: a database in memory is not durable (name a file: sqlite:///./agent.db)"
        )
    return Path(os.path.normpath(base / Path(parsed.database).expanduser()))


def refuse_unusable(path: Path, mounts: str | None = None) -> None:
    """Check that `path` can be a database, without writing it.

    Args:
        path: the database file, perhaps not there yet.
        mounts: text of the mount table; the system's when None.

    Raises:
        ConfigError: the file lies on a network filesystem.
        StoreCorrupt: the file is damaged or no database.
    """
    kind = filesystem_of(path.parent, mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise ConfigError(
            f"store.url: {path} lies on a network filesystem ({kind}), where SQLite may lose data "
            "(a local file, or a postgresql URL)"
        )
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise corrupt(str(path))
    _read_only_check(path)


def _read_only_check(path: Path) -> None:
    try:
        connection = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=5)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if path.stat().st_size <= _QUICK_CHECK_BYTES:
                verdict = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict is None or verdict[0] != "ok":
                    raise corrupt(str(path))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(os.fsencode(path))


def filesystem_of(directory: Path, mounts: str | None = None) -> str:
    """Return the type of the filesystem that holds `directory`, "" when unknown.

    Example:
        >>> filesystem_of(Path("/srv/data"), "nas:/x /srv nfs4 rw 0 0")
        'nfs4'
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except FileNotFoundError:
            return ""  # no mount table (not Linux): nothing can be said
    target = directory.absolute() if mounts else directory
    target = Path(os.path.realpath(target))
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        if (target == point or point in target.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def open_engine(path: Path, busy_timeout_s: float, *, writer: bool) -> Engine:
    """Return an engine on the file; writers begin with the write lock, readers cannot write.

    Args:
        path: the database file; its directory exists.
        busy_timeout_s: how long another process's lock is waited for.
        writer: for the one writer; its first connection turns the WAL on.
    """
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_timeout_s, "isolation_level": None, "check_same_thread": False},
        pool_size=1 if writer else 4,
        max_overflow=0,
    )

    @event.listens_for(engine, "connect")
    def _configure(raw: Any, _record: Any) -> None:
        raw.execute("PRAGMA foreign_keys=ON")
        if writer:
            raw.execute("PRAGMA journal_mode=WAL")
            raw.execute("PRAGMA synchronous=FULL")
        else:
            raw.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The write lock at once: a lock taken in the middle could not wait for another writer.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    return engine


def set_synchronous(connection: Connection, flushed: bool) -> None:
    """Choose whether the next transaction is flushed to the disk; call between transactions."""
    raw: Any = connection.connection.dbapi_connection
    raw.execute(f"PRAGMA synchronous={'FULL' if flushed else 'NORMAL'}")


def pack(path: Path, busy_timeout_s: float) -> None:
    """Write the database anew without its unused pages; raises StoreBusy when others do not let it."""
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
