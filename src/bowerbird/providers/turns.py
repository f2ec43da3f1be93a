"""Runs in one session take their turns, in this process and among all that share the records (PR-33).

Here: waiting for a turn, keeping it while a run lasts. Not here: the row (`store/rows/provider_turns.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

from bowerbird.core.errors import StoreError
from bowerbird.store.rows.leases import this_executor
from bowerbird.store.rows.provider_turns import leave_turn, take_turn
from bowerbird.store.store import Store

TERM_S = 30
_KEEP_S = 10.0
_LOOK_AGAIN_S = 0.25  # another process may have it: nothing tells of its end

_log = logging.getLogger(__name__)


class Turns:
    """The turns that this process has or waits for; belongs to one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._who = this_executor()

    @contextlib.asynccontextmanager
    async def held(self, session_id: str, wait_s: float) -> AsyncGenerator[None]:
        """Wait until no other run is in the session, and be in it.

        Raises:
            TimeoutError: another run was in it for all of `wait_s` seconds.
        """
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(wait_s):
                await stack.enter_async_context(self._here(session_id))
                taken = await self._taken(session_id)
                while not taken:
                    await asyncio.sleep(_LOOK_AGAIN_S)
                    taken = await self._taken(session_id)
            stack.push_async_callback(self._left, session_id)
            keeper = asyncio.create_task(self._kept(session_id), name=f"turn in {session_id}")
            stack.callback(keeper.cancel)
            yield

    @contextlib.asynccontextmanager
    async def _here(self, session_id: str) -> AsyncGenerator[None]:
        """Be the only run of this process in the session."""
        lock, waiting = self._locks.get(session_id, (asyncio.Lock(), 0))
        self._locks[session_id] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks[session_id]
            if waiting == 1:
                del self._locks[session_id]
            else:
                self._locks[session_id] = (lock, waiting - 1)

    async def _taken(self, session_id: str) -> bool:
        # Shielded: a turn that is taken while the wait is given up is ours to give back.
        taking = asyncio.ensure_future(
            self._store.write(lambda c: take_turn(c, session_id, self._who, TERM_S), flush=False)
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            if await taking:
                await self._left(session_id)
            raise

    async def _left(self, session_id: str) -> None:
        await asyncio.shield(self._store.write(lambda c: leave_turn(c, session_id, self._who), flush=False))

    async def _kept(self, session_id: str) -> None:
        while True:
            await asyncio.sleep(_KEEP_S)
            try:
                if await self._store.write(
                    lambda c: take_turn(c, session_id, self._who, TERM_S), flush=False
                ):
                    continue
            except StoreError as error:  # the next one may come in time
                _log.warning("the turn in %s was not kept: %s", session_id, error)
                continue
            _log.warning("another process runs an agent in %s, too: this one was away too long", session_id)
            return
