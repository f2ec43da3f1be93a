"""What stood at each changed path before the branch first changed it (`orig/`).

Here: the store of bases, append-only index plus one file per saved content.
Not here: when a base is taken or replaced (`stack.py`), what is done with it (merge).

`index.jsonl` has one line per saved path, the last line of a path counts. Bytes are in files
named by a number. A line is written after its bytes, so a kill leaves a base whole or absent.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import convert
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.handles import Handle
from bowerbird.workspace.tree.nodes import Entry, EntryKind

_MOST_IDLE_LINES = 1000  # of the index, before it is written anew


class _Row(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A line of the index; `kind` is also `forgotten`, and None of what did not exist."""

    path: str
    kind: str | None
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    target: str | None
    blob: int | None
    uncertain: bool


_DECODER = msgspec.json.Decoder(_Row)  # noqa: TID251 - nothing to prepare


class Base(msgspec.Struct, frozen=True, gc=False):
    """The fork-point state of a path; left out of garbage collection like its `Entry`.

    Attributes:
        entry: None = it did not exist; `entry.source` holds the bytes of a file.
        uncertain: the workspace changed while the base was taken.
    """

    entry: Entry | None
    uncertain: bool = False


NOTHING = Base(None)
"""Of a path where nothing stood; one for all of them."""


