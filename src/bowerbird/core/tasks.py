"""Tasks that nobody awaits: kept until they end, their failures logged, over when their owner is.

Here: starting and ending them. Not here: what they do; tasks that somebody waits for by name.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Tasks:
    """The tasks that one owner has started beside its own work.

    The event loop itself keeps only weak references: a task that nobody holds may vanish half-way, and
    nobody hears of what it raises until then.

    Args:
        what: names them in the log and among asyncio's tasks, such as "viewers of session s1".

    Example:
        >>> async def main() -> None:
        ...     tasks = Tasks("greeting")
        ...     tasks.spawn(asyncio.sleep(0))
        ...     await tasks.finish()
        >>> asyncio.run(main())
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start `work`; returns at once, with the task for those who must know whether it is done."""
        task = asyncio.get_running_loop().create_task(work, name=self._what)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self) -> None:
        """Wait until all have ended, those included that begin meanwhile."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def cancel(self) -> None:
        """Cancel all and wait until they have ended."""
        ending = [task for task in self._running if task is not asyncio.current_task()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("%s: a task failed", self._what, exc_info=error)
