"""Delivering what doors owe people: in order, again until it arrives, never lost (SE-37, 38, 55).

Here: the worker of a process, the protocol of a door, when to try again. Not here: what is
delivered (`messages.py`), any door.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, StoreError
from bowerbird.core.timestamps import from_iso, now_iso, to_iso
from bowerbird.sessions.delivery.messages import Parcel, parcel_of
from bowerbird.store.rows.leases import all_executors, is_dead
from bowerbird.store.rows.outbox import (
    OutboxRow,
    claim,
    claimants,
    find_parcel,
    free_claims,
    heads,
    update_parcel,
)
from bowerbird.store.store import Store

FIRST_DELAY_S, LONGEST_DELAY_S = 1.0, 300.0
CLAIM_S = 120.0
LOOK_EVERY_S = 1.0
MAX_ADDRESSES = 32  # sent to at the same time by one process

_log = logging.getLogger(__name__)


class DeliveryFailed(BowerbirdError):
    """A door could not deliver something.

    Attributes:
        retry_after_s: what the receiver asked to wait, None when it said nothing.
        is_final: trying again is useless (the chat is gone).
        is_formatting: the receiver refused the formatting; plain text may do.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        is_final: bool = False,
        is_formatting: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_final = is_final
        self.is_formatting = is_formatting


