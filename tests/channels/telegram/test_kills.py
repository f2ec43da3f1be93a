"""kill -9 loses no update and delivers none twice (AS-13, AS-14; acceptance 2)."""

import asyncio
import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support import telegram_child
from support.fake_telegram import FakeTelegram
from support.patience import patience


@asynccontextmanager
async def child(fake: FakeTelegram, database: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, telegram_child.__file__, fake.url, str(database)
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def inbox(database: Path) -> dict[str, tuple[str, int]]:
    rows = sqlite3.connect(database)
    found = {key: (text, media) for key, text, media in rows.execute("SELECT key, text, media FROM inbox")}
    rows.close()
    return found


@pytest.mark.parametrize("when", ["die before", "die after"])
async def test_a_kill_around_the_commit_costs_nothing(fake: FakeTelegram, tmp_path: Path, when: str) -> None:
    """AS-13, acceptance 2: the update comes again, under the same key."""
    database = tmp_path / "rows.db"
    for text in ("one", when, "three"):
        await fake.say(text)
    async with child(fake, database) as process:
        assert await process.wait() == -9
    assert len(fake.updates) >= 2  # what was not settled is still at Telegram
    async with child(fake, database):
        await fake.until(lambda: not fake.updates)
    assert [text for text, _ in inbox(database).values()] == ["one", when, "three"]


async def test_kills_at_any_moment_lose_nothing(fake: FakeTelegram, tmp_path: Path) -> None:
    """AS-13, AS-15: text and albums, some of them broken, while the process dies again and again."""
    database, chance = tmp_path / "rows.db", random.Random(3)
    said: set[str] = set()
    albums = 0
    for number in range(2):
        async with asyncio.timeout(patience(20)), child(fake, database):
            polls = len(fake.of("getUpdates"))
            await fake.until(lambda polls=polls: len(fake.of("getUpdates")) > polls)
            for place in range(30):
                said.add(f"{number}.{place}")
                await fake.say(f"{number}.{place}", chat=7 + place % 3)
                if place % 10 == 0:
                    albums += 1
                    for name in "ab":
                        await fake.message(
                            {"photo": [{"file_id": name}], "media_group_id": f"{number}.{place}"}
                        )
                    await fake.update(message={"message_id": "broken"})
                await asyncio.sleep(chance.random() / 100)
    async with child(fake, database):
        await fake.until(lambda: not fake.updates)
    texts = [text for text, _ in inbox(database).values()]
    assert sorted(text for text in texts if text[:1].isdigit()) == sorted(said)
    assert sum(media for _, media in inbox(database).values()) == albums * 2
    assert sum(text.startswith("quarantined") for text in texts) == albums
