"""Who may write, and who gets nothing (AS-4 … AS-7, law 10)."""

import logging
from pathlib import Path
from typing import Any

import pytest
from support.chats import ChatService, Chatting, chatting
from support.sessions import writes

from bowerbird.channels.admission import OWNERS_ONLY, admitted, may
from bowerbird.channels.contract import Media
from bowerbird.channels.people import deny_user
from bowerbird.store.channels.people import ChannelUser, make_code, put_user

PHOTO, VOICE = Media("photo", "p1"), Media("voice", "v1")


async def code_of(chat: Chatting, role: str = "owner") -> str:
    return (await chat.home.store.write(lambda c: make_code(c, chat.service.name, role)))[0]


async def test_a_stranger_gets_nothing_whatever_they_send(
    chat: Chatting, fake: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Acceptance 1, AS-6: no request goes out, nothing is downloaded, no session is made; one line in an hour."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"})
    await chat.service.say("write", user="1")
    shown = await chat.service.wait_text("changed")
    before, requests = chat.service.outgoing, fake.request_count
    say = chat.service.say
    with caplog.at_level(logging.WARNING):
        for text in ("hello", "/cc", "/new", "/start", "/land", "/help", "/start ABCDEFGH"):
            await say(text, user="666")
        for media in (VOICE, PHOTO):
            await say("", user="666", media=(media,))
        await say("hi @Bowerbird", user="666", chat="-9", mentions_bot=True)
        for label in ("Land", "Discard"):
            data = shown.button(label).data
            await chat.service.arrive(
                chat.service.message(data, user="666", chat="1", kind="button", message_id=shown.message_id)
            )
    assert (chat.service.outgoing, fake.request_count) == (before, requests)
    assert await chat.house.desk.known("666") is None
    lines = [record for record in caplog.records if "666" in record.getMessage()]
    assert len(lines) == 1 and "bowerbird channels allow chat 666" in lines[0].getMessage()
    assert not (chat.home.project / "a.txt").exists()


async def test_an_empty_list_admits_nobody(tmp_path: Path, fake: Any, service: ChatService) -> None:
    """Law 10, AS-5."""
    async with chatting(tmp_path, fake, service, users={}):
        await service.say("hello", user="1")
        await service.say("hello", user="")
        assert (service.outgoing, fake.request_count) == (0, 0)


async def test_a_code_admits_once_and_only_from_a_private_chat(chat: Chatting, fake: Any) -> None:
    """AS-7: 8 characters, one use, `/start CODE`; the role is the code's."""
    fake.script({"text": "hello guest"})
    code = await code_of(chat, "guest")
    assert len(code) == 8
    await chat.service.say(f"/start {code}", user="70", chat="-1")  # a group: nothing
    assert chat.service.outgoing == 0
    await chat.service.say(f"/start {code.lower()}", user="70")
    assert "Welcome" in chat.service.sent[0].text
    assert await chat.house.people.role("70") == "guest"
    await chat.service.say(f"/start {code}", user="71")
    assert await chat.house.people.role("71") is None
    await chat.service.say("hi", user="70")
    await chat.service.wait_text("hello guest")


async def test_five_wrong_codes_and_the_right_one_is_not_looked_at_for_an_hour(chat: Chatting) -> None:
    """AS-7: per sender."""
    code = await code_of(chat)
    for _ in range(5):
        await chat.service.say("/start WRONGONE", user="70")
    await chat.service.say(f"/start {code}", user="70")
    assert await chat.house.people.role("70") is None
    await chat.service.say(f"/start {code}", user="72")
    assert await chat.house.people.role("72") == "owner"


async def test_a_code_ends_after_its_minutes(chat: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    """AS-7: valid for 10 minutes."""
    from bowerbird.store.channels import people

    monkeypatch.setattr(people, "CODE_MINUTES", -1)
    code = await code_of(chat)
    await chat.service.say(f"/start {code}", user="70")
    assert await chat.house.people.role("70") is None


async def test_deny_holds_at_once_also_for_what_waits(chat: Chatting, fake: Any) -> None:
    """AS-7: a queued message of somebody who is denied does not run; settings do not admit them again."""
    fake.script({"hang": True})
    await chat.service.say("one", user="1")
    await fake.wait_requests(1)
    await chat.service.say("two", user="1")
    await chat.service.say("from another", user="2", chat="1", is_private=True)
    gone = await chat.home.store.write(lambda c: deny_user(c, "chat", "1"))
    assert gone == 1
    await chat.service.say("three", user="1")
    fake.script({"text": "for the other"})
    await chat.home.service.cancel("chat_1")
    await chat.service.wait_text("for the other")
    asked = [m.content for m in await chat.home.service.messages("chat_1") if m.role == "user"]
    assert asked == ["one", "from another"]
    user = ChannelUser(channel="chat", user_id="1", role="owner")
    await chat.home.store.write(lambda c: put_user(c, user))
    assert await chat.house.people.role("1") == "owner"


COMMANDS = (
    "/help",
    "/status",
    "/diff",
    "/land",
    "/discard",
    "/undo",
    "/plan",
    "/model",
    "/memory",
    "/skills",
    "/new",
)


@pytest.mark.parametrize("command", COMMANDS)
async def test_what_each_role_may_command(chat: Chatting, fake: Any, command: str) -> None:
    """AS-5, the whole table: an owner everything, a guest all but landing and undo, anybody else nothing."""
    await chat.service.say(command, user="1")
    await chat.service.until(lambda: chat.service.sent)
    assert "Only an owner" not in chat.service.sent[-1].text
    await chat.service.say(command, user="2")
    await chat.service.until(lambda: len(chat.service.sent) > 1)
    assert ("Only an owner" in chat.service.sent[-1].text) == (command in ("/land", "/undo"))
    await chat.service.say(command, user="3")
    assert not [shown for shown in chat.service.sent if shown.chat_id == "3"]


async def test_a_guest_presses_land_and_nothing_lands(chat: Chatting, fake: Any) -> None:
    """AS-5, AS-21: "Not for you"; the owner's press lands."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"})
    group = "-7"
    await chat.service.say("write", user="2", chat=group, mentions_bot=True)
    shown = await chat.service.wait_text("changed")
    assert await chat.service.press(shown, "Land", user="2", chat=group) == "Not for you"
    assert not (chat.home.project / "a.txt").exists()
    assert "Landed 1 file" in await chat.service.press(shown, "Land", user="1", chat=group)
    assert (chat.home.project / "a.txt").read_text() == "x\n"
    assert await chat.service.press(shown, "Undo", user="2", chat=group) == "Not for you"


def test_the_rules_of_roles() -> None:
    """AS-5: the stored list goes before the settings; denied is denied."""
    assert admitted("1", {"1": "guest"}, "owner") == "owner"
    assert admitted("1", {"1": "owner"}, "denied") is None
    assert admitted("", {"": "owner"}, None) is None
    assert all(may("owner", act) and not may("guest", act) for act in OWNERS_ONLY)
    assert may("guest", "discard")
