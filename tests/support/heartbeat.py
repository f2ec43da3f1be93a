"""How long the event loop stood still: what a person at another conversation would have waited."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

BEAT_S = 0.005


class Heartbeat:
    """The longest times in seconds that the loop ran nothing else.

    Attributes:
        longest: by the clock on the wall.
        own: the same without the time in which the machine ran something else on our processor, which other
            programs decide; the same as `longest` where the system does not count it.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.own = 0.0

    async def beat(self) -> None:
        while True:
            began, waited = time.perf_counter(), waited_s()
            await asyncio.sleep(BEAT_S)
            late = time.perf_counter() - began - BEAT_S
            self.longest = max(self.longest, late)
            self.own = max(self.own, late - (waited_s() - waited))


def waited_s() -> float:
    """Return the seconds that this thread was ready to run and did not get a processor, since it began."""
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text()
    except OSError:
        return 0.0
    return int(text.split()[1]) / 1e9


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Measure while the block runs."""
    heart = Heartbeat()
    beating = asyncio.create_task(heart.beat())
    await asyncio.sleep(0)
    try:
        yield heart
    finally:
        beating.cancel()
