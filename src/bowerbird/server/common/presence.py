"""Who watches a conversation, and what is released when nobody does (SV-53).

Here: counting viewers, the delay after the last one, one release per idle conversation. Not here: what
a viewer is sent, what release means (given as a function), the turn of a client that left (SV-49).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum

from bowerbird.core.errors import BowerbirdError

_log = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0


class Verdict(Enum):
    """What a release found: it was done, or work is open and it must be tried again."""

    RELEASED = "released"
    BUSY = "busy"


class Presence:
    """Viewers of every conversation of a process; belongs to one event loop.

    Args:
        delay_s: from the last viewer's leaving to the release.
        release: releases an idle conversation's runtime; says BUSY while a turn, a queue entry or a
            background job is open.

    Example:
        presence.joined("0123456789ab")
        presence.left("0123456789ab")  # the release follows after `delay_s`
    """

    def __init__(self, delay_s: float, release: Callable[[str], Awaitable[Verdict]]) -> None:
        self._delay_s = delay_s
        self._release = release
        self._viewers: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._releasing: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._somebody = asyncio.Event()

    def wait(self, delay_s: float) -> None:
        """Let the next conversation that is left wait so long for its release."""
        self._delay_s = delay_s

    def joined(self, thread_id: str) -> int:
        """Count a viewer in and call off a pending release; returns how many watch now."""
        self._viewers[thread_id] = self._viewers.get(thread_id, 0) + 1
        self._empty.clear()
        self._somebody.set()
        self._call_off(thread_id)
        return self._viewers[thread_id]

    def left(self, thread_id: str) -> int:
        """Count a viewer out; the last one starts the delay. Returns how many still watch."""
        remaining = self._viewers.get(thread_id, 0) - 1
        if remaining > 0:
            self._viewers[thread_id] = remaining
            return remaining
        self._viewers.pop(thread_id, None)
        if not self._viewers:
            self._empty.set()
        self.touched(thread_id)
        return 0

    def touched(self, thread_id: str) -> None:
        """Say that a conversation was used without a viewer (REST): the delay begins anew."""
        if thread_id not in self._viewers:
            self._again(thread_id, self._delay_s)

    def viewers(self, thread_id: str) -> int:
        """Return how many watch a conversation in this process."""
        return self._viewers.get(thread_id, 0)

    def total(self) -> int:
        """Return how many viewers there are."""
        return sum(self._viewers.values())

    async def deserted(self) -> None:
        """Return when nobody watches any conversation."""
        await self._empty.wait()

    async def somebody(self) -> None:
        """Return when the first viewer of all has come."""
        await self._somebody.wait()

    def forget(self, thread_id: str) -> None:
        """Release nothing of a conversation any more: it was deleted."""
        self._call_off(thread_id)

    async def aclose(self) -> None:
        """Call every delay off and wait for releases under way."""
        self._closed = True
        for thread_id in list(self._timers):
            self._call_off(thread_id)
        if self._releasing:
            await asyncio.wait(list(self._releasing.values()))

    def _call_off(self, thread_id: str) -> None:
        timer = self._timers.pop(thread_id, None)
        if timer is not None:
            timer.cancel()

    def _again(self, thread_id: str, delay_s: float) -> None:
        self._call_off(thread_id)
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        self._timers[thread_id] = loop.call_later(delay_s, self._expired, thread_id)

    def _expired(self, thread_id: str) -> None:
        self._timers.pop(thread_id, None)
        if thread_id in self._viewers or thread_id in self._releasing or self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._run(thread_id), name=f"release {thread_id}")
        self._releasing[thread_id] = task
        task.add_done_callback(lambda _: self._releasing.pop(thread_id, None))

    async def _run(self, thread_id: str) -> None:
        try:
            verdict = await self._release(thread_id)
        except (BowerbirdError, OSError) as error:
            # What could not be released stays until the process ends or somebody comes and leaves again.
            _log.warning("the runtime of %s was not released: %s", thread_id, error)
            return
        if verdict is Verdict.BUSY and thread_id not in self._viewers and thread_id not in self._timers:
            self._again(thread_id, min(max(self._delay_s, 0.25), LOOK_AGAIN_S))
