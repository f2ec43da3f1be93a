"""How much memory, nameless disk and processor time processes take; what is shared counts once.

Not here: limits and what happens at them (`bowerbird.sandbox.running`).
"""

import contextlib
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message

_WORTH_A_LOOK = 64 << 20  # shared memory is counted exactly from here on; that costs milliseconds


def of_processes(pids: "list[int]", *, deep: bool = False, own_ipc: bool = False) -> "Message":
    """Return the number of the processes that live and the bytes they take together.

    Args:
        deep: look at every open descriptor and mapping, too. own_ipc: System V objects are theirs alone.
    """
    page = resource.getpagesize()
    processes = alone = 0
    sharing: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
            processes += 1
            alone += (int(resident) - int(shared)) * page
            if int(shared) * page > _WORTH_A_LOOK:
                sharing.append(pid)
    together = sum(_shared(pid) for pid in sharing)
    held = Held(pids) if deep or _system_shared() > _WORTH_A_LOOK else None
    found: Message = {}
    if held is not None:
        system_v = _system_v() if own_ipc else 0
        together = max(together, held.memory + system_v)
        found = {"nameless_bytes": held.nameless, "in_flight": held.in_flight, "holders": held.holders}
    return {"processes": processes, "memory_bytes": alone + together, "shared_bytes": together, **found}


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


def _system_shared() -> int:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("Shmem:"):
                return int(line.split()[1]) * 1024
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
        in_flight: descriptors in the queues of their sockets. holders: sockets and pipes, those included.
    """

    def __init__(self, pids: "list[int]") -> None:
        self.in_flight = 0
        self._memory: dict[tuple[int, int], int] = {}
        self._nameless: dict[tuple[int, int], int] = {}
        self._holders: set[str] = set()
        for pid in pids:
            with contextlib.suppress(OSError):
                self._look_at_descriptors(pid)
            with contextlib.suppress(OSError):
                self._look_at_mappings(pid)
        self.memory = sum(self._memory.values())
        self.nameless = sum(self._nameless.values())
        self.holders = len(self._holders) + self.in_flight

    def _look_at_descriptors(self, pid: int) -> None:
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):
                where = os.readlink(link)
                if where.startswith("socket:") and where not in self._holders:
                    self.in_flight += _in_queue(pid, name)
                if where.startswith(("socket:", "pipe:")):
                    self._holders.add(where)
                elif where.endswith(" (deleted)"):
                    seen = os.stat(link)
                    in_memory = where.startswith(("/memfd:", "/dev/shm/"))
                    kept = self._memory if in_memory else self._nameless
                    if seen.st_nlink == 0:
                        kept[seen.st_dev, seen.st_ino] = seen.st_blocks * 512

    def _look_at_mappings(self, pid: int) -> None:
        """Count files without a name that are mapped and not open: at most what is mapped of them."""
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.endswith(" (deleted)\n") or "/memfd:" in line or "/SYSV" in line:
                    continue
                span, _, _, device, inode, *_ = line.split(None, 5)
                major, _, minor = device.partition(":")
                key = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
                if key not in self._nameless and "/dev/zero" not in line:
                    first, _, last = span.partition("-")
                    self._nameless[key] = int(last, 16) - int(first, 16)


def _in_queue(pid: int, descriptor: str) -> int:
    """Return how many descriptors lie in a socket's queue (Linux 5.11 and newer tell)."""
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        for line in file:
            if line.startswith("scm_fds:"):
                return int(line.split()[1])
    return 0
