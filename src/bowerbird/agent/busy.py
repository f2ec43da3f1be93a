"""One run at a time on a branch (AG-26).

Here: which branches of this process have a run. Not here: the lock between processes (`workspace`).

The set below is process-wide because the fact is: two agents may hold handles on one branch.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bowerbird.core.errors import BranchBusy

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_running: set[str] = set()
_guard = threading.Lock()


@contextmanager
def in_use(branch: "Branch") -> Generator[None]:
    """Hold `branch` for one run; raises BranchBusy when it has one already."""
    key = branch.id
    with _guard:
        if key in _running:
            raise BranchBusy(
                f"branch {key} is in use by another run; give this one its own: branch=agent.branch.fork(). "
                "A stream that was left before its end runs until it is closed: "
                "async with aclosing(agent.stream(…)) as events"
            )
        _running.add(key)
    try:
        yield
    finally:
        with _guard:
            _running.discard(key)
