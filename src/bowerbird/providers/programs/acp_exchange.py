"""The messages between an ACP program and the ACP library, so many at once as can be held (PR-17).

Here: their queue, how many requests of the program are open. Not here: what messages mean (`acp_client`),
which of the program's lines are messages (`acp_run`).

A program that asks for a file ten thousand times and takes no answer would have all of them held here.
"""

import asyncio
import json
from typing import Any

MOST_OPEN = 32


class Exchange:
    """The library's transport of one program; ended by `close`, or `leave` when the program is ended.

    Args:
        writer: the program's standard input.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._heard: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._telling = asyncio.Lock()
        self._open = 0
        self._less = asyncio.Event()
        self._is_over = False

    async def hear(self, message: dict[str, Any]) -> None:
        """Hand over a message of the program; where many of its requests are open, this waits."""
        asks = "id" in message and "method" in message
        while asks and self._open >= MOST_OPEN and not self._is_over:
            self._less.clear()
            await self._less.wait()
        self._open += asks
        self._heard.put_nowait(message)

    def leave(self) -> None:
        """Say that the program is ended: nothing waits for it any more."""
        self._is_over = True
        self._less.set()
        self._heard.put_nowait(None)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, None at the end."""
        return await self._heard.get()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message, and wait until the program takes it."""
        is_answer = "method" not in message
        try:
            async with self._telling:  # written out one at a time: an answer may be megabytes
                self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
                await self._writer.drain()
        except ConnectionError:
            if not is_answer:
                raise  # whoever asks hears of it; nobody waits for an answer that was not taken
        finally:
            if is_answer:
                self._open -= 1
                self._less.set()

    async def close(self) -> None:
        """See `leave`."""
        self.leave()
