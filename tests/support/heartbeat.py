"""How long the event loop stood still: what a person at another conversation would have waited."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

BEAT_S = 0.005


class Heartbeat:
    """`longest` is the longest time in seconds that the loop ran nothing else."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT_S)
            self.longest = max(self.longest, time.perf_counter() - began - BEAT_S)


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
