"""Trees that are ours and that processes write: opened, read and deleted without trusting what is in them.

A command may close directories to everyone, nest them thousands deep, or swap links in while we look. Here:
going through such trees by handles, through no link, at any depth. Not here: what they mean.
"""

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.descent import Descent

_SAME_TICK_NS = 20_000_000


def make_accessible(parent: int, name: bytes | str, bits: int) -> bool:
    """Add permission `bits` for the owner to what stands at `name`; no link is followed.

    Returns:
        Whether anything changed: if not, it is no use to try again.
    """
    try:
        fd = os.open(name, handles.LOOK, dir_fd=parent)
    except OSError:
        return False  # the caller raises what it met itself
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


def carry(
    name: bytes | str | Path, to: bytes | str | Path, *, source: int | None = None, target: int | None = None
) -> None:
    """Rename what is ours, whatever its permissions and those of its directories; all keep their modes.

    Only who may write a directory can move it to another one, or anything into it.

    Args:
        source, target: handles of the directories that `name` and `to` are in, None = they are whole paths.
    """
    with contextlib.suppress(PermissionError):
        os.rename(name, to, src_dir_fd=source, dst_dir_fd=target)
        return
    with contextlib.ExitStack() as opened:
        for directory in (source, target):
            if directory is not None:
                opened.enter_context(_opened_up(directory))
        moved = os.open(name, handles.LOOK, dir_fd=source)
        opened.callback(os.close, moved)
        opened.enter_context(_opened_up(moved))
        os.rename(name, to, src_dir_fd=source, dst_dir_fd=target)


def swap(one: int, name: bytes, other: int, other_name: bytes) -> None:
    """Have two entries that are ours change places; as `carry`."""
    with contextlib.suppress(PermissionError):
        handles.exchange(one, name, other, other_name)
        return
    with contextlib.ExitStack() as opened:
        for directory, inner in ((one, name), (other, other_name)):
            opened.enter_context(_opened_up(directory))
            moved = os.open(inner, handles.LOOK, dir_fd=directory)
            opened.callback(os.close, moved)
            opened.enter_context(_opened_up(moved))
        handles.exchange(one, name, other, other_name)


@contextlib.contextmanager
def _opened_up(fd: int) -> Generator[None]:
    """Let the owner write a directory until left; nothing is done to what is none."""
    mode, place = os.fstat(fd).st_mode, Path(f"/proc/self/fd/{fd}")
    closed = stat.S_ISDIR(mode) and mode & 0o700 != 0o700
    if closed:
        place.chmod(stat.S_IMODE(mode) | 0o700)
    try:
        yield
    finally:
        if closed:
            place.chmod(stat.S_IMODE(mode))


def open_directory(parent: int, name: bytes | str) -> int:
    """Open a directory that is ours for reading, even when its owner closed it to everyone."""
    try:
        return os.open(name, handles.DIRECTORY, dir_fd=parent)
    except PermissionError:
        if not make_accessible(parent, name, 0o700):
            raise
        return os.open(name, handles.DIRECTORY, dir_fd=parent)


def replaced_by_directory(parent: int, name: bytes | str) -> int:
    """Put an empty directory in the place of whatever stands at `name`, and return it opened."""
    remove_tree(parent, name)
    os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, handles.DIRECTORY, dir_fd=parent)


