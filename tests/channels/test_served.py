"""An assistant as people run it: `bowerbird serve` with a bot, from pairing to a landing and over a kill -9.

Acceptance 2 and 4, AS-7, AS-13, AS-25, AS-26, AS-32, AS-38, AS-40: the parts are tested beside; here they are one program.
"""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.fake_telegram import TOKEN, Call, FakeTelegram, fake_telegram
from support.patience import HANG_S
from support.terminals import COMMAND, clean_environment


class Assistant:
    """A directory, its server process, and the chat with it."""

    def __init__(self, place: Path, fake: FakeModels, bot: FakeTelegram) -> None:
        self.place, self.bot = place, bot
        self.workspace = place / "workspace"
        self.workspace.mkdir()
        config = {
            "agent": {"workspace": str(self.workspace), "data_dir": str(place / "data")},
            "provider": {"name": "anthropic", "api_key": "k", "base_url": fake.anthropic_url},
            "dispatch": {"lease_s": 2, "heartbeat_s": 0.6},
            "channels": {
                "telegram": {"enabled": True, "token": TOKEN, "server": bot.url, "stream_interval": 0.3}
            },
            "scheduler": {"enabled": True, "min_interval": 1, "poll_interval": 1},
        }
        self.config = place / "config.yaml"
        self.config.write_text(json.dumps(config))
        self.config.chmod(0o600)
        self.environment = clean_environment(place, BOWERBIRD_SERVER__PORT="0")
        self.process: subprocess.Popen[bytes] | None = None
        self._log = (place / "serve.log").open("wb")

    def start(self) -> None:
        arguments = [*COMMAND, "serve", "--port", str(_free_port()), "--config", str(self.config)]
        environment = clean_environment(self.place)
        self.process = subprocess.Popen(arguments, cwd=self.place, env=environment, stderr=self._log)

    def kill(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(HANG_S)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
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


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
async def assistant(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Assistant]:
    async with fake_telegram() as bot:
        made = Assistant(tmp_path, fake, bot)
        try:
            yield made
        finally:
            await asyncio.to_thread(made.close)


async def paired(assistant: Assistant) -> None:
    code = next(
        word for word in (await assistant.run("channels", "pair", "telegram")).split() if _is_code(word)
    )
    await assistant.bot.say(f"/start {code}")
    await assistant.bot.until(assistant.said)


def _is_code(word: str) -> bool:
    return len(word) == 8 and word.isalnum() and word.upper() == word


async def test_from_pairing_to_a_landing_that_is_taken_back(assistant: Assistant, fake: FakeModels) -> None:
    """AS-7, AS-25, AS-26: nobody is answered before pairing; what lands is what was shown."""
    assistant.start()
    await assistant.bot.until(lambda: assistant.bot.of("getUpdates"))
    await assistant.bot.say("hello")
    await asyncio.to_thread(lambda: None)
    fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "list.md", "content": "milk\n"}}]},
        {"text": "It is **on** the list."},
    )
    await paired(assistant)
    assert not fake.request_count and len(assistant.said()) == 1
    await assistant.bot.say("put milk on the list")
    await assistant.until_said("<b>on</b> the list")
    summary = await assistant.until_said("list.md")
    assert not (assistant.workspace / "list.md").exists()
    await assistant.press(summary, "Land")
    landed = await assistant.until_said("anded")
    assert (assistant.workspace / "list.md").read_text() == "milk\n"
    await assistant.press(landed, "Undo")
    async with asyncio.timeout(HANG_S):
        while (assistant.workspace / "list.md").exists():
            await asyncio.sleep(0.05)


async def test_a_killed_server_answers_once_and_a_task_goes_on(
    assistant: Assistant, fake: FakeModels
) -> None:
    """Acceptance 2 and 4, AS-32, AS-38: kill -9 while it answers, and a task that runs in the chat."""
    assistant.start()
    await assistant.bot.until(lambda: assistant.bot.of("getUpdates"))
    await paired(assistant)
    fake.script({"text": "word " * 60, "deltas": 60, "gap_s": 0.1})
    await assistant.bot.say("talk")
    await assistant.bot.until(lambda: assistant.bot.of("editMessageText"))  # the first message is known then
    await asyncio.to_thread(assistant.kill, signal.SIGKILL)
    fake.script({"text": "The whole answer."})
    assistant.start()
    await assistant.until_said("The whole answer.")
    answers = [call for call in assistant.said() if "The whole answer." in call.text]
    assert len(answers) == 1 and answers[0].method == "editMessageText"  # the placeholder becomes the answer
    fake.script({"text": "Drink some water."})
    made = await assistant.run(
        "tasks", "add", "remind me", "--every", "1", "--channel", "telegram", "--chat", "7", "--json"
    )
    task = json.loads(made)["id"]
    reminder = await assistant.until_said("Drink some water.")
    assert reminder.params.get("disable_notification") is True
    await assistant.bot.say("/tasks", entities=[{"type": "bot_command", "offset": 0, "length": 6}])
    await assistant.until_said(task)
    await assistant.bot.say(f"/cancel {task}", entities=[{"type": "bot_command", "offset": 0, "length": 7}])
    await assistant.until_said("is cancelled")
