"""The loop when a model call fails, a person stops it or its time is over (AG-33, AG-34, AG-45)."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.agent_turns import ADD, NAME, READ, call, settings_for
from support.fake_models import FakeModels
from support.patience import HANG_S, patience

from bowerbird.agent.context.history import PARTIAL
from bowerbird.agent.turn import Limits, StopSignal, TurnRun
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.events import AssistantStep, MessageRestart, TextLive, ToolIntent, ToolOutcome
from bowerbird.core.messages import user_text
from bowerbird.models import Model, RetryPolicy, open_model
from bowerbird.tools import Tool, Toolset

Run = Callable[..., Any]


async def test_a_failed_model_call_is_an_error_and_never_an_answer(fake: FakeModels, turn: Run) -> None:
    """AG-33."""
    fake.script({"status": 400, "body": {"error": {"message": "bad field"}}})
    told = await turn()
    assert told.done.stop_reason == "model_error"
    assert told.done.error is not None and told.done.error.type == "ModelError"
    assert told.done.text == "" and told.done.usage.input_tokens == 0


async def test_a_call_that_is_written_as_text_is_not_executed(fake: FakeModels, turn: Run) -> None:
    """MO-28: the text is the answer, whatever it looks like."""
    text = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    fake.script({"text": text})
    told = await turn(tools=[ADD])
    assert (told.done.stop_reason, told.done.text, told.outcomes) == ("completed", text, [])
    assert fake.request_count == 1


async def test_a_stream_that_breaks_keeps_its_text_as_a_partial_record(fake: FakeModels, turn: Run) -> None:
    """MO-32."""
    fake.script({"text": "one two three four", "deltas": 4, "cut_after": 2})
    told = await turn()
    step = told.of(AssistantStep)[0]
    assert step.stop_reason == PARTIAL and step.message.text
    assert told.done.stop_reason == "model_error" and told.done.error is not None
    assert told.done.usage.estimated


async def test_cancel_closes_the_stream_and_keeps_the_text_within_100_ms(fake: FakeModels, turn: Run) -> None:
    """AG-45."""
    fake.script({"text": "one two three", "deltas": 3, "hang_after": 2})
    stop = StopSignal()
    seen: list[str] = []
    at = 0.0

    def on(event: Any) -> None:
        nonlocal at
        if isinstance(event, TextLive):
            seen.append(event.content)
            if len(seen) == 2:
                asyncio.get_running_loop().call_soon(stop.set, "cancelled")
                at = time.perf_counter()

    told = await turn(stop=stop, on=on)
    assert time.perf_counter() - at < patience(2)
    assert told.done.stop_reason == "cancelled"
    assert told.of(AssistantStep)[0].stop_reason == PARTIAL
    assert told.done.text == "".join(seen)
    await fake.wait_closed(1)


async def test_cancel_ends_running_tools_with_an_interrupted_outcome(fake: FakeModels, turn: Run) -> None:
    """AG-45, AG-47: the finished call keeps its result, the running one is interrupted."""
    stop = StopSignal()
    cancelled = False

    async def forever() -> str:
        """Never end."""
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise
        return "never"

    def on(event: Any) -> None:
        if isinstance(event, ToolOutcome) and event.tool == "add":
            stop.set("interrupted")

    fake.script({"tools": [call("forever"), call("add", a=1, b=2)]})
    started = time.perf_counter()
    told = await turn(tools=[Tool(forever, **READ), ADD], stop=stop, on=on)
    assert time.perf_counter() - started < patience(2)
    assert told.done.stop_reason == "interrupted"
    assert {o.tool: o.status for o in told.outcomes} == {"add": "ok", "forever": "interrupted"}
    assert cancelled


async def test_a_tool_that_ignores_cancellation_does_not_delay_the_stop(fake: FakeModels, turn: Run) -> None:
    """AG-45: 100 ms, whatever a tool does."""
    stop, release = StopSignal(), asyncio.Event()

    async def stubborn() -> str:
        """Ignore being cancelled."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    def on(event: Any) -> None:
        if isinstance(event, ToolIntent):
            asyncio.get_running_loop().call_later(0.02, stop.set)

    fake.script({"tools": [call("stubborn")]})
    started = time.perf_counter()
    told = await turn(tools=[Tool(stubborn, **READ)], stop=stop, on=on)
    assert time.perf_counter() - started < patience(2)
    assert told.outcomes[0].status == "interrupted"
    release.set()
    await asyncio.sleep(0)


async def test_a_deadline_ends_the_run_in_the_middle_of_a_call(fake: FakeModels, turn: Run) -> None:
    """AG-34 deadline."""
    fake.script({"hang": True})
    told = await turn(limits=Limits(deadline_s=0.05))
    assert told.done.stop_reason == "deadline"