def remove_tree(parent: int, name: bytes | str) -> None:
    """Delete what stands at `name`, a directory with everything below; links are not followed.

    Works at any depth with two handles, whatever the permissions, beside a process that swaps directories,
    which never leads it out of the tree, and beside another one that deletes the same. Nothing standing
    there is no error.
    """
    if _unlinked(parent, name):
        return
    above: list[tuple[tuple[int, int], bytes | str, list[str]]] = []
    try:
        fd = _open_to_empty(parent, name)
    except FileNotFoundError:
        return
    left = _unlink_files(fd)
    while True:
        if left:
            inner = left.pop()
            here = os.fstat(fd)
            try:
                deeper = _open_to_empty(fd, inner)
            except OSError as error:
                if error.errno not in handles.ABSENT:
                    raise
                _unlinked(fd, inner)  # a process put something else there, or took it away
                continue
            os.close(fd)
            above.append(((here.st_dev, here.st_ino), inner, left))
            fd, left = deeper, _unlink_files(deeper)
            continue
        if not above:
            os.close(fd)
            _remove_empty(parent, name)
            return
        ident, inner, left = above.pop()
        up = os.open("..", handles.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, found = up, os.fstat(up)
        if (found.st_dev, found.st_ino) != ident:
            os.close(fd)
            raise OSError(errno.ESTALE, "a directory was moved while it was deleted", os.fsdecode(inner))
        _remove_empty(fd, inner)


def _remove_empty(parent: int, name: bytes | str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=parent)


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
    """Unlink all of a directory but its directories, which are returned; one that is gone holds nothing."""
    try:
        with os.scandir(fd) as items:
            names = [(item.name, item.is_dir(follow_symlinks=False)) for item in items]
    except FileNotFoundError:
        return []
    return [name for name, is_dir in names if is_dir or not _unlinked(fd, name)]


def open_beneath(root: int, path: str) -> int:
    """Open the directory at the virtual `path` of a tree, even one that a process closed to everyone."""
    try:
        return handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)
    except PermissionError:
        if not path:
            raise
    fd = os.dup(root)
    try:
        for name in path[1:].split("/"):
            inner = open_directory(fd, name)
            os.close(fd)
            fd = inner
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_file(parent: int, name: bytes | str) -> int:
    """Open a regular file for reading, even one that a process closed to everyone.

    Raises:
        OSError: of `handles.ABSENT` when something else stands there.
    """
    try:
        fd = os.open(name, handles.FILE, dir_fd=parent)
    except PermissionError:
        if not make_accessible(parent, name, 0o400):
            raise
        fd = os.open(name, handles.FILE, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a directory opens for reading, and so does a FIFO
        os.close(fd)
        raise handles.swapped(name)
    return fd


def descent(root: int) -> Descent:
    """Return a way through a tree that opens what processes closed."""
    return Descent(root, open_directory, open_beneath)


def every(root: int) -> Iterator[tuple[str, int, str, os.stat_result]]:
    """Yield virtual path, handle of its directory, name and stat of all in a tree, parents first.

    One directory is open at a time; what disappears between two looks is left out.
    """
    way = descent(root)
    todo = [""]
    try:
        while todo:
            above = todo.pop()
            fd = way.open(above)
            if fd is None:
                continue
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
        way.close()


def disk_use(directory: Path) -> tuple[int, int]:
    """Return the bytes that a tree takes on disk and its entries; zeros when it does not exist."""
    try:
        root = os.open(directory, handles.DIRECTORY)
    except FileNotFoundError:
        return 0, 0
    size = entries = 0
    try:
        for _, _, _, status in every(root):
            size += status.st_blocks * 512
            entries += 1
    finally:
        os.close(root)
    return size, entries


def remove_newer(directory: Path, since_ns: int) -> None:
    """Remove all files of a tree that were made or changed since then; directories stay."""
    try:
        root = os.open(directory, handles.DIRECTORY)
    except FileNotFoundError:
        return
    try:
        for _, above, name, status in every(root):
            if status.st_ctime_ns >= since_ns and not stat.S_ISDIR(status.st_mode):
                with contextlib.suppress(OSError):  # a directory that is closed even to us keeps what it has
                    os.unlink(name, dir_fd=above)
    finally:
        os.close(root)


def copy_entry(source: int, name: bytes, target: int, to: bytes) -> None:
    """Copy a link, file or directory of our own making, by handles; special files are left out.

    Args:
        source, name: where it is; its structure is trusted. target, to: a new name, where processes may be.
    """
    seen = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(seen.st_mode):
        os.symlink(handles.read_link(source, name), to, dir_fd=target)
    elif stat.S_ISDIR(seen.st_mode):
        inner = open_directory(source, name)
        try:
            os.mkdir(to, 0o700, dir_fd=target)
            made = os.open(to, handles.DIRECTORY, dir_fd=target)
            try:
                for below in os.listdir(inner):
                    copy_entry(inner, os.fsencode(below), made, os.fsencode(below))
                os.fchmod(made, stat.S_IMODE(seen.st_mode))
            finally:
                os.close(made)
        finally:
            os.close(inner)
    elif stat.S_ISREG(seen.st_mode):
        copy_file(source, name, target, to)


def copy_file(source: int, name: bytes | str, target: int, to: bytes | str) -> None:
    """Copy a regular file to a new name with mode and time of change, by handles and through no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    old = open_file(source, name)
    try:
        seen = os.fstat(old)
        new = os.open(to, flags, 0o600, dir_fd=target)
        try:
            handles.copy_bytes(old, new)
            os.fchmod(new, stat.S_IMODE(seen.st_mode) & 0o777)
            os.utime(new, ns=(seen.st_mtime_ns, seen.st_mtime_ns))
        finally:
            os.close(new)
    finally:
        os.close(old)


def is_fresh(changed_ns: int) -> bool:
    """Tell whether a file may change again without its times showing it: they go by ticks of the clock."""
    return time.time_ns() - changed_ns < _SAME_TICK_NS


def digest(fd: int) -> bytes:
    """Return a digest of an open file's bytes."""
    found, at = hashlib.blake2b(digest_size=16), 0
    while piece := os.pread(fd, 1 << 20, at):
        found.update(piece)
        at += len(piece)
    return found.digest()
