"""How much memory, nameless disk and processor time processes take; what is shared counts once.

Not here: limits and what happens at them (`bowerbird.sandbox.run.running`).
"""

import array
import contextlib
import os
import resource
import socket

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message

_SYS_PIDFD_GETFD = 438
_SO_MEMINFO, _MEMINFO_WORDS = 55, 9  # sock(7), linux/sock_diag.h: what a socket holds, whatever its kind
_MOST_AT_ONCE = 253  # descriptors of one message
_SHARED_MEMORY = "/dev/shm/"
_NOT_ON_DISK = ("/memfd:", "/SYSV", _SHARED_MEMORY)
_UNSEEN_HOLDERS = 1024  # what a process may have open that lets nobody look
_WORTH_A_LOOK = 64 << 20  # shared memory is counted exactly from here on; that costs milliseconds


def of_processes(
    pids: "list[int]",
    *,
    deep: bool = False,
    ask: bool = False,
    own_ipc: bool = False,
    exact_above: int | None = None,
) -> "Message":
    """Return the number of the processes that live and the bytes they take together.

    Args:
        deep: look at every open descriptor and mapping, too. ask: then also ask each socket what it holds,
            which takes twice as long. own_ipc: System V objects are theirs alone.
        exact_above: bytes from which pages that forks have in common count once; telling them takes
            the kernel a walk through all pages.
    """
    page = resource.getpagesize()
    own: dict[int, int] = {}
    sharing: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
            own[pid] = (int(resident) - int(shared)) * page
            if int(shared) * page > _WORTH_A_LOOK:
                sharing.append(pid)
    together = sum(_shared(pid) for pid in sharing)
    named = _shared_memory_files() if own_ipc else 0
    together = max(together, named)
    held = Held(pids, ask=ask) if deep or _system_shared() > _WORTH_A_LOOK else None
    found: Message = {}
    if held is not None:
        system_v = _system_v() if own_ipc else 0
        together = max(together, held.memory + named + system_v)
        found = {
            "nameless_bytes": held.nameless, "in_flight": held.in_flight, "holders": held.holders,
            "socket_bytes": held.socket_bytes,
        }  # fmt: skip
    alone = sum(own.values())
    # Where one process is over it, nothing of the kind can excuse it.
    if exact_above is not None and alone + together > exact_above >= max(own.values(), default=0) + together:
        alone = sum(min(each, _part(pid, "Pss_Anon:", each)) for pid, each in own.items())
    return {"processes": len(own), "memory_bytes": alone + together, "shared_bytes": together, **found}


def cpu_ms(top: int, below: "list[int]") -> int:
    """Return the processor time of a tree: of what lives, and of the dead that its members collected.

    Args:
        top: the init, whose own time is nobody's. below: its living descendants.
    """
    ticks = sum(_times(top)[2:]) + sum(sum(_times(pid)) for pid in below)
    return ticks * 1000 // os.sysconf("SC_CLK_TCK")


