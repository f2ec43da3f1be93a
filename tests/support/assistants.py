"""An assistant as people run it: `bowerbird serve` with a bot that speaks to a fake Telegram, and the chat with it.

Here: the process, settings, what the bot said, pressing its buttons. Not here: what tests expect.
"""

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.fake_telegram import TOKEN, Call, FakeTelegram
from support.patience import HANG_S
from support.quick_servers import QuickServer, QuickServers
from support.terminals import COMMAND, clean_environment

IMPORTED = ("bowerbird.channels.house", "bowerbird.channels.telegram.channel", "croniter", "rich.cells")
"""What a server with a bot imports besides; see `QuickServers`."""


class Assistant:
    """A directory, its server process, and the chat with it.

    Args:
        quick: forks its servers, for those who start very many; without it each is a new process.
    """

    def __init__(
        self, place: Path, fake: FakeModels, bot: FakeTelegram, *,
        telegram: Mapping[str, Any] | None = None, more: Mapping[str, Any] | None = None,
        quick: QuickServers | None = None,
    ) -> None:  # fmt: skip
        self.place, self.bot = place, bot
        self.workspace = place / "workspace"
        self.workspace.mkdir()
        config = {
            "agent": {"workspace": str(self.workspace), "data_dir": str(place / "data")},
            "provider": {"name": "anthropic", "api_key": "k", "base_url": fake.anthropic_url},
            "dispatch": {"lease_s": 2, "heartbeat_s": 0.6},
            "channels": {
                "telegram": {
                    "enabled": True, "token": TOKEN, "server": bot.url, "stream_interval": 0.3, **(telegram or {}),
                }
            },
            "scheduler": {"enabled": True, "min_interval": 1, "poll_interval": 1},
            **(more or {}),
        }  # fmt: skip
        self.config = place / "config.yaml"
        self.config.write_text(json.dumps(config))
        self.config.chmod(0o600)
        self.process: subprocess.Popen[bytes] | None = None
        self._quick = quick
        self._forked: QuickServer | None = None
        self._log = (place / "serve.log").open("wb")

    def start(self) -> None:
        environment = clean_environment(self.place)
        if self._quick is not None:
            log = Path(self._log.name)
            self._forked = self._quick.start(self.place, environment, log, "--config", str(self.config))
            return
        arguments = [*COMMAND, "serve", "--port", str(free_port()), "--config", str(self.config)]
        self.process = subprocess.Popen(arguments, cwd=self.place, env=environment, stderr=self._log)

    def kill(self, number: int) -> None:
        if self._forked is not None:
            self._forked.stop(number)
            return
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(HANG_S)

    def close(self) -> None:
        if self._forked is not None or (self.process is not None and self.process.poll() is None):
            self.kill(signal.SIGTERM)
        self._log.close()

    async def run(self, *arguments: str) -> str:
        command = [*COMMAND, *arguments, "--config", str(self.config)]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=self.workspace, env=clean_environment(self.place), capture_output=True,
            text=True, check=False, timeout=HANG_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def said(self) -> list[Call]:
        """What the bot sent or changed last, in order."""
        return [c for c in self.bot.calls if c.method in ("sendMessage", "editMessageText")]

    async def until_said(self, text: str) -> Call:
        await self.bot.until(lambda: any(text in call.text for call in self.said()))
        return next(call for call in reversed(self.said()) if text in call.text)

    async def press(self, call: Call, label: str) -> None:
        """Press a button of a message that the bot sent."""
        rows = call.params["reply_markup"]["inline_keyboard"]
        data = [button["callback_data"] for row in rows for button in row if label in button["text"]]
        assert len(data) == 1, rows
        shown = [m["message"] for m in self.bot.messages.values() if data[0] in str(m["markup"])]
        await self.bot.update(
            callback_query={
                "id": str(len(self.bot.calls)), "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
                "chat_instance": "1", "data": data[0], "message": shown[-1],
            }
        )  # fmt: skip


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
