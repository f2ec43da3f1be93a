"""What takes room in the data directory, by what it is for (D-22).

Here: adding up. Not here: freeing any of it (`retention.py`, `trash.py`), printing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from sqlalchemy import Connection, select, text

from bowerbird.core.threads import in_thread
from bowerbird.sessions.branches.branches import Branches
from bowerbird.store.sql.tables import sessions
from bowerbird.store.store import Store

_LARGEST = 10
_OWN = {"blobs": "large records", "sessions": "audit logs", "models": "embedded model", "sandbox": "sandbox"}


class BranchRoom(msgspec.Struct, frozen=True):
    """What one session's branch takes.

    Attributes:
        bytes: files of its layers, with what its landings keep to be undone.
    """

    session: str
    title: str
    branch: str
    bytes: int


class DiskUse(msgspec.Struct, frozen=True):
    """What takes room, in bytes on the disk.

    Attributes:
        parts: by what it is for; they add up to `total`.
        free: left on the file system. reusable: within the database, after deletions.
        largest: the branches that take most. ownerless: branches of no session, not in the trash.
    """

    total: int
    free: int
    parts: dict[str, int]
    reusable: int
    largest: tuple[BranchRoom, ...]
    ownerless: tuple[str, ...]


async def disk_use(store: Store, branches: Branches) -> DiskUse:
    """Add up what is in the data directory and the database.

    Example:
        use = await disk_use(store, branches)
        print(use.parts["branches"], use.largest[0].session)
    """
    trashed = set(await branches.trashed())
    owners = await store.read(_owners)
    size, reusable = await store.read(_database)
    rooms = await in_thread(_rooms, store.data_dir, Path(store.name) if store.dialect == "sqlite" else None)
    by_branch = {name.partition("/")[2]: room for name, room in rooms.items() if name.startswith("branches/")}
    parts = {
        "database": size if store.dialect == "postgresql" else rooms.pop("database", 0),
        "branches": sum(room for branch, room in by_branch.items() if branch not in trashed),
        "trash": sum(room for branch, room in by_branch.items() if branch in trashed),
    }
    for name, room in rooms.items():
        if not name.startswith("branches/"):
            what = "reserve" if name.startswith("reserve.") else _OWN.get(name, "other")
            parts[what] = parts.get(what, 0) + room
    largest = sorted(by_branch, key=lambda branch: (-by_branch[branch], branch))
    named = [BranchRoom(*owners[branch], branch, by_branch[branch]) for branch in largest if branch in owners]
    ownerless = tuple(sorted(by_branch.keys() - owners.keys() - trashed))
    free = os.statvfs(store.data_dir)
    return DiskUse(
        sum(parts.values()),
        free.f_bavail * free.f_frsize,
        parts,
        reusable,
        tuple(named[:_LARGEST]),
        ownerless,
    )


def _owners(connection: Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute(
        select(sessions.c.branch_id, sessions.c.thread_id, sessions.c.title).where(
            sessions.c.branch_id.is_not(None)
        )
    )
    return {row.branch_id: (row.thread_id, row.title or "") for row in rows}


def _database(connection: Connection) -> tuple[int, int]:
    """Size and reusable bytes of the database."""
    if connection.dialect.name == "postgresql":
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0), 0
    page = int(connection.scalar(text("PRAGMA page_size")) or 0)
    pages = int(connection.scalar(text("PRAGMA page_count")) or 0)
    return page * pages, page * int(connection.scalar(text("PRAGMA freelist_count")) or 0)


def _rooms(data_dir: Path, database: Path | None) -> dict[str, int]:
    """Bytes by name in the data directory; each branch for itself, the database with its companions."""
    found: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()

    def add(name: str, room: int) -> None:
        found[name] = found.get(name, 0) + room

    for entry in _entries(data_dir):
        path = Path(entry.path)
        if database is not None and path.parent == database.parent and path.name.startswith(database.name):
            add("database", _room(path, seen))
        elif entry.name == "branches" and entry.is_dir(follow_symlinks=False):
            for branch in _entries(path):
                add(f"branches/{branch.name}", _room(Path(branch.path), seen))
        else:
            add(entry.name, _room(path, seen))
    return found


def _room(path: Path, seen: set[tuple[int, int]]) -> int:
    """Blocks of a file or tree; what several names share counts once, for the first."""
    total, waiting = 0, [path]
    while waiting:
        here = waiting.pop()
        try:
            status = here.lstat()
        except OSError:
            continue  # gone meanwhile
        if status.st_nlink > 1 and not here.is_dir():
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
        total += status.st_blocks * 512
        if here.is_dir() and not here.is_symlink():
            waiting += [Path(entry.path) for entry in _entries(here)]
    return total


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from list(entries)
    except OSError:
        return
