"""What the reading file tools do, synchronously (WS-17, WS-18, WS-27, WS-38).

Here: resolving, opening, reading; errors for what is no regular file.
Not here: threads and call order (`file_branch.py`), listing and searching by glob.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from bowerbird.core.errors import InvalidArgument, IsDirectory, LimitExceeded, NotFound, SpecialFile
from bowerbird.workspace.find.spills import is_spill, open_spill
from bowerbird.workspace.tree.merged_view import MergedView, open_regular
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import PathInput, add_path, missing, resolve, shown_path
from bowerbird.workspace.tree.stack import Stack

_T = TypeVar("_T")
MOST_READ = 64 * 1024 * 1024
"""The most bytes that one call returns whole."""
_PIECE = 1024 * 1024
_TRIES = 5  # a link swapped in between resolving and opening makes one try fail


def list_directory(stack: Stack, path: PathInput, offset: int, limit: int) -> dict[str, Any]:
    """`ls`: see WS-17; a link is listed itself."""
    from bowerbird.workspace.find.listing import ls

    found = resolve(stack.view, path, follow=False)
    is_dir = found.entry is not None and found.entry.kind == "dir"
    own = stack.own_children(found.path if is_dir else found.path.rpartition("/")[0] or "/")
    return ls(stack.view, found.path, own, offset=offset, limit=limit)


def facts(stack: Stack, path: PathInput, follow: bool) -> dict[str, Any] | None:
    """`stat`: what stands at `path`, None when nothing does."""
    found = resolve(stack.view, path, follow=follow)
    entry = found.entry
    if entry is None:
        return None
    row = {"type": entry.kind, "size": entry.size, "mode": entry.mode, "mtime_ns": entry.mtime_ns}
    return add_path({}, "path", found.path) | row


def read_text(stack: Stack, path: PathInput, offset: int, limit: int, encoding: str | None) -> dict[str, Any]:
    """`read_file`: see WS-18 and WS-26 … WS-28."""

    def read(found: str, fd: int) -> dict[str, Any]:
        from bowerbird.workspace.find.text import read_lines

        # A command's output is text whatever bytes are in it; reading it as such shows the rest.
        record = read_lines(fd, offset, limit, encoding, as_text=is_spill(found))
        return add_path({}, "path", found) | record

    return _read(stack, path, read)


def read_bytes(stack: Stack, path: PathInput, offset: int, length: int | None) -> bytes:
    """`read_bytes`: see WS-27."""
    if offset < 0 or (length is not None and length < 0):
        raise InvalidArgument(f"offset {offset} and length {length} must not be negative")

    def read(found: str, fd: int) -> bytes:
        size = max(0, os.fstat(fd).st_size - offset)
        return _pread(fd, found, size if length is None else min(size, length), offset)

    return _read(stack, path, read)


def read_overlay(stack: Stack, path: PathInput) -> bytes | None:
    """`read_overlay`: see WS-38."""
    found = resolve(stack.view, path)
    if found.entry is None or found.entry.kind != "file" or found.entry.layer is None:
        return None
    return read_all(stack, found.path, found.entry)


def read_all(stack: Stack, path: str, entry: Entry) -> bytes:
    """Return the bytes of a regular file of the view; raises LimitExceeded over 64 MiB."""
    fd = stack.open(path, entry)
    try:
        return _pread(fd, path, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)


def _read(stack: Stack, path: PathInput, read: Callable[[str, int], _T]) -> _T:
    """Resolve and open a regular file; `read` takes its virtual path and a handle."""
    spill = open_spill(stack.directory, path)
    if spill is not None:
        try:
            return read(*spill)
        finally:
            os.close(spill[1])
    for tries in range(_TRIES):
        view = stack.view
        found = resolve(view, path)
        try:
            fd = open_regular(view, found.path, _file(view, found.path, found.entry))
        except NotFound:
            if found.entry is None or tries == _TRIES - 1:
                raise
            continue  # replaced between looking and opening
        try:
            return read(found.path, fd)
        finally:
            os.close(fd)
    raise AssertionError("unreachable: the last try returns or raises")


def _file(view: MergedView, path: str, entry: Entry | None) -> Entry:
    """Return the entry of a regular file, or raise what stands there instead."""
    if entry is None:
        raise missing(view, path)
    if entry.kind == "dir":
        raise IsDirectory(f"{shown_path(path)} is a directory; use ls", path)
    if entry.kind == "special":
        raise SpecialFile(f"{shown_path(path)} is a FIFO, socket or device and is not opened", path)
    return entry


def _pread(fd: int, path: str, length: int, offset: int) -> bytes:
    if length > MOST_READ:
        raise LimitExceeded(
            f"{length} bytes of {shown_path(path)} are more than {MOST_READ} in one call; read it in parts",
            path,
        )
    if length <= _PIECE:
        return os.pread(fd, length, offset)
    parts: list[bytes] = []
    while length > 0 and (part := os.pread(fd, min(length, _PIECE), offset)):
        parts.append(part)
        length -= len(part)
        offset += len(part)
    return b"".join(parts)
