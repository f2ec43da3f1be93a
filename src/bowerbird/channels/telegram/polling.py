"""Updates in, each confirmed only after it was committed (AS-13, AS-14, AS-15).

Here: the loop that polls, the order of deliveries, what is tried again or set aside, albums. Not here: what
an update says (`updates.py`), who holds the lease.

Telegram forgets the updates below the offset of the next request. The offset is therefore the first update
that is not settled: delivered, ignored, or set aside. An update that waits (the rest of its album may come,
or its delivery failed) is asked for again, and what came after it and is settled is passed over.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from bowerbird.channels.contract import Deliver, IncomingMessage
from bowerbird.channels.telegram.bot import Link, said
from bowerbird.channels.telegram.updates import Arrival, Me, merged, read_update
from bowerbird.core.errors import StoreError

MAX_TRIES = 3
MAX_ALBUM = 10  # pieces, as Telegram allows
EARLY_S = 0.5  # an empty answer to a long poll comes later
MAX_RAW = 256 * 1024  # characters of an update that is set aside
MAX_AT_ONCE = 16  # chats whose messages are delivered at the same time
LONGEST_WAIT_S = 30.0

_log = logging.getLogger(__name__)

Quarantine = Callable[[str, str, str], Awaitable[None]]
"""Keeps an update that cannot be handled: its key, the update as it came (JSON in ASCII), why."""

Report = Callable[[str], None]
"""Told what is wrong with receiving, and "" when it is well again."""


Begun = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Nobody has anything to do when receiving begins."""


