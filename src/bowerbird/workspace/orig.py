"""What stood at each changed path before the branch first changed it (`orig/`).

Here: the store of bases, append-only index plus one file per saved content.
Not here: when a base is taken or replaced (`stack.py`), what is done with it (merge).

`index.jsonl` has one line per saved path, the last line of a path counts. Bytes are in files
named by a number. A line is written after its bytes, so a kill leaves a base whole or absent.
"""

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bowerbird.workspace import handles
from bowerbird.workspace.nodes import Entry


@dataclass(frozen=True)
class Base:
    """The fork-point state of a path.

    Attributes:
        entry: None = it did not exist; `entry.source` holds the bytes of a file.
        uncertain: the workspace changed while the base was taken (WS-6).
    """

    entry: Entry | None
    uncertain: bool = False


class OrigStore:
    """Bases of one branch; the writer's lock is held for every change.

    Args:
        directory: `…/branches/<id>/orig`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._index = directory / "index.jsonl"
        self._bases: dict[str, Base] = {}
        self._read = 0
        self._inode = 0
        self._next = 1
        self._fd: int | None = None
        self.refresh()

    def close(self) -> None:
        """Close the index."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def refresh(self) -> None:
        """Read what another process (or handle) added to the index since the last look."""
        try:
            seen = self._index.stat()
        except FileNotFoundError:
            return
        if seen.st_ino != self._inode:
            self._bases, self._read, self._inode = {}, 0, seen.st_ino
        if seen.st_size == self._read:
            return
        with self._index.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # a torn last line was never part of the record
        for line in whole.splitlines():
            self._take(line)
        self._read += len(whole)

    def _take(self, line: bytes) -> None:
        try:
            path, kind, mode, size, mtime_ns, ctime_ns, target, blob, uncertain = json.loads(line)
        except ValueError:
            return  # a line cut by a kill, closed by the next writer
        if kind == "forgotten":
            self._bases.pop(path, None)
            return
        entry = None
        if kind is not None:
            source = self.directory / str(blob) if blob is not None else None
            entry = Entry(kind, mode, size, mtime_ns, ctime_ns, target, source)
        self._bases[path] = Base(entry, uncertain)
        if blob is not None:
            self._next = max(self._next, int(blob) + 1)

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
        self, path: str, entry: Entry | None, source: int | Path | None, *, uncertain: bool = False
    ) -> None:
        """Save what stood at `path`.

        Args:
            entry: None = nothing.
            source: of a file: a handle to copy from, or a file that never changes (a frozen
                layer's), which is linked.
        """
        blob: int | None = None
        if entry is not None and entry.kind == "file" and source is not None:
            blob = self._store(source)
        row: list[Any] = [path, None, 0, 0, 0, 0, None, blob, uncertain]
        if entry is not None:
            row[1:7] = [
                entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, entry.target,
            ]  # fmt: skip
            kept = self.directory / str(blob) if blob is not None else None
            entry = replace(entry, source=kept, layer=None)
        old = self._bases.get(path)
        self._append([row])
        self._bases[path] = Base(entry, uncertain)
        if old is not None:
            _drop_blob(old)

    def link_many(self, rows: Collection[tuple[str, Entry, str]]) -> None:
        """Save bases of paths without one, whose bytes are in files that never change.

        Args:
            rows: path, entry, and the host file that is linked.
        """
        lines: list[list[Any]] = []
        for path, entry, source in rows:
            blob, self._next = self._next, self._next + 1
            kept = f"{self.directory}/{blob}"
            try:
                os.link(source, kept)
            except OSError:  # bytes without a line, too many links, another filesystem
                self._next -= 1
                blob = self._store(Path(source))
                kept = f"{self.directory}/{blob}"
            shape = [entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, entry.target]
            lines.append([path, *shape, blob, False])
            self._bases[path] = Base(
                Entry(entry.kind, entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, source=Path(kept))
            )
        self._append(lines)

    def _store(self, source: int | Path) -> int:
        blob, self._next = self._next, self._next + 1
        kept = self.directory / str(blob)
        kept.unlink(missing_ok=True)  # bytes without a line: the writer was killed between the two
        if isinstance(source, Path):
            try:
                kept.hardlink_to(source)
            except OSError:  # too many links, or another filesystem
                fd = os.open(source, handles.FILE)
                try:
                    _copy_to(fd, kept)
                finally:
                    os.close(fd)
        else:
            _copy_to(source, kept)
        return blob

    def forget(self, paths: Collection[str]) -> None:
        """Drop the bases of paths that the branch no longer changes."""
        gone = [(path, self._bases.get(path)) for path in paths]
        self._append([[path, "forgotten", 0, 0, 0, 0, None, None, False] for path, base in gone if base])
        for path, base in gone:
            if base is not None:
                self._bases.pop(path, None)
                _drop_blob(base)

    def _append(self, rows: Collection[list[Any]]) -> None:
        if not rows:
            return
        if self._fd is None:
            self._fd = os.open(self._index, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            seen = os.fstat(self._fd)
            self._inode = seen.st_ino
            if seen.st_size and os.pread(self._fd, 1, seen.st_size - 1) != b"\n":
                os.write(self._fd, b"\n")
                self._read = seen.st_size + 1
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        while text:
            written = os.write(self._fd, text)
            self._read += written
            text = text[written:]


def _copy_to(source: int, kept: Path) -> None:
    fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        handles.copy_bytes(source, fd)
    finally:
        os.close(fd)


def _drop_blob(base: Base) -> None:
    if base.entry is not None and base.entry.source is not None:
        base.entry.source.unlink(missing_ok=True)
