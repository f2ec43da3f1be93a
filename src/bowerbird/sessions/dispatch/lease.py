"""A held lease: renewed while its turn is driven, noticed when it is lost (SE-28, SE-29).

Here: the keeper task and the local guess whether the lease still holds. Not here: the rows
(`store/rows/leases.py`), which check every append anyway.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bowerbird.core.errors import LeaseLost, StoreError
from bowerbird.sessions.settings import SessionSettings
from bowerbird.store.rows.leases import release_lease, renew_lease
from bowerbird.store.store import Store

_T = TypeVar("_T")


class Lease:
    """The right to write to one session, under `epoch`; the caller took it with `take_lease`.

    Args:
        on_lost: called once, in the event loop, when another process may have taken over.
    """

    def __init__(
        self, store: Store, thread_id: str, epoch: int, settings: SessionSettings, on_lost: Callable[[], None]
    ) -> None:
        self.thread_id = thread_id
        self.epoch = epoch
        self._store = store
        self._settings = settings
        self._on_lost = on_lost
        self._until = _now() + settings.lease_s
        self._lost = False
        self._released = False
        self._loop = asyncio.get_running_loop()
        self._keeper: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(
            settings.heartbeat_s, self._begin_to_keep
        )  # most turns end before

    async def confirm(self) -> None:
        """Return when the lease certainly holds; a term that may have run out is renewed first.

        Raises:
            LeaseLost: it is over, or another's: a process that was stopped for long finds out here.
        """
        tries = 3  # a renewal that waited for the database may itself come too late
        while not self._lost and _now() > self._until and tries:
            tries -= 1
            await self._renew()
        if self._lost or _now() > self._until:
            self._lose()
            raise LeaseLost(
                f"session {self.thread_id}: this process did not renew its lease in time; "
                "the turn goes on elsewhere"
            )

    async def kept(self, write: Callable[[], Awaitable[_T]]) -> _T:
        """Return what a write under this lease gives; it is made again where only a set clock refused it.

        Raises:
            LeaseLost: another has taken over, or the term is over.
        """
        try:
            return await write()
        except LeaseLost:
            if self._lost or _now() > self._until:
                raise
            await self._renew()
            if self._lost:
                raise
            return await write()

    def was_released(self) -> None:
        """Note that a transaction of the driver gave the lease back."""
        self._released = True

    async def aclose(self) -> None:
        """Stop renewing and give the lease back, unless that happened before."""
        self._timer.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if not self._released and not self._lost:
            self._released = True
            await self._store.write(lambda c: release_lease(c, self.thread_id, self.epoch), flush=False)

    def _begin_to_keep(self) -> None:
        self._keeper = self._loop.create_task(self._keep(), name=f"lease {self.thread_id}")

    async def _keep(self) -> None:
        while not self._lost:
            with contextlib.suppress(StoreError):  # `confirm` gives up when the lease has run out
                await self._renew()
            await asyncio.sleep(self._settings.heartbeat_s)

    async def _renew(self) -> None:
        asked_at = _now()
        # A jump of the database's clock ends a lease that nobody took: by our own, its term still runs.
        runs = asked_at <= self._until
        renewed = await self._store.write(
            lambda c: renew_lease(c, self.thread_id, self.epoch, self._settings.lease_s, or_expired=runs),
            flush=False,
        )
        if renewed:
            self._until = asked_at + self._settings.lease_s
        else:
            self._lose()

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._on_lost()


def _now() -> float:
    # Counts the time a suspended machine sleeps, which the monotonic clock does not.
    return time.clock_gettime(time.CLOCK_BOOTTIME)
