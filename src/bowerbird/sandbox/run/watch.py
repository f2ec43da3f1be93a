"""Watching what a running command takes, and ending it at a limit (SB-32 … SB-35, D-8).

The exact figures cost milliseconds, so they are asked for rarely while nothing grows. Every 20 ms the
machine's own gauges are read: as soon as they allow that a limit is passed, the exact figures decide. Here:
when to look and what follows. Not here: the figures themselves (`gauges`, `inside/usage`, the branch).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.run.gauges import DiskGauge, MemoryGauge, disk_gauge, memory_gauge
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.warm_sandbox import Usage, WarmSandbox

TICK_S, WATCH_S = 0.02, 0.25
_LONGEST_BLIND_S = 10.0
_ASK_S = 1.0
"""So often every descriptor is looked at, whatever the gauges say: others' coming and going hides in them."""
_WORTH_A_LOOK = 16 << 20
_FILES_WORTH_A_LOOK = 1_000
_FULL_BYTES, _TOOK_BYTES = 256 << 10, 64 << 10
"""A command that leaves less than the first, and took more than the second, was cut off in some file."""
_MANY_HOLDERS = 32
"""So few sockets and pipes hold no memory to speak of; an ordinary program has that many."""
_MOST_HELD = 8 << 20  # bytes in one of them


class DiskPlace(msgspec.Struct, frozen=True):
    """Where a command writes: `used` counts bytes and entries by name, `directory` is on that file system."""

    used: Callable[[], tuple[int, int]]
    directory: Path


