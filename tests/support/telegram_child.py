"""A process with a Telegram channel whose deliveries are rows of a SQLite file; made to be killed.

Arguments: server, database. A message `die before` or `die after` kills the process at its own commit, once.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.fake_telegram import TOKEN

from bowerbird.channels.contract import IncomingMessage
from bowerbird.channels.telegram.channel import TelegramChannel, TelegramSettings
from bowerbird.channels.telegram.polling import Timing


class Mine:
    """The lease of a single process."""

    async def acquire(self) -> bool:
        return True

    async def renew(self) -> bool:
        return True

    async def release(self) -> None:
        return


async def main(server: str, database: str) -> None:
    rows = sqlite3.connect(database, isolation_level=None)
    rows.execute("CREATE TABLE IF NOT EXISTS inbox (key TEXT PRIMARY KEY, text TEXT, media INTEGER)")
    rows.execute("CREATE TABLE IF NOT EXISTS tries (key TEXT)")

    async def deliver(message: IncomingMessage) -> None:
        has_died = rows.execute("SELECT 1 FROM tries WHERE key = ?", (message.dedupe_key,)).fetchone()
        rows.execute("INSERT INTO tries VALUES (?)", (message.dedupe_key,))
        if message.text == "die before" and not has_died:
            os.kill(os.getpid(), signal.SIGKILL)
        values = (message.dedupe_key, message.text, len(message.media))
        rows.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?)", values)
        if message.text == "die after" and not has_died:
            os.kill(os.getpid(), signal.SIGKILL)

    async def quarantine(key: str, _: str, reason: str) -> None:
        rows.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?, 0)", (key, f"quarantined: {reason}"))

    timing = Timing(poll_s=20, album_s=0.3, retry_s=0.01)
    settings = TelegramSettings(TOKEN, Path(database).parent / "files", server, timing)
    channel = TelegramChannel(settings, Mine(), quarantine, lambda _: None)
    await channel.start(deliver)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
