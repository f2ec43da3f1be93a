"""Who runs a turn: the five-method interface, and the one that runs it in this process (SE-30, 31).

Here: `Dispatcher` and `LocalDispatcher`. Not here: what driving is (`turn/driver.py`), leases' SQL.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal, Protocol

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, StoreError
from bowerbird.core.forms import decode
from bowerbird.sessions.settings import SessionSettings
from bowerbird.store.channels.named_leases import release_named_leases
from bowerbird.store.rows.leases import (
    Executor,
    all_executors,
    forget_executors,
    heartbeat,
    is_dead,
    release_all,
    this_executor,
)
from bowerbird.store.rows.signals import put_signal, take_signals
from bowerbird.store.rows.turns import drivable_turns, held_threads
from bowerbird.store.store import Store

__all__ = ("Dispatcher", "Executor", "LocalDispatcher", "Signal", "TurnRef")

SIGNAL_POLL_S = 0.25

_log = logging.getLogger(__name__)


class TurnRef(msgspec.Struct, frozen=True):
    """One attempt at one turn."""

    thread_id: str
    turn_id: str
    attempt: int = 0


class Signal(msgspec.Struct, frozen=True):
    """Something the driver of a turn must know at once."""

    kind: Literal["cancel", "disconnect", "interrupt", "answer", "make_room"]
    request_id: str | None = None


class Dispatcher(Protocol):
    """Runs turns somewhere, each by one driver at a time; nothing else knows where."""

    async def start(self, drive: Callable[[TurnRef], Awaitable[None]]) -> None:
        """Begin to take turns; `drive` runs one until it stops."""
        ...

    async def submit(self, turn: TurnRef) -> None:
        """Have `turn` driven; a repeated submit of one (turn, attempt) changes nothing."""
        ...

    async def signal(self, turn: TurnRef, signal: Signal) -> None:
        """Let `signal` reach whoever drives `turn`."""
        ...

    async def owners(self) -> Sequence[Executor]:
        """Return the processes that drive turns of this database."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Take no new turns; let running ones reach a step's end within `grace_s`, then stop them."""
        ...


class LocalDispatcher:
    """Runs turns in this process; several processes may share one SQLite file.

    Args:
        store: where turns, leases and executors are.
        settings: times and the number of parallel turns.
        deliver: hands a signal to the driver of a turn in this process; False when none is here.
        drain: asks the drivers of this process to stop at their next step's end.
        drives: whether this process runs the turns of a thread; None = of all. A command drives
            only its own session and leaves what others left to a server.
    """

    def __init__(
        self,
        store: Store,
        settings: SessionSettings,
        *,
        deliver: Callable[[TurnRef, Signal], bool],
        drain: Callable[[], None],
        drives: Callable[[str], bool] | None = None,
    ) -> None:
        self.executor = this_executor()
        self._store = store
        self._settings = settings
        self._deliver = deliver
        self._drain = drain
        self._drives = drives
        self._drive: Callable[[TurnRef], Awaitable[None]] | None = None
        self._slots = asyncio.Semaphore(settings.parallel_turns)
        self._running: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = False

    async def start(self, drive: Callable[[TurnRef], Awaitable[None]]) -> None:
        """See `Dispatcher.start`: announces this process and takes what a dead one left."""
        self._drive, self._stopping = drive, False
        await self._sweep()
        self._keepers = [
            asyncio.create_task(self._every(self._settings.sweep_s, self._sweep), name="bowerbird-sweep"),
            asyncio.create_task(self._every(SIGNAL_POLL_S, self._take_signals), name="bowerbird-signals"),
        ]

    async def submit(self, turn: TurnRef) -> None:
        """See `Dispatcher.submit`; before `start` it does nothing: the first sweep finds the turn."""
        key = (turn.turn_id, turn.attempt)
        if self._stopping or self._drive is None or key in self._running:
            return
        task = asyncio.create_task(self._run(turn, self._drive), name=f"turn {turn.turn_id}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def room(self, thread_id: str) -> int:
        """Return how many more turns could begin here at once, 0 when `thread_id`'s are not run here."""
        if self._stopping or self._drive is None or not (self._drives is None or self._drives(thread_id)):
            return 0
        return self._settings.parallel_turns - len(self._running)

    async def signal(self, turn: TurnRef, signal: Signal) -> None:
        """See `Dispatcher.signal`; a driver in another process reads it within 250 ms."""
        if not self._deliver(turn, signal):
            raw = msgspec.json.encode(signal).decode()
            await self._store.write(lambda c: put_signal(c, turn.turn_id, raw), flush=False)

    async def owners(self) -> Sequence[Executor]:
        """See `Dispatcher.owners`."""
        return await self._store.read(all_executors)

    async def stop(self, grace_s: float) -> None:
        """See `Dispatcher.stop`; returns within the grace and a moment, whatever hangs."""
        self._stopping = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self._drain()
        tasks = list(self._running.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1.0)
        await self._store.write(self._leave)

    def _leave(self, connection: Connection) -> None:
        release_all(connection, self.executor.executor_id)
        forget_executors(connection, [self.executor.executor_id])

    async def _run(self, turn: TurnRef, drive: Callable[[TurnRef], Awaitable[None]]) -> None:
        if self._slots.locked():
            self._make_room()
        async with self._slots:
            if self._stopping:
                return
            try:
                await drive(turn)
            except BowerbirdError as error:
                # The turn stays as it is recorded (its session may be deleted); a sweep looks again.
                _log.warning("turn %s stopped: %s", turn.turn_id, error)

    def _make_room(self) -> None:
        """Have turns that wait for a person go on waiting without a slot: others have work to do."""
        for turn_id, attempt in tuple(self._running):
            self._deliver(TurnRef("", turn_id, attempt), Signal("make_room"))

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except StoreError as error:
                _log.warning("dispatcher: %s", error)
            except Exception:  # noqa: BLE001  whatever it met: without this task turns are left alone for ever
                _log.exception("dispatcher: %s failed; it goes on", work.__name__)

    async def _sweep(self) -> None:
        await self._store.write(self._announce, flush=False)
        # A turn that is driven here has a lease that only a set clock can have ended; its driver renews it.
        here = frozenset(turn_id for turn_id, _ in self._running)
        for thread, turn, attempt in await self._store.read(lambda c: self._left_alone(c, here)):
            await self.submit(TurnRef(thread, turn, attempt))

    def _announce(self, connection: Connection) -> None:
        heartbeat(connection, self.executor)
        gone = [known.executor_id for known in all_executors(connection) if is_dead(known)]
        for executor_id in gone:
            release_all(connection, executor_id)
            # What one process at a time may do, say polling with a bot's token: nobody waits for a dead one.
            release_named_leases(connection, executor_id)
        forget_executors(connection, gone)

    def _left_alone(self, connection: Connection, here: Collection[str]) -> list[tuple[str, str, int]]:
        held = held_threads(connection)
        free = [
            found for found in drivable_turns(connection) if found[0] not in held and found[1] not in here
        ]
        return free if self._drives is None else [found for found in free if self._drives(found[0])]

    async def _take_signals(self) -> None:
        if not self._running:
            return
        if len(self._running) > self._settings.parallel_turns:
            self._make_room()  # who has asked since the last of them came
        mine = {turn_id for turn_id, _ in self._running}
        if not await self._store.read(lambda c: bool(take_signals(c, mine, keep=True))):
            return
        for turn_id, raw in await self._store.write(lambda c: take_signals(c, mine), flush=False):
            self._deliver(TurnRef("", turn_id), decode(raw, Signal))
