"""Taking a whole new directory of a copy into its branch at once (copy tier).

A build or an installed package is thousands of files in a directory that was not there before: it is copied
as a tree and switched in by one rename, instead of file by file. Here: that. Not here: finding it (`mirror`).
"""

import os
import stat
from pathlib import Path

import msgspec

from bowerbird.workspace.tree import handles, owned
from bowerbird.workspace.tree.layers import scan
from bowerbird.workspace.tree.nodes import Entry, walk
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.stack import Stack


class Adopted(msgspec.Struct, frozen=True):
    """What was taken.

    Attributes:
        statuses: of the copy, before it was read. entries: of the branch, after.
        digests: of files that may have changed again without it showing. special: paths that were left.
    """

    statuses: dict[str, os.stat_result] = msgspec.field(default_factory=dict[str, os.stat_result])
    entries: dict[str, Entry] = msgspec.field(default_factory=dict[str, Entry])
    digests: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    special: list[str] = msgspec.field(default_factory=list[str])


def adopt(stack: Stack, path: str, above: int, name: str) -> Adopted:
    """Take the directory `name` of the copy, where the branch has nothing at `path`.

    Args:
        above: handle of the directory of the copy that holds it.

    Raises:
        OSError: it is gone, or something else by now; nothing changed.
    """
    staged = stack.open_layer.stage_name()
    taken = Adopted()
    top = owned.open_directory(above, name)
    try:
        taken.statuses[path] = os.fstat(top)
        _copy(stack, path, top, staged, taken)
    except BaseException:
        discard(staged)
        raise
    finally:
        os.close(top)
    stack.adopt_tree(path, staged, [inner for inner in taken.statuses if inner != path])
    taken.entries.update(_entries(stack, path))
    return taken


def _copy(stack: Stack, path: str, top: int, staged: Path, taken: Adopted) -> None:
    staged.mkdir(mode=0o700)
    root = os.open(staged, handles.DIRECTORY)
    targets = owned.descent(root)
    try:
        at, target = "", targets.open("")
        for inner, fd, name, status in owned.every(top):
            full = f"{path}{inner}"
            if not stack.ground.shows(full):
                continue
            if not _is_kept(status):
                taken.special.append(full)
                continue
            folder = inner[: -len(name) - 1]
            if folder != at:
                at, target = folder, targets.open(folder)
            if target is None:
                continue
            try:
                _copy_one(fd, name, status, target)
            except OSError as error:
                if error.errno not in handles.ABSENT:
                    raise
                continue  # gone, or something else, between two looks: the next comparison tells
            taken.statuses[full] = status
            if stat.S_ISREG(status.st_mode) and owned.is_fresh(status.st_ctime_ns):
                taken.digests[full] = _digest(target, name)
        _close_directories(path, root, taken)
    finally:
        targets.close()
        os.close(root)


def _digest(folder: int, name: str) -> bytes:
    fd = owned.open_file(folder, name)
    try:
        return owned.digest(fd)
    finally:
        os.close(fd)


def _close_directories(path: str, root: int, taken: Adopted) -> None:
    """Give directories that their owner may not use their modes, last and from the inside out."""
    for full, status in reversed(taken.statuses.items()):
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if stat.S_ISDIR(status.st_mode) and (full == path or mode & 0o700 != 0o700):
            fd = owned.open_beneath(root, full[len(path) :])
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)


def _copy_one(fd: int, name: str, status: os.stat_result, target: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(name, 0o700, dir_fd=target)
        os.chmod(name, stat.S_IMODE(status.st_mode) & 0o777 | 0o700, dir_fd=target)  # nobody swaps it here
    elif stat.S_ISLNK(status.st_mode):
        os.symlink(handles.read_link(fd, name), name, dir_fd=target)
    else:
        owned.copy_file(fd, name, target, name)


def _is_kept(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode) or stat.S_ISREG(status.st_mode)


def _entries(stack: Stack, path: str) -> dict[str, Entry]:
    """Return what the open layer holds at and below `path`."""
    layer = stack.open_layer
    found: dict[str, Entry] = {}
    node = layer.find(path)
    if node is None or node.entry is None:
        return found
    found[path] = node.entry
    fd = owned.open_beneath(layer.fd, path)
    try:
        for inner, below in walk(scan(fd, layer.path, layer.number, layer.marks(), at=path)):
            if below.entry is not None:
                found[f"{path}{inner}"] = below.entry
    finally:
        os.close(fd)
    return found
