"""What viewers hear of a landing of many files while it runs (reliability 7, SV-41).

Here: how often, and that the last word always comes. Not here: counting (`workspace/landing/progress.py`),
that something has landed (`Notice("landing")`).

The thread that lands leaves its newest word; the event loop takes it from there a few times a second. So a
landing of any size costs its viewers the same.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec

from bowerbird.agent.landing import EVERY_S, FEW_FILES
from bowerbird.core.events import LandingProgress
from bowerbird.sessions.live.hub import Live, Published

REPEAT_S = 5.0
"""A phase that does not move is said again, for who would take the silence for an end."""

Told = Callable[[LandingProgress], None]


@contextlib.asynccontextmanager
async def watched(
    live: Live, thread_id: str | None, turn_id: str | None = None, also: Told | None = None
) -> AsyncGenerator[Told]:
    """Give what a landing tells; a session's viewers hear of it, at most `1 / EVERY_S` times a second.

    The last event has the phase `over`, also when the landing was refused.

    Args:
        thread_id: whose viewers; None = nobody's. also: told each time, in the thread that lands.
    """
    word = _Word(live, thread_id, turn_id, also)
    saying = asyncio.create_task(word.say_on(), name="progress of a landing")
    try:
        yield word.told
    finally:
        saying.cancel()
        word.end()
        await asyncio.gather(saying, return_exceptions=True)


class _Word:
    def __init__(self, live: Live, thread_id: str | None, turn_id: str | None, also: Told | None) -> None:
        self._live, self._thread_id, self._turn_id, self._also = live, thread_id, turn_id, also
        self._newest: LandingProgress | None = None

    def told(self, progress: LandingProgress) -> None:
        if progress.total > FEW_FILES:
            self._newest = progress
        if self._also is not None:
            self._also(progress)

    async def say_on(self) -> None:
        clock = asyncio.get_running_loop().time
        said: LandingProgress | None = None
        at = clock()
        while True:
            await asyncio.sleep(EVERY_S)
            newest = self._newest
            if newest is not None and (newest is not said or clock() - at >= REPEAT_S):
                said, at = newest, clock()
                self._say(newest)

    def end(self) -> None:
        if self._newest is not None:
            self._say(msgspec.structs.replace(self._newest, phase="over"))

    def _say(self, progress: LandingProgress) -> None:
        if self._thread_id is not None:
            self._live.publish(Published(self._thread_id, self._turn_id, None, progress))
