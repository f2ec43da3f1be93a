"""Where tests of durability work: they call fsync hundreds of times."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_place() -> Generator[Path]:
    """Give an empty directory in memory where the system has one, else on disk.

    A process killed by SIGKILL leaves the same files in both; only losing power would not.
    """
    memory = "/dev/shm"
    usable = Path(memory).is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(dir=memory if usable else None) as name:
        yield Path(name)
