"""Commands that take memory, disk and files in ways that names and process figures do not show (D-8).

Here: the programs, and a meter of what the machine has lost meanwhile. Each gives up by itself at the bytes it
is told, so that a missing limit costs a test and no machine.
"""

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MIB = 1 << 20
_START = """
import array, ctypes, fcntl, mmap, os, socket, struct, sys, time
most, piece, taken, kept = int(sys.argv[1]), bytes(4 << 20), 0, []
def hide(descriptor):
    near, far = socket.socketpair()
    socket.send_fds(near, [b"x"], [descriptor])
    os.close(descriptor)
    kept.append((near, far))
"""
_END = """
time.sleep(20)  # time to be noticed on a busy machine
print("GOT IT ALL")
"""


@dataclass(frozen=True)
class Bomb:
    """One way of taking too much.

    Attributes:
        reason: the limit that ends it; None = it is refused and ends by itself.
        program: Python, told how many bytes (or files) it may take at most. tiers: where it applies.
    """

    reason: Literal["memory", "disk"] | None
    program: str
    tiers: tuple[str, ...] = ("overlay", "copy")


BOMBS: dict[str, Bomb] = {
    "written": Bomb("disk", "for n in range(most >> 24):\n    open(f'f{n}', 'wb').write(piece * 4)"),
    "fallocate": Bomb(
        None,
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for n in range(4):\n"
        "    f = os.open(f'f{n}', os.O_CREAT | os.O_RDWR)\n"
        "    for mode in (0, 1, 16):\n"
        "        got = libc.fallocate(f, mode, ctypes.c_long(0), ctypes.c_long(most >> 2))\n"
        "        print(mode, got, ctypes.get_errno())\n"
        "    for call in (0x40305828, 0x4030582a, 0x40305839):\n"
        "        try: fcntl.ioctl(f, call, struct.pack('=hhqqiI16x', 0, 0, 0, most >> 2, 0, 0)); print('RESERVED')\n"
        "        except OSError as error: print(error.errno)\n"
        "sys.exit(3)",
    ),
    "mapped": Bomb(
        "disk",
        "for n in range(most >> 25):\n"
        "    f = os.open(f'f{n}', os.O_CREAT | os.O_RDWR); os.truncate(f, 32 << 20)\n"
        "    m = mmap.mmap(f, 32 << 20); m.write(piece * 8); m.close(); os.close(f)",
    ),
    "unlinked": Bomb(
        "disk",
        "while taken < most:\n"
        "    f = os.open('f', os.O_CREAT | os.O_RDWR); os.unlink('f'); kept.append(f)\n"
        "    for _ in range(4): taken += os.write(f, piece)",
    ),
    "unlinked-in-socket": Bomb(
        "disk",
        "while taken < most:\n"
        "    f = os.open('f', os.O_CREAT | os.O_RDWR); os.unlink('f')\n"
        "    for _ in range(4): taken += os.write(f, piece)\n"
        "    hide(f)",
    ),
    "unlinked-mapped": Bomb(
        "disk",
        "while taken < most:\n"
        "    f = os.open('f', os.O_CREAT | os.O_RDWR); os.unlink('f'); os.truncate(f, 32 << 20)\n"
        "    m = mmap.mmap(f, 32 << 20); m.write(piece * 8); kept.append(m); taken += 32 << 20\n"
        "    os.close(f)",
    ),
    "empty-files": Bomb(
        "disk",
        "for n in range(most):\n"
        "    if n % 1000 == 0: os.makedirs(f'd{n}')\n"
        "    os.close(os.open(f'd{n - n % 1000}/{n}', os.O_CREAT))",
    ),
    "memory-file-in-socket": Bomb(
        "memory",
        "while taken < most:\n"
        "    f = os.memfd_create('m')\n"
        "    for _ in range(4): taken += os.write(f, piece)\n"
        "    hide(f)",
    ),
    "system-v-segment": Bomb(
        "memory",
        "libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p\n"
        "libc.shmdt.argtypes = [ctypes.c_void_p]; size = 16 << 20\n"
        "while taken < most:\n"
        "    i = libc.shmget(0, ctypes.c_size_t(size), 0o1600); at = libc.shmat(i, None, 0)\n"
        "    ctypes.memset(at, 1, size); libc.shmdt(at); taken += size",
        ("overlay",),
    ),
    "socket-buffers": Bomb(
        "memory",
        "import resource\n"
        "while taken < most:\n"
        "    if len(kept) > 1900:\n"
        "        if os.fork(): time.sleep(60)\n"
        "        kept = []\n"
        "    near, far = socket.socketpair(); kept.append((near, far))\n"
        "    for end in (near, far):\n"
        "        end.setblocking(False)\n"
        "        try:\n"
        "            while True: taken += end.send(piece[:65536])\n"
        "        except BlockingIOError: pass",
    ),
}


def program(bomb: Bomb) -> str:
    """Return the whole program; its argument is the most that it takes."""
    return _START + bomb.program + _END


class Meter:
    """The most that the machine had less than at the start: disk of one file system, and memory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._disk, self._memory = self._now()
        self.disk = self.memory = 0

    def _now(self) -> tuple[int, int]:
        seen = os.statvfs(self._place)
        rows = Path("/proc/meminfo").read_text().splitlines()
        memory = next(int(row.split()[1]) * 1024 for row in rows if row.startswith("MemAvailable"))
        return seen.f_bavail * seen.f_frsize, memory

    def look(self) -> None:
        """Compare with the start."""
        disk, memory = self._now()
        self.disk, self.memory = max(self.disk, self._disk - disk), max(self.memory, self._memory - memory)


@contextmanager
def meter(place: Path) -> Generator[Meter]:
    """Measure every 5 ms beside what runs; others on this machine are measured, too."""
    found, over = Meter(place), threading.Event()

    def look() -> None:
        while not over.is_set():
            found.look()
            time.sleep(0.005)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()
