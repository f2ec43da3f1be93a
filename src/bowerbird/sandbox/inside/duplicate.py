"""The same tree once more, beside the old one on the same mount, and the removal of a tree.

Small files are copied, large ones linked. To link one of a lower layer the kernel copies it up first and
waits until the copy is on the disk: milliseconds a file, minutes for a directory of many. The bytes of a
large file cost more than that, and one that the branch made itself needs no copy.

Here: linking and copying entries with all that they are. Not here: when (`renames`).
"""

import contextlib
import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 250
_LOOK_EVERY = 256
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 17
_LARGE = 1 << 20
_SET_IDS = stat.S_ISUID | stat.S_ISGID
_CANNOT_LINK = (errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.EOVERFLOW, errno.EOPNOTSUPP)


class CannotCopy(Exception):
    """This tree is not copied; says why, in words that follow its name."""


class Copying:
    """One copy.

    Args:
        most_entries, most_bytes: of the tree; more is `CannotCopy`.
        check: raises OSError when nobody waits for the copy any more; asked now and then.
    """

    def __init__(self, most_entries: int, most_bytes: int, check: "Callable[[], None]") -> None:
        self._most = (most_entries, most_bytes)
        self._entries = self._bytes = 0
        self._check = check
        self._linked: dict[tuple[int, int], str] = {}  # files of several names: the first of them
        self._top = -1
        self._user = os.geteuid()

    def copy(self, source: int, target: int, name: str) -> None:
        """Make the tree of the directory `source` as `name` in the directory `target`."""
        self._measure(source, 0)
        self._top = target
        self._directory(source, target, name, name)

    def _measure(self, source: int, depth: int) -> None:
        """Refuse before anything is made; a directory that cannot be emptied later is refused, too."""
        if depth > _DEEPEST:
            raise CannotCopy(f"is more than {_DEEPEST} directories deep")
        if os.fstat(source).st_uid != self._user and not os.access(source, os.W_OK | os.X_OK):
            raise CannotCopy("holds a directory of another user")
        inner: list[str] = []
        with os.scandir(source) as items:
            for item in items:
                self._entries += 1
                if item.is_dir(follow_symlinks=False):
                    inner.append(item.name)
                else:
                    self._bytes += item.stat(follow_symlinks=False).st_size
        if self._entries > self._most[0] or self._bytes > self._most[1]:
            most = f"{self._most[0]:,} entries or {self._most[1] >> 30} GiB"
            raise CannotCopy(f"has more than {most}")
        for name in inner:
            with _opened(source, name) as below:
                self._measure(below, depth + 1)

    def _directory(self, source: int, above: int, name: str, path: str) -> None:
        os.mkdir(name, 0o700, dir_fd=above)
        with _opened(above, name) as made:
            inner: list[str] = []
            with os.scandir(source) as items:
                for item in items:
                    self._entries -= 1
                    if not self._entries % _LOOK_EVERY:
                        self._check()
                    if item.is_dir(follow_symlinks=False):
                        inner.append(item.name)
                    else:
                        self._entry(source, made, item, path)
            for each in inner:
                with _opened(source, each) as below:
                    self._directory(below, made, each, f"{path}/{each}")
            _take_after(source, made)

    def _entry(self, source: int, target: int, item: "os.DirEntry[str]", above: str) -> None:
        status = item.stat(follow_symlinks=False)
        if status.st_nlink > 1:
            number = (status.st_dev, status.st_ino)
            first = self._linked.setdefault(number, f"{above}/{item.name}")
            if first != f"{above}/{item.name}":
                os.link(first, item.name, src_dir_fd=self._top, dst_dir_fd=target, follow_symlinks=False)
                return
        if _is_small(status):
            try:
                _copy(source, target, item.name)
            except PermissionError:
                pass  # nobody may read it; the kernel may
            else:
                return
        try:
            os.link(item.name, item.name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            _remake(source, target, item.name, status)


def _is_small(status: os.stat_result) -> bool:
    """Whether copying is as good as linking; who sets a user's id for others is left to the kernel."""
    return stat.S_ISREG(status.st_mode) and status.st_size < _LARGE and not status.st_mode & _SET_IDS


@contextlib.contextmanager
def _opened(above: int, name: str) -> "Generator[int]":
    handle = os.open(name, DIRECTORY, dir_fd=above)
    try:
        yield handle
    finally:
        os.close(handle)


def _remake(source: int, target: int, name: str, status: os.stat_result) -> None:
    """Make an entry that cannot be linked once more."""
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        times = (status.st_atime_ns, status.st_mtime_ns)
        os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
    elif stat.S_ISREG(status.st_mode):
        _copy(source, target, name)
    else:
        raise CannotCopy(f"holds {name}, which is neither a file, a directory nor a link")


def _copy(source: int, target: int, name: str) -> None:
    """Copy a file with all that it is; nothing is made of one that cannot be read."""
    old = os.open(name, _READ, dir_fd=source)
    try:
        new = os.open(name, _WRITE, 0o600, dir_fd=target)
        try:
            while data := os.read(old, _CHUNK):
                _write(new, data)
            _take_after(old, new)
        finally:
            os.close(new)
    finally:
        os.close(old)


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _take_after(old: int, new: int) -> None:
    """Give a copy the attributes, group, mode and times of its original."""
    status, made = os.fstat(old), os.fstat(new)
    with contextlib.suppress(OSError):  # a file system without attributes
        for name in os.listxattr(old):
            with contextlib.suppress(OSError):  # one that is not ours to give
                os.setxattr(new, name, os.getxattr(old, name))
    if made.st_gid != status.st_gid:
        with contextlib.suppress(OSError):  # a group that this user is not in; `mv` leaves it, too
            os.fchown(new, -1, status.st_gid)
    os.fchmod(new, stat.S_IMODE(status.st_mode))
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))


def remove(above: int, name: str) -> None:
    """Remove the tree `name` of the directory `above`; nothing, where there is none."""
    try:
        with _opened(above, name) as handle:
            if os.fstat(handle).st_mode & 0o700 != 0o700:
                os.fchmod(
                    handle, 0o700
                )  # what it held is elsewhere now, and a rename asks for no rights in it
            with os.scandir(handle) as items:
                entries = list(items)
            for item in entries:
                if item.is_dir(follow_symlinks=False):
                    remove(handle, item.name)
                else:
                    os.unlink(item.name, dir_fd=handle)
    except FileNotFoundError:
        return
    os.rmdir(name, dir_fd=above)
