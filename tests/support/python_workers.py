"""Which interpreter processes a process has."""

import os
from pathlib import Path


def workers(parent: int | None = None) -> list[int]:
    """Pids of the interpreters that are children of `parent`, by default of this process."""
    children = Path(f"/proc/{parent or os.getpid()}/task").glob("*/children")
    pids = [int(pid) for file in children for pid in file.read_text().split()]
    return [pid for pid in pids if b"subprocess" in Path(f"/proc/{pid}/cmdline").read_bytes()]