async def test_closing_the_events_closes_the_stream(fake: FakeModels, model: Model) -> None:
    """AG-32: closing the iterator cancels."""
    fake.script({"text": "one two three", "deltas": 3, "hang_after": 1})
    events = run_turn(TurnRun(model=model, tools=Toolset(), new=(user_text("hi"),)))
    async for event in events:
        if isinstance(event, TextLive):
            break
    await events.aclose()
    await fake.wait_closed(1)


async def test_a_tool_that_exits_the_program_ends_its_call_only(fake: FakeModels, turn: Run) -> None:
    """Engine 8: SystemExit went through the task into the event loop and ended it."""

    async def leaves() -> str:
        """Leave."""
        raise SystemExit(3)

    fake.script({"tools": [call("leaves")]}, {"text": "well"})
    told = await turn(tools=Toolset([Tool(leaves, **READ)]))
    [outcome] = told.outcomes
    assert (outcome.status, outcome.content) == ("error", "SystemExit: 3")
    assert told.done.text == "well"


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_tool_may_raise_what_is_no_exception(fake: FakeModels, turn: Run, in_thread: bool) -> None:
    """Engine 8: `pytest.fail()`, which is none, left the turn waiting for ever."""

    def plainly() -> str:
        """Fail."""
        pytest.fail("not so")

    async def awaited() -> str:
        """Fail."""
        return plainly()

    tool = plainly if in_thread else awaited
    fake.script({"tools": [call(tool.__name__)]}, {"text": "well"})
    told = await turn(tools=Toolset([Tool.from_sync(tool, **READ)]))
    [outcome] = told.outcomes
    assert (outcome.status, outcome.content) == ("error", "Failed: not so")
    assert told.done.text == "well"


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("way", ["its error cannot be read", "half a pair", "an error with half a pair"])
async def test_what_a_tool_says_in_no_encoding_ends_its_call_only(
    way: str, fake: FakeModels, turn: Run
) -> None:
    """TO-5: the run waited for ever for the call whose error had no text; half a surrogate pair failed the turn."""

    async def odd() -> str:
        """Say something."""
        if way == "its error cannot be read":
            raise _Unreadable
        if way == "half a pair":
            return "before \ud800 after"
        raise ValueError("before \ud800 after")

    fake.script({"tools": [call("odd")]}, {"text": "well"})
    async with asyncio.timeout(HANG_S):
        told = await turn(tools=Toolset([Tool(odd, **READ)]))
    [outcome] = told.outcomes
    assert ("before ? after" if "pair" in way else "_Unreadable: (its message") in str(outcome.content)
    assert told.done.text == "well"


async def test_negative_counts_of_a_provider_fail_no_turn(fake: FakeModels, turn: Run) -> None:
    """Reliability 12: the price of a negative count was an exception."""
    fake.script({"text": "hi", "usage": {"input": -5, "output": -1, "cache_read": -2}})
    told = await turn()
    assert told.done.stop_reason == "completed" and told.done.text == "hi"
    assert (told.done.usage.input_tokens, told.done.usage.output_tokens) == (0, 0)


async def test_a_cut_stream_is_told_in_our_words(fake: FakeModels, turn: Run) -> None:
    """Server 16: "TransferEncodingError: 400 …" was shown to people."""
    fake.script({"text": "one two three four", "deltas": 4, "cut_after": 2})
    told = await turn()
    assert told.done.error is not None
    assert (
        told.done.error.message == "the answer of anthropic was cut: the connection was lost before its end"
    )


async def test_an_answer_that_breaks_off_begins_again_and_is_kept_once(fake: FakeModels, turn: Run) -> None:
    """D-13: viewers are told, nothing of the broken answer is kept but what it cost, no turn is lost."""
    broken = {"text": "one two three four", "deltas": 4, "cut_after": 2}
    fake.script(broken, {"tools": [call("add", a=1, b=2)]}, broken, {"text": "three"})
    settings = replace(settings_for(fake), retry=RetryPolicy(retries=2, base_delay_s=0.0, max_delay_s=0.01))
    model = open_model(NAME, settings)
    try:
        told = await turn(model=model, tools=[ADD])
    finally:
        await model.aclose()
    assert told.done.stop_reason == "completed" and told.done.text == "three"
    assert [step.stop_reason for step in told.of(AssistantStep)] == ["tool_use", "end_turn"]
    restarts = [event.message_id for event in told.of(MessageRestart)]
    kept = [step.message.id for step in told.of(AssistantStep)]
    assert len(restarts) == 2 and not set(restarts) & set(kept)
    assert told.done.usage.model_calls == 4 and told.done.usage.estimated
