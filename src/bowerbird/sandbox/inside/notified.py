"""System calls that the copy tier performs in a command's place, because no rule of the kernel confines them.

Landlock knows nothing of modes, owners, times, and connections to sockets that have a path: a command could
change them on any file of its user. And no kernel limit holds root's processes back from multiplying; for
other users there is one, but it counts what they run elsewhere too. The filter
(`bowerbird.sandbox.run.seccomp`) hands these calls to this thread of the command's init. It opens what they
name, looks where that is, and does the call itself on the handle it looked at; nothing the command writes to
its memory meanwhile makes a difference. Outside the trees that the command may write, the answer is EPERM.
New processes are counted and, up to a number, left to the kernel.

Here: doing such calls. Not here: which calls are handed over, reading them (`notifications`).
"""

import _thread
import contextlib
import ctypes
import errno
import os
import stat
import struct
import time

from . import kernel
from .notifications import AT_FDCWD, CONTINUE, Call, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_PIDFD_THREAD, _SYS_PIDFD_OPEN, _SYS_PIDFD_GETFD = os.O_EXCL, 434, 438
_RECOUNT_S = 0.05  # of a command at its limit every process asks again and again
_UTIME_NOW = (1 << 30) - 1
_NO_HANDLER, _SA_RESTART = 1, 0x1000_0000  # SIG_DFL is 0, SIG_IGN is 1
_CALLS = {
    "x86_64": {
        90: "chmod", 91: "fchmod", 268: "fchmodat", 452: "fchmodat2", 92: "chown", 93: "fchown", 94: "lchown",
        260: "fchownat", 132: "utime", 235: "utimes", 261: "futimesat", 280: "utimensat", 42: "connect",
        13: "rt_sigaction", 56: "clone", 57: "clone", 58: "clone",
    },
    "aarch64": {
        52: "fchmod", 53: "fchmodat", 452: "fchmodat2", 54: "fchownat", 55: "fchown", 88: "utimensat",
        134: "rt_sigaction", 203: "connect", 220: "clone",
    },
}  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


def start(listener: int, roots: "list[str]", room: "Room") -> None:
    """Answer calls from `listener` in a thread of this process until no process uses the filter any more.

    Args:
        roots: trees in which the calls are done; they exist. room: how many processes there may be.
    """
    calls = _Calls([os.path.realpath(root) for root in roots], room)
    _thread.start_new_thread(serve, (listener, calls.take))


class Room:
    """How many tasks (processes and threads) a command may have.

    Args:
        most: that number. count: counts those that live, which takes milliseconds.

    Attributes:
        closed: the command has ended and its tree is being killed; who asks now gets no answer any more.
    """

    def __init__(self, most: int, count: "Callable[[], int]") -> None:
        self._most = most
        self._count = count
        self._at_most = 1  # never less than the truth
        self._counted = 0.0
        self.closed = False

    def take(self) -> None:
        """Count one more; OSError when there is no room."""
        if self._at_most >= self._most and time.monotonic() - self._counted > _RECOUNT_S:
            self._at_most, self._counted = self._count(), time.monotonic()
        if self._at_most >= self._most:
            raise OSError(errno.EAGAIN, "too many processes")
        self._at_most += 1


