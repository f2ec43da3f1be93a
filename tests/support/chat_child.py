"""A server's process with a chat channel that lives in files, to be killed at a named point and started again.

Run as a program: chat_child.py JSON, with `directory`, `flags` (settings by key), `model`, and `kill`: `before` the
commit of an update, `after` it and before the service is told, or `carrying` out what was kept; null = never.

The service is the directory: `updates` has one JSON message a line, `offset` how many of them were confirmed,
`sent` what the bot sent.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.killed_app import application

import bowerbird.channels.make as composition
from bowerbird.app import Application
from bowerbird.channels.contract import Deliver, IncomingMessage, SendResult
from bowerbird.channels.house import Rules
from bowerbird.core.forms import convert

LOOK_S = 0.02


class FileChannel:
    """A channel over files; it confirms an update only when `deliver` has returned."""

    name = "chat"
    edits = True
    buttons = True
    files = True
    voice = True
    max_text = 4000

    def __init__(self, directory: Path, kill: str | None) -> None:
        self._directory = directory
        self._kill = kill
        self._task: asyncio.Task[None] | None = None

    async def start(self, deliver: Deliver) -> None:
        self._task = asyncio.create_task(self._receive(deliver))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _receive(self, deliver: Deliver) -> None:
        offset = self._directory / "offset"
        while True:
            done = int(offset.read_text()) if offset.exists() else 0
            lines = (self._directory / "updates").read_text().splitlines()
            if done < len(lines):
                message = convert(json.loads(lines[done]), IncomingMessage)
                if self._kill == "before":
                    self.die()
                await deliver(message)
                if self._kill == "after":
                    self.die()
                offset.write_text(str(done + 1))
            else:
                await asyncio.sleep(LOOK_S)

    @staticmethod
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def parts(self, text: str) -> Sequence[str]:
        return [text]

    async def send(self, chat_id: str, text: str, **options: Any) -> SendResult:
        with (self._directory / "sent").open("a") as file:
            file.write(json.dumps({"chat": chat_id, "text": text}) + "\n")
        return SendResult("1")

    async def send_file(self, chat_id: str, path: Path, caption: str = "") -> None:
        raise NotImplementedError

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        if self._kill == "carrying":
            self.die()
        return message

    async def acknowledge(self, message: IncomingMessage, said: str = "") -> None:
        return None


async def _serve(opened: Application) -> None:
    await opened.start()
    await asyncio.Event().wait()


async def main(config: dict[str, Any]) -> None:
    directory = Path(config["directory"])
    channel = FileChannel(directory, config["kill"])
    rules = Rules(lambda: {"1": "owner"}, lambda: "@Bowerbird")
    composition.make_channels = lambda *_: [(channel, rules)]  # type: ignore[assignment]  # what settings ask for
    async with application(directory, config["flags"], config["model"], drives_all=True) as opened:
        await _serve(opened)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
