"""Trees that are ours and that processes write: opened, read and deleted without trusting what is in them.

A command may close directories to everyone, nest them thousands deep, or swap links in while we look. Here:
going through such trees by handles, through no link, at any depth. Not here: what they mean.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bowerbird.workspace import handles


def make_accessible(parent: int, name: bytes | str, bits: int) -> bool:
    """Add permission `bits` for the owner to what stands at `name`; no link is followed.

    Returns:
        Whether anything changed: if not, it is no use to try again.
    """
    try:
        fd = os.open(name, handles.LOOK, dir_fd=parent)
    except OSError:
        return False
    try:
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        if mode & bits == bits or stat.S_ISLNK(os.fstat(fd).st_mode):
            return False
        Path(f"/proc/self/fd/{fd}").chmod(mode | bits)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def open_directory(parent: int, name: bytes | str) -> int:
    """Open a directory that is ours for reading, even when its owner closed it to everyone."""
    try:
        return os.open(name, handles.DIRECTORY, dir_fd=parent)
    except PermissionError:
        if not make_accessible(parent, name, 0o700):
            raise
        return os.open(name, handles.DIRECTORY, dir_fd=parent)


def remove_tree(parent: int, name: bytes | str) -> None:
    """Delete what stands at `name`, a directory with everything below; links are not followed.

    Works at any depth with two handles, whatever the permissions, and beside a process that swaps
    directories: it never leaves the tree. Nothing standing there is no error.
    """
    if _unlinked(parent, name):
        return
    above: list[tuple[tuple[int, int], bytes | str, list[str]]] = []
    fd = _open_to_empty(parent, name)
    left = _unlink_files(fd)
    while True:
        if left:
            inner = left.pop()
            here = os.fstat(fd)
            try:
                deeper = _open_to_empty(fd, inner)
            except FileNotFoundError:
                continue
            os.close(fd)
            above.append(((here.st_dev, here.st_ino), inner, left))
            fd, left = deeper, _unlink_files(deeper)
            continue
        if not above:
            os.close(fd)
            os.rmdir(name, dir_fd=parent)
            return
        ident, inner, left = above.pop()
        up = os.open("..", handles.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, found = up, os.fstat(up)
        if (found.st_dev, found.st_ino) != ident:
            os.close(fd)
            raise OSError(errno.ESTALE, "a directory was moved while it was deleted", os.fsdecode(inner))
        os.rmdir(inner, dir_fd=fd)


def _open_to_empty(parent: int, name: bytes | str) -> int:
    fd = open_directory(parent, name)
    if os.fstat(fd).st_mode & 0o300 != 0o300:
        os.fchmod(fd, 0o700)
    return fd


def _unlinked(parent: int, name: bytes | str) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError) as error:
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return False
        except FileNotFoundError:
            return True
        raise error
    return True


def _unlink_files(fd: int) -> list[str]:
    """Unlink all of a directory but its directories, which are returned."""
    with os.scandir(fd) as items:
        names = [(item.name, item.is_dir(follow_symlinks=False)) for item in items]
    return [name for name, is_dir in names if is_dir or not _unlinked(fd, name)]


def open_beneath(root: int, path: str) -> int:
    """Open the directory at the virtual `path` of a tree, even one that a process closed to everyone."""
    try:
        return handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)
    except PermissionError:
        if not path:
            raise
        above, _, name = path.rpartition("/")
        parent = open_beneath(root, above)
        try:
            return open_directory(parent, name)
        finally:
            os.close(parent)


def open_file(parent: int, name: str) -> int:
    """Open a file for reading, even one that a process closed to everyone."""
    try:
        return os.open(name, handles.FILE, dir_fd=parent)
    except PermissionError:
        if not make_accessible(parent, name, 0o400):
            raise
        return os.open(name, handles.FILE, dir_fd=parent)


def every(root: int) -> Iterator[tuple[str, int, str, os.stat_result]]:
    """Yield virtual path, handle of its directory, name and stat of all in a tree, parents first.

    One directory is open at a time; what disappears between two looks is left out.
    """
    todo = [""]
    while todo:
        above = todo.pop()
        try:
            fd = open_beneath(root, above)
        except OSError as error:
            if error.errno in handles.ABSENT:
                continue
            raise
        try:
            with os.scandir(fd) as items:
                for item in items:
                    try:
                        status = item.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    path = f"{above}/{item.name}"
                    yield path, fd, item.name, status
                    if stat.S_ISDIR(status.st_mode):
                        todo.append(path)
        finally:
            os.close(fd)


def disk_bytes(directory: Path) -> int:
    """Return what a tree takes on disk; 0 when it does not exist."""
    try:
        root = os.open(directory, handles.DIRECTORY)
    except FileNotFoundError:
        return 0
    try:
        return sum(status.st_blocks * 512 for _, _, _, status in every(root))
    finally:
        os.close(root)
