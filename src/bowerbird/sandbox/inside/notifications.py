"""Calls that a filter hands over to a thread of a command's init (seccomp_unotify(2)).

Here: receiving them, reading what the caller means, answering. Not here: which calls are handed over and
what is done with them (`notified` in the copy tier, `renames` in the overlay tier).
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AT_FDCWD = -100
CONTINUE = 1
"""The flag of an answer that leaves the call to the kernel."""
_RECEIVE, _ANSWER, _STILL_VALID = 0xC050_2100, 0xC018_2101, 0x4008_2102
_SET_FLAGS, _SYNC_WAKE_UP = 0x4008_2104, 1
_LONGEST_PATH = 4096


class Call:
    """One call that waits for an answer."""

    def __init__(self, notified: bytes, listener: int) -> None:
        self.id, self.thread, _, self.number, _, _, *self.arguments = struct.unpack("=QIIiIQ6Q", notified)
        self.process = f"/proc/{self.thread}"
        self.listener = listener

    def number_at(self, index: int) -> int:
        """Return an argument as the C int that the kernel takes it for."""
        return ctypes.c_int(self.arguments[index] & 0xFFFF_FFFF).value

    def memory(self, address: int, size: int) -> bytes:
        """Read the caller's memory; OSError where it cannot be read."""
        descriptor = os.open(f"{self.process}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, address)
        finally:
            os.close(descriptor)

    def write(self, address: int, data: bytes) -> None:
        """Change the caller's memory; OSError where it cannot be written."""
        descriptor = os.open(f"{self.process}/mem", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, data, address)
        finally:
            os.close(descriptor)

    def path_at(self, index: int) -> bytes:
        """Return a path argument."""
        path, end, _ = self.memory(self.arguments[index], _LONGEST_PATH).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "path")
        return path

    def place(self, directory: int) -> bytes:
        """Return the name of what a relative path starts at."""
        return os.fsencode(f"{self.process}/{'cwd' if directory == AT_FDCWD else f'fd/{directory}'}")

    def own(self, path: bytes) -> bytes:
        """Return a path with the caller's own name in place of `self`."""
        if path.startswith((b"/proc/self/", b"/proc/thread-self/")):
            return os.fsencode(self.process) + b"/" + path.split(b"/", 3)[3]
        return path

    def open(self, directory: int, path: bytes, *, follow: bool) -> int:
        """Return a handle of what the caller's `directory` and `path` name."""
        path = self.own(path)
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        if path.startswith(b"/"):
            return os.open(path, flags)
        base = os.open(self.place(directory), os.O_PATH | os.O_CLOEXEC)
        if not path:
            return base
        try:
            return os.open(path, flags, dir_fd=base)
        finally:
            os.close(base)

    def open_own(self, index: int) -> int:
        """Return a handle of what stands behind the caller's descriptor."""
        return os.open(f"{self.process}/fd/{self.number_at(index)}", os.O_PATH | os.O_CLOEXEC)

    def check(self) -> None:
        """Raise OSError unless the caller still waits: what was looked at is its, not a later process's."""
        fcntl.ioctl(self.listener, _STILL_VALID, struct.pack("=Q", self.id))

    def answer(self, failed: int = 0, flags: int = 0) -> None:
        """Let the caller go on, with an error number or 0."""
        answer = struct.pack("=QqiI", self.id, -1 if failed else 0, -failed, 0 if failed else flags)
        with contextlib.suppress(OSError):  # the caller was killed meanwhile
            fcntl.ioctl(self.listener, _ANSWER, answer)


def serve(listener: int, take: "Callable[[Call], None]") -> None:
    """Give `take` one call after the other until no process uses the filter any more; `take` answers."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with contextlib.suppress(OSError):  # Linux 6.6: hand over on the caller's processor, in half the time
        fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
    while True:
        notified = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, notified)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT) and not _ended(listener):
                continue  # that caller was killed before its call was read
            return
        take(Call(bytes(notified), listener))


def _ended(listener: int) -> bool:
    import select

    poller = select.poll()
    poller.register(listener, 0)
    return any(events & select.POLLHUP for _, events in poller.poll(0))
