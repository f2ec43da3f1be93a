"""An assistant as people run it: `bowerbird serve` with a bot, from pairing to a landing and over a kill -9.

Acceptance 2 and 4, AS-7, AS-13, AS-25, AS-26, AS-32, AS-38, AS-40: the parts are tested beside; here they are one program.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import fake_telegram
from support.patience import HANG_S


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
