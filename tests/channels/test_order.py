"""Commands in their place, resets, and what a process that died left (AS-9, AS-10, AS-15, SE-3)."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.chats import Chatting
from support.pictures import png

from bowerbird.channels.commands import parsed
from bowerbird.channels.contract import Media


async def test_a_message_behind_a_command_waits_for_it(chat: Chatting, fake: Any) -> None:
    """AS-9: what was sent after /plan is planned, although the command takes longer."""
    fake.script({"text": "1. look"})
    await chat.service.say("/plan")
    await chat.service.say("do it")
    shown = await chat.service.wait_text("1. look")
    assert shown.labels == ["Approve", "Reject"]


async def test_new_begins_another_session_and_the_old_turn_answers_there(chat: Chatting, fake: Any) -> None:
    """AS-10, SE-3: the reset is confirmed after its commit; the running turn ends in the old thread."""
    fake.script({"text": "slow answer", "deltas": 4, "gap_s": 0.2})
    await chat.service.say("one")
    await fake.wait_requests(1)
    await chat.service.say("/new")
    await chat.service.wait_text("new conversation")
    fake.script({"text": "fresh"})
    await chat.service.say("two")
    await chat.service.wait_text("fresh")
    await chat.service.wait_text("slow answer")
    assert await chat.house.desk.known("1") == "chat_1_s1"
    [old], [new] = [await chat.home.service.turns(thread) for thread in ("chat_1", "chat_1_s1")]
    assert (old.state, new.state) == ("done", "done")
    assert (chat.home.data / "sessions" / "chat_1_s1.jsonl").exists()


async def test_stop_ends_the_turn_and_with_a_text_goes_on_with_it(chat: Chatting, fake: Any) -> None:
    """AS-15, law 5."""
    fake.script({"hang": True})
    await chat.service.say("one")
    await fake.wait_requests(1)
    await chat.service.say("/stop")
    await chat.service.wait_text("Stopped.")
    await chat.service.say("two")
    await fake.wait_requests(2)
    fake.script({"text": "as you say"})
    await chat.service.say("/stop do this instead")
    await chat.service.wait_text("as you say")
    asked = [m.content for m in await chat.home.service.messages("chat_1") if m.role == "user"]
    assert asked == ["one", "two", "do this instead"]


async def test_an_unknown_command_names_help_and_the_nearest(chat: Chatting) -> None:
    """AS-15."""
    await chat.service.say("/stauts")
    shown = await chat.service.until(lambda: chat.service.sent and chat.service.sent[0])
    assert "/help" in shown.text and "/status" in shown.text


async def test_status_model_and_help(chat: Chatting, fake: Any) -> None:
    """AS-15: model, mode, turn, queue, changes, cost; a tier is set for the conversation."""
    fake.script({"text": "hi"})
    await chat.service.say("hello")
    await chat.service.wait_text("hi")
    await chat.service.say("/model nope")
    await chat.service.wait_text("lite, pro")
    await chat.service.say("/model PRO")
    await chat.service.wait_text("the tier pro now")
    await chat.service.say("/status")
    shown = await chat.service.wait_text("Queue: 0")
    for part in ("Model: tier:pro", "Mode: normal", "Turn: 1 (done)", "Unlanded changes: 0", "Cost: $"):
        assert part in shown.text
    await chat.service.say("/start")
    await chat.service.wait_text("/discard")


async def test_memory_shows_the_file_of_the_branch(chat: Chatting, fake: Any) -> None:
    """AS-15, AS-42."""
    (chat.home.project / "MEMORY.md").write_text("likes birds")
    fake.script({"text": "hi"})
    await chat.service.say("hello")
    await chat.service.wait_text("hi")
    await chat.service.say("/memory")
    await chat.service.wait_text("likes birds")


async def test_pictures_and_files_reach_the_model_and_the_branch(
    chat: Chatting, fake: Any, tmp_path: Any
) -> None:
    """AS-2, AS-23: images become blobs; a document goes to uploads/NAME, `-1` on collision."""
    import base64

    encoded = base64.b64encode(png()).decode()

    def done(message: Any) -> Any:
        if message.media[0].kind == "photo":
            return replace(message, image_base64=encoded, image_mime_type="image/png")
        source = tmp_path / f"download-{message.message_id}"
        source.write_bytes(b"data")
        return replace(message, files=(source,))

    chat.service.completed = done
    fake.script({"text": "seen"})
    await chat.service.say("what is it", media=(Media("photo", "p"),))
    await chat.service.wait_text("seen")
    assert [block["type"] for block in fake.requests[0]["messages"][-1]["content"]] == [
        "text",
        "text",
        "image",
    ]
    fake.script({"text": "read"})
    for _ in range(2):
        await chat.service.say("", media=(Media("document", "d", "../a ⟦b⟧.txt"),))
    await chat.service.until(lambda: [one.text for one in chat.service.sent].count("read") == 2)
    branch = await chat.home.service.branch("chat_1")
    assert await branch.read_bytes("uploads/a__b_.txt") == b"data"
    assert await branch.read_bytes("uploads/a__b_-1.txt") == b"data"
    assert "[file: uploads/a__b_-1.txt]" in json.dumps(fake.requests[-1]["messages"][-1], ensure_ascii=False)
    assert list(tmp_path.glob("download-*")) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/Stop", ("stop", "")),
        ("/stop@bot a  b ", ("stop", "a  b")),
        ("/", ("", "")),
        ("/cc:x y", ("cc:x", "y")),
    ],
)
def test_lines_are_read(line: str, found: tuple[str, str]) -> None:
    assert parsed(line) == found
