"""An answer appears as it is written, in one message that the final answer edits (AS-18, AS-20)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import telegram_html
from support.fake_telegram import FakeTelegram
from support.markdown import MARKDOWN
from support.patience import HANG_S, patience

from bowerbird.channels.contract import Button
from bowerbird.channels.telegram.progress import Progress
from bowerbird.core.errors import StoreBusy
from bowerbird.core.events import (
    AssistantStep,
    MessageRestart,
    TextLive,
    ThinkingLive,
    ToolIntent,
    ToolOutcome,
)
from bowerbird.core.messages import assistant_text
from bowerbird.core.usage import Usage
from bowerbird.models.redact import Redactor
from bowerbird.sessions.live.hub import TurnMark

END = TurnMark("done")


class Events:
    """A turn's events, put in by the test."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[object] = asyncio.Queue()
        self._offset = 0

    def text(self, content: str) -> None:
        self.put(TextLive(content, "m", self._offset))
        self._offset += len(content)

    def put(self, event: object) -> None:
        self._queue.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[object]:
        while True:
            yield await self._queue.get()


class Shown:
    """A live answer in a chat, and what it told."""

    def __init__(self, channel: Any, chat: str = "7", **options: Any) -> None:
        self.events = Events()
        self.kept: list[str] = []
        live = channel.live_answer(chat, self.keep, Redactor(["swordfish-77"]).text, **options)
        self.task = asyncio.create_task(live.show(self.events.__aiter__()))

    async def keep(self, message_id: str) -> None:
        self.kept.append(message_id)


