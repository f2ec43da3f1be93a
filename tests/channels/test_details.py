"""What a chat shows besides answers: details of tools, marks on what waits, comments on a diff (AS-9, AS-20, AS-27)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chats import ChatService, Chatting, chatting
from support.sessions import writes

from bowerbird.channels.review.diff_messages import MESSAGE_CHARS, messages_of


@dataclass
class FullService(ChatService):
    """A service whose bots can also open details, delete messages and react."""

    deleted: list[str] = field(default_factory=list[str])
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def details(self, events: Sequence[object], hide: Callable[[str], str]) -> Sequence[str]:
        names = [type(event).__name__ for event in events]
        return [hide(f"first {' '.join(names)}"), "second"]

    async def delete(self, chat_id: str, message_id: str) -> None:
        self.deleted.append(message_id)
        self.shown.pop(message_id, None)

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        self.reactions.append((message_id, emoji))
        self._tell()


@pytest.fixture
def service() -> ChatService:
    return FullService()


async def test_details_open_below_an_answer_and_close_again(
    tmp_path: Path, fake: Any, service: FullService
) -> None:
    """AS-20: also after a restart; a second press opens nothing twice; an answer without tools has no button."""
    fake.script(writes("a.txt", "x\n"), {"text": "written"}, {"text": "just words"})
    async with chatting(tmp_path, fake, service):
        await service.say("write")
        answer = await service.wait_text("written")
        await service.wait_text("changed**")
        await service.say("talk")
        words = await service.wait_text("just words")
    assert (answer.labels, words.labels) == (["Details"], [])
    async with chatting(tmp_path, fake, service):
        assert await service.press(answer, "Details") == "The details are below."
        first, last = service.sent[-2:]
        assert first.text.startswith("first") and "ToolIntent" in first.text and "ToolOutcome" in first.text
        assert last.labels == ["Close"] and first.is_silent and last.is_silent
        assert await service.press(answer, "Details") == "The details are below."
        assert service.sent[-1] is last
        assert await service.press(last, "Close") == "Closed."
        assert service.deleted == [first.message_id, last.message_id]
        await service.press(answer, "Details")
        assert service.sent[-1].labels == ["Close"] and service.sent[-1] is not last


async def test_a_message_that_waits_is_marked_until_its_turn_begins(
    chat: Chatting, fake: Any, service: FullService
) -> None:
    """AS-9: the first is no message that waits."""
    fake.answer(lambda body, n: {"text": f"answer {n}", "deltas": 20, "gap_s": 0.02})
    one, two = await service.say("one"), await service.say("two")
    await service.until(lambda: (two.message_id, "") in service.reactions)
    assert service.reactions == [(two.message_id, "👀"), (two.message_id, "")]
    await service.wait_text("answer 1")
    assert all(message != one.message_id for message, _ in service.reactions)


async def test_a_reply_to_a_diff_is_a_comment_on_its_lines(
    chat: Chatting, fake: Any, service: FullService
) -> None:
    """AS-27: with path and lines; of a marked line, that line; other replies are plain messages."""
    fake.script(writes("a.txt", "one\ntwo\nthree\n"), {"text": "written"})
    await service.say("write")
    shown = await service.wait_text("changed**")
    await service.press(shown, "Diff")
    diff = await service.wait_text("```diff")
    fake.script({"text": "answer 1"}, {"text": "answer 2"}, {"text": "answer 3"})
    await service.say("rename it", reply_to=diff.message_id)
    await service.say("this one", reply_to=diff.message_id, quote="+two")
    await service.say("plain", reply_to=shown.message_id)
    await service.wait_text("answer 3")
    said = [str(m.content) for m in await chat.home.service.messages("chat_1") if m.role == "user"]
    assert (
        said[1].startswith("Review comments")
        and "a.txt lines 1-3:\n> one\n> two\n> three\nrename it" in said[1]
    )
    assert said[2].endswith("a.txt line 2:\n> two\nthis one")
    assert said[3] == "plain"


LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=40))


@given(LINES, LINES)
def test_every_line_of_a_patch_has_its_number(old: list[str], new: list[str]) -> None:
    """AS-27: whatever the lines hold, also what looks like a part of a patch."""
    head = f"--- a/x\n+++ b/x\n@@ -1,{len(old)} +1,{len(new)} @@\n"
    patch = head + "".join(f"-{text}\n" for text in old) + "".join(f"+{text}\n" for text in new)
    found = messages_of(patch)
    lines = [line for message in found for line in message.lines]
    assert [line.text for line in lines if line.side == "old"] == old
    assert [(line.number, line.text) for line in lines if line.side == "new"] == list(enumerate(new, 1))
    assert all(len(message.text) <= MESSAGE_CHARS + 400 for message in found)
