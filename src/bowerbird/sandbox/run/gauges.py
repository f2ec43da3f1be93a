"""What the whole machine has left, read in microseconds: when to look closely at one sandbox (D-8).

Everything that a command takes shows here at once, in whatever way it takes it: files without a name, memory
in sockets. So does what all others take; therefore these figures alone end no command. Here: reading them.
Not here: what follows (`watch`).
"""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import msgspec

_FRESH_S = 0.01
_ROOM_S = 1.0
_KIB = 1024
_FLOOR_BYTES, _FLOOR_FILES, _FLOOR_SHARE = 256 << 20, 10_000, 0.02
# Memory that belongs to files or programs; what else is in use, the kernel holds.
_ACCOUNTED = ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "KReclaimable", "Hugetlb")
_ZFS = Path("/proc/spl/kstat/zfs/arcstats")


class MemoryGauge(msgspec.Struct, frozen=True):
    """Bytes: `available` to programs, `shared` in memory files, `kernel` held by the kernel for itself."""

    available: int = 0
    shared: int = 0
    kernel: int = 0


class DiskGauge(msgspec.Struct, frozen=True):
    """What a file system has left for ordinary users, and below what no command may take it."""

    bytes: int
    files: int
    floor_bytes: int
    floor_files: int

    @property
    def below_floor(self) -> bool:
        """Whether others, the server's own database first, may soon find no room."""
        return self.bytes < self.floor_bytes or self.files < self.floor_files


_last = (0.0, MemoryGauge())


def memory_gauge() -> MemoryGauge:
    """Return the machine's memory; all that ask within 10 ms get one answer."""
    global _last  # noqa: PLW0603 - one machine, one figure
    now = time.monotonic()
    if now - _last[0] > _FRESH_S:
        _last = (now, _read_memory())
    return _last[1]


def _read_memory() -> MemoryGauge:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return MemoryGauge()
    rows = {
        name: int(rest.split()[0]) * _KIB for name, _, rest in (r.partition(":") for r in text.splitlines())
    }
    held = rows.get("MemTotal", 0) - sum(rows.get(name, 0) for name in _ACCOUNTED) - _zfs_cache()
    return MemoryGauge(rows.get("MemAvailable", 0), rows.get("Shmem", 0), max(0, held))


def _zfs_cache() -> int:
    if not _ZFS.exists():
        return 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _ZFS.read_text(encoding="ascii").splitlines():
            if line.startswith("size "):
                return int(line.split()[2])
    return 0


async def room_again(directory: Path) -> None:
    """Wait a moment until deleted files have made room: the kernel lets go of a mount's a little later."""
    until = time.monotonic() + _ROOM_S
    while disk_gauge(directory).below_floor and time.monotonic() < until:  # noqa: ASYNC110 - the kernel tells nobody when
        await asyncio.sleep(_FRESH_S)


def disk_gauge(directory: Path) -> DiskGauge:
    """Return what the file system of `directory` has left."""
    seen = os.statvfs(directory)
    size = seen.f_blocks * seen.f_frsize
    endless = seen.f_files == 0  # file systems that make inodes as they need them
    return DiskGauge(
        bytes=seen.f_bavail * seen.f_frsize,
        files=1 << 62 if endless else seen.f_favail,
        floor_bytes=min(_FLOOR_BYTES, int(size * _FLOOR_SHARE)),
        floor_files=min(_FLOOR_FILES, int(seen.f_files * _FLOOR_SHARE)),
    )
