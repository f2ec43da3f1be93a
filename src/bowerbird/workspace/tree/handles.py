"""Opening what stands below a directory handle, through no symbolic link.

Here: `openat2` with a stepwise fallback, swapping two names atomically, cloning and
sparse copying of file bytes. Not here: virtual paths, layers, what a result means.

Every function takes paths as bytes relative to a handle, without `..` or leading slash.
A link anywhere on the way is an error (ELOOP or ENOTDIR) and is never followed, so that a
link swapped in during a call cannot redirect it (WS-12).
"""

import ctypes
import errno
import os
import platform
import stat
from collections.abc import Callable
from functools import cache

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO})
"""Error numbers that mean: no entry is reachable at this path without a link."""
SWAPPED = ABSENT | {errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE}
"""Error numbers that mean, in a tree that processes write: another thing stands there than a moment ago."""

_O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LOOK = _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
ROOT = _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

_OPENAT2 = 437  # the same number on every Linux architecture
_BENEATH_NO_LINKS = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""Error numbers that mean: this system or filesystem cannot do that at all."""
_LONGEST_PATH = 4096  # of one call of the kernel; processes make deeper trees step by step
_FICLONE = 0x40049409
_PIECE = 1024 * 1024


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Handle:
    """A descriptor that is closed when nobody holds this object any more.

    Closed by hand, its number would be the next file's while another thread still reads or writes through it.

    Args:
        number: the open descriptor, owned from now on.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


def open_beneath(handle: int, path: bytes, flags: int) -> int:
    """Open `path` below `handle`; the result is close-on-exec.

    Args:
        handle: an open directory (an O_PATH handle will do).
        path: relative, empty for the directory itself.
        flags: of `os.open`; O_CREAT is not supported.

    Raises:
        OSError: as `os.open`; ELOOP or ENOTDIR when a link is on the way.
    """
    call = _openat2()
    if call is None:
        return _open_stepwise(handle, path, flags)
    if len(path) < _LONGEST_PATH:
        return call(handle, path or b".", flags)
    return _open_in_pieces(handle, path, flags, call)


def open_host(path: str, flags: int) -> int:
    """Open a host file by its absolute path as `os.open` does, also one longer than the system takes."""
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    return _open_in_pieces(
        -1, os.fsencode(path), flags, lambda above, piece, how: os.open(piece, how, dir_fd=above)
    )


def look(handle: int, path: bytes) -> tuple[os.stat_result, str | None] | None:
    """Return stat and link target of what stands at `path`, None when nothing does."""
    try:
        fd = open_beneath(handle, path, LOOK)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise
    try:
        seen = os.fstat(fd)
        if not stat.S_ISLNK(seen.st_mode):
            return seen, None
        return seen, os.fsdecode(os.readlink(b"", dir_fd=fd))
    finally:
        os.close(fd)


def swapped(name: bytes | str) -> FileNotFoundError:
    """Return the error of an entry that became another thing between a look at it and its use."""
    return FileNotFoundError(errno.ENOENT, "it became another thing just now", os.fsdecode(name))


def read_link(handle: int, name: bytes | str) -> str:
    """Return the target of what was a link when it was last looked at.

    Raises:
        FileNotFoundError: it is gone, or no link any more.
    """
    try:
        return os.fsdecode(os.readlink(os.fsencode(name), dir_fd=handle))
    except OSError as error:
        if error.errno == errno.EINVAL:  # the kernel's word for "no link"
            raise swapped(name) from error
        raise


def with_target(handle: int, name: bytes | str, seen: os.stat_result) -> tuple[os.stat_result, str | None]:
    """Return `seen` with the target where it is a link's, both anew when something else stands there by now.

    Raises:
        FileNotFoundError: it is gone.
    """
    if not stat.S_ISLNK(seen.st_mode):
        return seen, None
    try:
        return seen, os.fsdecode(os.readlink(os.fsencode(name), dir_fd=handle))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    fd = os.open(name, LOOK, dir_fd=handle)  # holds one thing, so that both are told of the same
    try:
        seen = os.fstat(fd)
        return seen, os.fsdecode(os.readlink(b"", dir_fd=fd)) if stat.S_ISLNK(seen.st_mode) else None
    finally:
        os.close(fd)