class OrigStore:
    """Bases of one branch; the writer's lock is held for every change.

    Args:
        directory: `…/branches/<id>/orig`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._place = f"{directory}/"
        self._index = directory / "index.jsonl"
        self._bases: dict[str, Base] = {}
        self._read = 0
        self._inode = 0
        self._next = 1
        self._handle: Handle | None = None
        self._lines = 0
        self.refresh()

    def close(self) -> None:
        """Give the index up; who is writing just now keeps it until it is done."""
        self._handle = None

    def refresh(self) -> None:
        """Read what another process (or handle) added to the index since the last look."""
        try:
            seen = self._index.stat()
        except FileNotFoundError:
            return
        if seen.st_ino != self._inode:
            self._bases, self._read, self._lines, self._inode = {}, 0, 0, seen.st_ino
        if seen.st_size == self._read:
            return
        with self._index.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # a torn last line was never part of the record
        rows = _rows_of(whole)
        self._lines += len(rows)
        bases, take = self._bases, self._take
        for row in rows:
            if row is None:
                continue
            if row.kind is None and not row.uncertain:
                bases[row.path] = NOTHING
            else:
                take(row)
        self._read += len(whole)

    def _take(self, row: _Row) -> None:
        kind, blob = row.kind, row.blob
        if kind is None:
            self._bases[row.path] = Base(None, row.uncertain)
        elif kind == "forgotten":
            self._bases.pop(row.path, None)
        else:
            source = f"{self._place}{blob}" if blob is not None else None
            shape = (row.mode, row.size, row.mtime_ns, row.ctime_ns, row.target)
            self._bases[row.path] = Base(Entry(cast("EntryKind", kind), *shape, source), row.uncertain)
        if blob is not None and blob >= self._next:
            self._next = blob + 1

    def holds(self, source: str) -> bool:
        """Tell whether a host file is one of this store's."""
        return source.startswith(self._place)

    def get(self, path: str) -> Base | None:
        """Return the saved base of `path`, None when none was saved."""
        return self._bases.get(path)

    def __contains__(self, path: str) -> bool:
        return path in self._bases

    def __len__(self) -> int:
        return len(self._bases)

    def paths(self) -> Iterator[str]:
        """Iterate over the saved paths as they are now."""
        return iter(list(self._bases))

    def save(
        self, path: str, entry: Entry | None, source: int | str | None, *, uncertain: bool = False
    ) -> None:
        """Save what stood at `path`.

        Args:
            entry: None = nothing.
            source: of a file: a handle to copy from, or a file that never changes (a frozen
                layer's), which is linked.
        """
        blob: int | None = None
        if entry is not None and entry.kind == "file" and source is not None:
            blob = self.store(source)
        if entry is not None:
            kept = f"{self._place}{blob}" if blob is not None else None
            size = (
                os.lstat(kept).st_size if kept is not None else entry.size
            )  # a user may have saved meanwhile
            entry = msgspec.structs.replace(entry, source=kept, layer=None, size=size)
        base = Base(entry, uncertain)
        old = self._bases.get(path)
        self._append([_row(path, base)])
        self._bases[path] = base
        if old is not None:
            _drop_blob(old)

    def amend(self, path: str, base: Base) -> None:
        """Say something else of a saved base; its bytes stay where they are."""
        self._append([_row(path, base)])
        self._bases[path] = base

    def save_many(self, bases: Mapping[str, Base]) -> None:
        """Save bases of paths that have none; the bytes of files are where `store` put them."""
        self._write([_line(_row(path, base)) for path, base in bases.items()])
        self._bases.update(bases)

    def link_many(self, rows: Collection[tuple[str, Entry, str]]) -> None:
        """Save bases of paths without one, whose bytes are in files that never change.

        Args:
            rows: path, entry, and the host file that is linked.
        """
        lines: list[list[Any]] = []
        for path, entry, source in rows:
            blob, self._next = self._next, self._next + 1
            kept = f"{self._place}{blob}"
            try:
                os.link(source, kept)
            except OSError:  # bytes without a line, too many links, another filesystem
                self._next -= 1
                blob = self.store(source)
                kept = f"{self._place}{blob}"
            shape = [entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, entry.target]
            lines.append([path, *shape, blob, False])
            self._bases[path] = Base(
                Entry(entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, source=kept)
            )
        self._append(lines)

    def store(self, source: int | str) -> int:
        """Keep the bytes of an open file, or of one that never changes; return their number."""
        blob, self._next = self._next, self._next + 1
        kept = f"{self._place}{blob}"
        try:
            _keep(source, kept)
        except FileExistsError:  # bytes without a line: the writer was killed between the two
            Path(kept).unlink()
            _keep(source, kept)
        return blob

    def forget(self, paths: Collection[str]) -> None:
        """Drop the bases of paths that the branch no longer changes."""
        gone = [(path, self._bases.get(path)) for path in paths]
        self._append([[path, "forgotten", 0, 0, 0, 0, None, None, False] for path, base in gone if base])
        for path, base in gone:
            if base is not None:
                self._bases.pop(path, None)
                _drop_blob(base)
        if self._lines > _MOST_IDLE_LINES + 4 * len(self._bases):
            self._shorten()

    def _shorten(self) -> None:
        """Write the index anew without lines that no longer count."""
        rows = [_row(path, base) for path, base in self._bases.items()]
        replace_file(self._index, "".join(json.dumps(row) + "\n" for row in rows).encode())
        self.close()
        seen = self._index.stat()
        self._read, self._lines, self._inode = seen.st_size, len(rows), seen.st_ino

    def _append(self, rows: Collection[list[Any]]) -> None:
        self._write([_line(row) for row in rows])

    def _write(self, lines: Collection[bytes]) -> None:
        if not lines:
            return
        handle = self._handle
        if handle is None:
            handle = Handle(os.open(self._index, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
            self._handle = handle
            seen = os.fstat(handle.number)
            self._inode = seen.st_ino
            if seen.st_size and os.pread(handle.number, 1, seen.st_size - 1) != b"\n":
                os.write(handle.number, b"\n")
                self._read = seen.st_size + 1
        self._lines += len(lines)
        text = b"".join(lines)
        while text:
            written = os.write(handle.number, text)
            self._read += written
            text = text[written:]


def _row(path: str, base: Base) -> list[Any]:
    """Return the line of a base: path, kind, mode, size, times, link target, blob, uncertain."""
    entry = base.entry
    if entry is None:
        return [path, None, 0, 0, 0, 0, None, None, base.uncertain]
    blob = int(entry.source.rpartition("/")[2]) if entry.source is not None else None
    return [
        path, entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, entry.target, blob,
        base.uncertain,
    ]  # fmt: skip


def _line(row: list[Any]) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except UnicodeEncodeError:  # a name that is no UTF-8
        return json.dumps(row).encode() + b"\n"


def _rows_of(lines: bytes) -> Sequence[_Row | None]:
    """Return the rows of whole lines; None = a line cut by a kill, closed by the next writer."""
    try:
        return _DECODER.decode_lines(lines)
    except msgspec.DecodeError:
        return [_row_of(line) for line in lines.splitlines()]


def _row_of(line: bytes) -> _Row | None:
    try:
        return convert(json.loads(line), _Row)  # json takes names that are no UTF-8
    except (ValueError, msgspec.ValidationError):
        return None


def _keep(source: int | str, kept: str) -> None:
    """Link a file that never changes, or copy an open one; raises FileExistsError."""
    if isinstance(source, str):
        try:
            os.link(source, kept)
            return
        except FileExistsError:
            raise
        except OSError:  # too many links, or another filesystem
            fd = handles.open_host(source, handles.FILE)
            try:
                _copy_to(fd, kept)
            finally:
                os.close(fd)
    else:
        _copy_to(source, kept)


def _copy_to(source: int, kept: str) -> None:
    fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        handles.copy_bytes(source, fd)
    finally:
        os.close(fd)


def _drop_blob(base: Base) -> None:
    if base.entry is not None and base.entry.source is not None:
        Path(base.entry.source).unlink(missing_ok=True)
