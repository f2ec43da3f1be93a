"""The limits of one command, as plain values (SB-31 … SB-36)."""

import math

import msgspec


class RunLimits(msgspec.Struct, frozen=True):
    """Limits of every command; see the settings `sandbox.*` of the same names.

    Attributes:
        disk_bytes, disk_files: of the branch's open layer and home together. file_bytes: of one file.
    """

    memory_bytes: int = 4 << 30
    pids: int = 4096
    cpu_seconds: float | None = None
    disk_bytes: int = 4 << 30
    file_bytes: int = 2 << 30
    open_files: int = 4096
    disk_files: int = 500_000

    def cpu_s(self, timeout_s: float) -> float:
        """Return the processor time that a command's whole tree may use; 8 × timeout unless set."""
        return self.cpu_seconds if self.cpu_seconds is not None else 8 * timeout_s

    def rlimits(self, timeout_s: float) -> dict[str, int]:
        """Return the kernel limits of each process of a command."""
        return {
            # The kernel counts each process alone, so the watcher, which counts the tree, comes first.
            "CPU": math.ceil(self.cpu_s(timeout_s)) + 1,
            "CORE": 0,
            "NOFILE": self.open_files,
            "FSIZE": min(self.file_bytes, self.disk_bytes),
            "NPROC": self.pids,
        }
