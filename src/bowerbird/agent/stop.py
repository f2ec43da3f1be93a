"""Stopping a run from outside: one signal, seen at every await of the loop (AG-45).

Here: the signal and the guard that turns it into `Stopped`. Not here: what is closed and kept
then (`turn_loop/model_step`, `turn_loop/tool_batch`), nor why someone stops.

The guard cancels only the await it wraps, never the consumer of the loop's events: it is armed
while the loop itself waits and disarmed before each event is handed out.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

StopReason = Literal["cancelled", "interrupted", "deadline"]
T = TypeVar("T")


class Stopped(Exception):
    """The run was told to stop; `reason` says by what."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class StopSignal:
    """Set once; every guarded await of the run ends at once.

    Args:
        parent: another signal whose setting sets this one too (a subagent's caller).

    Example:
        >>> signal = StopSignal()
        >>> signal.set("cancelled")
        >>> signal.reason
        'cancelled'
    """

    __slots__ = ("_armed", "_hit", "_listeners", "detach", "reason")

    def __init__(self, parent: "StopSignal | None" = None) -> None:
        self.reason: StopReason | None = None
        self._armed: set[asyncio.Task[object]] = set()
        self._hit: set[asyncio.Task[object]] = set()
        self._listeners: list[Callable[[StopReason], None]] = []
        self.detach: Callable[[], None] = parent.listen(self.set) if parent is not None else _nothing

    def set(self, reason: StopReason = "cancelled") -> None:
        """Stop the run; the first reason stays. Call it in the run's event loop."""
        if self.reason is not None:
            return
        self.reason = reason
        current = _running_task()
        for task in tuple(self._armed):
            # A task cannot be interrupted by itself: it meets the reason when its await returns.
            if task is not current:
                self._hit.add(task)
                task.cancel()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(reason)

    def listen(self, listener: Callable[[StopReason], None]) -> Callable[[], None]:
        """Call `listener` when the signal is set (at once if it is); returns what ends that."""
        if self.reason is not None:
            listener(self.reason)
            return _nothing
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def check(self) -> None:
        """Raise Stopped when the signal is set."""
        if self.reason is not None:
            raise Stopped(self.reason)

    async def wait(self) -> StopReason:
        """Return the reason once the signal is set."""
        if self.reason is not None:
            return self.reason
        future: asyncio.Future[StopReason] = asyncio.get_running_loop().create_future()
        forget = self.listen(lambda reason: None if future.done() else future.set_result(reason))
        try:
            return await future
        finally:
            forget()

    async def guard(self, awaitable: Awaitable[T]) -> T:
        """Await `awaitable`; raises Stopped, with the awaitable cancelled, when the signal is set."""
        task = _running_task()
        assert task is not None, "guard() is awaited inside a task"
        if self.reason is not None:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise Stopped(self.reason)
        before = task.cancelling()
        self._armed.add(task)
        try:
            result = await awaitable
        except asyncio.CancelledError:
            if task in self._hit:
                self._hit.discard(task)
                # Another cancellation on top of ours is the caller's own and must win.
                if task.uncancel() <= before and self.reason is not None:
                    raise Stopped(self.reason) from None
            raise
        finally:
            self._armed.discard(task)
            if task in self._hit:  # the awaitable swallowed our cancellation and returned
                self._hit.discard(task)
                task.uncancel()
        if self.reason is not None:
            raise Stopped(self.reason)
        return result


def _nothing() -> None:
    return


def _running_task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # set() from a callback or before any loop runs
        return None
