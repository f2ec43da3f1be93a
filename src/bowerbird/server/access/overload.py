"""Whether this process has room for new work (SV-61).

Here: measuring the event loop's lag and the process's memory while requests come. Not here: which
requests are new work (`gate.py`), the queue's own limits (`sessions`).
"""

import asyncio
import os
import time
from pathlib import Path

BEAT_S = 0.1
LATE_BEATS = 3  # in a row: one stall, say a first import, is no overload
RSS_S = 1.0
IDLE_S = 5.0
RETRY_S = 2


class Overload:
    """Measures one event loop; it beats only while somebody asks.

    Args:
        max_rss_mb: memory above which new work is refused, 0 = no limit.
        max_lag_s: lateness of the event loop above which it is refused, when it is so late again and again.
    """

    def __init__(self, max_rss_mb: int, max_lag_s: float = 0.5) -> None:
        self._max_lag_s = max_lag_s
        self._max_rss = max_rss_mb << 20
        self._late = 0
        self._asked_at = float("-inf")
        self._beat: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._rss = 0
        self._rss_at = float("-inf")

    def limit(self, max_rss_mb: int) -> None:
        """Follow another limit of memory from now on."""
        self._max_rss = max_rss_mb << 20

    def reason(self) -> str | None:
        """Return why new work must be refused now, None when it need not."""
        now = time.monotonic()
        self._asked_at = now
        self._start(now)
        if self._late >= LATE_BEATS:
            return "the server is too busy"
        if self._max_rss and self._memory(now) > self._max_rss:
            return "the server uses more memory than server.max_rss_mb allows"
        return None

    def close(self) -> None:
        """Beat no more."""
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    def _start(self, now: float) -> None:
        if self._beat is None:
            self._due = now + BEAT_S
            self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._on_beat)

    def _on_beat(self) -> None:
        now = time.monotonic()
        self._late = self._late + 1 if now - self._due > self._max_lag_s else 0
        self._beat = None
        if now - self._asked_at < IDLE_S or self._late:
            self._start(now)

    def _memory(self, now: float) -> int:
        if now - self._rss_at > RSS_S:
            self._rss_at = now
            self._rss = resident_bytes()
        return self._rss


def resident_bytes() -> int:
    """Return the memory of this process, 0 where it cannot be read."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