class Lease(Protocol):
    """Who may poll with a token: one process at a time."""

    async def acquire(self) -> bool:
        """Take the lease; False while another process holds it."""
        ...

    async def renew(self) -> bool:
        """Keep it; False when it was lost."""
        ...

    async def release(self) -> None:
        """Give it back."""
        ...


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: of a long poll, between pieces of an album, after a conflict, between looks at the lease,
    after a failure, after the token was refused, and at most before Telegram is asked again however long it
    says to wait: who is deaf for a day by one answer misses everybody."""

    poll_s: int = 30
    album_s: float = 1.0
    conflict_s: float = 30.0
    lease_s: float = 5.0
    retry_s: float = 1.0
    refused_s: float = 30.0
    asked_s: float = 300.0


@dataclass(slots=True)
class _Work:
    """What is to be settled: one update, or those of an album."""

    chat: str
    ids: list[int]
    raw: list[Mapping[str, Any]]
    pieces: list[IncomingMessage] = field(default_factory=list[IncomingMessage])
    album: str | None = None
    wrong: str = ""


class Poller:
    """Receives the updates of one bot.

    Args:
        quarantine: takes what failed three times.
        report: told of conflicts and outages.
        begun: awaited each time this process has become the one that receives, before it does.
    """

    def __init__(
        self, link: Link, me: Me, lease: Lease, quarantine: Quarantine, report: Report, timing: Timing,
        begun: Begun = _nothing,
    ) -> None:  # fmt: skip
        self._link = link
        self._me = me
        self._lease = lease
        self._quarantine = quarantine
        self._report = report
        self._timing = timing
        self._begun = begun
        self._offset = 0
        self._settled: set[int] = set()
        self._first_seen: dict[int, float] = {}
        self._tries: dict[int, int] = {}
        self._problem: str | None = None  # not known yet
        self._is_storing = True
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled."""
        while True:
            try:
                if await self._lease.acquire():
                    await self._hold(deliver)
            except Exception as error:  # noqa: BLE001  wherever leases are kept: it is tried until it works
                _log.warning("telegram: lease", exc_info=error)
                self._say(f"The lease on this bot could not be taken: {said(error)}")
            await asyncio.sleep(self._timing.lease_s)

    async def _hold(self, deliver: Deliver) -> None:
        """Receive until the lease is lost."""
        self._problem = None  # of another process until now: that all is well must be said, too
        await self._begun()
        tasks = [
            asyncio.create_task(self._receive(deliver), name="telegram-poll"),
            asyncio.create_task(self._renew(), name="telegram-lease"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            try:
                await self._lease.release()
            except Exception as error:  # noqa: BLE001  it must not hide a cancelling; the lease runs out by itself
                _log.warning("telegram: lease", exc_info=error)

    async def _renew(self) -> None:
        is_held = True
        while is_held:
            await asyncio.sleep(self._timing.lease_s)
            is_held = await self._lease.renew()
        # No trouble: the other one receives, and says how that goes.
        _log.info("telegram: another process has taken over this bot")

    async def _receive(self, deliver: Deliver) -> None:
        delay_s = self._timing.retry_s
        wait_s = 0.0
        while True:
            try:
                updates = await self._fetch(is_waiting=wait_s > 0)
                self._is_storing = True
                wait_s = await self._settle(updates, deliver)
                if self._is_storing:
                    self._say("")
            except TelegramError as error:
                await asyncio.sleep(self._pause(error, delay_s))
                delay_s = min(delay_s * 2, LONGEST_WAIT_S)
            except Exception as error:  # noqa: BLE001  an answer of any form must not end the receiving
                _log.exception("telegram: polling")
                self._say(f"Telegram answered in an unknown form: {type(error).__name__}")
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, LONGEST_WAIT_S)
            else:
                delay_s = self._timing.retry_s
                await asyncio.sleep(wait_s)

    def _pause(self, error: TelegramError, delay_s: float) -> float:
        """Say what is wrong; return the seconds to wait."""
        if isinstance(error, Conflict) and "webhook" in str(error).lower():
            self._say("Another program has set a webhook for this bot; it is taken away at the next start.")
            return self._timing.conflict_s
        if isinstance(error, Conflict):
            self._say(
                "Another program polls with the same token. Stop it, or give this bot a token of its own; "
                f"tried again in {self._timing.conflict_s:.0f} s."
            )
            return self._timing.conflict_s
        if isinstance(error, InvalidToken):
            self._say("Telegram refuses the token; set channels.telegram.token to one that @BotFather gives.")
            return self._timing.refused_s
        self._say(f"Telegram cannot be reached: {said(error)}")
        if isinstance(error, RetryAfter):
            return max(delay_s, min(seconds_of(error), self._timing.asked_s))
        return delay_s

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._report(problem)

    async def _fetch(self, *, is_waiting: bool) -> list[Any]:
        timeout = 0 if is_waiting else self._timing.poll_s
        allowed = "%5B%22message%22%2C%22callback_query%22%5D"
        # The bot's own `get_updates` gives up the whole batch for one update that it cannot read.
        begun = asyncio.get_running_loop().time()
        found: object = await self._link.poll.post(
            f"{self._link.bot.base_url}/getUpdates?offset={self._offset}&timeout={timeout}&limit=100"
            f"&allowed_updates={allowed}",
            read_timeout=timeout + 15.0,
        )
        if not isinstance(found, list):
            raise TypeError("getUpdates did not answer with a list")
        if not found and timeout and asyncio.get_running_loop().time() - begun < EARLY_S:
            await asyncio.sleep(
                self._timing.retry_s
            )  # a server that does not wait must not be asked for ever
        return cast("list[Any]", found)

    async def _settle(self, updates: Sequence[Any], deliver: Deliver) -> float:
        """Deliver what can be delivered; returns the seconds after which the rest is asked for again."""
        numbered = {number: raw for raw in updates if (number := _number(raw)) is not None}
        # Numbers may begin anew below the old ones; a server that gives old ones for ever is asked in peace.
        is_old = bool(numbered) and max(numbered) < self._offset
        now = asyncio.get_running_loop().time()
        for number in numbered:
            self._first_seen.setdefault(number, now)
        chats: dict[str, list[_Work]] = {}
        for work in self._works({n: numbered[n] for n in sorted(numbered) if n not in self._settled}):
            chats.setdefault(work.chat, []).append(work)
        waits = await asyncio.gather(*(self._in_order(works, now, deliver) for works in chats.values()))
        self._advance(sorted(numbered))
        if is_old or len(numbered) < len(updates):
            # What has no number cannot be confirmed and comes again at once.
            waits.append(self._timing.retry_s)
        return min((wait for wait in waits if wait > 0), default=0.0)

    def _advance(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number not in self._settled:
                break
            self._offset = number + 1
        self._settled = {number for number in self._settled if number >= self._offset}
        for kept in (self._first_seen, self._tries):
            for number in [number for number in kept if number < self._offset]:
                del kept[number]

    def _works(self, numbered: Mapping[int, Mapping[str, Any]]) -> list[_Work]:
        works: list[_Work] = []
        albums: dict[str, _Work] = {}
        for number, raw in numbered.items():
            try:
                arrival = read_update(raw, self._me)
            except Exception as error:  # noqa: BLE001  no update, of whatever form, may stop the receiving
                works.append(_Work(f"?{number}", [number], [raw], wrong=said(error)))
                continue
            if arrival is None:
                self._settled.add(number)
                continue
            album = albums.get(arrival.album) if arrival.album is not None else None
            if album is not None and len(album.ids) < MAX_ALBUM:
                album.ids.append(number)
                album.raw.append(raw)
                album.pieces.append(arrival.message)
            else:
                works.append(_begun(number, raw, arrival))
                if arrival.album is not None:
                    albums[arrival.album] = works[-1]
        return works

    async def _in_order(self, works: Sequence[_Work], now: float, deliver: Deliver) -> float:
        """Settle the works of one chat; returns the seconds to wait where one cannot be settled yet."""
        for work in works:
            if work.album is not None and len(work.ids) < MAX_ALBUM:
                newest = max(self._first_seen[number] for number in work.ids)
                if (wait_s := newest + self._timing.album_s - now) > 0:
                    return wait_s
            async with self._places:
                wait_s = await self._one(work, deliver)
            if wait_s > 0:
                return wait_s
        return 0.0

    async def _one(self, work: _Work, deliver: Deliver) -> float:
        if not work.wrong:
            try:
                await deliver(merged(work.pieces))
            except StoreError as error:
                # The store's trouble is no fault of the update: it waits until the store is well.
                return self._failed(work, error, is_fault=False)
            except Exception as error:  # noqa: BLE001  whatever the rooms above raise, the next updates are received
                _log.warning("telegram: update %s failed", work.ids[0], exc_info=error)
                if (wait_s := self._failed(work, error, is_fault=True)) > 0:
                    return wait_s
                work.wrong = said(error)
        if work.wrong:
            try:
                for number, raw in zip(work.ids, work.raw, strict=True):
                    await self._quarantine(f"{self._me.bot_id}:{number}", _as_text(raw), work.wrong)
            except Exception as error:  # noqa: BLE001  what could not be kept is not forgotten: it comes again
                _log.warning("telegram: update %s could not be set aside", work.ids[0], exc_info=error)
                return self._failed(work, error, is_fault=False)
        self._settled.update(work.ids)
        return 0.0

    def _failed(self, work: _Work, error: Exception, *, is_fault: bool) -> float:
        if not is_fault:
            self._is_storing = False
            self._say(f"What arrives cannot be stored: {said(error)}")
            return min(self._timing.retry_s * 2, LONGEST_WAIT_S)
        tries = self._tries[work.ids[0]] = self._tries.get(work.ids[0], 0) + 1
        return 0.0 if tries >= MAX_TRIES else self._timing.retry_s * tries


def seconds_of(error: RetryAfter) -> float:
    """Return how long Telegram asks to wait."""
    asked = error.retry_after
    return float(asked) if isinstance(asked, int | float) else asked.total_seconds()


def _begun(number: int, raw: Mapping[str, Any], arrival: Arrival) -> _Work:
    return _Work(arrival.message.chat_id, [number], [raw], pieces=[arrival.message], album=arrival.album)


def _as_text(raw: Mapping[str, Any]) -> str:
    return json.dumps(raw, default=str)[:MAX_RAW]


def _number(raw: object) -> int | None:
    if not isinstance(raw, dict):
        return None
    number = cast("dict[str, Any]", raw).get("update_id")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
