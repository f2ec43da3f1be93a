"""`bowerbird backup` and `bowerbird restore`: everything Bowerbird keeps, as it is at one moment (D-21).

Here: the order in which database and files are copied while turns run, the record of a backup, bringing
one back. Not here: how a database or a directory is copied (`store/copies.py`, `workspace/raw_copy.py`),
exchange with other programs (`exporting.py`), options of the commands.

    backup.json   when, by which version, how much; written last
    agent.db      the whole database, of PostgreSQL too
    files/        the data directory, but for what is made again by itself

A database says what happened, a branch holds it: both must be of one moment. So the files are copied
first, however long that takes; then the database, in one look; then again what changed of the files
meanwhile, which is little. A session that wrote between the two looks is seen by its record number, and
the two short steps are done again. One that never rests keeps its branch, and its turn is marked as failed
in the copy: nothing in it runs a second time by itself after a restore.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.errors import Exists, NotFound, StoreCorrupt, StoreError, WorkspaceError
from bowerbird.core.forms import decode
from bowerbird.core.processes.alone import claim_in
from bowerbird.core.threads import entered, in_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.store import Store
from bowerbird.store.copies import check_file, copy_to_file, fill_from_file, in_file
from bowerbird.store.migrations import HEAD
from bowerbird.store.sql.tables import sessions, turns
from bowerbird.store.unfinished import ROWS, is_unfinished
from bowerbird.workspace.filled_beside import give_name, made_beside, remove_tree
from bowerbird.workspace.landing.record import LandingFolder, Refused
from bowerbird.workspace.raw_copy import Copied, held, make_equal

RECORD, DATABASE, FILES = "backup.json", "agent.db", "files"
KIND = "bowerbird-backup"
_TRIES = 4  # short steps until every session rested between the two looks
_NAMED = 50  # files that could not be read
_OPEN = ("running",)
_OVERLAYS_OWN = re.compile(r"branches(/[^/]+)(/work){2}")
"""The kernel's own, made for each mount; only root may read it."""
_AGAIN = ("models", "sandbox", "lost+found")  # fetched or made anew


class BackupRecord(msgspec.Struct, frozen=True):
    """What `backup.json` holds.

    Attributes:
        at: when the database was read. version: of the program. revision: of the database's schema.
        sessions, files, bytes: how much there is; `restore` compares.
        working: sessions that were writing all the time: their turns are failed in the backup.
        refused: files that could not be read, with the reason: the first ones of `unread`.
    """

    at: str
    version: str
    revision: str
    sessions: int
    files: int
    bytes: int
    working: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unread: int = 0
    kind: str = KIND
    v: int = 1


async def make_backup(store: Store, target: Path, version: str, *, force: bool = False) -> BackupRecord:
    """Copy everything to `target` while others work; all of it or nothing.

    Args:
        target: a new or empty directory, outside the data directory.
        version: of the running program, for the record.
        force: replace an earlier backup there; anything else is refused all the same.

    Raises:
        Exists: `target` holds something that is no backup, or one and `force` was not given.
        NotFound: there is nothing to back up.
    """
    replaces = await in_thread(_may_write, target, store.data_dir, force)
    seen = await store.read(_positions)
    if not seen:
        raise NotFound(f"{store.name} holds no session: there is nothing to back up. Is it the right one?")
    async with entered(made_beside(target, partial(_is_all_there_is, target))) as made:
        record = await _copy(store, made, version)
        await in_thread(_write_record, made, record)
        await in_thread(partial(give_name, made, target, replaces=replaces))
    return record