class LimitWatch:
    """Watches one command.

    Args:
        command: its id. cpu_ms: processor time that its tree may use.
        disk: where it writes; None = not watched. stop: ends it, with the name of the limit.
    """

    def __init__(
        self,
        sandbox: WarmSandbox,
        command: str,
        limits: RunLimits,
        cpu_ms: float,
        disk: DiskPlace | None,
        stop: Callable[[str], None],
    ) -> None:
        self._sandbox = sandbox
        self._command = command
        self._limits = limits
        self._cpu_ms = cpu_ms
        self._disk = disk
        self._stop = stop
        self._memory_then = self._memory_looked = memory_gauge()
        self._memory_used = 0
        self._memory_at = self._asked_at = time.monotonic()
        self._ask_cost = 0.0
        self._disk_then = self._disk_looked = disk_gauge(disk.directory) if disk is not None else None
        self._disk_used: tuple[int, int] | None = None
        self._disk_first = 0
        self._disk_at, self._disk_cost = time.monotonic(), 0.0
        self._blind_since: float | None = None
        self.left: int | None = None  # bytes that the file system had when a command was ended for them

    async def run(self) -> None:
        """Watch until cancelled, or until the sandbox is gone."""
        while self._sandbox.alive:
            await asyncio.sleep(TICK_S)
            try:
                if self._memory_due():
                    await self._look_at_memory()
                if self._disk is not None and self._disk_due(self._disk):
                    await self._look_at_disk(self._disk)
                self._blind_since = None
            except SandboxUnavailable:  # gone, or this one look failed: the next may not
                continue
            except OSError:  # a directory was moved meanwhile, say; without a watch there were no limits
                self._blind()

    def _blind(self) -> None:
        """Nobody may write for long where nobody can look."""
        now = time.monotonic()
        if self._blind_since is None:
            self._blind_since = now
        elif now - self._blind_since > _LONGEST_BLIND_S:
            self._stop("disk")

    async def last_look(self, written: int) -> None:
        """Look once more at what a command that ended by itself wrote: it may be faster than a tick.

        Args:
            written: bytes that its processes wrote to disks, by the kernel's own count; 0 on memory disks.
        """
        if self._disk is None:
            return
        now = disk_gauge(self._disk.directory)
        # The gauge alone shows nothing when others give back as much at the same time.
        small = min(_WORTH_A_LOOK, self._limits.disk_bytes // 8)
        if written > small or self._disk_grew(self._disk, now) or self._filled(now):
            with contextlib.suppress(OSError):  # whoever takes the changes says it
                await self._look_at_disk(self._disk, ended=True)

    # ------------------------------------------------------------ memory

    def _memory_due(self) -> bool:
        now = memory_gauge()
        taken = self._memory_looked.available - now.available
        return (
            time.monotonic() - self._memory_at >= WATCH_S
            or taken > max(_WORTH_A_LOOK, self._limits.memory_bytes - self._memory_used)
        )  # fmt: skip

    async def _look_at_memory(self) -> None:
        now, then = memory_gauge(), self._memory_then
        worth = min(_WORTH_A_LOOK, self._limits.memory_bytes // 8)
        grown = now.shared - then.shared > worth or now.kernel - then.kernel > worth
        began = time.monotonic()
        ask = began - self._asked_at > max(_ASK_S, 16 * self._ask_cost)
        used = await self._sandbox.usage(deep=grown or ask, ask=ask, exact_above=self._limits.memory_bytes)
        if ask:
            self._asked_at = time.monotonic()
            self._ask_cost = self._asked_at - began
        # What others give back must not make room for what this one takes.
        self._memory_then = MemoryGauge(
            then.available, min(then.shared, now.shared), min(then.kernel, now.kernel)
        )
        self._memory_looked, self._memory_at = now, time.monotonic()
        self._memory_used = used.memory_bytes + self._hidden_memory(used)
        if self._memory_used > self._limits.memory_bytes:
            self._stop("memory")
        elif used.processes > 2 * self._limits.pids:
            self._stop("pids")
        elif used.cpu_ms.get(self._command, 0) > self._cpu_ms:
            self._stop("cpu")

    def _hidden_memory(self, used: Usage) -> int:
        """Return the most that no process's figures show: memory files on their way, what sockets hold.

        What could be looked into is in the sandbox's own figures, and others' memory cannot end it. Beyond
        it, only as much as the machine's own figures have grown by since the command started, and only where
        the sandbox has something that could hold it.
        """
        now, then = memory_gauge(), self._memory_then
        files, in_sockets = 0, used.socket_bytes
        if used.in_flight:
            files = max(0, now.shared - then.shared - used.shared_bytes)
        if used.holders > _MANY_HOLDERS:
            in_sockets = max(in_sockets, min(now.kernel - then.kernel, used.holders * _MOST_HELD))
        return files + in_sockets

    # ------------------------------------------------------------ disk

    def _disk_due(self, disk: DiskPlace) -> bool:
        since = time.monotonic() - self._disk_at
        if since > max(WATCH_S, 8 * self._disk_cost):
            return True
        return since > 2 * self._disk_cost and self._disk_grew(disk, disk_gauge(disk.directory))

    def _disk_grew(self, disk: DiskPlace, now: DiskGauge) -> bool:
        """Whether so much is gone since the last look that a limit may be passed."""
        assert self._disk_looked is not None
        taken, files = self._disk_looked.bytes - now.bytes, self._disk_looked.files - now.files
        if self._disk_used is None:
            small = min(_WORTH_A_LOOK, self._limits.disk_bytes // 8)
            return taken > small or files > min(_FILES_WORTH_A_LOOK, self._limits.disk_files // 8)
        used, entries = self._disk_used
        return (
            used + taken > self._limits.disk_bytes
            or entries + files > self._limits.disk_files
            or (now.below_floor and taken > 0)
        )

    async def _look_at_disk(self, disk: DiskPlace, *, ended: bool = False) -> None:
        began = time.monotonic()
        now = disk_gauge(disk.directory)
        named, entries = await to_thread(disk.used)
        hidden = 0 if ended else await self._hidden_on_disk(now, named)
        used = named + hidden
        if self._disk_used is None:
            self._disk_first = used
        grown = used - self._disk_first if self._disk_used is not None else used
        self._disk_looked, self._disk_used = now, (used, entries)
        self._disk_at = time.monotonic()
        self._disk_cost = self._disk_at - began
        over = used > self._limits.disk_bytes or entries > self._limits.disk_files
        too_little = now.below_floor and grown > _WORTH_A_LOOK
        if not over and (too_little or (ended and used > 0 and self._filled(now))):
            self.left = now.bytes
        if over or self.left is not None:
            self._stop("disk")

    def _filled(self, now: DiskGauge) -> bool:
        """Whether nothing more fits since this command began: what it wrote last is torn."""
        assert self._disk_then is not None
        return now.bytes < _FULL_BYTES and self._disk_then.bytes - now.bytes > _TOOK_BYTES

    async def _hidden_on_disk(self, now: DiskGauge, named: int) -> int:
        """Return the bytes of files that have no name any more but are held open."""
        assert self._disk_then is not None
        taken = self._disk_then.bytes - now.bytes
        if taken <= min(_WORTH_A_LOOK, self._limits.disk_bytes // 8):
            return 0
        used = await self._sandbox.usage(deep=True)
        if not used.in_flight:
            return used.nameless_bytes
        # Descriptors on their way between processes are in nobody's list: then it may be all that is gone.
        return max(used.nameless_bytes, taken - named)
