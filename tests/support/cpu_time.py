"""How much processor work costs, for tests that compare one size with another (never with a clock)."""

import time
from collections.abc import Callable


def cpu(work: Callable[[], object], runs: int = 3) -> float:
    """Return the CPU seconds of the quickest of some runs, at least half a millisecond."""
    took: list[float] = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        took.append(time.process_time() - begun)
    return max(min(took), 0.0005)
