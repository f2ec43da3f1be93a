"""What was done on a branch, in order (WS-37).

Here: the bounded durable list of records. Not here: net changes (`tree/changes.py`), undoing.
"""

import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.tree.handles import Handle
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import add_path

KEPT = 100_000
"""The newest records that are kept; older ones are only counted."""

Via = Literal["tool", "process", "merge", "restore"]
Action = Literal["write", "delete", "mkdir", "rmdir", "rename", "chmod"]


class Step(msgspec.Struct, frozen=True, gc=False):
    """One thing done to one path.

    Left out of garbage collection (it holds text and numbers only): a command may make a hundred thousand,
    and looking through them would stop all else.

    Attributes:
        kind: of a write: `create` or `modify`.
        size: bytes after a write or rename.
        src: where a rename came from.
    """

    action: Action
    path: str
    kind: Literal["create", "modify"] | None = None
    size: int | None = None
    src: str | None = None


def step_to(path: str, entry: Entry | None) -> Step:
    """Return the step that put what stands at a path now there, None = nothing."""
    if entry is None:
        return Step("delete", path)
    return Step("mkdir", path) if entry.kind == "dir" else Step("write", path, "modify", entry.size)


class JournalRecords(list[dict[str, Any]]):
    """Copies of the records, oldest first; `dropped` counts the older ones no longer kept."""

    def __init__(self, rows: Collection[dict[str, Any]], dropped: int) -> None:
        super().__init__(rows)
        self.dropped = dropped


class Journal:
    """The journal of one branch; appending needs its writer lock.

    Args:
        path: the file, one JSON object per line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: Handle | None = None
        self._size = -1
        self._first = 1
        self._next = 1

    def append(
        self, steps: Collection[Step], *, turn: str | None, call: str | None, via: Via = "tool"
    ) -> None:
        """Add records in one write and wait until they are on disk; all of them or none."""
        if not steps:
            return
        handle = self._open()
        if self._next - self._first > KEPT + KEPT // 2:
            self._shorten()
            handle = self._open()
        before = self._size
        at = now_iso()
        lines: list[bytes] = []
        for step in steps:
            row: dict[str, Any] = {"seq": self._next, "at": at, "turn": turn, "call": call, "via": via}
            row |= {"action": step.action, "path": step.path}
            row |= {
                key: value
                for key, value in (("kind", step.kind), ("size", step.size), ("src", step.src))
                if value is not None
            }
            lines.append(_line(row))
            self._next += 1
        data = b"".join(lines)
        try:
            while data:
                data = data[os.write(handle.number, data) :]
            os.fsync(handle.number)
        except BaseException:
            self.take_back(before)
            raise
        self._size = os.fstat(handle.number).st_size

    def take_back(self, size: int) -> None:
        """Forget what was added since the file had `size` bytes; that needs no room."""
        with suppress(OSError):  # the disk is broken: then it says more than was done, which harms nobody
            os.ftruncate(self._open().number, size)
        self._size = -1  # numbers are read anew

    def records(self) -> JournalRecords:
        """Return the newest records (at most 100,000), oldest first."""
        rows = _read(self._path)
        dropped = rows[0]["seq"] - 1 if rows else 0
        if len(rows) > KEPT:
            dropped += len(rows) - KEPT
            rows = rows[-KEPT:]
        for row in rows:
            add_path(row, "path", row["path"])
            if "src" in row:
                add_path(row, "src", row["src"])
        return JournalRecords(rows, dropped)

    def size(self) -> int:
        """Return the file's bytes: another number than before means that something was recorded."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Give the file up; who is writing just now keeps it until it is done."""
        self._handle = None

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            handle = Handle(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
            self._handle = handle
        seen = os.fstat(handle.number)
        if seen.st_size != self._size:  # first use, or another process wrote
            self._size = seen.st_size
            if seen.st_size and os.pread(handle.number, 1, seen.st_size - 1) != b"\n":
                os.write(handle.number, b"\n")  # closes a line that a kill cut
            rows = _read(self._path)
            self._first = rows[0]["seq"] if rows else 1
            self._next = rows[-1]["seq"] + 1 if rows else 1
        return handle

    def _shorten(self) -> None:
        rows = _read(self._path)[-KEPT:]
        temporary = self._path.with_name(self._path.name + ".tmp")
        with temporary.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._path)
        self.close()
        self._size = -1


def _line(row: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except UnicodeEncodeError:  # a name that is no UTF-8
        return json.dumps(row).encode() + b"\n"


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    rows: list[dict[str, Any]] = []
    for line in data.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # a line cut by a kill is no record
    return rows
