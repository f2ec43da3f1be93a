"""`bowerbird state export`: everything durable as plain files, from one consistent read (SE-45).

Here: which file holds what, written beside the target and moved there when it is whole. Not
here: reading such files back (`importing.py`), options of the command.

    bowerbird-export.json  says that this is an export
    session_counters.json  scheduled_tasks.json  cc_user_states.json
    conversations.json     what a session's records do not say: title, directory, flags, branch
    sessions/*.jsonl       audit logs
    journal/*.jsonl        every record of every session, bodies whole
    blobs/*                bytes that records refer to
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.errors import Exists, NotFound
from bowerbird.core.ids import file_name_of_thread
from bowerbird.core.threads import entered, in_thread, to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.store.journal.journal import CORRUPT, Record
from bowerbird.store.journal.reading import read_records
from bowerbird.store.rows.meta import with_prefix
from bowerbird.store.rows.schedules import stored_tasks
from bowerbird.store.rows.sessions import SessionRow, list_sessions
from bowerbird.store.sql.tables import counters
from bowerbird.store.store import Store
from bowerbird.workspace.filled_beside import give_name, made_beside

MARK = "bowerbird-export.json"
COUNTERS = "session_counters.json"
TASKS = "scheduled_tasks.json"
STATES = "cc_user_states.json"
IN_CLAUDE = "claude:telegram:"  # where the mode keeps its people: it is Telegram's alone
CONVERSATIONS = "conversations.json"
SESSIONS = "sessions"
JOURNAL = "journal"
BLOBS = "blobs"

# What an export is made of: `--force` replaces a directory of nothing else.
_FILES = frozenset((MARK, COUNTERS, TASKS, STATES, CONVERSATIONS))
_INSIDE = {
    SESSIONS: re.compile(r"[^/]+\.jsonl"),
    JOURNAL: re.compile(r"[^/]+\.jsonl"),
    BLOBS: re.compile(r"[0-9a-f]{64}"),
}
_EVERY = 10_000_000
_BLOB = re.compile(rb"sha256:([0-9a-f]{64})")


class Exported(msgspec.Struct, frozen=True):
    """What was written."""

    sessions: int
    records: int
    damaged: int


async def export_state(store: Store, target: Path, *, force: bool = False) -> Exported:
    """Write the state of `store` to `target`, all of it or nothing.

    Args:
        target: a new or empty directory.
        force: replace an earlier export that is there.

    Raises:
        Exists: the directory holds something, or anything but an export when `force` was given.
        NotFound: the store holds no session.
    """
    replaces = await to_thread(_require_room, target, force)
    async with entered(made_beside(target)) as made:
        done = await store.read(lambda c: _write_all(c, store, made))
        await in_thread(_move_into_place, made, target, replaces)
    return done


def _require_room(target: Path, force: bool) -> bool:
    """Return whether an earlier export is replaced."""
    replaces = False
    if os.path.lexists(target) and (not target.is_dir() or target.is_symlink() or any(target.iterdir())):
        if not force:
            raise Exists(
                f"{target} is not empty; name another directory (--force replaces an earlier export)"
            )
        _require_export(target)
        replaces = True
    if target.is_dir() and Path.cwd().is_relative_to(target.resolve()):
        raise Exists(f"{target} is where this command runs, and cannot be replaced; name another directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    return replaces


def _require_export(target: Path) -> None:
    """Refuse to replace what no export wrote: it could be anybody's work."""
    if target.is_symlink() or not target.is_dir():
        raise Exists(f"{target} is not a directory that an export wrote; nothing was changed")
    for foreign in _foreign(target):
        raise Exists(
            f"{target} holds {foreign}, which no export wrote; nothing was changed. Name another directory"
        )
    names = {entry.name for entry in target.iterdir()}
    if MARK not in names and not {CONVERSATIONS, JOURNAL} <= names:  # those before the mark had these
        raise Exists(f"{target} is not an export; nothing was changed. Name another directory")


def _foreign(place: Path) -> Iterator[str]:
    """Yield what in a directory is not of an export."""
    for entry in place.iterdir():
        if entry.name not in _INSIDE:
            if entry.name not in _FILES or entry.is_symlink() or not entry.is_file():
                yield entry.name
        elif entry.is_symlink() or not entry.is_dir():
            yield entry.name
        else:
            for inner in entry.iterdir():
                is_ours = _INSIDE[entry.name].fullmatch(inner.name) and not inner.is_symlink()
                if not is_ours or not inner.is_file():
                    yield f"{entry.name}/{inner.name}"


def _write_all(connection: Connection, store: Store, place: Path) -> Exported:
    for name in (SESSIONS, JOURNAL, BLOBS):
        (place / name).mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    rest = _beside_sessions(connection)
    for name, value in rest.items():
        _write_json(place / name, value)
    rows = sorted(list_sessions(connection, limit=_EVERY), key=lambda row: row.thread_id)
    if not rows and not any(rest.values()):
        raise NotFound(f"there is nothing to export: {store.name} holds no session")
    _write_json(place / MARK, {"format": 1, "written_at": now_iso(), "sessions": len(rows)})
    _write_json(place / CONVERSATIONS, [_conversation(row) for row in rows])
    records = damaged = 0
    for row in rows:
        found = [store.whole(record) for record in read_records(connection, row.thread_id)]
        good = [record for record in found if record.type != CORRUPT]
        records, damaged = records + len(good), damaged + len(found) - len(good)
        _write_records(
            place / JOURNAL / f"{file_name_of_thread(row.thread_id)}.jsonl", good, store, place / BLOBS
        )
        log = store.data_dir / SESSIONS / f"{file_name_of_thread(row.thread_id)}.jsonl"
        if log.exists():
            shutil.copyfile(log, place / SESSIONS / log.name)
    return Exported(len(rows), records, damaged)


def _beside_sessions(connection: Connection) -> dict[str, Any]:
    """Return what belongs to no session, by the file that holds it."""
    chats = connection.execute(select(counters.c.base_key, counters.c.n).order_by(counters.c.base_key))
    states = with_prefix(connection, IN_CLAUDE)
    return {
        COUNTERS: {row.base_key: row.n for row in chats if row.n},
        TASKS: stored_tasks(connection),
        STATES: {user: json.loads(states[user]) for user in sorted(states) if not user.startswith("/")},
    }


def _conversation(row: SessionRow) -> dict[str, Any]:
    values = msgspec.structs.asdict(row)
    for name in ("status", "last_seq", "deleted_at"):
        del values[name]
    return values


def _write_records(path: Path, records: Iterable[Record], store: Store, blobs: Path) -> None:
    with path.open("wb") as file:
        path.chmod(0o600)
        for record in records:
            line = encode_record(record)
            file.write(line + b"\n")
            for name in {found.decode() for found in _BLOB.findall(line)}:
                source = store.data_dir / BLOBS / name
                if source.exists() and not (blobs / name).exists():
                    shutil.copyfile(source, blobs / name)


def encode_record(record: Record) -> bytes:
    """Return the line of a record, its keys in the order of SE-7."""
    return msgspec.json.encode(record)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
    path.chmod(0o600)


def _move_into_place(made: Path, target: Path, replaces: bool) -> None:
    give_name(made, target, replaces=replaces)
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    if replaces and made.exists():
        for foreign in _foreign(made):  # it came while we wrote
            kept = made.with_name(f"{made.name}.old")
            made.rename(kept)
            raise Exists(f"{kept} holds {foreign}, which no export wrote: what was in {target} stays there")
