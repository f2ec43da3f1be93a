"""Releasing what an idle conversation holds: warm sandbox, mounts, open handles (SV-53).

Here: when a conversation is idle, and what is released. Not here: the delay (`common/presence.py`), the
limits of warm sandboxes (`sandbox/host.py`).
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from bowerbird.core.errors import UnknownSession
from bowerbird.server.common.presence import Verdict

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.service import SessionService


class Cleaner:
    """Releases conversations of one process.

    Args:
        cleanup: says what holds now: `release` keeps unlanded changes, `discard` moves them to the trash
            (7 days).
    """

    def __init__(
        self,
        sessions: "SessionService",
        branches: "Branches",
        sandboxes: "SandboxHost",
        cleanup: Callable[[], Literal["release", "discard"]],
    ) -> None:
        self._sessions = sessions
        self._branches = branches
        self._sandboxes = sandboxes
        self._cleanup = cleanup

    async def release(self, thread_id: str) -> Verdict:
        """Release a conversation's runtime, or say that work is open."""
        row = await self._sessions.find(thread_id)
        if row is None or row.branch_id is None:
            return Verdict.RELEASED
        branch_id = row.branch_id

        async def is_idle() -> bool:
            if self._sandboxes.is_busy(branch_id):
                return False
            return not await self._sessions.lookup.has_work(thread_id)

        if not await self._branches.release(row, is_idle):
            return Verdict.BUSY
        if self._cleanup() == "discard" and row.changed_files:
            with contextlib.suppress(UnknownSession):  # deleted meanwhile: its branch is in the trash
                await self._sessions.review.discard(thread_id)
        return Verdict.RELEASED
