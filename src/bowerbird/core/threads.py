"""From the event loop into a thread and back, so that whoever waits always wakes up.

Here: the one way to await a plain call in a worker thread. Not here: what is called, pools of threads.

`asyncio.to_thread` has a hole: a `StopIteration` (a bare `next()` is enough) cannot be put into a
future, so the coroutine that waits for it sleeps for ever, and with it its turn. `SystemExit` and
`KeyboardInterrupt` do wake it, but then end the whole event loop. Every bridge of ours goes through
`waking`; a lint rule keeps the other one out.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

# None of these says something to the coroutine that waits: one never arrives, the others end the loop.
_NOT_FOR_A_COROUTINE = (StopIteration, GeneratorExit, SystemExit, KeyboardInterrupt)


class ThreadDefect(RuntimeError):
    """A call in a worker thread ended with an exception that a coroutine cannot receive."""


def waking(call: Callable[P, T]) -> Callable[P, T]:
    """Return `call`, made to end only with what a future can hold; for calls handed to an executor.

    Example:
        await loop.run_in_executor(pool, waking(read), path)
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except _NOT_FOR_A_COROUTINE as error:
            raise receivable(error) from error

    return run


def receivable(error: BaseException) -> BaseException:
    """Return `error`, or in its place one that a coroutine can receive; for `Future.set_exception`."""
    if isinstance(error, _NOT_FOR_A_COROUTINE):
        return ThreadDefect(f"a worker thread ended with {type(error).__name__}: {error}")
    return error


async def to_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain call in a worker thread; a caller that is cancelled leaves it running.

    Args:
        call: gets the arguments and the context variables of the caller.

    Raises:
        ThreadDefect: it ended with `StopIteration`, `SystemExit` or the like; else whatever it raised.
    """
    context = copy_context()
    work = partial(context.run, waking(call), *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Run a plain call in a worker thread, to its end even if the caller is cancelled.

    For what cannot be taken back in the middle; whoever is cancelled waits for it first.
    """
    context = copy_context()
    running = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(waking(call), *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
    finally:
        del (
            running
        )  # an error's traceback holds this frame, and the future holds the error: files would stay open


@asynccontextmanager
async def entered(manager: AbstractContextManager[T]) -> AsyncGenerator[T]:
    """Enter and leave a plain context manager that blocks, in worker threads; left even if cancelled.

    Example:
        async with entered(made_beside(target)) as directory: ...
    """
    inside: list[T] = []
    try:
        await in_thread(lambda: inside.append(manager.__enter__()))
        yield inside[0]
    finally:
        if inside:
            await in_thread(manager.__exit__, None, None, None)
