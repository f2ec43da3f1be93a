"""Updates are confirmed only after they were delivered, whatever happens (AS-13, AS-14)."""

import asyncio
import logging
import random
from dataclasses import replace
from typing import Any

import pytest
from support.fake_telegram import BOT_ID, TOKEN, FakeTelegram
from support.patience import HANG_S

from bowerbird.channels.contract import ChannelError, IncomingMessage
from bowerbird.core.errors import StoreBusy


async def test_what_people_write_is_delivered_in_order(desk: Any, fake: FakeTelegram) -> None:
    """AS-13, AS-14: also what was written before the start; the key names bot and update."""
    first = await fake.say("one")
    async with desk.open():
        await fake.say("two")
        await fake.say("three")
        assert await desk.texts() == ["one", "two", "three"]
    assert desk.delivered[0].dedupe_key == f"{BOT_ID}:{first}"
    assert desk.lease.released == 1


async def test_an_update_is_confirmed_only_after_its_delivery(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: while it is being delivered, Telegram still has it."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: IncomingMessage) -> None:
        begun.set()
        await go_on.wait()

    desk.on_deliver = slow
    async with desk.open():
        number = await fake.say("slow")
        async with asyncio.timeout(HANG_S):
            await begun.wait()
        assert fake.offset <= number and fake.updates
        go_on.set()
        await desk.all_confirmed()
        assert fake.offset == number + 1


async def test_a_channel_that_stops_during_a_delivery_gets_it_again(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: nothing is confirmed by stopping."""
    begun = asyncio.Event()

    async def hanging(_: IncomingMessage) -> None:
        begun.set()
        await asyncio.Event().wait()

    desk.on_deliver = hanging
    await fake.say("again")
    async with desk.open(), asyncio.timeout(HANG_S):
        await begun.wait()
    desk.on_deliver = None
    async with desk.open():
        assert await desk.texts() == ["again"]


async def test_an_update_that_fails_three_times_is_set_aside(desk: Any, fake: FakeTelegram) -> None:
    """AS-14: its raw form is kept, and what follows arrives, in its own chat, too."""
    tries = 0

    async def failing(message: IncomingMessage) -> None:
        nonlocal tries
        if message.text == "poison":
            tries += 1
            raise RuntimeError(f"defect with {TOKEN}")

    desk.on_deliver = failing
    async with desk.open():
        number = await fake.say("poison")
        await fake.say("after")
        await fake.say("elsewhere", chat=8)
        assert sorted(await desk.texts()) == ["after", "elsewhere"]
    assert tries == 3
    ((key, raw, reason),) = desk.quarantined
    assert key == f"{BOT_ID}:{number}" and raw["message"]["text"] == "poison"
    assert "defect" in reason and TOKEN not in reason


async def test_a_store_that_is_busy_costs_no_message(desk: Any, fake: FakeTelegram) -> None:
    """AS-14: the trouble of the store is not the update's, however long it lasts."""
    tries = 0

    async def busy(_: IncomingMessage) -> None:
        nonlocal tries
        tries += 1
        if tries < 6:
            raise StoreBusy("busy")

    desk.on_deliver = busy
    async with desk.open():
        await fake.say("kept")
        assert await desk.texts() == ["kept"]
    assert desk.quarantined == []
    assert any("cannot be stored" in report for report in desk.reports)


async def test_what_comes_later_is_delivered_but_not_confirmed_alone(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: the offset stays before an update that waits, and what came after it is delivered once."""
    is_busy = True

    async def busy(message: IncomingMessage) -> None:
        if is_busy and message.chat_id == "7":
            raise StoreBusy("busy")

    desk.on_deliver = busy
    number = await fake.say("waits")
    await fake.say("elsewhere", chat=8)
    async with desk.open():
        await fake.until(lambda: len(fake.of("getUpdates")) > 4)
        assert [message.text for message in desk.delivered] == ["elsewhere"]
        assert fake.offset <= number
        is_busy = False
        assert await desk.texts() == ["elsewhere", "waits"]


async def test_what_cannot_be_set_aside_comes_again(desk: Any, fake: FakeTelegram) -> None:
    """AS-14: nothing is skipped that was not kept."""
    refusals = 3

    def refuse() -> None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise OSError("disk full")

    desk.on_quarantine = refuse
    async with desk.open():
        await fake.put({"update_id": 900, "message": {"message_id": "no number"}})
        await desk.all_confirmed()
    assert len(desk.quarantined) == 1


async def test_a_conflict_is_reported_and_waited_out(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: another program with the same token."""
    fake.script("getUpdates", 409, "Conflict: terminated by other getUpdates request")
    async with desk.open():
        await fake.say("hello")
        assert await desk.texts() == ["hello"]
    assert "Another program polls with the same token" in desk.reports[0]
    assert desk.reports[-1] == ""


@pytest.mark.parametrize(
    ("status", "description"), [(502, "Bad Gateway"), (0, ""), (429, "Too Many Requests")]
)
async def test_outages_are_waited_out(desk: Any, fake: FakeTelegram, status: int, description: str) -> None:
    """AS-13: receiving goes on by itself."""
    fake.script("getUpdates", status, description)
    fake.script("getUpdates", status, description)
    async with desk.open():
        await fake.say("hello")
        assert await desk.texts() == ["hello"]
    assert desk.reports[-1] == ""


async def test_a_server_that_does_not_wait_is_not_asked_for_ever(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: an empty answer that comes at once is followed by a pause."""
    fake.waits = False
    desk.timing = replace(desk.timing, retry_s=0.1)
    async with desk.open():
        await asyncio.sleep(0.5)
        assert len(fake.of("getUpdates")) <= 6
        await fake.say("hello")
        assert await desk.texts() == ["hello"]


async def test_only_the_holder_of_the_lease_polls(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: one poller per token; it stops when the lease is lost and goes on when it is free."""
    desk.lease.is_free = False
    async with desk.open():
        await fake.say("hello")
        await asyncio.sleep(0.2)  # nothing may happen, so there is no event to wait for
        assert not fake.of("getUpdates")
        desk.lease.is_free = True
        assert await desk.texts() == ["hello"]
        desk.lease.is_free = False
        async with asyncio.timeout(HANG_S):
            while not desk.lease.released:
                await asyncio.sleep(0.01)
        polls = len(fake.of("getUpdates"))
        await fake.say("not yet")
        await asyncio.sleep(0.2)
        assert len(fake.of("getUpdates")) == polls
    assert desk.reports == [""]


async def test_who_takes_over_says_that_it_receives(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: what the process before said of its trouble would else stand for good; who is begun goes first."""
    begun: list[int] = []

    async def take_over() -> None:
        begun.append(len(fake.of("getUpdates")))

    channel = desk.channel()
    channel.when_receiving(take_over)
    await channel.start(desk.deliver)
    try:
        await fake.say("hello")
        assert await desk.texts() == ["hello"]
    finally:
        await channel.stop()
    assert begun == [0] and desk.reports == [""]


async def test_a_wrong_or_missing_token_is_named_and_never_shown(
    desk: Any, fake: FakeTelegram, caplog: Any
) -> None:
    """AS-13: the start fails; the token is in no error and no log, though the library logs addresses."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ChannelError, match=r"channels\.telegram\.token is empty"):
        await desk.channel(" ").start(desk.deliver)
    wrong = "123456:WRONGtokenWRONGtokenWRONGtoken"
    with pytest.raises(ChannelError) as caught:
        await desk.channel(wrong).start(desk.deliver)
    fake.script("getUpdates", 0)
    async with desk.open():
        await fake.say("hello")
        await desk.all_confirmed()
    for secret in ("WRONGtoken", "TESTtoken"):
        assert secret not in str(caught.value) + str(desk.reports) + caplog.text
    assert "getUpdates" in caplog.text


@pytest.mark.parametrize("answer", ["<html>", "[1]", '{"ok": true, "result": {}}'])
async def test_what_does_not_answer_as_telegram_is_said(desk: Any, fake: FakeTelegram, answer: str) -> None:
    """AS-3, AS-13: at the start, and while polling."""
    fake.script("getMe", 200, answer)
    with pytest.raises(ChannelError):
        await desk.channel().start(desk.deliver)
    fake.script("getUpdates", 200, answer)
    async with desk.open():
        await fake.say("hello")
        assert await desk.texts() == ["hello"]
    assert desk.reports[0] and desk.reports[-1] == ""


async def test_a_webhook_that_is_set_later_is_named(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: no other program polls."""
    async with desk.open():
        fake.script("getUpdates", 409, "Conflict: can't use getUpdates method while webhook is active")
        await fake.say("hello")
        await fake.say("again")
        assert await desk.texts() == ["hello", "again"]
    assert any("webhook" in report for report in desk.reports)


async def test_a_webhook_is_taken_away(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: Telegram refuses to be polled while one is set."""
    fake.webhook = True
    async with desk.open():
        await fake.say("hello")
        assert await desk.texts() == ["hello"]


async def test_a_hundred_and_one_updates_are_all_delivered(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: Telegram gives at most 100 at once."""
    for number in range(250):
        await fake.say(str(number), chat=7 + number % 3)
    async with desk.open():
        texts = await desk.texts()
    assert sorted(map(int, texts)) == list(range(250))
    for chat in range(3):
        own = [int(text) for text in texts if int(text) % 3 == chat]
        assert own == sorted(own)


async def test_ten_thousand_random_updates_never_stop_the_receiving(desk: Any, fake: FakeTelegram) -> None:
    """AS-13, AS-14: whatever comes, what people write after it arrives."""
    chance = random.Random(7)
    for number in range(10_000):
        update: Any = {"update_id": 1_000 + number, **_random_kind(chance)}
        if chance.random() < 0.01:
            update = chance.choice([None, 3, "x", [], {"update_id": "7"}, {"update_id": True}, {}])
        fake.updates.append(update)
    fake.updates.append({"update_id": 99_999, "message": _good_message("last")})
    # What has no number can never be confirmed; Telegram sends no such thing for ever.
    async with desk.open():
        async with asyncio.timeout(HANG_S * 3):
            while not any(message.text == "last" for message in desk.delivered):
                await fake.until(lambda: len(fake.of("getUpdates")) > 0)
                fake.updates = [
                    u for u in fake.updates if isinstance(u, dict) and isinstance(u.get("update_id"), int)
                ]
                await asyncio.sleep(0.01)
    assert len(desk.quarantined) > 1_000


def _good_message(text: str) -> dict[str, Any]:
    who = {"id": 7, "is_bot": False, "first_name": "Ann"}
    return {"message_id": 5, "date": 1, "chat": {"id": 7, "type": "private"}, "from": who, "text": text}


def _random_kind(chance: random.Random) -> dict[str, Any]:
    message = _good_message("hi")
    for _ in range(chance.randrange(4)):
        key = chance.choice(
            [*message, "entities", "photo", "voice", "document", "media_group_id", "reply_to_message"]
        )
        message[key] = _random_value(chance, 3)
    kind = chance.choice(["message", "callback_query", "edited_message", "channel_post", "poll", "?"])
    if kind == "callback_query":
        message = {"id": "1", "from": {"id": 7}, "data": "x", "message": message}
    return {kind: message if chance.random() < 0.8 else _random_value(chance, 4)}


def _random_value(chance: random.Random, depth: int) -> Any:
    simple = [None, True, -1, 0, 2**70, 1.5, "", "x" * 50, "\ud800", [], {}]
    if depth == 0 or chance.random() < 0.5:
        return chance.choice(simple)
    if chance.random() < 0.5:
        return [_random_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    keys = ["id", "type", "offset", "length", "file_id", "user", "message_id", "chat", "from"]
    return {chance.choice(keys): _random_value(chance, depth - 1) for _ in range(chance.randrange(4))}


async def test_a_wait_of_a_day_makes_nobody_deaf_for_a_day(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: one such answer to a poll, of a server in between say, and nothing arrived until tomorrow."""
    desk.timing = replace(desk.timing, asked_s=0.05)
    fake.script("getUpdates", 429, "Too Many Requests: retry after 86400", retry_after=86_400)
    async with desk.open():
        await fake.say("hello")
        assert await desk.texts() == ["hello"]
    assert any("1 day" in report for report in desk.reports) and desk.reports[-1] == ""


async def test_a_server_that_repeats_itself_is_not_asked_for_ever(desk: Any, fake: FakeTelegram) -> None:
    """AS-13: two hundred polls a second, each stored and found to be known. Numbers that begin anew arrive."""
    desk.timing = replace(desk.timing, retry_s=0.1)
    answer = fake._getUpdates  # pyright: ignore[reportPrivateUsage]
    old = {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}, "from": {"id": 7}, "text": "old"}

    async def again(_: object) -> list[Any]:
        return [{"update_id": 3, "message": old}]

    async with desk.open():
        await fake.say("first")
        await desk.all_confirmed()
        before = len(fake.of("getUpdates"))
        fake._getUpdates = again  # type: ignore[method-assign]
        await fake.say("second")
        await asyncio.sleep(0.6)
        assert len(fake.of("getUpdates")) - before <= 8
        fake._getUpdates = answer  # type: ignore[method-assign]
        assert {"first", "old", "second"} == set(await desk.texts())
