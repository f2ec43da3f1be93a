"""A Bot API server and channels that are connected to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.fake_telegram import TOKEN, FakeTelegram, fake_telegram

from bowerbird.channels.contract import IncomingMessage
from bowerbird.channels.telegram.channel import TelegramChannel, TelegramSettings
from bowerbird.channels.telegram.polling import Timing
from bowerbird.channels.transcription import Transcriber

QUICK = Timing(poll_s=20, album_s=0.15, conflict_s=0.1, lease_s=0.05, retry_s=0.01)


@dataclass
class Alone:
    """A lease that this test can take away."""

    is_free: bool = True
    released: int = 0

    async def acquire(self) -> bool:
        return self.is_free

    async def renew(self) -> bool:
        return self.is_free

    async def release(self) -> None:
        self.released += 1


@dataclass
class Desk:
    """One channel and what came of it."""

    fake: FakeTelegram
    directory: Path
    lease: Alone = field(default_factory=Alone)
    delivered: list[IncomingMessage] = field(default_factory=list)
    quarantined: list[tuple[str, Any, str]] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    on_deliver: Callable[[IncomingMessage], Awaitable[None]] | None = None
    on_quarantine: Callable[[], None] | None = None
    transcriber: Transcriber | None = None
    timing: Timing = QUICK

    def channel(self, token: str = TOKEN) -> TelegramChannel:
        settings = TelegramSettings(token, self.directory / "files", self.fake.url, self.timing)
        return TelegramChannel(settings, self.lease, self.quarantine, self.reports.append, self.transcriber)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TelegramChannel]:
        channel = self.channel()
        await channel.start(self.deliver)
        try:
            yield channel
        finally:
            await channel.stop()

    async def deliver(self, message: IncomingMessage) -> None:
        if self.on_deliver is not None:
            await self.on_deliver(message)
        self.delivered.append(message)

    async def quarantine(self, key: str, raw: str, reason: str) -> None:
        if self.on_quarantine is not None:
            self.on_quarantine()
        self.quarantined.append((key, json.loads(raw), reason))

    async def all_confirmed(self) -> None:
        """Wait until Telegram was told that everything was received."""
        await self.fake.until(lambda: not self.fake.updates)

    async def texts(self) -> list[str]:
        await self.all_confirmed()
        return [message.text for message in self.delivered]


@pytest.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with fake_telegram() as server:
        yield server


@pytest.fixture
async def desk(fake: FakeTelegram, tmp_path: Path) -> Desk:
    await asyncio.sleep(0)
    return Desk(fake, tmp_path)