@cache
def _openat2() -> Callable[[int, bytes, int], int] | None:
    """Return a caller of openat2, or None where the kernel or a filter refuses it."""
    if platform.system() != "Linux":
        return None
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    size = ctypes.c_size_t(ctypes.sizeof(_OpenHow))

    def call(handle: int, path: bytes, flags: int) -> int:
        how = _OpenHow(flags | os.O_CLOEXEC, 0, _BENEATH_NO_LINKS)
        while True:
            fd = int(syscall(_OPENAT2, handle, path, ctypes.byref(how), size))
            if fd >= 0:
                return fd
            number = ctypes.get_errno()
            if number == errno.EXDEV:
                number = errno.ELOOP  # a directory on the way was moved out while it was walked
            if number not in (errno.EINTR, errno.EAGAIN):
                raise OSError(number, os.strerror(number), os.fsdecode(path))

    try:
        root = os.open("/", ROOT)
        try:
            os.close(call(root, b".", ROOT))
        finally:
            os.close(root)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise  # says nothing about the kernel, and the answer is kept
        return None
    return call


def _open_in_pieces(handle: int, path: bytes, flags: int, call: Callable[[int, bytes, int], int]) -> int:
    """Open a path that is too long for one call, by as few calls as it takes."""
    above = handle
    try:
        while len(path) >= _LONGEST_PATH:
            cut = path.rfind(b"/", 1, _LONGEST_PATH - 1)
            if cut < 0:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), os.fsdecode(path))
            inner = call(above, path[:cut], ROOT)
            if above != handle:
                os.close(above)
            above, path = inner, path[cut + 1 :]
        return call(above, path, flags)
    finally:
        if above != handle:
            os.close(above)


def _open_stepwise(handle: int, path: bytes, flags: int) -> int:
    """One `openat` with O_NOFOLLOW per component: slower, equally safe."""
    *above, name = path.split(b"/") if path else [b"."]
    fd = os.dup(handle)
    try:
        for part in above:
            inner = os.open(part, DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
    finally:
        os.close(fd)


def exchange(from_handle: int, from_name: bytes, to_handle: int, to_name: bytes) -> None:
    """Swap two existing entries in one step of the kernel.

    Raises:
        OSError: ENOSYS or EINVAL where the system or filesystem cannot; else as `os.rename`.
    """
    renameat2 = _renameat2()
    if renameat2 is None:
        raise OSError(errno.ENOSYS, "renameat2 is not available")
    if renameat2(from_handle, from_name, to_handle, to_name, _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(to_name))


def rename_new(from_handle: int, from_name: bytes, to_handle: int, to_name: bytes) -> None:
    """Rename to a name that must be free.

    Raises:
        FileExistsError: something stands there. OSError: as `os.rename`.
    """
    renameat2 = _renameat2()
    number = errno.ENOSYS
    if renameat2 is not None:
        if renameat2(from_handle, from_name, to_handle, to_name, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
    if number not in UNSUPPORTED:
        raise OSError(number, os.strerror(number), os.fsdecode(to_name))
    try:  # the next best: a moment lies between looking and renaming
        os.stat(to_name, dir_fd=to_handle, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(from_name, to_name, src_dir_fd=from_handle, dst_dir_fd=to_handle)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(to_name))


@cache
def _renameat2() -> Callable[..., int] | None:
    if platform.system() != "Linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function


def copy_bytes(source: int, target: int) -> None:
    """Copy a whole file between handles: as a clone if the filesystem can, else data only.

    Holes stay holes, so a 1 TB sparse file costs neither memory nor disk.
    """
    if _clone(source, target):
        return
    size = os.fstat(source).st_size
    if size <= _PIECE:
        _copy_range(source, target, 0, size)
        return
    os.ftruncate(target, size)
    at = 0
    while at < size:
        start, end = _next_data(source, at, size)
        if start >= size:
            return
        _copy_range(source, target, start, end)
        at = end


def next_data(handle: int, at: int, size: int) -> int:
    """Return where data starts at or after `at`; `size` when only a hole follows."""
    return _next_data(handle, at, size)[0]


def _next_data(handle: int, at: int, size: int) -> tuple[int, int]:
    try:
        start = os.lseek(handle, at, os.SEEK_DATA)
        return start, min(os.lseek(handle, start, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        return at, size  # the filesystem knows no holes


def _copy_range(source: int, target: int, at: int, end: int) -> None:
    while at < end:
        piece = os.pread(source, min(_PIECE, end - at), at)
        if not piece:
            return  # the file shrank meanwhile
        view = memoryview(piece)
        while view:
            written = os.pwrite(target, view, at)
            view = view[written:]
            at += written


def _clone(source: int, target: int) -> bool:
    if platform.system() != "Linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def equal_bytes(one: int, other: int) -> bool:
    """Whether two open files hold the same bytes; read in pieces from their start."""
    at, piece = 0, 1 << 18
    while True:
        left = os.pread(one, piece, at)
        if left != os.pread(other, piece, at):
            return False
        if not left:
            return True
        at += len(left)
