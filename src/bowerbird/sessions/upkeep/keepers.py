"""What a service does beside turns: old things removed, audit logs completed, held turns continued.

Here: the tasks, begun with the service and ended with it. Not here: the work itself (`retention.py`,
`startup.py`, `held_turns.py`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from bowerbird.sessions.upkeep.retention import keep_tidy
from bowerbird.sessions.upkeep.startup import late_logs, mend_audit_logs

if TYPE_CHECKING:
    from bowerbird.sessions.journal.audit_log import AuditLog
    from bowerbird.sessions.settings import SessionSettings
    from bowerbird.sessions.upkeep.retention import Removed
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.rows.turns import TurnRow
    from bowerbird.store.store import Store

_log = logging.getLogger(__name__)


class Kept(Protocol):
    """The service, as far as its keepers know it."""

    store: "Store"
    settings: "SessionSettings"

    async def tidy(self) -> "Removed":
        """Remove what is older than settings keep it."""
        ...

    async def wake(self, turn: "TurnRow") -> None:
        """Have a turn driven that was queued."""
        ...

    async def answer(
        self, request_id: str, decision: str, *, thread_id: str, feedback: str, by: str, door: str
    ) -> None:
        """Answer a pending request."""
        ...


class Keepers:
    """The tasks of one service.

    Args:
        drives_all: this process runs everybody's turns; a command leaves what others wait for alone.
    """

    def __init__(self, service: Kept, *, drives_all: bool) -> None:
        self._service = service
        self._drives_all = drives_all
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, audit: "AuditLog", often: Callable[[], Awaitable[object]]) -> None:
        """Begin; none of it keeps turns or requests waiting.

        Args:
            often: what goes beside retention each minute.
        """
        tidying = keep_tidy(self._service.tidy, often)
        works = [
            ("retention", tidying),
            ("audit", self._mend(audit, await late_logs(self._service.store, audit))),
        ]
        if self._drives_all:
            from bowerbird.sessions.upkeep.held_turns import keep_waking

            works += [("limits", keep_waking(self.limits_lifted)), ("questions", keep_waking(self.expired))]
        self._tasks = [asyncio.create_task(work, name=f"bowerbird-{name}") for name, work in works]

    async def aclose(self) -> None:
        """End what runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def limits_lifted(self) -> int:
        """Continue the turns that waited for money and have room now; returns how many."""
        from bowerbird.sessions.upkeep.held_turns import BY, wake_held

        service = self._service

        async def go_on(request_id: str, thread_id: str) -> None:
            await service.answer(request_id, "raise", thread_id=thread_id, feedback="0", by=BY, door="limits")

        return await wake_held(service.store, service.settings, go_on)

    async def expired(self) -> int:
        """Let what waits behind questions go on whose time is over; returns how many there were."""
        from bowerbird.sessions.upkeep.held_turns import let_expired_go

        return await let_expired_go(self._service.store, self._service.wake)

    async def _mend(self, audit: "AuditLog", late: "Sequence[SessionRow]") -> None:
        try:
            mended = await mend_audit_logs(self._service.store, audit, late)
            if mended:
                _log.info("%d lines of audit logs were missing and are written again", mended)
        except Exception:  # noqa: BLE001  people's copies of the record: without them everything else works
            _log.warning("audit logs were not compared with the journal", exc_info=True)
