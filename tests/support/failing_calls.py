"""One seam for system calls that fail: every call of a Python process can be counted, and one made to fail.

Here: `FailingCalls`. It wraps the functions of `os`, `io.open` and `fcntl` that Bowerbird's file work uses,
and the calls that it makes through ctypes (`openat2`, `renameat2`, `statx`).
"""

import ctypes
import errno
import fcntl
import io
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bowerbird.workspace.landing import statx
from bowerbird.workspace.tree import handles

NAMES = (
    "open", "close", "read", "write", "pread", "pwrite", "lseek", "ftruncate", "fsync", "fdatasync",
    "stat", "lstat", "fstat", "fstatvfs", "fpathconf", "listdir", "scandir", "readlink", "mkdir", "rmdir", "unlink",
    "remove", "rename", "replace", "link", "symlink", "chmod", "fchmod", "chown", "fchown", "getxattr", "setxattr",
    "listxattr", "utime", "dup", "access",
)  # fmt: skip
ERRNOS = (
    errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO, errno.EXDEV, errno.ESTALE, errno.EMFILE,
)  # fmt: skip


def _given(call: Any) -> Any:
    return call


class FailingCalls:
    """Counts calls while armed; the `at`-th fails with `number`, or every one that `fits`.

    Args:
        at: counted from 1; 0 = none.
        fits: (name, arguments) of calls that always fail, for errors that do not pass.
    """

    def __init__(
        self, at: int = 0, number: int = errno.EIO, fits: Callable[[str, tuple[Any, ...]], bool] | None = None
    ) -> None:
        self.at = at
        self.number = number
        self.fits = fits
        self.count = 0
        self.failed = ""
        self._armed = False  # finalizers keep the wrapped functions

    def fails(self, name: str, arguments: tuple[Any, ...]) -> bool:
        self.count += 1
        if self.count == self.at or (self.fits is not None and self.fits(name, arguments)):
            self.failed = f"{name}{arguments[:2]}"
            return True
        return False

    @contextmanager
    def armed(self) -> Generator["FailingCalls"]:
        kept = {name: getattr(os, name) for name in NAMES}
        opened, flock = io.open, fcntl.flock
        natives = handles._openat2, handles._renameat2, statx._statx  # pyright: ignore[reportPrivateUsage]
        for name, real in kept.items():
            setattr(os, name, self._wrapped(name, real))
        io.open = self._wrapped("io.open", opened)
        fcntl.flock = self._wrapped("flock", flock)
        openat2, renameat2, look = (native() for native in natives)
        patched: Any = handles
        told: Any = statx
        wrapped = (
            openat2 and self._wrapped("openat2", openat2),
            renameat2 and self._native("renameat2", renameat2),
            look and self._native("statx", look),
        )
        patched._openat2, patched._renameat2, told._statx = (partial(_given, call) for call in wrapped)
        self._armed = True
        try:
            yield self
        finally:
            self._armed = False
            for name, real in kept.items():
                setattr(os, name, real)
            io.open, fcntl.flock = opened, flock
            patched._openat2, patched._renameat2, told._statx = natives

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if not self._armed or not self.fails(name, arguments):
                return real(*arguments, **options)
            if name == "access":
                return False
            if name == "close":  # the kernel has closed it all the same
                real(*arguments)
            raise OSError(self.number, os.strerror(self.number), *arguments[:1])

        return call

    def _native(self, name: str, real: Callable[..., int]) -> Any:
        def call(*arguments: Any) -> int:
            if not self._armed or not self.fails(name, arguments):
                return real(*arguments)
            ctypes.set_errno(self.number)
            return -1

        return call
