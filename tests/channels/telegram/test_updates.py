"""What an update says, as an incoming message (AS-2, AS-13, AS-15)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_telegram import BOT_ID, BOT_NAME, FakeTelegram
from support.patience import HANG_S, patience

from bowerbird.channels.contract import IncomingMessage
from bowerbird.channels.telegram.updates import Me, read_update

ME = Me(BOT_ID, BOT_NAME)
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
GROUP = {"id": -1001, "type": "supergroup"}


def read(message: dict[str, Any], kind: str = "message") -> IncomingMessage | None:
    whole = {
        "message_id": 5,
        "date": 1_790_000_000,
        "chat": {"id": 7, "type": "private"},
        "from": ANN,
        **message,
    }
    arrival = read_update({"update_id": 3, kind: whole}, ME)
    return None if arrival is None else arrival.message


def known(message: dict[str, Any]) -> IncomingMessage:
    found = read(message)
    assert found is not None
    return found


def mention(text: str, name: str = f"@{BOT_NAME}") -> list[dict[str, Any]]:
    """The entity of the first place of a name, counted as Telegram counts."""
    before = text[: text.index(name)]
    return [{"type": "mention", "offset": len(before.encode("utf-16-le")) // 2, "length": len(name)}]


def test_a_text_in_a_private_chat() -> None:
    """AS-2: ids are strings, the time is when it was sent."""
    message = known({"text": "hello"})
    assert (message.channel, message.chat_id, message.user_id) == ("telegram", "7", "7")
    assert (message.user_name, message.text, message.is_private) == ("Ann Lee", "hello", True)
    assert (message.kind, message.message_id, message.dedupe_key) == ("message", "5", f"{BOT_ID}:3")
    assert message.received_at.startswith("2026-09-21T")


@pytest.mark.parametrize(
    ("text", "kind", "said", "is_mentioned"),
    [
        ("/new", "command", "/new", False),
        ("/stop and wait\nplease", "command", "/stop and wait\nplease", False),
        (f"/diff@{BOT_NAME} a.py", "command", "/diff a.py", True),
        (f"/diff@{BOT_NAME.upper()}", "command", "/diff", True),
        ("/home/ann is my directory", "message", "/home/ann is my directory", False),
        ("/ no", "message", "/ no", False),
        ("see /new", "message", "see /new", False),
    ],
)
def test_commands(text: str, kind: str, said: str, is_mentioned: bool) -> None:
    """AS-13, AS-15: with or without the bot's name."""
    message = known({"text": text, "chat": GROUP})
    assert (message.kind, message.text, message.mentions_bot) == (kind, said, is_mentioned)


def test_a_command_for_another_bot_is_ignored() -> None:
    """AS-15."""
    assert read({"text": "/new@other_bot", "chat": GROUP}) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"@{BOT_NAME} do it", "do it"),
        (f"😀😀 @{BOT_NAME} do it", "😀😀  do it"),
        (f"do it @{BOT_NAME}", "do it"),
        (f"@{BOT_NAME}", ""),
    ],
)
def test_a_mention_is_seen_and_removed(text: str, left: str) -> None:
    """AS-8: places are counted in UTF-16 units."""
    message = known({"text": text, "chat": GROUP, "entities": mention(text)})
    assert (message.text, message.mentions_bot) == (left, True)


def test_names_of_others_and_places_outside_the_text_change_nothing() -> None:
    """AS-8."""
    text = "@other_bot do it"
    entities = [*mention(text, "@other_bot"), {"type": "mention", "offset": -4, "length": 90}]
    message = known({"text": text, "chat": GROUP, "entities": entities})
    assert (message.text, message.mentions_bot) == (text, False)
    own = {"type": "text_mention", "offset": 0, "length": 6, "user": {"id": BOT_ID}}
    assert known({"text": "Bower, hi", "chat": GROUP, "entities": [own]}).mentions_bot


def test_replies() -> None:
    """AS-8: to whom is a fact."""
    answered = {"message_id": 4, "chat": GROUP, "from": {"id": BOT_ID, "is_bot": True}, "text": "x"}
    message = known({"text": "yes", "chat": GROUP, "reply_to_message": answered})
    assert (message.reply_to, message.reply_to_bot) == ("4", True)
    message = known({"text": "yes", "chat": GROUP, "reply_to_message": {**answered, "from": ANN}})
    assert (message.reply_to, message.reply_to_bot) == ("4", False)


def test_a_forum_topic_is_a_chat_of_its_own() -> None:
    """AS-9: and what Telegram calls an answer to the topic's first message is none."""
    head = {"message_id": 40, "chat": GROUP, "from": {"id": BOT_ID}, "text": ""}
    topic = {"is_topic_message": True, "message_thread_id": 40, "reply_to_message": head, "chat": GROUP}
    message = known({"text": "hi", **topic})
    assert (message.chat_id, message.reply_to, message.reply_to_bot) == ("-1001.40", None, False)


def test_a_pressed_button() -> None:
    """AS-21: its data is the text."""
    message = {"message_id": 9, "chat": GROUP, "date": 0, "is_topic_message": True, "message_thread_id": 2}
    query = {"id": "77", "from": ANN, "message": message, "data": "land:yes:abc"}
    arrival = read_update({"update_id": 3, "callback_query": query}, ME)
    assert arrival is not None
    found = arrival.message
    assert (found.kind, found.text, found.callback_id) == ("button", "land:yes:abc", "77")
    assert (found.chat_id, found.message_id, found.user_id, found.is_private) == ("-1001.2", "9", "7", False)


