"""What SIGHUP means to a server: load the settings again, or end with the terminal it was started in.

Here: telling the two apart. Not here: loading (`reloading.py`), ending (`serving.py`).
"""

import asyncio
import os
import signal
from collections.abc import Callable

from bowerbird.core.tasks import Tasks
from bowerbird.server.common.context import ServerContext


class Hangups:
    """What SIGHUP means: load the settings again; or, when our terminal is gone, end like at any signal."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._had_terminal = _has_terminal()
        self._tasks = Tasks("settings")
        self._ends: list[Callable[[], None]] = []

    def ends(self, server: Callable[[], None]) -> None:
        """Call this, which ends a server, when its terminal is gone."""
        self._ends.append(server)

    def heard(self) -> None:
        """Take one signal."""
        if self._had_terminal and not _has_terminal():
            for end in self._ends:
                end()
            return
        self._tasks.spawn(self._reload())

    async def _reload(self) -> None:
        if self._context.reload is not None:
            await self._context.reload()

    async def __aenter__(self) -> "Hangups":
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.heard)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        await self._tasks.finish()


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal; one that was closed is none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
