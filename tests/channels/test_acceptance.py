"""Points of the chapter's acceptance list that need the whole program: real server, fake Telegram (4, 11; AS-22)."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import FakeTelegram, fake_telegram
from support.fake_transcription import KEY, fake_transcription

HEAD = "---\nname: {name}\ndescription: {about}\n{more}---\nDo it.\n"


@pytest.fixture
async def bot() -> AsyncIterator[FakeTelegram]:
    async with fake_telegram() as made:
        yield made


@pytest.fixture
async def assistant(tmp_path: Path, fake: FakeModels, bot: FakeTelegram) -> AsyncIterator[Assistant]:
    async with fake_transcription() as heard:
        heard.text = "buy *milk*"
        more = {
            "transcription": {"enabled": True, "provider": "openai", "api_key": KEY, "base_url": heard.url}
        }
        made = Assistant(tmp_path, fake, bot, telegram={"allowed_users": ["7"]}, more=more)
        try:
            made.start()
            await bot.until(lambda: bot.of("getUpdates"))
            yield made
        finally:
            await asyncio.to_thread(made.close)


async def test_refusals_and_a_restart_leave_one_answer_in_the_place_of_its_beginning(
    assistant: Assistant, bot: FakeTelegram, fake: FakeModels
) -> None:
    """Acceptance 4: `retry_after`, a lost connection, kill -9: one answer per question, in order."""
    fake.script({"text": "beginning " * 200, "deltas": 200, "gap_s": 0.05})
    await bot.say("talk")
    await bot.until(lambda: bot.of("sendMessage"))
    bot.script("editMessageText", 429, "Too Many Requests: retry after 2", retry_after=2)
    bot.script("editMessageText")
    await bot.until(lambda: bot.of("editMessageText"))
    await bot.say("and then?")
    await bot.until(lambda: bot.offset > bot._next_update)
    await asyncio.to_thread(assistant.kill, signal.SIGKILL)
    fake.script({"text": "The first answer."}, {"text": "The second answer."})
    assistant.start()
    await assistant.until_said("The second answer.")
    shown = [str(known["source"]) for _, known in sorted(bot.messages.items())]
    assert shown == ["The first answer.", "The second answer."]


async def test_an_answer_that_fails_for_a_while_stands_above_the_next(
    assistant: Assistant, bot: FakeTelegram, fake: FakeModels
) -> None:
    """AS-19: the next one is not shown as it is written before the one that is owed."""
    for _ in range(2):  # as it is written, and when it is whole
        bot.script("sendMessage", 500, "Internal Server Error")
    fake.script({"text": "first"}, {"text": "second " * 40, "deltas": 40, "gap_s": 0.1})
    await bot.say("one")
    await bot.say("two")
    await assistant.until_said("first")
    await bot.until(lambda: any(str(m["source"]).count("second") == 40 for m in bot.messages.values()))
    shown = [str(known["source"])[:5] for _, known in sorted(bot.messages.items())]
    assert shown == ["first", "secon"]


async def test_what_was_edited_and_landed_is_in_the_next_request_and_what_is_broken_is_not(
    assistant: Assistant, bot: FakeTelegram, fake: FakeModels
) -> None:
    """Acceptance 11, AS-41, AS-45, AS-46: in the same conversation, without a restart."""
    place = assistant.workspace / "skills"
    for name, more in (("broken", "requires_env: [\n"), ("keyed", "requires_env: NO_SUCH_KEY\n")):
        (place / name).mkdir(parents=True)
        (place / name / "SKILL.md").write_text(HEAD.format(name=name, about=f"About {name}.", more=more))
    skill = {"path": "skills/tea/SKILL.md", "content": HEAD.format(name="tea", about="How to brew.", more="")}
    fake.script({"tools": [{"name": "write_file", "input": skill}]}, {"text": "It is written."})
    await bot.say("learn to make tea")
    await assistant.press(await assistant.until_said("skills/tea"), "Land")
    await assistant.press(await assistant.until_said("do something by themselves"), "Land these")
    await assistant.until_said("Landed 1 file")
    assert "How to brew." not in json.dumps(fake.requests[-1]["system"])
    (assistant.workspace / "MEMORY.md").write_text("Ann likes it strong.\n")
    fake.script({"text": "Strong tea it is."})
    await bot.say("make some")
    await assistant.until_said("Strong tea it is.")
    asked = json.dumps(fake.requests[-1])
    assert "Ann likes it strong." in asked and "How to brew." in asked and "learn to make tea" in asked
    assert "About broken." not in asked and "About keyed." not in asked


async def test_what_was_heard_is_quoted_before_the_answer(
    assistant: Assistant, bot: FakeTelegram, fake: FakeModels
) -> None:
    """AS-22: as it was said, whatever signs are in it."""
    bot.files["words"] = b"OggS" + bytes(100)
    fake.script({"text": "I bought it."})
    await bot.message({"voice": {"file_id": "words", "file_unique_id": "w", "duration": 2, "file_size": 104}})
    answer = await assistant.until_said("<blockquote>buy *milk*</blockquote>")
    assert answer.text.endswith("I bought it.")
