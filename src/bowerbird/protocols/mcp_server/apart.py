"""Work that is stopped once, and then finishes stopping (PT-6).

Here: running a coroutine in a task of its own. Not here: what it does.

The SDK's cancellation strikes at every await until a handler has returned: whoever ends processes and keeps
what was done would be struck down in the middle of that.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
STOPPING_S = 10.0  # a run that takes longer to end is left to its owner


class CallerGone(Exception):
    """Nobody waits for the answer any more."""


async def apart(work: Coroutine[Any, Any, T], gone: asyncio.Event) -> T:
    """Return what `work` returns; it is cancelled once when the caller cancels or leaves.

    Raises:
        CallerGone: `gone` was set first.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise CallerGone
    finally:
        leaving.cancel()
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait((task,), timeout=STOPPING_S)
        if task.done() and not task.cancelled():
            task.exception()  # whatever stopping it raised is nobody's answer
