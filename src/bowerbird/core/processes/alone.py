"""Being the only one, of all processes and threads, who does something at a place.

Here: locks of the kernel that end with their process, however it dies. Not here: the writer's lock of a
branch, which says who has it and why (`workspace/registry/lock.py`); what is done under a lock.

A directory that exists is its own lock: no file appears in it, and none is needed on a full disk. Where other
things lock the directory too, or people list it, a lock file of its own is named.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LONGEST_PAUSE_S = 0.05


@contextlib.contextmanager
def alone_in(directory: Path) -> Generator[None]:
    """Wait until nobody else is alone in `directory`. Blocks; not for the event loop's thread.

    Raises:
        OSError: it cannot be opened.

    Example:
        >>> with alone_in(Path("/tmp")):  # doctest: +SKIP
        ...     change_what_lies_there()
    """
    yield from _held(os.open(directory, _DIRECTORY))


@contextlib.contextmanager
def alone_at(file: Path) -> Generator[None]:
    """Do the same by a lock file, which is made if need be and stays: who waits has it open."""
    yield from _held(os.open(file, _LOCK_FILE, 0o600))


def claim_in(directory: Path) -> int | None:
    """Return a descriptor that is the right to work in `directory` while it is open; None: another has it."""
    return _claimed(os.open(directory, _DIRECTORY))


def claim_at(file: Path) -> int | None:
    """Do the same by a lock file; see `alone_at`."""
    return _claimed(os.open(file, _LOCK_FILE, 0o600))


@contextlib.asynccontextmanager
async def alone_when(claim: Callable[[], int | None]) -> AsyncGenerator[None]:
    """Wait on the event loop until a claim is given.

    In a thread it could not be cancelled: the thread would get the right that nobody waits for any more, and
    keep it until its process ends.

    Example:
        >>> async with alone_when(lambda: claim_in(Path("/tmp"))):  # doctest: +SKIP
        ...     await change_what_lies_there()
    """
    pause_s = 0.001
    while (handle := claim()) is None:
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    try:
        yield
    finally:
        os.close(handle)


def _held(handle: int) -> Generator[None]:
    try:
        with contextlib.suppress(OSError):  # a file system without locks: it is as if one was alone
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _claimed(handle: int) -> int | None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks: it is as if one was alone
        pass
    return handle
