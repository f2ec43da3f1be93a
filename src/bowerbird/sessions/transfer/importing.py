"""`bowerbird state import`: plain files into the store, each thing once (SE-46, SE-47, SE-56).

Here: the order of the files, what is imported, present or set aside. Everything is read first and
written in one transaction, so a crash leaves all of it or nothing. Not here: the files' shapes
(`import_files.py`, `langgraph_checkpoints.py`, `foreign_dialogues.py`), options of the command.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.errors import InvalidArgument, StoreError
from bowerbird.core.json_text import json_text
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.transfer.exporting import IN_CLAUDE
from bowerbird.sessions.transfer.import_files import (
    Bad,
    Dialogue,
    Entry,
    read_checkpoints,
    read_counters,
    read_journals,
    read_logs,
    read_states,
    read_tasks,
)
from bowerbird.sessions.transfer.import_rows import insert_dialogue
from bowerbird.store.journal.blobs import Blobs
from bowerbird.store.journal.quarantine import put_aside
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.rows.schedules import has_task, store_task
from bowerbird.store.rows.sessions import counter_of, find_session, raise_counter
from bowerbird.store.sql.tables import quarantine
from bowerbird.store.store import Store

CHECKPOINTS = "checkpoints.db"


class FileReport(msgspec.Struct):
    """What became of one file's entries."""

    file: str
    imported: int = 0
    present: int = 0
    set_aside: int = 0
    reasons: list[str] = msgspec.field(default_factory=list[str])


class ImportReport(msgspec.Struct):
    """What became of everything."""

    files: list[FileReport] = msgspec.field(default_factory=list[FileReport])

    @property
    def exit_code(self) -> int:
        """0 when all was read, 3 when something was set aside, 1 when nothing could be read."""
        read = sum(file.imported + file.present for file in self.files)
        aside = sum(file.set_aside for file in self.files)
        if not read and (aside or not self.files):
            return 1
        return 3 if aside else 0

    def of(self, name: str) -> FileReport:
        """Return the report of a file, a new one for a new name."""
        found = next((file for file in self.files if file.file == name), None)
        if found is None:
            found = FileReport(name)
            self.files.append(found)
        return found


class _Found(msgspec.Struct, frozen=True):
    """Everything that was read; nothing of it is written yet.

    Attributes:
        covered: files of dialogues that a better source holds too.
    """

    counters: list[Entry]
    tasks: list[Entry]
    states: list[Entry]
    dialogues: list[Dialogue]
    bad: list[Bad]
    names: list[str]
    covered: list[str]


async def import_state(
    store: Store, directory: Path, *, dry_run: bool = False, workspace: str | None = None
) -> ImportReport:
    """Read a directory of exported or foreign state into the store.

    Args:
        dry_run: report only; nothing is written.
        workspace: directory that imported dialogues go on in, None for an empty branch.

    Raises:
        InvalidArgument: there is no such directory. StoreError: nothing was written.
    """
    found = await to_thread(_read_all, directory)
    if not dry_run:
        await to_thread(_keep_blobs, store.blobs, directory / "blobs")
    report = await _write(store, found, workspace, dry_run)
    if not dry_run:
        await to_thread(_copy_logs, directory / "sessions", store.data_dir / "sessions")
    return report


def _read_all(directory: Path) -> _Found:
    if not directory.is_dir():
        raise InvalidArgument(f"{directory} is not a directory of exported state")
    bad: list[Bad] = []
    names: list[str] = []
    covered: list[str] = []
    dialogues: dict[str, Dialogue] = {}
    readers = (read_journals, read_checkpoints, read_logs)  # who has a thread first, keeps it
    for read in readers:
        found = list(read(directory, bad, names))
        covered += [dialogue.file for dialogue in found if dialogue.thread_id in dialogues]
        dialogues = {dialogue.thread_id: dialogue for dialogue in found} | dialogues
    return _Found(
        counters=read_counters(directory, bad, names),
        tasks=read_tasks(directory, bad, names),
        states=read_states(directory, bad, names),
        dialogues=list(dialogues.values()),
        bad=bad,
        names=names,
        covered=covered,
    )


class _DryRun(Exception):
    """Takes the transaction back."""


async def _write(store: Store, found: _Found, workspace: str | None, dry_run: bool) -> ImportReport:
    prepared = [
        (dialogue, () if dry_run else await store.stored_bodies(dialogue.records))
        for dialogue in found.dialogues
    ]
    report = ImportReport()

    def change(connection: Connection) -> None:
        for name in found.names:
            report.of(name)
        _counters(connection, found.counters, report)
        _tasks(connection, found.tasks, report)
        _states(connection, found.states, report)
        for dialogue, bodies in prepared:
            counted = report.of(dialogue.file)
            if find_session(connection, dialogue.thread_id, deleted=True) is not None:
                counted.present += 1
            else:
                counted.imported += 1
                if not dry_run:
                    insert_dialogue(connection, dialogue, bodies, workspace, store.data_dir)
        for file in found.covered:
            report.of(file).present += 1
        _aside(connection, found.bad, report)
        if dry_run:
            raise _DryRun

    try:
        await store.write(change)
    except _DryRun:
        return report
    return report


def _counters(connection: Connection, entries: Iterable[Entry], report: ImportReport) -> None:
    for entry in entries:
        counted = report.of(entry.file)
        if counter_of(connection, entry.key) >= entry.value:
            counted.present += 1
        else:
            raise_counter(connection, entry.key, entry.value)
            counted.imported += 1


def _tasks(connection: Connection, entries: Iterable[Entry], report: ImportReport) -> None:
    for entry in entries:
        counted = report.of(entry.file)
        if has_task(connection, entry.key):
            counted.present += 1
        else:
            store_task(connection, entry.value)
            counted.imported += 1


def _states(connection: Connection, entries: Iterable[Entry], report: ImportReport) -> None:
    for entry in entries:
        counted = report.of(entry.file)
        if get_meta(connection, IN_CLAUDE + entry.key) is not None:
            counted.present += 1
        else:
            begun = {"is_begun": entry.value.get("active_session_id") is not None}
            set_meta(connection, IN_CLAUDE + entry.key, json_text({**begun, **entry.value}))
            counted.imported += 1


def _aside(connection: Connection, bad: Iterable[Bad], report: ImportReport) -> None:
    for thing in bad:
        counted = report.of(thing.file)
        counted.set_aside += 1
        counted.reasons.append(f"{thing.key}: {thing.reason}")
        source = f"import:{thing.file}"
        known = select(quarantine.c.id).where(
            quarantine.c.source == source, quarantine.c.key == thing.key, quarantine.c.reason == thing.reason
        )
        if connection.execute(known).first() is None:
            put_aside(
                connection, source=source, key=thing.key, reason=thing.reason, raw=thing.raw, at=now_iso()
            )


def _keep_blobs(blobs: Blobs, directory: Path) -> None:
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            if path.is_file() and not path.is_symlink():
                blobs.put(path.read_bytes())  # named anew by what is in it
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def _copy_logs(source: Path, target: Path) -> None:
    """Audit logs that are not there yet go on where they ended."""
    logs = sorted(source.glob("*.jsonl")) if source.is_dir() else []
    for log in logs:
        place = target / log.name
        if not place.exists() and log.is_file() and not log.is_symlink():
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(log, place)
            place.chmod(0o600)


def describe(report: ImportReport) -> list[dict[str, Any]]:
    """Return the report as plain data."""
    return [msgspec.structs.asdict(file) for file in report.files]
