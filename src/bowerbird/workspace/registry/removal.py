"""Branch directories that go for good.

Here: taking one away so that nobody finds half of it, and which were made for a moment by a process that
died. Not here: the trash (`registry.py`).
"""

import contextlib
import errno
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bowerbird.core.errors import BranchBusy, NotFound
from bowerbird.core.timestamps import from_iso
from bowerbird.workspace.registry.lock import WriterLock
from bowerbird.workspace.tree.manifest import ManifestFile
from bowerbird.workspace.tree.open_layer import discard

REMOVED = ".removed-"
UNSEEN = ".new-"  # of a branch whose record is being written
THROWAWAY = "throwaway"  # the key of a manifest that says so; its process keeps the branch's lock
_SETTLED_S = 60.0  # a living process has taken the lock by then
_MAKING_S = 3_600.0  # none makes a branch for so long

_log = logging.getLogger(__name__)


def remove(directory: Path) -> bool:
    """Remove a branch; first out of sight: whoever wants it back finds all of it, or nothing.

    Returns:
        False when another process did it first.
    """
    hidden = directory.with_name(f"{REMOVED}{directory.name}")
    try:
        directory.rename(hidden)
    except FileNotFoundError:
        return False
    delete(hidden)
    return True


def remove_if(directory: Path, is_over: Callable[[], bool]) -> bool:
    """Remove a branch that nobody works on, if that still holds once nobody can begin to.

    Another process may have taken it out of the trash, or be taking back what landed from it, since it was
    listed: both hold its lock.

    Returns:
        False when it stays, or when another process was first.
    """
    try:
        with WriterLock(directory / "lock").hold():
            if not is_over():
                return False
            hidden = directory.with_name(f"{REMOVED}{directory.name}")
            directory.rename(hidden)
    except (BranchBusy, NotFound, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return is_over() and remove(directory)  # no room for the lock, and this is how there will be some
    delete(hidden)
    return True


def delete(directory: Path) -> None:
    """Delete a tree of any depth; what a sandbox that ends is removing too may stay for the next time."""
    for _ in range(2):
        with contextlib.suppress(OSError):
            discard(directory)
            return


def delete_half(branches: Path, now_s: float) -> None:
    """Delete what somebody was killed in the middle of removing, or of making."""
    for left in branches.glob(f"{REMOVED}*"):
        delete(left)
    for left in branches.glob(f"{UNSEEN}*"):
        with contextlib.suppress(OSError):  # it is a branch by now
            if left.stat().st_mtime < now_s - _MAKING_S:
                delete(left)


def remove_left(
    directories: Sequence[Path], is_stood_on: Callable[[str], object], now_s: float | None = None
) -> list[str]:
    """Remove the branches that were made for a check, say, whose process died before their end; their ids.

    Nobody's work is in one: it is a fork that only commands of the check wrote to. One whose process lives,
    on whatever machine that shares the directory's locks, stays.
    """
    before = (time.time() if now_s is None else now_s) - _SETTLED_S
    removed: list[str] = []
    for directory in directories:
        try:
            manifest = ManifestFile(directory).load()
            if not manifest.extra.get(THROWAWAY) or from_iso(manifest.created_at).timestamp() > before:
                continue
            free = WriterLock(directory / "lock").holder() is None  # a living process is not waited for
            if free and remove_if(directory, lambda name=directory.name: not is_stood_on(name)):
                removed.append(directory.name)
        except FileNotFoundError:
            continue  # removed meanwhile
        except (OSError, ValueError) as error:
            _log.warning("branch %s was not looked at: %s", directory.name, error)
    return removed


def extra_of(lower: Sequence[tuple[str, int]], *, throwaway: bool) -> dict[str, object]:
    """Return what the manifest of a new branch says beside its fields."""
    layers = {"lower": [list(row) for row in lower]} if lower else {}
    return {**layers, **({THROWAWAY: True} if throwaway else {})}