def _times(pid: int) -> "tuple[int, ...]":
    """Return user and system time of a process, then those of its dead children; zeros when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return tuple(int(word) for word in file.read().rpartition(")")[2].split()[11:15])
    except OSError:
        return (0, 0, 0, 0)


def _shared(pid: int) -> int:
    """Return a process's part of the memory it shares; its whole where that is not told."""
    for name, key in (("smaps_rollup", "Pss_Shmem:"), ("status", "RssShmem:")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", encoding="latin-1") as file:
            for line in file:
                if line.startswith(key):
                    return int(line.split()[1]) * 1024
    return 0


def _part(pid: int, key: str, otherwise: int) -> int:
    """Return a process's part of the pages it has in common with others.

    `otherwise` where none is told; nothing of a process that has ended: others have its part by now.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="latin-1") as file:
            for line in file:
                if line.startswith(key):
                    return int(line.split()[1]) * 1024
    except PermissionError:
        return otherwise
    except OSError:
        return 0
    return otherwise


def _system_shared() -> int:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def _shared_memory_files() -> int:
    """Return what files of this sandbox's own `/dev/shm` take, those without a name included."""
    with contextlib.suppress(OSError):
        seen = os.statvfs(_SHARED_MEMORY)
        return (seen.f_blocks - seen.f_bfree) * seen.f_frsize
    return 0


def _system_v() -> int:
    """Return the bytes of shared segments and queued messages of this IPC namespace, attached or not."""
    total = 0
    for name, columns in (("shm", ("rss", "swap")), ("msg", ("cbytes",))):
        with contextlib.suppress(OSError), open(f"/proc/sysvipc/{name}", encoding="ascii") as file:
            heads = file.readline().split()
            for line in file:
                row = dict(zip(heads, line.split(), strict=False))
                total += sum(int(row.get(column, 0)) for column in columns)
    return total


class Held:
    """What processes hold by descriptors and mappings, beyond what has a name or is in their own figures.

    Attributes:
        memory: bytes of memory files. nameless: bytes on disk of files without a name.
        in_flight: descriptors in the queues of their sockets that nobody could look at. holders: sockets,
            all that is in queues, and an eighth of the pipes: one holds so much less.
        socket_bytes: what their open sockets, if asked, say they hold. It may be less than the truth: what
            waits in a socket whose sender is closed, or in a connection that nobody accepted, is in no list.
    """

    def __init__(self, pids: "list[int]", *, ask: bool = False) -> None:
        self._ask = ask
        self.in_flight = self._queued = self.socket_bytes = self._unseen = 0
        self._memory: dict[tuple[int, int], int] = {}
        self._nameless: dict[tuple[int, int], int] = {}
        self._sockets: set[str] = set()
        self._pipes: set[str] = set()
        for pid in pids:
            try:
                self._look_at_descriptors(pid)
            except PermissionError:  # it asked the kernel to let nobody look
                self._unseen += _UNSEEN_HOLDERS
            except OSError:  # it is gone
                continue
            with contextlib.suppress(OSError):
                self._look_at_mappings(pid)
        self.memory = sum(self._memory.values())
        self.nameless = sum(self._nameless.values())
        self.holders = len(self._sockets) + self._queued + len(self._pipes) // 8 + self._unseen

    def _look_at_descriptors(self, pid: int) -> None:
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):
                where = os.readlink(link)
                if where.startswith("socket:"):
                    if where not in self._sockets:
                        self._sockets.add(where)
                        self._look_at_socket(pid, int(name))
                elif where.startswith("pipe:"):
                    self._pipes.add(where)
                elif where.endswith(" (deleted)"):
                    self._count(where, os.stat(link))

    def _count(self, where: str, seen: os.stat_result) -> None:
        kept = self._memory if where.startswith("/memfd:") else self._nameless
        if seen.st_nlink == 0 and not where.startswith(_SHARED_MEMORY):  # which is counted as a whole
            kept[seen.st_dev, seen.st_ino] = seen.st_blocks * 512

    def _look_at_socket(self, pid: int, name: int) -> None:
        """Count a socket's memory, and what is on its way in it: a copy of its first message tells."""
        queued = _in_queue(f"/proc/{pid}/fdinfo/{name}")
        self._queued += queued
        self.in_flight += queued
        if not (queued or self._ask):
            return
        with contextlib.suppress(OSError), _copy_of(pid, name) as ours:  # else the machine's figures must do
            self.socket_bytes += _memory_of(ours)
            for descriptor in _first_message(ours) if queued else ():
                self._look_at_one_queued(descriptor)

    def _look_at_one_queued(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            inner = _in_queue(f"/proc/self/fdinfo/{descriptor}")  # a socket's own queue is not looked into
            self._queued += inner
            self.in_flight += inner - 1
            where = os.readlink(f"/proc/self/fd/{descriptor}")
            if where.endswith(" (deleted)"):
                self._count(where, os.fstat(descriptor))
        os.close(descriptor)

    def _look_at_mappings(self, pid: int) -> None:
        """Count files without a name that are mapped and not open: at most what is mapped of them."""
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.endswith(" (deleted)\n") or any(name in line for name in _NOT_ON_DISK):
                    continue
                span, _, _, device, inode, *_ = line.split(None, 5)
                major, _, minor = device.partition(":")
                key = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
                if key not in self._nameless and "/dev/zero" not in line:
                    first, _, last = span.partition("-")
                    self._nameless[key] = int(last, 16) - int(first, 16)


def _in_queue(about: str) -> int:
    """Return how many descriptors lie in a socket's queue (Linux 5.11 and newer tell)."""
    with open(about, encoding="ascii") as file:
        for line in file:
            if line.startswith("scm_fds:"):
                return int(line.split()[1])
    return 0


def _copy_of(pid: int, descriptor: int) -> socket.socket:
    """Return a copy of a process's socket."""
    process = os.pidfd_open(pid)
    try:
        copied = kernel.syscall("pidfd_getfd", _SYS_PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)
    return socket.socket(fileno=copied)


def _memory_of(asked: socket.socket) -> int:
    """Return the bytes that a socket holds: received, sent and not yet taken, and on the way in."""
    words = array.array("I", asked.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 4 * _MEMINFO_WORDS))
    received, _, sent, _, _, to_send, _, backlog, *_ = words
    return received + max(sent, to_send) + backlog


def _first_message(queue: socket.socket) -> "array.array[int]":
    """Return copies of the descriptors in the first message that waits in a socket."""
    found = array.array("i")
    flags = socket.MSG_PEEK | socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
    _, told, _, _ = queue.recvmsg(1, socket.CMSG_SPACE(_MOST_AT_ONCE * found.itemsize), flags)
    for level, kind, data in told:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return found
