"""How much may be sent when: Telegram's limits, kept by ourselves (AS-19). Pure but for its memory.

Here: one a second per private chat, twenty a minute per group, thirty a second in all. Not here: waiting
(`sending.py`).

Edits of an unfinished answer are the first that must go: they get a slot only while some are left over.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Allowance:
    """`most` messages in `within_s` seconds, `reserve` of them not for edits."""

    most: int
    within_s: float
    reserve: int


PRIVATE = Allowance(1, 1.0, 0)
GROUP = Allowance(20, 60.0, 5)
ALL = Allowance(30, 1.0, 5)
_MANY = 1_000


@dataclass(slots=True)
class Limits:
    """What was sent lately; `now` is any clock that only goes forward."""

    _all: deque[float] = field(default_factory=deque[float])
    _chats: dict[int, deque[float]] = field(default_factory=dict[int, deque[float]])
    _quiet: dict[int, float] = field(default_factory=dict[int, float])

    def delay(self, chat: int, now: float, *, is_edit: bool = False) -> float:
        """Return the seconds until a message to a chat may be sent, 0 for now."""
        allowance = PRIVATE if chat > 0 else GROUP
        return max(
            self._quiet.get(chat, now) - now,
            _delay(self._chats.get(chat, deque()), allowance, now, is_edit),
            _delay(self._all, ALL, now, is_edit),
            0.0,
        )

    def take(self, chat: int, now: float) -> None:
        """Count one message."""
        self._chats.setdefault(chat, deque(maxlen=GROUP.most)).append(now)
        self._all.append(now)
        while len(self._all) > ALL.most:
            self._all.popleft()
        if len(self._chats) > _MANY or len(self._quiet) > _MANY:
            self._forget(now)

    def keep_quiet(self, chat: int, until: float) -> None:
        """Send nothing to a chat until then, as Telegram asked."""
        self._quiet[chat] = max(until, self._quiet.get(chat, until))

    def _forget(self, now: float) -> None:
        self._chats = {chat: sent for chat, sent in self._chats.items() if sent[-1] > now - GROUP.within_s}
        self._quiet = {chat: until for chat, until in self._quiet.items() if until > now}


def _delay(sent: deque[float], allowance: Allowance, now: float, is_edit: bool) -> float:
    most = allowance.most - (allowance.reserve if is_edit else 0)
    if len(sent) < most:
        return 0.0
    return sent[-most] + allowance.within_s - now
