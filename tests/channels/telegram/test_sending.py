"""Messages out, and what is done about each refusal (AS-17, AS-19, AS-21, AS-24)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.fake_telegram import FakeTelegram
from support.patience import HANG_S

from bowerbird.channels.contract import Button, Gone, Rejected, RetryLater


async def test_an_answer_is_sent_as_it_was_cut(desk: Any, fake: FakeTelegram) -> None:
    """AS-17: parts survive the outbox; the reply is on the first, buttons on the last."""
    text = "**start** " + ("word & <x> " * 300 + "\n\n") * 3
    async with desk.open() as channel:
        parts = channel.parts(text)
        for part in parts:
            await channel.send("-5", part)
    sent = fake.of("sendMessage")
    assert len(sent) == len(parts) > 2
    assert sent[0].text.startswith("<b>start</b> word &amp; &lt;x&gt;")
    assert all(call.params["parse_mode"] == "HTML" for call in sent)
    assert all(call.params["link_preview_options"]["is_disabled"] for call in sent)


async def test_markdown_that_was_not_cut_is_cut_when_it_is_sent(desk: Any, fake: FakeTelegram) -> None:
    """AS-17: reply on the first, buttons on the last."""
    async with desk.open() as channel:
        result = await channel.send(
            "-5.9",
            "**a**\n\n" + "x " * 3_000,
            reply_to_message_id="3",
            disable_notification=True,
            buttons=[[Button("Land", "r:land:k")]],
        )
    sent = fake.of("sendMessage")
    assert [("reply_parameters" in c.params, "reply_markup" in c.params) for c in sent] == [
        (True, False), (False, False), (False, True)
    ]  # fmt: skip
    assert all(c.params["message_thread_id"] == "9" and c.params["disable_notification"] for c in sent)
    assert result.message_id == str(max(number for _, number in fake.messages))


async def test_a_very_long_answer_is_its_beginning_and_a_file(desk: Any, fake: FakeTelegram) -> None:
    """AS-17: `answer.md` has all of it."""
    text = "**word** " * 20_000
    async with desk.open() as channel:
        for part in channel.parts(text):
            await channel.send("-5", part)
    assert len(fake.of("sendMessage")) == 1
    (file,) = fake.of("sendDocument")
    assert (file.file_name, file.file) == ("answer.md", text.encode())


async def test_what_telegram_cannot_parse_is_sent_once_as_plain_text(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: the same part, without tags."""
    fake.script("sendMessage", 400, "Bad Request: can't parse entities: unsupported start tag")
    async with desk.open() as channel:
        await channel.send("7", "**a** < b")
        fake.script("sendMessage", 400, "Bad Request: can't parse entities: x")
        fake.script("sendMessage", 400, "Bad Request: can't parse entities: x")
        with pytest.raises(Rejected):
            await channel.send("7", "again")
    first, second, third, fourth = fake.of("sendMessage")
    assert (first.text, second.text) == ("<b>a</b> &lt; b", "a < b")
    assert "parse_mode" not in second.params and third.text == fourth.text == "again"


