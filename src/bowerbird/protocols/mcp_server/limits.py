"""How often and how many agents one caller may run (PT-6).

Here: the counts. Not here: rates of the server as a whole (`server/access/rates.py`).
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bowerbird.providers.contract.errors import AgentRateLimited

WINDOW_S = 60.0
MOST_CALLERS = 10_000  # of those that run nothing, the ones unseen for longest are forgotten


@dataclass(slots=True)
class _Use:
    begun: deque[float] = field(default_factory=deque[float])
    running: int = 0


class CallLimits:
    """Counts runs by caller; belongs to one event loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    @contextmanager
    def run(self, caller: str, *, per_minute: int, running: int) -> Generator[None]:
        """Count one run for as long as the context lasts.

        Raises:
            AgentRateLimited: there are too many; nothing was counted.
        """
        use = self._uses.setdefault(caller, _Use())
        self._uses.move_to_end(caller)
        now = self._now()
        while use.begun and use.begun[0] <= now - WINDOW_S:
            use.begun.popleft()
        if use.running >= running:
            raise AgentRateLimited(f"{running} runs of agents are under way already; wait for one to end")
        if len(use.begun) >= per_minute:
            wait = use.begun[0] + WINDOW_S - now
            raise AgentRateLimited(f"{per_minute} runs were begun within a minute", max(1.0, wait))
        use.begun.append(now)
        use.running += 1
        try:
            yield
        finally:
            use.running -= 1
            self._forget()

    def _forget(self) -> None:
        while len(self._uses) > MOST_CALLERS:
            idle = next((name for name, use in self._uses.items() if not use.running), None)
            if idle is None:
                return
            del self._uses[idle]
