"""Telegram at its worst: a token taken back, answers that are slow, messages that are nothing but emoji."""

from dataclasses import replace
from typing import Any

import pytest
from support import telegram_html
from support.fake_telegram import TOKEN, FakeTelegram

from bowerbird.channels.contract import RetryLater
from bowerbird.channels.telegram.updates import Me, read_update


async def test_a_token_that_is_taken_back_is_named_and_nothing_is_lost(desk: Any, fake: FakeTelegram) -> None:
    """AS-13, AS-19: what is owed is tried later, and what was written meanwhile arrives when it is good again."""
    desk.timing = replace(desk.timing, refused_s=0.05, poll_s=1)
    async with desk.open() as channel:
        await fake.say("before")
        await desk.all_confirmed()
        fake.revoked = True
        await fake.say("meanwhile")
        await fake.until(lambda: any("refuses the token" in report for report in desk.reports))
        with pytest.raises(RetryLater, match="refuses the token") as failed:
            await channel.send("7", "an answer")
        assert failed.value.seconds >= 30 and TOKEN not in str(failed.value) + str(desk.reports)
        fake.revoked = False
        assert await desk.texts() == ["before", "meanwhile"]
        await channel.send("7", "an answer")
        await fake.until(lambda: desk.reports[-1] == "")
    assert len(fake.of("sendMessage")) == 2


async def test_four_thousand_emoji_come_whole_and_go_in_valid_parts(desk: Any, fake: FakeTelegram) -> None:
    """AS-17: an emoji is two units or many, and is never cut."""
    text = "👩\u200d👩\u200d👧🏽é" * 4096
    async with desk.open() as channel:
        await fake.say("🎉" * 4096)
        assert await desk.texts() == ["🎉" * 4096]
        parts = channel.parts("🎉" * 4096)
        for part in parts:
            await channel.send("-7", part)
        assert len(channel.parts(text)) <= 11
    sent = [telegram_html.read(call.text).text for call in fake.of("sendMessage")]
    assert len(sent) == 2 and "".join(sent) == "🎉" * 4096


async def test_a_reaction_is_set_and_taken_off_and_no_trouble_of_it_is_more(
    desk: Any, fake: FakeTelegram
) -> None:
    """AS-9: also where the message is gone."""
    async with desk.open() as channel:
        await channel.react("7", "1001", "👀")
        await channel.react("7", "1001", "")
        fake.script("setMessageReaction", 400, "Bad Request: message to react not found")
        await channel.react("7", "1001", "👀")
        fake.script("setMessageReaction", 429, "Too Many Requests: retry after 5", retry_after=5)
        with pytest.raises(RetryLater):
            await channel.react("7", "1001", "👀")
    emoji = [str(call.params.get("reaction")) for call in fake.of("setMessageReaction")]
    assert "👀" in emoji[0] and "👀" not in emoji[1]


def test_a_reply_may_mark_a_part_of_a_message() -> None:
    """AS-27: Telegram's own quote."""
    message = {
        "message_id": 2, "chat": {"id": 7, "type": "private"}, "from": {"id": 7}, "text": "rename it",
        "reply_to_message": {"message_id": 1, "chat": {"id": 7}}, "quote": {"text": "+two", "position": 3},
    }  # fmt: skip
    found = read_update({"update_id": 1, "message": message}, Me(1, "bower_bot"))
    assert found is not None and (found.message.reply_to, found.message.quote) == ("1", "+two")
