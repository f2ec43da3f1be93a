"""Buttons as stored rows: what a press may do, and what rubbish does (AS-21, AS-28, acceptance 6)."""

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from support.chats import ChatService, Chatting, chatting
from support.sessions import changed, writes

from bowerbird.agent.policy import Policy
from bowerbird.channels.cards import EXPIRED, NOT_FOR_YOU
from bowerbird.store.sql.channel_tables import channel_buttons, channel_cards

ASKS = Policy.of({"ask": ["write_file"]})


async def test_a_button_of_another_chat_does_nothing_also_after_a_restart(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """Acceptance 6: chat A's data pressed in chat B, before and after a restart: nothing is shown."""
    fake.script(writes("a.txt", "secret\n"), {"text": "written"})
    async with chatting(tmp_path, fake, service, users={"1": "owner", "5": "owner"}):
        await service.say("write", user="1")
        shown = await service.wait_text("changed")
        data = shown.button("Diff").data
        before = len(service.sent)
        assert await service.press_data(data, shown, user="5", chat="5") == NOT_FOR_YOU
    async with chatting(tmp_path, fake, service, users={"1": "owner", "5": "owner"}):
        assert await service.press_data(data, shown, user="5", chat="5") == NOT_FOR_YOU
        assert len(service.sent) == before
        assert (
            await service.press_data(data, shown) == "The changes are below."
        )  # and in its own chat it works
        shown.message_id, other = "another", shown.message_id
        assert await service.press_data(data, shown) == EXPIRED  # the same data under another message
        shown.message_id = other


async def test_a_card_ends_after_seven_days(chat: Chatting, fake: Any) -> None:
    """AS-21."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"})
    await chat.service.say("write")
    shown = await chat.service.wait_text("changed")
    old = update(channel_cards).values(expires_at="2026-01-01T00:00:00.000000+00:00")
    await chat.home.store.write(lambda c: c.execute(old))
    assert await chat.service.press(shown, "Land") == EXPIRED
    assert not (chat.home.project / "a.txt").exists()


async def test_keys_are_128_random_bits_and_fit(chat: Chatting, fake: Any) -> None:
    """AS-21: data of at most 64 bytes; no key twice."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"})
    await chat.service.say("write")
    shown = await chat.service.wait_text("changed")
    data = [one.data for row in shown.buttons for one in row]
    assert all(len(one.encode()) <= 64 and len(one.rpartition(":")[2]) == 22 for one in data)
    keys = await chat.home.store.read(lambda c: list(c.scalars(channel_buttons.select())))
    assert len(set(keys)) == len(keys)


async def test_rubbish_as_data_is_expired_and_changes_nothing(chat: Chatting, fake: Any) -> None:
    """AS-21: whatever comes as data: no error, no action, nothing revealed."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"})
    await chat.service.say("write")
    shown = await chat.service.wait_text("changed")
    good = shown.button("Land").data
    key = good.rpartition(":")[2]
    texts = st.one_of(
        st.text(max_size=80),
        st.from_regex(r"[a-z]{1,12}:[a-z_]{1,16}:[A-Za-z0-9_-]{22}", fullmatch=True),
        st.sampled_from([
            f"review:discardall:{key}", f"landed:undo:{key}", f"REVIEW:land:{key}", f"review:land:{key} ",
            good[:-1], good + "x", f"review:land:{key[::-1]}", "", "::", f"ask:answer:{key}", good + "\n",
        ]),
    )  # fmt: skip

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts)
    def try_it(text: str) -> None:
        tried.append(text)

    tried: list[str] = []
    try_it()
    for text in dict.fromkeys(tried):
        assert await chat.service.press_data(text, shown) == EXPIRED, text
    assert list(chat.home.project.iterdir()) == []
    assert (await chat.service.press(shown, "Land")).startswith("Landed")


async def test_an_approval_is_asked_and_answered_in_the_chat(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28: tool, input cut at 300 with Show, Approve; nothing offers "always"."""
    fake.script(writes("a.txt", "y" * 500), {"text": "written"})
    async with chatting(tmp_path, fake, service, policy="review", change=asks) as chat:
        await service.say("write")
        shown = await service.wait_text("May I?")
        assert "**write_file**" in shown.text and len(shown.text) < 400
        assert shown.labels == ["Approve", "Deny", "Approve rest", "Show"]
        await service.press(shown, "Show")
        await service.until(lambda: sum(one.text.count("y") for one in service.sent) > 500)
        assert await service.press(shown, "Approve", user="2", chat="1") == NOT_FOR_YOU
        data = shown.button("Approve").data
        assert await service.press_data(data, shown) == "Approved"
        await service.wait_text("written")
        assert shown.text.endswith("**Approved by Ann.**") and not shown.labels
        assert await service.press_data(data, shown) == "Approved"
        assert (await chat.home.service.pending("chat_1")) == []


async def test_a_question_that_is_answered_elsewhere_is_shown_so(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28: the message is edited; a press then only says what was decided."""
    fake.script(writes("a.txt", "x"), {"text": "not written"})
    async with chatting(tmp_path, fake, service, change=asks) as chat:
        await service.say("write")
        shown = await service.wait_text("May I?")
        data = shown.button("Approve").data
        await chat.home.service.answer(None, "deny", thread_id="chat_1", by="web user", door="web")
        await service.until(lambda: "Denied by web user" in shown.text)
        await service.wait_text("not written")
        assert await service.press_data(data, shown) == "Denied"


async def test_approve_rest_holds_for_the_conversation(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28: `auto_approve`."""
    fake.script(writes("a.txt", "x"), writes("b.txt", "y"), {"text": "both"})
    async with chatting(tmp_path, fake, service, change=asks) as chat:
        await service.say("write")
        await service.press(await service.wait_text("May I?"), "Approve rest")
        await service.wait_text("both")
        assert (await chat.home.service.row("chat_1")).auto_approve


async def test_a_plan_is_approved_by_a_press_and_revised_by_words(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28, D-12: words are the feedback, one revision turn."""
    fake.script({"text": "1. write a.txt"})
    async with chatting(tmp_path, fake, service) as chat:
        await service.say("/plan")
        await service.wait_text("Plan mode is on")
        await service.say("do it")
        shown = await service.until(
            lambda: next((one for one in service.sent if "Approve" in one.labels), None)
        )
        assert shown.labels == ["Approve", "Reject"]
        fake.script({"text": "done as planned"})
        assert await service.press(shown, "Approve") == "Approved"
        await service.wait_text("done as planned")
        assert (await chat.home.service.row("chat_1")).flags["enable_plan_mode"] is False


def asks(run: Any) -> Any:

    return msgspec.structs.replace(run, policy=ASKS)


async def test_a_question_that_times_out_can_be_answered_later(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """SE-21: the turn waits without a process; the press goes on with it, also after a restart."""
    fake.script(writes("a.txt", "x"), {"text": "written at last"})
    quick = changed(approval_timeout_s=0.05)
    async with chatting(tmp_path, fake, service, change=asks, settings=quick) as chat:
        await service.say("write")
        shown = await service.wait_text("May I?")
        await chat.home.until(lambda: _waits(chat))
    async with chatting(tmp_path, fake, service, change=asks, settings=quick):
        assert await service.press(shown, "Approve") == "Approved"
        await service.wait_text("written at last")
    assert len([one for one in service.sent if "May I?" in one.text]) == 1
    assert json.dumps(service.acknowledged)


async def _waits(chat: Chatting) -> bool:
    turn = (await chat.home.service.turns("chat_1"))[0]
    return turn.state == "waiting" and turn.stop_reason == "approval_timeout"
