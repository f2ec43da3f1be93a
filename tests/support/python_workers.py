"""Which interpreter processes a process has."""

import os
from pathlib import Path


def workers(parent: int | None = None) -> list[int]:
    """Pids of the interpreters that are children of `parent`, by default of this process."""
    tasks = Path(f"/proc/{parent or os.getpid()}/task").glob("*/children")
    pids = [int(pid) for task in tasks for pid in _read(task).split()]
    return [pid for pid in pids if b"subprocess" in _read(Path(f"/proc/{pid}/cmdline"))]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # that thread or process ended between listing and reading