class Deliverer(Protocol):
    """How one door delivers."""

    @property
    def door(self) -> str:
        """The channel's name, as in sessions."""
        ...

    def parts(self, text: str) -> Sequence[Mapping[str, Any]]:
        """Cut an answer into messages (`{"text": …}`) that the receiver takes; pure."""
        ...

    async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
        """Send one part; returns the receiver's name for it.

        Args:
            key: the same for each try of one part: a receiver that knows it delivers once.

        Raises:
            DeliveryFailed: what to do about it is in it.
        """
        ...


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of a row after a failed try; `delay_s` None = it is dead."""

    delay_s: float | None
    is_plain: bool = False


def after_failure(
    error: DeliveryFailed, parcel: Parcel, attempts: int, now: datetime, max_age_h: float, chance: float
) -> Verdict:
    """Return when a failed delivery is tried again. Pure.

    Args:
        attempts: tries so far, this one included.
        chance: 0 … 1, spreads the tries of many rows.

    Example:
        >>> row = Parcel("answer", {}, to_iso(datetime.now(UTC)))
        >>> after_failure(DeliveryFailed("x"), row, 3, datetime.now(UTC), 24, 0.0).delay_s
        4.0
    """
    if error.is_formatting and not parcel.is_plain:
        return Verdict(0.0, is_plain=True)
    if error.is_final or error.is_formatting:
        return Verdict(None)
    delay_s = min(FIRST_DELAY_S * 2 ** min(attempts - 1, 20), LONGEST_DELAY_S) * (1 + chance / 4)
    delay_s = min(delay_s, LONGEST_DELAY_S)
    if error.retry_after_s is not None:
        delay_s = max(delay_s, error.retry_after_s)
    too_late = from_iso(parcel.since) + timedelta(hours=max_age_h)
    return Verdict(None if now + timedelta(seconds=delay_s) > too_late else delay_s)


class Outbox:
    """Delivers the rows of the doors that this process serves.

    Args:
        holder: executor id of this process.
        max_age_h: `outbox.max_age_h`.
        died: told of each row that is given up.
    """

    def __init__(
        self,
        store: Store,
        holder: str,
        *,
        max_age_h: float = 24.0,
        died: Callable[[OutboxRow], None] | None = None,
    ) -> None:
        self._store = store
        self._holder = holder
        self._max_age_h = max_age_h
        self._died = died
        self._doors: dict[str, Deliverer] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}

    def serve(self, deliverer: Deliverer) -> None:
        """Deliver what is for this door from now on."""
        self._doors[deliverer.door] = deliverer
        self._news.set()

    def parts(self, door: str | None, text: str) -> Sequence[Mapping[str, Any]]:
        """Return an answer as the door's messages; in one piece when another process serves the door."""
        deliverer = self._doors.get(door or "")
        return [{"text": text}] if deliverer is None else deliverer.parts(text)

    def look(self) -> None:
        """Something new may be there."""
        self._news.set()

    async def start(self) -> None:
        """Begin to deliver; what died processes were sending is sent again."""
        if self._task is None:
            await self._store.write(self._take_over, flush=False)
            self._task = asyncio.create_task(self._run(), name="bowerbird-outbox")

    async def stop(self) -> None:
        """End; what is being sent is cut and sent again by the next process."""
        tasks = [*self._sending.values(), *([self._task] if self._task is not None else [])]
        self._task = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            await self._store.write(lambda c: free_claims(c, [self._holder]), flush=False)

    async def resend(self, row_id: str) -> None:
        """Try a dead row again, as if it were new; raises UnknownSession."""

        def revive(connection: Connection) -> None:
            row = find_parcel(connection, row_id)
            if row.state == "dead":
                parcel = msgspec.structs.replace(parcel_of(row), since=now_iso(), is_plain=False)
                body = msgspec.json.encode(parcel).decode()
                update_parcel(connection, row_id, state="pending", attempts=0, next_at=None, body=body)

        await self._store.write(revive)
        self.look()

    async def _run(self) -> None:
        while True:
            try:
                await self._deal_out()
            except StoreError as error:
                _log.warning("outbox: %s", error)
            self._news.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _deal_out(self) -> None:
        if not self._doors:
            return
        now = now_iso()
        for row in await self._store.read(lambda c: heads(c, list(self._doors))):
            place = (row.door, row.address)
            is_due = row.next_at is None or row.next_at <= now
            if is_due and place not in self._sending and len(self._sending) < MAX_ADDRESSES:
                task = asyncio.create_task(self._send_all(row), name=f"deliver {row.door}")
                self._sending[place] = task
                task.add_done_callback(lambda _, place=place: self._sent_all(place))

    def _sent_all(self, place: tuple[str, str]) -> None:
        self._sending.pop(place, None)
        self._news.set()

    async def _send_all(self, row: OutboxRow) -> None:
        """Send one row; the next of its address follows when the worker looks again."""
        try:
            until = to_iso(datetime.now(UTC) + timedelta(seconds=CLAIM_S))
            now, holder = now_iso(), self._holder
            mine = await self._store.write(lambda c: claim(c, row.id, holder, now, until))
            if mine is not None:
                await self._send(mine, self._doors[mine.door])
        except StoreError as error:
            _log.warning("outbox row %s: %s", row.id, error)

    async def _send(self, row: OutboxRow, deliverer: Deliverer) -> None:
        parcel = parcel_of(row)
        try:
            receipt = await deliverer.send(row.address, parcel, row.dedupe_key)
        except DeliveryFailed as error:
            await self._failed(row, parcel, error)
        except (OSError, TimeoutError) as error:
            await self._failed(row, parcel, DeliveryFailed(f"{type(error).__name__}: {error}"))
        except Exception as error:  # noqa: BLE001  a door's defect must not end the delivery of the others
            _log.exception("door %s", row.door)
            await self._failed(row, parcel, DeliveryFailed(f"{type(error).__name__}: {error}"))
        else:
            await self._note(row, state="sent", receipt=receipt, next_at=None, last_error=None)

    async def _failed(self, row: OutboxRow, parcel: Parcel, error: DeliveryFailed) -> None:
        now = datetime.now(UTC)
        verdict = after_failure(error, parcel, row.attempts, now, self._max_age_h, random.random())
        said: dict[str, Any] = {"last_error": str(error), "receipt": None}
        if verdict.delay_s is None:
            await self._note(row, state="dead", next_at=None, **said)
            _log.warning("outbox row %s for %s is given up: %s", row.id, row.door, error)
            if self._died is not None:
                self._died(row)
            return
        if verdict.is_plain:
            plain = msgspec.structs.replace(parcel, is_plain=True)
            said["body"] = msgspec.json.encode(plain).decode()
        at = to_iso(now + timedelta(seconds=verdict.delay_s))
        await self._note(row, state="pending", next_at=at, **said)

    def _note(self, row: OutboxRow, **values: Any) -> Awaitable[None]:
        return self._store.write(lambda c: update_parcel(c, row.id, **values))

    def _take_over(self, connection: Connection) -> None:
        living = {executor.executor_id for executor in all_executors(connection) if not is_dead(executor)}
        free_claims(connection, [holder for holder in claimants(connection) if holder not in living])
