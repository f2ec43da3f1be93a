"""How many subagents of a session run at once, children of children included (DE-16).

Here: slots that a subagent lends while it waits for its own. Not here: other caps (`entries`).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bowerbird.agent.stop import StopSignal


class Slot:
    """The slot of one running subagent."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._waiting = 0
        self._back: asyncio.Lock = asyncio.Lock()
        self._held = True

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Lend the slot to whoever needs one: its subagent waits for its own, which could else never run.

        On leaving it is taken back, which waits for a free one; calls in parallel lend it once.
        """
        self._waiting += 1
        if self._waiting == 1 and self._held:
            self._held = False
            self._free.release()
        try:
            yield
        finally:
            self._waiting -= 1
        async with self._back:
            if self._waiting == 0 and not self._held:
                await self._free.acquire()
                self._held = True

    def give_back(self) -> None:
        """End the use of the slot."""
        if self._held:
            self._held = False
            self._free.release()


class Slots:
    """The slots of one session and everything below it."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def held(self, stop: StopSignal) -> AsyncGenerator[Slot]:
        """Wait for a slot and hold it; raises Stopped when `stop` is set before."""
        await stop.guard(self._free.acquire())
        slot = Slot(self._free)
        try:
            yield slot
        finally:
            slot.give_back()
