"""What the outbox brings a chat besides answers: files of the branch, and what schedules say (AS-24, AS-38)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.chats import ChatService, Chatting
from support.sessions import writes

from bowerbird.channels.contract import Rejected
from bowerbird.sessions.delivery.messages import Parcel, ordered_ids
from bowerbird.store.rows.outbox import OutboxRow, insert_parcels


def sends(path: str, caption: str = "") -> dict[str, Any]:
    return {"tools": [{"name": "send_file", "input": {"path": path, "caption": caption}}]}


async def test_the_agent_sends_a_file_of_its_branch(chat: Chatting, fake: Any) -> None:
    """AS-24: as it is on the branch, before anything landed, once."""
    fake.script(writes("report.md", "# done\n"), sends("report.md", "for you"), {"text": "it is on its way"})
    await chat.service.say("send me the report")
    await chat.service.wait_text("it is on its way")
    await chat.service.until(lambda: chat.service.sent_files)
    assert chat.service.sent_files == [("1", "report.md", b"# done\n")]
    assert not (chat.home.project / "report.md").exists()


@pytest.mark.parametrize("path", ["gone.txt", "../../etc/passwd", "/etc/passwd", ".", "link"])
async def test_what_is_not_on_the_branch_is_not_found(chat: Chatting, fake: Any, path: str) -> None:
    """AS-24: confined to the branch, whatever leads out of it."""
    (chat.home.project / "link").symlink_to("/etc/passwd")
    fake.script(sends(path), {"text": "sorry"})
    await chat.service.say("send it")
    await chat.service.wait_text("sorry")
    assert chat.service.sent_files == []
    results = [
        block for m in fake.requests[-1]["messages"] for block in m["content"] if "tool_use_id" in block
    ]
    assert f"File not found: {path}" in str(results)


async def test_a_file_that_is_gone_when_it_is_delivered_is_named(chat: Chatting, fake: Any) -> None:
    """AS-24: the chat is told, and what comes after it arrives."""
    fake.script({"text": "hello"})
    await chat.service.say("hi")
    await chat.service.wait_text("hello")
    turn = (await chat.home.service.turns("chat_1"))[0]
    await owed(chat, "file", {"path": "gone.txt"}, f"{turn.turn_id}:file.c1:0")
    assert (await chat.service.wait_text("File not found: gone.txt")).is_plain


@pytest.mark.parametrize("silent", [True, False])
async def test_a_schedule_rings_only_where_it_was_asked_to(chat: Chatting, fake: Any, silent: bool) -> None:
    """AS-38: `notify` loud, and what a failed run says, come with a sound."""
    fake.script({"text": "hello"})
    await chat.service.say("hi")
    await chat.service.wait_text("hello")
    await owed(chat, "schedule", {"text": "drink water", "silent": silent}, "a1b2c3d4:x:failed:0")
    assert (await chat.service.wait_text("drink water")).is_silent is silent


async def owed(chat: Chatting, kind: str, content: dict[str, Any], key: str) -> None:
    body = msgspec.json.encode(Parcel(kind, content, "2099-01-01T00:00:00+00:00")).decode()
    row = OutboxRow(
        id=ordered_ids(1)[0], thread_id="chat_1", turn_id=None, door="chat", address="1", part=0, body=body,
        dedupe_key=key,
    )  # fmt: skip
    await chat.home.store.write(lambda c: insert_parcels(c, [row]))


async def test_a_file_that_the_chat_does_not_take_is_said_there(
    chat: Chatting, fake: Any, service: ChatService
) -> None:
    """AS-24, law 7: an empty file was "on its way", and only the log knew that it never came."""
    fake.script(writes("empty.txt", ""), sends("empty.txt"), {"text": "it is on its way"}, {"text": "hello"})

    async def refused(chat_id: str, path: Path, caption: str = "") -> None:
        raise Rejected(f"{path.name} is empty; it takes no empty file.")

    service.send_file = refused  # type: ignore[method-assign]
    await service.say("send me the report")
    said = await service.wait_text("empty.txt could not be sent: empty.txt is empty")
    assert said.is_plain
    await service.say("hi")
    await service.wait_text("hello")
