"""The adapter on real, tiny weights: whatever comes out right does so because it is enforced (MO-38)."""

import asyncio
import time
from contextlib import aclosing

import pytest
from support.local_talk import SPECS, asked, called, spec
from support.patience import patience

from bowerbird.core.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from bowerbird.core.requests import (
    End,
    ModelEvent,
    ModelRequest,
    Start,
    TextDelta,
    ThinkingDelta,
    ToolCallStart,
    is_content,
)
from bowerbird.models.local import LocalModel
from bowerbird.models.local.choices import FINAL, OFFERED
from bowerbird.models.local.step_text import StepText
from bowerbird.models.protocol import complete

FILES = "Files:\nREADME.md\na.py\ndata/c.csv"
RESULTS = {
    "read_file": "LIMIT = 60\n\ndef fee(kg):\n    return 4\n",
    "search_files": "a.py:3: def fee(kg):\n1 match",
    "list_files": "README.md\na.py\ndata/c.csv\n3 files",
}


async def events_of(model: LocalModel, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def test_a_step_is_an_ordinary_tool_call(model: LocalModel):
    events = await events_of(model, asked(system=(FILES,), tools=SPECS, max_tokens=100))
    end = events[-1]
    assert isinstance(events[0], Start) and isinstance(end, End)
    (call,) = end.message.tool_uses
    assert end.stop_reason == "tool_use" and call.name in OFFERED
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [(event.id, event.name) for event in starts] == [(call.id, call.name)]
    assert end.usage.cost == 0.0 and end.usage.model_calls == 1 and end.usage.output_tokens > 0


async def test_an_answer_is_streamed_as_text(model: LocalModel):
    read = called("read_file", {"path": "a.py"}, "LIMIT = 60")
    only_answer = asked(
        *read, tools=SPECS[:1], system=("Files:\na.py",), max_tokens=100, tool_choice="required"
    )
    events = await events_of(model, only_answer)
    end = events[-1]
    assert isinstance(end, End) and end.message.tool_uses == () and end.message.text
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == end.message.text


async def test_without_tools_the_answer_is_plain_text_up_to_its_limit(model: LocalModel):
    end = await complete(model, ModelRequest((user_text("hi"),), max_tokens=8))
    assert end.stop_reason == "max_tokens" and end.usage.output_tokens == 8
    assert all(isinstance(block, TextBlock) for block in end.message.content)


async def test_tool_choice_none_gives_text_although_tools_are_named(model: LocalModel):
    end = await complete(model, asked(tools=SPECS, tool_choice="none", max_tokens=8))
    assert end.message.tool_uses == ()


async def test_a_structured_answer_keeps_to_its_schema(model: LocalModel):
    """AG-37: constrained where the provider can."""
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [1, 2]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    end = await complete(model, ModelRequest((user_text("one or two?"),), output_schema=schema))
    assert end.message.text in ('{"n": 1}', '{"n": 2}')


async def test_a_step_of_the_same_turn_evaluates_only_what_is_new(model: LocalModel):
    """MO-40."""
    first = await complete(model, asked(system=(FILES,), tools=SPECS[:3], max_tokens=100))
    (call,) = first.message.tool_uses
    more = called(call.name, call.input, RESULTS[call.name])
    second = await complete(model, asked(*more, system=(FILES,), tools=SPECS[:3], max_tokens=100))
    assert first.usage.input_tokens > 1_000
    assert second.usage.input_tokens < 600 and second.usage.cache_read_tokens > 1_000


async def test_warming_evaluates_the_beginning(model: LocalModel):
    read_only = asked(system=(FILES,), tools=SPECS[:1])
    await model.warm(read_only)
    end = await complete(model, read_only)
    assert end.usage.input_tokens < 100 and end.usage.cache_read_tokens > 400


async def test_closing_the_stream_returns_within_100_ms(model: LocalModel):
    """MO-9."""
    await model.warm()
    events = model.stream(ModelRequest((user_text("go on"),), max_tokens=2_000))
    async for event in events:
        if is_content(event):
            break
    at = time.perf_counter()
    await events.aclose()
    assert time.perf_counter() - at < patience(2)


async def test_a_hundred_steps_are_a_hundred_calls_of_offered_tools_and_the_loop_stays_free(
    model: LocalModel,
):
    """Acceptance 12 of the models chapter: every step parses, none names a missing tool."""
    await model.warm()
    longest: list[float] = []
    messages: list[Message] = [user_text("Look around.")]
    steps: list[str] = []
    while len(steps) < 100:
        gap, end = await _watching(model, messages, len(steps))
        longest.append(gap)
        messages.append(end.message)
        if not end.message.tool_uses:
            steps.append(FINAL)
            messages = [user_text(f"Look around again, {len(steps)}.")]
            continue
        (call,) = end.message.tool_uses
        steps.append(call.name)
        assert isinstance(call.input, dict) and "raw_arguments" not in call.input
        before = [m.tool_uses[0] for m in messages[:-1] if m.tool_uses]
        assert not before or (before[-1].name, before[-1].input) != (call.name, call.input)
        messages.append(_result(call))
    assert set(steps) <= {*OFFERED, FINAL}
    # This machine may be busy with other things: a stall of the loop would show in every step.
    assert sorted(longest)[len(longest) * 9 // 10] < patience(0.05)


def _result(call: ToolUseBlock) -> Message:
    return Message("user", (ToolResultBlock(call.id, RESULTS.get(call.name, "ok")),))


async def _watching(model: LocalModel, messages: list[Message], number: int) -> tuple[float, End]:
    """Return the longest time the loop stood still during one step, and the step."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.002)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    ticker = asyncio.create_task(tick())
    request = ModelRequest(
        tuple(messages), system=(FILES,), tools=SPECS, max_tokens=60, temperature=1.0, dated=True
    )
    end = await complete(model, request)
    ticker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ticker
    return longest, end


@pytest.mark.parametrize("size", [1, 2, 3, 7, 200])
@pytest.mark.parametrize("note", ["", 'It costs \\"9\\".'])
def test_an_answer_is_decoded_however_it_is_cut(size: int, note: str):
    begin = f'{{"seen": "{note}", ' if note else "{"
    text = begin + '"tool": "final_answer", "answer": "He said: \\"50 %\\",\\n C:\\\\tmp — ☕"}'
    reader = StepText(FINAL, noted=bool(note))
    told = [reader.feed(text[n : n + size]) for n in range(0, len(text), size)]
    assert "".join(told) == reader.answer == 'He said: "50 %",\n C:\\tmp — ☕'
    assert reader.note == note.replace("\\", "")


def test_another_tool_is_no_answer():
    reader = StepText(FINAL, noted=True)
    assert reader.feed('{"seen": "x", "tool": "read_file", "path": "a"}') == ""
    assert reader.answer is None and reader.note == "x"


async def test_after_a_result_a_step_begins_with_a_note_that_becomes_thinking(model: LocalModel):
    read = called("read_file", {"path": "a.py"}, "LIMIT = 60")
    request = asked(*read, tools=(spec("read_file"),), system=(FILES,), max_tokens=60)
    events = await events_of(model, request)
    end = events[-1]
    assert isinstance(end, End)
    note = end.message.content[0]
    assert isinstance(note, ThinkingBlock) and note.origin == model.info.name
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == note.thinking
