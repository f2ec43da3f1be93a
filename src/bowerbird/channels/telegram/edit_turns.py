"""Edits of one message in order: none of an unfinished answer after the final one (AS-18).

Here: whose turn it is to edit a message. Not here: editing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

MOST = 1_000  # messages whose end is remembered; progress of older ones has long ended


class EditTurns:
    """One lock for each message that is being edited, and which messages are final."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, int], tuple[asyncio.Lock, int]] = {}
        self._final: OrderedDict[tuple[int, int], None] = OrderedDict()

    @asynccontextmanager
    async def of(self, chat: int, message: int) -> AsyncGenerator[bool, None]:
        """Wait for the message's turn; gives whether it is still unfinished."""
        key = (chat, message)
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield key not in self._final
        finally:
            _, waiting = self._locks[key]
            if waiting > 1:
                self._locks[key] = (lock, waiting - 1)
            else:
                del self._locks[key]

    def close(self, chat: int, message: int) -> None:
        """The message is final from now on."""
        self._final[chat, message] = None
        while len(self._final) > MOST:
            self._final.popitem(last=False)