class _Calls:
    def __init__(self, roots: "list[str]", room: Room) -> None:
        self.roots = roots
        self.room = room
        self.names = _CALLS[os.uname().machine]

    def take(self, call: Call) -> None:
        """Answer a call; connecting may wait, so it has a thread of its own."""
        if self.names.get(call.number) == "connect":
            _thread.start_new_thread(self._answer, (call,))
        else:
            self._answer(call)

    def _answer(self, call: Call) -> None:
        failed = flags = 0
        try:
            name = self.names[call.number]
            if name == "clone":
                if self.room.closed:
                    return  # a refusal would be said in the command's output before the kill comes
                self.room.take()
                flags = CONTINUE  # what it asks for is in registers, which nobody else can change
            elif name == "rt_sigaction":
                self._go_on_after(call)
                flags = CONTINUE
            else:
                done: Callable[[Call], None] = getattr(self, f"_{name}")
                done(call)
        except OSError as error:
            failed = error.errno or errno.EPERM
        except (KeyError, ValueError, struct.error):
            failed = errno.EINVAL
        call.answer(failed, flags)

    def _go_on_after(self, call: Call) -> None:
        """Have calls that the end of a child interrupts begin again, as forks always do.

        A fork that waits to be counted here would fail with EINTR, which no program knows of a fork: a shell
        whose last child ends just then would say "Cannot fork".
        """
        address = call.arguments[1]
        with contextlib.suppress(OSError):  # it is not there, and the kernel says so
            handler, flags = struct.unpack("=QQ", call.memory(address, 16))
            if handler > _NO_HANDLER and not flags & _SA_RESTART:
                call.check()
                call.write(address + 8, struct.pack("=Q", flags | _SA_RESTART))

    # ------------------------------------------------------------ where it is

    def _own(self, handle: int) -> str:
        """Return the name of an open handle; EPERM when it lies outside the command's own trees."""
        name = f"/proc/self/fd/{handle}"
        where = os.readlink(name)
        nameless = not where.startswith("/") or where.startswith("/memfd:")  # a pipe, a socket, memory
        if not nameless and not any(where == root or where.startswith(f"{root}/") for root in self.roots):
            raise OSError(errno.EPERM, "outside the sandbox")
        return name

    def _on(self, call: Call, handle: int, do: "Callable[[str], object]") -> None:
        try:
            call.check()
            do(self._own(handle))
        finally:
            os.close(handle)

    # ------------------------------------------------------------ modes

    def _chmod(self, call: Call) -> None:
        mode = call.arguments[1] & 0o7777
        self._on(call, call.open(AT_FDCWD, call.path_at(0), follow=True), lambda name: os.chmod(name, mode))

    def _fchmod(self, call: Call) -> None:
        mode = call.arguments[1] & 0o7777
        self._on(call, call.open_own(0), lambda name: os.chmod(name, mode))

    def _fchmodat(self, call: Call, flags: int = 0) -> None:
        mode = call.arguments[2] & 0o7777
        handle = self._named(call, flags)

        def change(name: str) -> None:
            if stat.S_ISLNK(os.fstat(handle).st_mode):
                raise OSError(errno.EOPNOTSUPP, "a link has no mode")
            os.chmod(name, mode)

        self._on(call, handle, change)

    def _fchmodat2(self, call: Call) -> None:
        self._fchmodat(call, call.number_at(3))

    def _named(self, call: Call, flags: int) -> int:
        """Return a handle for the usual pair of directory and path at the call's start."""
        path = call.path_at(1) if call.arguments[1] else b""
        if not path and call.arguments[1] and not flags & _EMPTY_PATH:
            raise OSError(errno.ENOENT, "empty path")
        return call.open(call.number_at(0), path, follow=not flags & _NOFOLLOW)

    # ------------------------------------------------------------ owners

    def _chown(self, call: Call, *, follow: bool = True) -> None:
        handle = call.open(AT_FDCWD, call.path_at(0), follow=follow)
        self._on(call, handle, lambda name: _give(name, handle, call.number_at(1), call.number_at(2)))

    def _lchown(self, call: Call) -> None:
        self._chown(call, follow=False)

    def _fchown(self, call: Call) -> None:
        handle = call.open_own(0)
        self._on(call, handle, lambda name: _give(name, handle, call.number_at(1), call.number_at(2)))

    def _fchownat(self, call: Call) -> None:
        handle = self._named(call, call.number_at(4))
        self._on(call, handle, lambda name: _give(name, handle, call.number_at(2), call.number_at(3)))

    # ------------------------------------------------------------ times

    def _utimensat(self, call: Call) -> None:
        flags = call.number_at(3)
        handle = self._named(call, flags) if call.arguments[1] else call.open_own(0)
        self._times(call, handle, call.memory(call.arguments[2], 32) if call.arguments[2] else None)

    def _utime(self, call: Call) -> None:
        handle = call.open(AT_FDCWD, call.path_at(0), follow=True)
        times = None
        if call.arguments[1]:
            accessed, modified = struct.unpack("=qq", call.memory(call.arguments[1], 16))
            times = struct.pack("=4q", accessed, 0, modified, 0)
        self._times(call, handle, times)

    def _utimes(self, call: Call) -> None:
        self._microseconds(call, call.open(AT_FDCWD, call.path_at(0), follow=True), call.arguments[1])

    def _futimesat(self, call: Call) -> None:
        self._microseconds(call, self._named(call, 0), call.arguments[2])

    def _microseconds(self, call: Call, handle: int, address: int) -> None:
        times = None
        if address:
            first, first_us, second, second_us = struct.unpack("=4q", call.memory(address, 32))
            times = struct.pack("=4q", first, first_us * 1000, second, second_us * 1000)
        self._times(call, handle, times)

    def _times(self, call: Call, handle: int, times: bytes | None) -> None:
        times = times or struct.pack("=4q", 0, _UTIME_NOW, 0, _UTIME_NOW)
        buffer = ctypes.create_string_buffer(times, len(times))

        def change(name: str) -> None:
            link = stat.S_ISLNK(os.fstat(handle).st_mode)
            target, flags = (b"", _EMPTY_PATH) if link else (name.encode(), 0)
            if _libc.utimensat(handle, target, buffer, flags) != 0:
                raise OSError(ctypes.get_errno(), "utimensat")

        self._on(call, handle, change)

    # ------------------------------------------------------------ sockets with a path

    def _connect(self, call: Call) -> None:
        size = call.arguments[2] & 0xFFFF_FFFF
        address = call.memory(call.arguments[1], min(size, 110))
        family, path = struct.unpack("=H", address[:2])[0], address[2:]
        if family != 1 or not path or path.startswith(b"\0"):
            raise OSError(errno.EPERM, "not a socket with a path")
        there = call.open(AT_FDCWD, path.partition(b"\0")[0], follow=True)
        try:
            name = self._own(there)
            thread = kernel.syscall("pidfd_open", _SYS_PIDFD_OPEN, call.thread, _PIDFD_THREAD)
            try:
                mine = kernel.syscall("pidfd_getfd", _SYS_PIDFD_GETFD, thread, call.number_at(0), 0)
            finally:
                os.close(thread)
            try:
                target = struct.pack("=H", 1) + name.encode() + b"\0"
                if _libc.connect(mine, target, len(target)) != 0:
                    raise OSError(ctypes.get_errno(), "connect")
            finally:
                os.close(mine)
        finally:
            os.close(there)


def _give(name: str, handle: int, uid: int, gid: int) -> None:
    del name
    if _libc.fchownat(handle, b"", uid, gid, _EMPTY_PATH) != 0:
        raise OSError(ctypes.get_errno(), "fchownat")
