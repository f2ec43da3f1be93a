"""How much memory processes take, read from /proc: what they hold alone, and shared memory once.

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
