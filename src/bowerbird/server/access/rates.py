"""How often somebody may ask (SV-60). Pure, but for the clock that is given.

Here: token buckets by key, bounded in number. Not here: whose key it is, the answer 429.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass

MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many per second on average, at most `burst` at once."""

    per_s: float
    burst: float


class Buckets:
    """One bucket per key; the least recently used key is forgotten when there are too many.

    Example:
        >>> buckets = Buckets(Rate(1.0, 2))
        >>> [buckets.take("a", 0.0) for _ in range(3)], buckets.take("a", 1.0)
        ([0, 0, 1], 0)
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> int:
        """Take one; return 0, or the whole seconds after which it will be possible."""
        level = self._level(key, now)
        if level >= 1:
            self._put(key, level - 1, now)
            return 0
        self._put(key, level, now)
        return self._wait(level)

    def wait(self, key: str, now: float) -> int:
        """Return the seconds after which `take` will be possible, without taking."""
        level = self._level(key, now)
        return 0 if level >= 1 else self._wait(level)

    def _level(self, key: str, now: float) -> float:
        level, at = self._levels.get(key, (self._rate.burst, now))
        return min(self._rate.burst, level + (now - at) * self._rate.per_s)

    def _wait(self, level: float) -> int:
        return max(1, math.ceil((1 - level) / self._rate.per_s))

    def _put(self, key: str, level: float, now: float) -> None:
        self._levels[key] = (level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_KEYS:
            self._levels.popitem(last=False)
