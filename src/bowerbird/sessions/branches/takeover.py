"""Taking a branch from a process that lost its session but still lives: stopped, not dead (SE-26, SE-29).

Here: when that is allowed, ending what it left running, and the lock. Not here: leases (`dispatch/lease.py`),
which turn is taken over (`turn/begin_transaction.py`).

A process under SIGSTOP keeps the branch's lock, and its commands go on without it. Whoever has the session's
lease now ends these commands and takes the lock; the stopped one finds both gone when it wakes.
"""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.workspace.registry.lock import note_of

if TYPE_CHECKING:
    from bowerbird.workspace.registry.lock import WriterLock

ENDED_S = 5.0
_STOPPED = ("T", "t")


def take_over(lock: "WriterLock") -> bool:
    """Take a branch's lock from a stopped process of this machine; blocks for a moment.

    The caller has the session's lease, so that the holder may change nothing more.

    Returns:
        Whether it was taken: False when nobody has it, or a process that is not stopped.
    """
    holder = lock.holder()
    pid = holder.pid if holder is not None else 0
    if holder is None or pid in (0, os.getpid()) or state_of(pid) not in _STOPPED:
        return False
    if note_of(pid) != holder.note:
        return False  # it died, and another process has its number
    end_descendants(pid)
    lock.replace()
    return True


def state_of(pid: int) -> str:
    """Return a process's state as the kernel names it, "" when it is gone."""
    return _stat(pid)[0] if _stat(pid) else ""


def end_descendants(pid: int) -> None:
    """Kill everything that a process started, and wait until it is gone."""
    until = time.monotonic() + ENDED_S
    while found := descendants(pid):
        for each in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        if time.monotonic() > until:
            return  # what cannot be killed is the kernel's
        time.sleep(0.005)


def descendants(pid: int) -> list[int]:
    """Return the living processes below `pid`; the dead that it has not waited for are left out."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    for entry in os.listdir("/proc"):
        fields = _stat(int(entry)) if entry.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry))
            if fields[0] in ("Z", "X"):
                dead.add(int(entry))
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return [each for each in found if each not in dead]


def _stat(pid: int) -> list[str]:
    """State, parent, … of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
    except OSError:
        return []
