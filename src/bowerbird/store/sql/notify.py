"""Notices between processes that share a PostgreSQL database: LISTEN/NOTIFY (SE-33).

Here: sending texts and receiving those of others, over one connection that is made anew when it
breaks. Not here: what a notice says (`sessions/live/relay.py`), anything that must not be lost.

Notices are for speed only. Whoever missed some reads the journal.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any, Protocol, cast

from sqlalchemy.engine import URL

CHANNEL = "bowerbird_live"
MAX_BYTES = 7000  # PostgreSQL takes less than 8000
_MOST_WAITING = 10_000
_OTHERS_EVERY_S = 2.0
_AGAIN_S = 1.0

_log = logging.getLogger(__name__)
_SEND = f"SELECT pg_notify('{CHANNEL}', n) FROM unnest($1::text[]) AS n"
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bowerbird-live' "
    "AND datname = current_database() AND pid <> pg_backend_pid()"
)


class Notices(Protocol):
    """Texts to the other processes on this database, and from them."""

    async def start(self, receive: Callable[[str], None]) -> None:
        """Begin to listen; `receive` is called in the event loop with each text of another process."""
        ...

    @property
    def has_listeners(self) -> bool:
        """Whether another process listens."""
        ...

    def send(self, text: str) -> None:
        """Send `text` (at most `MAX_BYTES`) soon; it is dropped when nobody can be reached."""
        ...

    async def aclose(self) -> None:
        """Stop."""
        ...


class PgNotices:
    """`Notices` over one connection of its own.

    Args:
        url: of the database, as `postgres_url` gives it.
    """

    def __init__(self, url: URL) -> None:
        self._url = url
        self._me = os.urandom(6).hex()
        self._waiting: list[str] = []
        self._news = asyncio.Event()
        self._receive: Callable[[str], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._others = 0
        self._paused = ""

    @property
    def has_listeners(self) -> bool:
        """See `Notices.has_listeners`; known within 2 s."""
        return self._others > 0

    async def start(self, receive: Callable[[str], None]) -> None:
        """See `Notices.start`; returns once it listens, or could not for now."""
        self._receive = receive
        ready = asyncio.Event()
        if self._task is None:
            self._task = asyncio.create_task(self._keep(ready), name="bowerbird-notices")
            await ready.wait()

    def send(self, text: str) -> None:
        """See `Notices.send`."""
        if self._task is not None and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(self._me + text)
            self._news.set()

    async def aclose(self) -> None:
        """See `Notices.aclose`."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _keep(self, ready: asyncio.Event) -> None:
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it brings none

        while True:
            try:
                await self._listen(ready)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
                if self._paused != (why := type(error).__name__):  # once, not each second of an outage
                    _log.info("notices to other processes pause: %s", why)
                    self._paused = why
            self._others = 0
            self._waiting.clear()
            ready.set()
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self, ready: asyncio.Event) -> None:
        # Not at the top: a server on SQLite would carry PostgreSQL's driver for nothing.
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it brings none
        from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

        from bowerbird.store.sql.postgres_url import NUMBERS, number

        url = self._url.difference_update_query(NUMBERS)
        arguments: dict[str, Any] = PGDialect_asyncpg().create_connect_args(url)[1]
        for name in ("statement_cache_size", "command_timeout"):
            if name in self._url.query:
                arguments[name] = number(name, self._url.query[name])
        settings = {"application_name": "bowerbird-live"}
        driver: Any = await cast("Any", asyncpg).connect(**arguments, timeout=5.0, server_settings=settings)
        try:
            await driver.add_listener(CHANNEL, self._heard)
            if self._paused:
                _log.info("notices to other processes go on")
                self._paused = ""
            while True:
                self._others = int(await driver.fetchval(_OTHERS))
                ready.set()
                until = asyncio.get_running_loop().time() + _OTHERS_EVERY_S
                while await self._news_before(until):
                    texts, self._waiting = self._waiting, []
                    await driver.execute(_SEND, texts)
        finally:
            driver.terminate()

    async def _news_before(self, until: float) -> bool:
        try:
            async with asyncio.timeout_at(until):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def _heard(self, _driver: Any, _pid: int, _channel: str, payload: str) -> None:
        if self._receive is not None and not payload.startswith(self._me):
            self._receive(payload[len(self._me) :])
