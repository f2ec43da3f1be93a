"""How long whole outputs are kept: 7 days, and 1 GiB per branch (SB-16).

Here: taking old ones away. Not here: writing them (`output`), reading them
(`bowerbird.workspace.find.spills`).
"""

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path

KEPT_DAYS = 7
KEPT_BYTES = 1 << 30
_DAY_S = 86_400


def spill_name(call: str) -> str:
    """Return the file name of a call's whole output."""
    return f"{call}.txt".replace("/", "_")


def prune_spills(folder: Path, *, keep: Collection[str] = (), now: float | None = None) -> list[str]:
    """Delete outputs that are too old, then the oldest until the rest fits; return their names. Blocks.

    Args:
        folder: of one branch. keep: names still written to. now: `time.time()`.
    """
    clock = time.time() if now is None else now
    found: list[tuple[float, int, str]] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as items:
        for item in items:
            if item.is_file(follow_symlinks=False) and item.name not in keep:
                facts = item.stat(follow_symlinks=False)
                found.append((facts.st_mtime, facts.st_size, item.name))
    left = sum(size for _, size, _ in found)
    gone: list[str] = []
    for changed, size, name in sorted(found):
        if clock - changed <= KEPT_DAYS * _DAY_S and left <= KEPT_BYTES:
            break
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
        left -= size
        gone.append(name)
    return gone