async def test_one_message_is_edited_and_then_is_the_answer(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: its id is kept, Details stands under it, and the final answer takes its place."""
    async with desk.open() as channel:
        shown = Shown(channel, interval_s=0.05, buttons=[[Button("Details", "t:details:k")]])
        shown.events.text("**Hello** `wor")
        await fake.until(lambda: fake.of("sendMessage"))
        shown.events.text("ld`")
        await fake.until(lambda: fake.of("editMessageText"))
        shown.events.put(END)
        await shown.task
        (number,) = shown.kept
        await channel.send("7", channel.parts("**Hello** `world`!")[0], edit_message_id=number)
    first, edit, final = fake.of("sendMessage")[0], *fake.of("editMessageText")
    assert first.text == "<b>Hello</b> `wor"
    assert edit.text == "<b>Hello</b> <code>world</code>"
    assert final.text == "<b>Hello</b> <code>world</code>!"
    assert "reply_markup" in edit.params and "reply_markup" not in final.params
    assert len(fake.messages) == 1


async def test_edits_keep_their_distance(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: at most one per interval, however fast the text comes; each is valid by itself."""
    async with desk.open() as channel:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        shown = Shown(channel, chat="-7.2", interval_s=0.01)  # in groups it is 3 s
        for _ in range(300):
            shown.events.text("*word* ")
            await asyncio.sleep(0)
        await fake.until(lambda: fake.of("editMessageText"))
        assert loop.time() - begun >= 3.0
        assert len(fake.of("editMessageText")) == 1
        shown.events.put(END)
        await shown.task


async def test_no_progress_is_shown_after_the_final_answer(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: an edit that waited while the final one was made changes nothing."""
    async with desk.open() as channel:
        sent = await channel.send("-7", "part")
        fake.pauses["editMessageText"] = asyncio.Event()
        final = asyncio.create_task(channel.send("-7", "final", edit_message_id=sent.message_id))
        await fake.until(lambda: fake.of("editMessageText"))
        late = asyncio.create_task(channel.sender.edit_if_free("-7", sent.message_id, "part of it"))
        await asyncio.sleep(0)
        fake.pauses["editMessageText"].set()
        assert await late is False
        await final
        assert await channel.sender.edit_if_free("-7", sent.message_id, "part of it") is False
    assert [call.text for call in fake.of("editMessageText")] == ["final"]


async def test_after_a_crash_the_same_message_goes_on(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: the id that was kept is used again."""
    async with desk.open() as channel:
        old = await channel.send("-7", "so far")
        shown = Shown(channel, chat="-7", message_id=old.message_id)
        shown.events.text("so far and on")
        await fake.until(lambda: fake.of("editMessageText"))
        shown.events.put(END)
        await shown.task
    assert len(fake.of("sendMessage")) == 1 and shown.kept == []


async def test_trouble_of_the_progress_is_not_the_turns(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: blocked, asked to wait, or a store that cannot keep the id: the turn's events are read to the end."""

    class Busy(Shown):
        async def keep(self, message_id: str) -> None:
            raise StoreBusy("busy")

    async with desk.open() as channel:
        fake.blocked.add(7)
        blocked, busy = Shown(channel), Busy(channel, chat="8")
        fake.script("sendMessage", 429, "Too Many Requests", retry_after=1)
        waiting = Shown(channel, chat="9", interval_s=0.01)
        for shown in (blocked, busy, waiting):
            shown.events.text("hi")
        await fake.until(lambda: fake.of("deleteMessage"))
        await fake.until(lambda: any(chat == 9 for chat, _ in fake.messages))
        for shown in (blocked, busy, waiting):
            shown.events.put(END)
            await shown.task
    assert [chat for chat, _ in fake.messages] == [9]
    assert len(waiting.kept) == 1 and blocked.kept == []


async def test_a_turn_that_ends_at_once_leaves_no_message_behind(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: a placeholder that arrives after the end is taken back."""
    async with desk.open() as channel:
        fake.pauses["sendMessage"] = asyncio.Event()
        shown = Shown(channel)
        shown.events.text("hi")
        await fake.until(lambda: fake.of("sendMessage"))
        shown.events.put(END)
        await asyncio.sleep(0)
        fake.pauses["sendMessage"].set()
        await shown.task
    assert shown.kept == [] and fake.messages == {}


async def test_a_process_that_ends_waits_for_no_progress(desk: Any, fake: FakeTelegram) -> None:
    """AS-18: a send that hangs is cut."""
    async with desk.open() as channel:
        fake.pauses["sendMessage"] = asyncio.Event()
        shown = Shown(channel)
        shown.events.text("hi")
        await fake.until(lambda: fake.of("sendMessage"))
        shown.task.cancel()
        async with asyncio.timeout(patience(2)):
            await asyncio.gather(shown.task, return_exceptions=True)
        assert shown.task.cancelled()
        fake.pauses["sendMessage"].set()


async def test_progress_waits_for_no_slot(desk: Any, fake: FakeTelegram) -> None:
    """AS-19: in a group whose minute is nearly used up, what is unfinished is left out, and answers are not."""
    async with desk.open() as channel:
        for _ in range(15):
            await channel.send("-7", "x")
        shown = Shown(channel, chat="-7")
        shown.events.text("unfinished")
        await asyncio.sleep(0.1)
        shown.events.put(END)
        async with asyncio.timeout(HANG_S):
            await shown.task
        await channel.send("-7", "final")
    assert [call.text for call in fake.of("sendMessage")] == ["x"] * 15 + ["final"]


def progress(*events: object, show_tools: bool = True) -> str:
    shown = Progress(Redactor(["swordfish-77"]).text, show_tools=show_tools)
    for event in events:
        shown.add(event)
    source = shown.html()
    telegram_html.read(source)
    assert telegram_html.units(source) <= 4096
    return source


def call(
    number: int, tool: str = "read_file", said: str = "done", status: Any = "ok", **arguments: Any
) -> list[Any]:
    return [
        ToolIntent(str(number), tool, arguments, "read"),
        ToolOutcome(str(number), tool, status, said),
    ]


def test_good_calls_of_one_tool_are_counted() -> None:
    """AS-20."""
    events = [event for n in range(5) for event in call(n, path=f"src/f{n}.py")]
    assert (
        progress(*events, *call(9, "bash", command="ls -l"))
        == "✓ <b>read_file</b> ×5 f4.py\n✓ <b>bash</b> ls -l\n"
    )
    assert progress(*events, show_tools=False) == "…"


def test_a_failed_call_shows_eight_lines() -> None:
    """AS-20: and no secret."""
    output = "swordfish-77\n" + "line <x>\n" * 50
    source = progress(
        *call(1, "bash", output, "error", command="make swordfish-77"), *call(2, "bash", command="ls")
    )
    assert source.count("line &lt;x&gt;") == 7 and "more characters" in source
    assert "✗ <b>bash</b> make [redacted:secret]" in source and "swordfish" not in source


def test_a_running_call_and_thinking_are_marked() -> None:
    """AS-20."""
    assert progress(ToolIntent("1", "grep", {"pattern": "x" * 99}, "read")) == f"⏳ <b>grep</b> {'x' * 59}…\n"
    assert progress(ThinkingLive("secret thoughts", "m", 0)) == "<i>💭 thinking\n</i>"
    assert progress(ThinkingLive("thoughts", "m", 0), TextLive("hi", "m", 0)) == "hi"


def test_text_is_put_together_again() -> None:
    """AS-18: of broken streams, of pieces that were missed, of complete messages."""
    hello = TextLive("hello", "m", 0)
    assert progress(hello, MessageRestart("m", "broke"), TextLive("new", "m", 0)) == "new"
    assert progress(hello, TextLive(" world", "m", 5)) == "hello world"
    assert progress(hello, TextLive("ending", "m", 50)) == "ending"
    step = AssistantStep(assistant_text("whole"), "end_turn", "model", Usage())
    assert progress(hello, step) == "whole"
    assert progress(hello, TextLive("next", "other", 0)) == "next"


def test_of_a_long_answer_the_end_is_shown() -> None:
    """AS-18: also within code that began long before."""
    source = progress(TextLive("```py\n" + "x < 1\n" * 5_000 + "last", "m", 0))
    assert source.startswith("…\n\n<pre>x &lt; 1") and source.endswith("last</pre>")


@given(
    MARKDOWN, st.lists(st.tuples(st.sampled_from(["bash", "grep"]), st.booleans(), st.text()), max_size=40)
)
def test_whatever_happens_one_message_shows_it(text: str, calls: list[tuple[str, bool, str]]) -> None:
    """AS-18, AS-20: closed HTML within the limit."""
    events: list[object] = []
    for number, (tool, is_good, said) in enumerate(calls):
        events += call(number, tool, said * 50, "ok" if is_good else "error", command=said * 9)
    progress(*events, TextLive(text * 20, "m", 0))