async def test_plain_text_is_sent_as_it_stands(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: also of a part that was cut as HTML."""
    async with desk.open() as channel:
        await channel.send("-7", "**a** < b", is_plain=True)
        await channel.send("-7", channel.parts("**a** < b")[0], is_plain=True)
        await channel.send("-7", "<&>" * 2_000, is_plain=True)
    texts = [call.text for call in fake.of("sendMessage")]
    assert texts[:2] == ["**a** < b", "a < b"]
    assert "".join(texts[2:]) == "<&>" * 2_000


@pytest.mark.parametrize(
    ("status", "description", "error"),
    [
        (403, "Forbidden: bot was blocked by the user", Gone),
        (400, "Bad Request: chat not found", Gone),
        (400, "Bad Request: not enough rights to send text messages to the chat", Gone),
        (400, "Bad Request: message thread not found", Gone),
        (400, "Bad Request: message is too long", Rejected),
        (500, "Internal Server Error", RetryLater),
        (502, "Bad Gateway", RetryLater),
        (0, "", RetryLater),
        (401, "Unauthorized", RetryLater),
        (200, "<html>", RetryLater),
        (200, "[1]", RetryLater),
        (200, '{"ok": true}', RetryLater),
        (200, '{"ok": true, "result": 5}', RetryLater),
    ],
)
async def test_each_refusal_has_one_of_three_meanings(
    desk: Any, fake: FakeTelegram, status: int, description: str, error: type[Exception]
) -> None:
    """AS-1, AS-19."""
    async with desk.open() as channel:
        fake.script("sendMessage", status, description)
        with pytest.raises(error) as caught:
            await channel.send("7", "hi")
    assert type(caught.value) is error
    assert "TESTtoken" not in str(caught.value)


async def test_an_answer_with_forms_of_tomorrow_is_no_reason_to_send_again(
    desk: Any, fake: FakeTelegram
) -> None:
    """AS-19: the library cannot read it, but the message is sent."""
    async with desk.open() as channel:
        for method in ("sendMessage", "editMessageText"):
            fake.script(
                method, 200, '{"ok": true, "result": {"message_id": 42, "date": "tomorrow", "chat": 3}}'
            )
        assert (await channel.send("7", "hi")).message_id == "42"
        assert (await channel.send("8", "hi", edit_message_id="41")).message_id == "41"
    assert len(fake.of("sendMessage")) == len(fake.of("editMessageText")) == 1


async def test_telegram_says_how_long_to_wait(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: `retry_after` and at most a second; until then nothing else is sent to this chat."""
    async with desk.open() as channel:
        fake.script("sendMessage", 429, "Too Many Requests: retry after 77", retry_after=77)
        with pytest.raises(RetryLater) as caught:
            await channel.send("7", "hi")
        assert 77 <= caught.value.seconds <= 78
        with pytest.raises(RetryLater) as caught:
            await channel.send("7", "hi")
        assert 60 < caught.value.seconds <= 77
        await channel.send("8", "elsewhere")
    assert [call.params["chat_id"] for call in fake.of("sendMessage")] == ["7", "8"]


async def test_a_reply_to_a_message_that_is_gone_is_sent_without(desk: Any, fake: FakeTelegram) -> None:
    """AS-19."""
    async with desk.open() as channel:
        fake.script("sendMessage", 400, "Bad Request: message to be replied not found")
        await channel.send("7", "hi", reply_to_message_id="3")
    assert ["reply_parameters" in call.params for call in fake.of("sendMessage")] == [True, False]


async def test_edits(desk: Any, fake: FakeTelegram) -> None:
    """AS-18, AS-19: not modified is success, gone is sent anew."""
    async with desk.open() as channel:
        sent = await channel.send("-7", "one")
        for _ in range(2):
            again = await channel.send("-7", "two", edit_message_id=sent.message_id)
            assert again == sent
        fake.messages.clear()
        new = await channel.send("-7", "three", edit_message_id=sent.message_id)
    assert new != sent
    assert fake.messages[-7, int(new.message_id)]["source"] == "three"


async def test_a_group_that_became_a_supergroup_is_followed(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: its chat has a new id."""
    async with desk.open() as channel:
        moved = "Bad Request: group chat was upgraded to a supergroup chat"
        fake.script("sendMessage", 400, moved, migrate_to_chat_id=-1009)
        await channel.send("-9", "one")
        await channel.send("-9", "two")
    assert [call.params["chat_id"] for call in fake.of("sendMessage")] == ["-9", "-1009", "-1009"]


async def test_more_than_one_message_a_second_waits(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: the own limit of private chats; groups wait elsewhere."""
    async with desk.open() as channel:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.gather(channel.send("7", "a"), channel.send("7", "b"), channel.send("8", "c"))
        assert loop.time() - begun >= 0.99
        for _ in range(20):
            await channel.send("-7", "x")
        with pytest.raises(RetryLater):
            await channel.send("-7", "x")
    assert len(fake.of("sendMessage")) == 23


@pytest.mark.parametrize("chat", ["", "x", "7.x", "7.1.2", "７.", "1e3"])
async def test_a_chat_that_is_none_is_rejected(desk: Any, chat: str) -> None:
    """AS-1: nothing but the three errors is raised."""
    async with desk.open() as channel:
        with pytest.raises((Rejected, Gone)):
            await channel.send(chat, "hi", edit_message_id="x")


async def test_buttons(desk: Any, fake: FakeTelegram) -> None:
    """AS-21: at most 64 bytes of data; a press that is too old to be answered is no error."""
    async with desk.open() as channel:
        with pytest.raises(Rejected, match="64 bytes"):
            await channel.send("7", "hi", buttons=[[Button("Land", "é" * 33)]])
        await channel.send(
            "7", "hi", buttons=[[Button("Land", "é" * 32), Button("Diff", "d")], [Button("X", "x")]]
        )
        message = {"message_id": 9, "chat": {"id": 7, "type": "private"}}
        for name in ("new", "old"):
            await fake.update(callback_query={"id": name, "from": {"id": 7}, "message": message, "data": "d"})
        await desk.all_confirmed()
        for pressed in desk.delivered:
            await channel.acknowledge(pressed, "x" * 500)
    (sent,) = fake.of("sendMessage")
    keys = sent.params["reply_markup"]["inline_keyboard"]
    assert [[key["text"] for key in row] for row in keys] == [["Land", "Diff"], ["X"]]
    assert [len(call.text) for call in fake.of("answerCallbackQuery")] == [200, 200]


async def test_files_are_sent_within_their_limit(desk: Any, fake: FakeTelegram, tmp_path: Path) -> None:
    """AS-24."""
    small, large, empty = tmp_path / "a b.txt", tmp_path / "large", tmp_path / "empty"
    small.write_bytes(b"content" * 100_000)
    empty.touch()
    with large.open("wb") as file:
        file.truncate(50_000_001)
    async with desk.open() as channel:
        await channel.send_file("-7.3", small, "c" * 2_000)
        await channel.send_file("-7", small, "c" + "\U0001f426" * 1_000)  # Telegram counts UTF-16 units
        for path, why in (
            (large, "50 MB"),
            (empty, "empty"),
            (tmp_path / "no", "File not found: "),
            (tmp_path, "not found"),
        ):
            with pytest.raises(Rejected, match=why):
                await channel.send_file("-7", path)
    call, birds = fake.of("sendDocument")
    assert birds.params["caption"] == "c" + "\U0001f426" * 511
    assert (call.file_name, call.file) == ("a b.txt", small.read_bytes())
    assert len(call.params["caption"]) == 1_024 and call.params["message_thread_id"] == "3"


async def test_before_the_start_nothing_can_be_sent(desk: Any) -> None:
    """AS-1, AS-3: the outbox tries again."""
    async with asyncio.timeout(HANG_S):
        with pytest.raises(RetryLater):
            await desk.channel().send("7", "hi")
