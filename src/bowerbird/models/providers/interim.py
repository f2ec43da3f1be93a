"""Connections that do not take interim answers (`103 Early Hints`) without end.

Here: counting them, below aiohttp's own reading. Not here: requests (`transport.py`).

Nothing of an answer has begun with an interim one, so nothing else bounds them: uvloop hands over 8 MB of
them at once, each is kept until it is looked at, and nobody else is served meanwhile.
"""

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

MOST_INTERIM = 100


class Connector(aiohttp.TCPConnector):
    """As aiohttp's, for one event loop; more than `MOST_INTERIM` interim answers end a connection."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType] - a type of aiohttp's own
        self._factory = partial(_Handler, loop=asyncio.get_running_loop())


class _Handler(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        interim = 100 <= data[0].code < 200 and data[0].code != 101
        self._interim = self._interim + 1 if interim else 0
        if self._interim <= MOST_INTERIM:  # those of one read that are too many are not even kept
            super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._interim > MOST_INTERIM and self.transport is not None and not self.transport.is_closing():
            self.set_exception(aiohttp.ClientPayloadError("it sends interim answers (HTTP 1xx) without end"))
            self.transport.abort()