async def _copy(store: Store, place: Path, version: str) -> BackupRecord:
    skip = _not_kept(store)
    files, database = place / FILES, place / DATABASE
    await in_thread(make_equal, store.data_dir, files, skip)
    working: list[str] = []
    copied, at, before = Copied(), "", dict[str, int]()
    for _ in range(_TRIES):
        database.unlink(missing_ok=True)
        at = now_iso()
        await copy_to_file(store, database)
        before = await in_thread(in_file, database, _positions)  # of the very moment that it holds
        copied = await in_thread(make_equal, store.data_dir, files, skip)
        after = await store.read(_positions)
        working = sorted(thread for thread, seq in after.items() if before.get(thread) != seq)
        if not working:
            break
    await in_thread(in_file, database, partial(_fail_turns, working))
    count, size = await in_thread(held, files)
    refused = copied.refused
    return BackupRecord(
        at, version, HEAD, len(before), count, size, tuple(working), tuple(refused[:_NAMED]), len(refused)
    )


def _positions(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(sessions.c.thread_id, sessions.c.last_seq))
    return {row.thread_id: row.last_seq for row in rows}


def _fail_turns(working: list[str], rows: Connection) -> None:
    """What such a session did after the database was read is on its branch, but not in its record."""
    text = "a backup was made while this turn worked; its files may be further than what it says here"
    error = msgspec.json.encode({"type": "BackedUp", "message": text, "retryable": True}).decode()
    for thread in working:
        failed = rows.execute(
            turns.update()
            .where(turns.c.thread_id == thread, turns.c.state.in_(_OPEN))
            .values(state="failed", stop_reason="error", error=error, ended_at=now_iso())
        )
        if failed.rowcount:  # one whose turn was over by then is what it was
            rows.execute(sessions.update().where(sessions.c.thread_id == thread).values(status="failed"))


def _not_kept(store: Store) -> Callable[[str], bool]:
    """Say of a name in the data directory whether a backup leaves it out."""
    database = Path(store.name) if store.dialect == "sqlite" else None
    own = database.name if database is not None and database.parent == store.data_dir.resolve() else None

    def skip(name: str) -> bool:
        if "/" in name:
            return _OVERLAYS_OWN.fullmatch(name) is not None
        ours = own is not None and (name == own or name.startswith((f"{own}-", f"{own}.")))
        return ours or name in _AGAIN or name.startswith(("reserve.", ".probe-", ".clock"))

    return skip


def _is_all_there_is(target: Path, left: Path) -> bool:
    """Whether the process that made a whole backup died before it got its name, and there is no other."""
    return (left / RECORD).exists() and not is_backup(target)


def is_backup(directory: Path) -> bool:
    """Tell whether a directory holds a backup and nothing else."""
    try:
        _read_record(directory)
        return {entry.name for entry in directory.iterdir()} <= {RECORD, DATABASE, FILES}
    except (NotFound, StoreCorrupt, OSError):
        return False


def _may_write(target: Path, data_dir: Path, force: bool) -> bool:
    """Return whether an earlier backup is replaced; raises Exists where nothing may be written."""
    place, kept = target.resolve(), data_dir.resolve()
    if place.is_relative_to(kept) or kept.is_relative_to(place):
        raise Exists(f"{target} and the data directory {data_dir} lie in each other; name another place")
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        target.parent.mkdir(parents=True, exist_ok=True)
        return False
    if not is_backup(target):
        raise Exists(f"{target} holds something that is not a backup; name a new directory")
    if not force:
        raise Exists(
            f"{target} holds an earlier backup; name another directory, or use --force to replace it"
        )
    return True


def _write_record(place: Path, record: BackupRecord) -> None:
    file = place / RECORD
    with file.open("xb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    file.chmod(0o600)
    os.sync()  # before the directory gets its name: a backup that can be seen is on the disk


def _read_record(source: Path) -> BackupRecord:
    try:
        record = decode((source / RECORD).read_bytes(), BackupRecord)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{source} holds no backup: {RECORD} is missing") from None
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"{source / RECORD} is damaged: {error}; nothing was changed") from error
    if record.kind != KIND or record.v != 1:
        raise NotFound(f"{source} holds no backup that this version can read")
    return record


