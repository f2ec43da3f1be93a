"""How much memory and processor time processes take, read from /proc; shared memory counts once.

Not here: limits and what happens at them (`bowerbird.sandbox.running`).
"""

import contextlib
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Message

_WORTH_A_LOOK = 64 << 20  # shared memory is counted exactly from here on; that costs milliseconds


def of_processes(pids: "list[int]") -> "Message":
    """Return the number of the processes that live and the bytes they take together."""
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
    if _system_shared() > _WORTH_A_LOOK:
        together = max(together, _unmapped(pids))
    return {"processes": processes, "memory_bytes": alone + together}


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


def _unmapped(pids: "list[int]") -> int:
    """Return the bytes of memory files that processes hold open: no process's own figures show them."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    link = f"/proc/{pid}/fd/{name}"
                    if os.readlink(link).startswith("/memfd:"):
                        seen = os.stat(link)
                        found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return sum(found.values())
