"""A Telegram that hangs in one chat: the others go on, and the chat gets its answer when it is let (AS-3, AS-19)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import Call, FakeTelegram, fake_telegram

SLOW = 7
_WORD = re.compile(r"word (\d\.\d)")


class Hanging(FakeTelegram):
    """One chat's calls are not answered until they are let through."""

    let: asyncio.Event

    async def _result(self, call: Call, request: Any) -> Any:
        if str(call.params.get("chat_id")) == str(SLOW):
            await self.let.wait()
        return await super()._result(call, request)


@pytest.fixture
async def assistant(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Assistant]:
    async with fake_telegram(Hanging) as bot:
        assert isinstance(bot, Hanging)
        bot.let = asyncio.Event()
        made = Assistant(tmp_path, fake, bot, telegram={"allowed_users": ["7", "8", "9"]})
        try:
            made.start()
            await bot.until(lambda: bot.of("getUpdates"))
            yield made
        finally:
            bot.let.set()
            await asyncio.to_thread(made.close)


async def test_a_chat_whose_calls_hang_delays_no_other(assistant: Assistant, fake: FakeModels) -> None:
    """AS-3, AS-19: messages, commands and answers of other chats; then its own, once."""
    bot = assistant.bot
    assert isinstance(bot, Hanging)
    fake.answer(lambda body, _: {"text": f"answer to {_WORD.findall(json.dumps(body['messages']))[-1]}"})
    await bot.say("word 7.0", chat=SLOW, user=SLOW)
    await bot.until(lambda: any(str(call.params.get("chat_id")) == "7" for call in bot.calls))
    for number in range(3):
        for user in (8, 9):
            await bot.say(f"word {user}.{number}", chat=user, user=user)
            await assistant.until_said(f"answer to {user}.{number}")
    await bot.say("/status", chat=8, user=8, entities=[{"type": "bot_command", "offset": 0, "length": 7}])
    await assistant.until_said("Model")
    assert not any(chat == SLOW for chat, _ in bot.messages)
    bot.let.set()
    await bot.until(lambda: any(chat == SLOW for chat, _ in bot.messages))
    await bot.until(
        lambda: [m["source"] for (c, _), m in bot.messages.items() if c == SLOW] == ["answer to 7.0"]
    )