async def restore_backup(
    source: Path, data_dir: Path, opened: Callable[[], Awaitable[Store]]
) -> BackupRecord:
    """Bring a backup into an empty data directory and an empty database.

    Args:
        opened: opens the database that the settings name; called when its files are in place.

    Raises:
        NotFound, StoreCorrupt: `source` is no backup, or not a whole one; nothing was changed.
        StoreError: a file of it cannot be read here; nothing was changed.
        Exists: the data directory or the database is not empty; nothing was changed.
        StoreTooNew: a newer program made the backup.
    """
    record = await in_thread(_read_record, source)
    await in_thread(check_file, source / DATABASE)
    async with entered(_only_restore(data_dir)):
        await in_thread(_require_empty, data_dir)
        await _fill(source, record, data_dir, opened)
    return record


async def _fill(
    source: Path, record: BackupRecord, data_dir: Path, opened: Callable[[], Awaitable[Store]]
) -> None:
    async with entered(made_beside(data_dir)) as beside:
        copied = await in_thread(make_equal, source / FILES, beside)
        if copied.refused:
            raise StoreError(f"{source} cannot be read whole: {copied.refused[0]}; nothing was changed")
        if (copied.files, copied.bytes) != (record.files, record.bytes):
            what = f"{copied.files} files of {copied.bytes} bytes, not {record.files} of {record.bytes}"
            raise StoreCorrupt(f"{source} is not whole: {what}; nothing was changed")
        await in_thread(shutil.copyfile, source / DATABASE, beside / ROWS)
        await in_thread(_set_landings_aside, beside)
        await in_thread(_fill_directory, beside, data_dir)
    try:
        store = await opened()
        try:
            await fill_from_file(store, data_dir / ROWS)
        finally:
            await store.aclose()
    except BaseException:
        await in_thread(_empty, data_dir)
        raise
    await in_thread((data_dir / ROWS).unlink)


@contextmanager
def _only_restore(data_dir: Path) -> Generator[None]:
    """Keep a second restore from taking what this one brings for what a killed one left, and removing it.

    Raises:
        Exists: another restore into this directory is running, or it is no directory.
    """
    is_new = not os.path.lexists(data_dir)
    if not is_new and not data_dir.is_dir():
        raise Exists(f"{data_dir} is not a directory; restore into another one with --data-dir DIR")
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = claim_in(data_dir)
    if lock is None:
        raise Exists(f"another restore into {data_dir} is running, or something works there; wait for it")
    try:
        yield
    finally:
        os.close(lock)
        if is_new:
            with contextlib.suppress(OSError):  # something came into it
                data_dir.rmdir()


def _require_empty(data_dir: Path) -> None:
    if is_unfinished(data_dir):  # killed before: nobody could open what it brought
        _empty(data_dir)
    kept = [entry.name for entry in data_dir.iterdir() if entry.name not in _AGAIN]
    if kept:
        raise Exists(
            f"the data directory {data_dir} is not empty; restore into another one with --data-dir DIR, "
            "or move it away first"
        )


def _set_landings_aside(data_dir: Path) -> None:
    """Finish no landing of back then: the directory it wrote into has gone on since."""
    why = "it was in progress when the backup was made; the directory may have changed since"
    for file in data_dir.glob("branches/*/landings/*/record.json"):
        folder = LandingFolder(file.parent)
        try:
            record = folder.record()
        except WorkspaceError:
            continue  # named when somebody looks at it
        if record.state == "applying":  # one that was only prepared has written nothing, and goes
            aside = (Refused("/", why),)
            folder.write_record(msgspec.structs.replace(record, state="needs_attention", troubles=aside))


def _fill_directory(made: Path, data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700, exist_ok=True)
    (made / ROWS).rename(data_dir / ROWS)  # first: while it is there, nobody opens the place
    for entry in made.iterdir():
        entry.rename(data_dir / entry.name)


def _empty(data_dir: Path) -> None:
    for entry in data_dir.iterdir():
        if entry.name not in (*_AGAIN, ROWS):
            remove_tree(entry)
    if {entry.name for entry in data_dir.iterdir()} <= {*_AGAIN, ROWS}:
        (data_dir / ROWS).unlink(
            missing_ok=True
        )  # else it stays, and says to all that this is no whole place