@pytest.mark.parametrize("kind", ["edited_message", "channel_post", "edited_channel_post", "my_chat_member"])
def test_edits_and_channels_are_ignored(kind: str) -> None:
    """AS-15."""
    assert read({"text": "x"}, kind) is None


@pytest.mark.parametrize(
    "message",
    [
        {"new_chat_members": [ANN]},
        {"text": "x", "is_automatic_forward": True},
        {"text": "x", "chat": {"id": -5, "type": "channel"}},
        {"text": "x", "from": None},
    ],
)
def test_what_nobody_said_is_ignored(message: dict[str, Any]) -> None:
    """AS-15."""
    assert read(message) is None


def test_anonymous_admins_are_the_chat_that_they_speak_for() -> None:
    """AS-5: they share one user, who must not be admitted for all groups."""
    message = known({"text": "x", "chat": GROUP, "sender_chat": GROUP, "from": {"id": 1087968824}})
    assert message.user_id == "-1001"


def test_the_largest_photo_that_may_be_downloaded_is_taken() -> None:
    """AS-23."""
    sizes = [{"file_id": f"p{n}", "width": n, "height": n, "file_size": n * 1_000_000} for n in (1, 4, 5, 9)]
    message = known({"photo": sizes, "caption": "look"})
    assert [(media.kind, media.ref) for media in message.media] == [("photo", "p5")]
    assert message.text == "look"
    assert known({"photo": sizes[3:]}).media[0].ref == "p9"  # refused when it is downloaded, with its size


def test_files_and_voice() -> None:
    """AS-22, AS-23: names are plain, nothing is downloaded."""
    file = {"file_id": "d", "file_name": "../../etc/passwd", "mime_type": "text/plain", "file_size": 5}
    media = known({"document": file}).media[0]
    assert (media.kind, media.name, media.size) == ("document", "passwd", 5)
    assert known({"voice": {"file_id": "v", "mime_type": "audio/ogg"}}).media[0].kind == "voice"
    assert known({"audio": {"file_id": "a"}}).media[0].kind == "audio"


@given(st.text(), st.lists(st.tuples(st.integers(-3, 30), st.integers(-3, 30))))
def test_no_place_of_a_mention_breaks_the_reading(text: str, places: list[tuple[int, int]]) -> None:
    """AS-13: lengths and offsets of any kind."""
    entities = [{"type": "text_mention", "offset": o, "length": n, "user": {"id": BOT_ID}} for o, n in places]
    read({"text": text, "entities": entities, "chat": GROUP})


async def test_an_album_is_one_message(desk: Any, fake: FakeTelegram) -> None:
    """AS-15: its pieces come apart, and the offset does not pass it before it is delivered."""
    elsewhere = asyncio.Event()

    async def noted(message: IncomingMessage) -> None:
        if message.chat_id == "8":
            elsewhere.set()

    desk.timing, desk.on_deliver = replace(desk.timing, album_s=patience(0.3)), noted
    async with desk.open():
        first = await fake.message({"photo": [{"file_id": "a"}], "media_group_id": "g", "caption": "two"})
        await fake.say("elsewhere", chat=8, user=8)
        async with asyncio.timeout(HANG_S):
            await elsewhere.wait()
        assert fake.offset <= first
        await fake.message({"photo": [{"file_id": "b"}], "media_group_id": "g"})
        await fake.say("after")
        await desk.all_confirmed()
    own = [message for message in desk.delivered if message.chat_id == "7"]
    assert [message.text for message in own] == ["two", "after"]
    assert [media.ref for media in own[0].media] == ["a", "b"]
    assert own[0].dedupe_key == f"{BOT_ID}:{first}"
    assert [message.text for message in desk.delivered if message.chat_id == "8"] == ["elsewhere"]


async def test_two_albums_and_a_full_one(desk: Any, fake: FakeTelegram) -> None:
    """AS-15: each is one message; ten pieces are waited for no longer."""
    for number in range(10):
        await fake.message({"photo": [{"file_id": f"a{number}"}], "media_group_id": "a"})
    for number in range(2):
        await fake.message({"photo": [{"file_id": f"b{number}"}], "media_group_id": "b"})
    async with desk.open():
        await desk.all_confirmed()
    assert [len(message.media) for message in desk.delivered] == [10, 2]


async def test_an_album_whose_delivery_fails_is_tried_whole(desk: Any, fake: FakeTelegram) -> None:
    """AS-14, AS-15."""
    seen: list[int] = []

    async def failing(message: IncomingMessage) -> None:
        seen.append(len(message.media))
        await asyncio.sleep(0)
        raise RuntimeError("defect")

    desk.on_deliver = failing
    async with desk.open():
        for name in "ab":
            await fake.message({"photo": [{"file_id": name}], "media_group_id": "g"})
        await desk.all_confirmed()
    assert seen == [2, 2, 2]
    assert len(desk.quarantined) == 2


def test_half_a_character_anywhere_is_shown_as_such() -> None:
    """AS-2: with one in a name the message was set aside, and its sender heard nothing."""
    half = "a\ud83d"
    ann = {"id": 7, "is_bot": False, "first_name": half, "last_name": half}
    document = {"file_id": "f", "file_name": f"{half}.txt"}
    message = known({"text": half, "from": ann, "quote": {"text": half}})
    file = known({"caption": half, "document": document})
    said = (message.text, message.user_name, message.quote, file.text, file.media[0].name)
    assert said == ("a\ufffd", "a\ufffd a\ufffd", "a\ufffd", "a\ufffd", "a\ufffd.txt")
