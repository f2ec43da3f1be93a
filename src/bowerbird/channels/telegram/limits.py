"""How much may be sent when: Telegram's limits, kept by ourselves (AS-19). Pure but for its memory.

Here: one a second per private chat, twenty a minute per group, thirty a second in all. Not here: waiting
(`sending.py`).

Telegram counts what arrives, and how long a message is on its way is known only when its answer has come. One
that is on its way therefore takes its place until then, and the time of the limit runs from its answer on: so
no window at the other end holds more, whatever delays one message and not the next.

Edits of an unfinished answer are the first that must go: they get a slot only while some are left over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

FLIGHT_S = 5.0
"""A message without an answer has arrived, or is lost, by then: calls that hang must not stop all others."""


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
class Slot:
    """One message: when it was given away, and when its answer came."""

    begun: float
    ended: float | None = None

    def latest(self, now: float) -> float:
        """Return when it has arrived at the latest, as far as that is known now."""
        return self.ended if self.ended is not None else min(now, self.begun + FLIGHT_S)


@dataclass(slots=True)
class Limits:
    """What was sent lately; `now` is any clock that only goes forward."""

    _all: list[Slot] = field(default_factory=list[Slot])
    _chats: dict[int, list[Slot]] = field(default_factory=dict[int, list[Slot]])
    _quiet: dict[int, float] = field(default_factory=dict[int, float])

    def delay(self, chat: int, now: float, *, is_edit: bool = False) -> float:
        """Return the least seconds until a message to a chat may be sent, 0 for now."""
        return max(self.delay_of(chat, now, is_edit=is_edit), self.delay_of_all(now, is_edit=is_edit))

    def delay_of_all(self, now: float, *, is_edit: bool = False) -> float:
        """Return that as far as all chats together are concerned."""
        return _delay(self._all, ALL, now, is_edit)

    def delay_of(self, chat: int, now: float, *, is_edit: bool = False) -> float:
        """Return that as far as the chat itself is concerned."""
        own = _delay(self._chats.get(chat, ()), _allowance(chat), now, is_edit)
        return max(self._quiet.get(chat, now) - now, own)

    def take(self, chat: int, now: float) -> Slot:
        """Count one message; its `ended` is to be set when its answer has come."""
        slot = Slot(now)
        self._all = [*_counting(self._all, ALL, now), slot]
        self._chats[chat] = [*_counting(self._chats.get(chat, ()), _allowance(chat), now), slot]
        if len(self._chats) > _MANY or len(self._quiet) > _MANY:
            self._forget(now)
        return slot

    def keep_quiet(self, chat: int, until: float) -> None:
        """Send nothing to a chat until then, as Telegram asked."""
        self._quiet[chat] = max(until, self._quiet.get(chat, until))

    def _forget(self, now: float) -> None:
        self._chats = {
            chat: sent for chat, sent in self._chats.items() if _counting(sent, _allowance(chat), now)
        }
        self._quiet = {chat: until for chat, until in self._quiet.items() if until > now}


def _allowance(chat: int) -> Allowance:
    return PRIVATE if chat > 0 else GROUP


def _counting(sent: Sequence[Slot], allowance: Allowance, now: float) -> list[Slot]:
    return [slot for slot in sent if slot.latest(now) + allowance.within_s > now]


def _delay(sent: Sequence[Slot], allowance: Allowance, now: float, is_edit: bool) -> float:
    most = allowance.most - (allowance.reserve if is_edit else 0)
    if len(sent) < most:
        return 0.0
    latest = sorted(slot.latest(now) for slot in sent)
    return max(0.0, latest[-most] + allowance.within_s - now)
