"""The loop through a real HTTP model: order of events, calls, limits, resume (AG-36 … AG-53)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.agent_turns import ADD, NAME, READ, add, call, may_call, result_of, results, settings_for, texts
from support.fake_models import FakeModels

from bowerbird.agent.context.history import History
from bowerbird.agent.turn import Limits, Policy, Sampling
from bowerbird.agent.turn_loop.model_step import MOST_CALLS
from bowerbird.core.events import (
    AssistantStep,
    Injected,
    TextLive,
    ThinkingLive,
    ToolIntent,
    ToolOutcome,
    UserStep,
)
from bowerbird.core.messages import Message, TextBlock, ToolUseBlock, user_text
from bowerbird.core.requests import Retrying
from bowerbird.core.usage import Usage
from bowerbird.models import ModelOverride, RetryPolicy, open_model
from bowerbird.tools import Tool

Run = Callable[..., Any]


async def test_an_answer_without_calls_is_the_answer_and_costs_one_request(
    fake: FakeModels, turn: Run
) -> None:
    """AG-36; AG acceptance 1."""
    fake.script({"text": "forty two", "deltas": 3})
    told = await turn("what?")
    assert (told.done.stop_reason, told.done.text) == ("completed", "forty two")
    assert fake.request_count == 1
    assert "".join(e.content for e in told.of(TextLive)) == "forty two"
    step = told.of(AssistantStep)[0]
    assert {e.message_id for e in told.of(TextLive)} == {step.message.id}
    assert told.done.usage.model_calls == 1


async def test_unknown_tool_wrong_argument_raising_tool_then_an_answer(fake: FakeModels, turn: Run) -> None:
    """AG-48; AG acceptance 3: four requests, the tool ran once."""
    ran: list[int] = []

    async def fragile(n: int) -> str:
        """Break.

        Args:
            n: Anything.
        """
        ran.append(n)
        raise LookupError("no such thing")

    fake.script(
        {"tools": [call("fragil", n=1)]},
        {"tools": [call("fragile", n="many")]},
        {"tools": [call("fragile", n=3)]},
        {"text": "done"},
    )
    told = await turn(tools=[Tool(fragile, **READ)])
    assert told.done.stop_reason == "completed"
    assert (fake.request_count, ran) == (4, [3])
    unknown, wrong, raised = (result_of(results(fake.requests[n])[-1]) for n in (1, 2, 3))
    assert "fragile" in unknown and "no tool is named 'fragil'" in unknown
    assert "n" in wrong and "was not run" in wrong
    assert raised == "LookupError: no such thing"
    assert [o.status for o in told.outcomes] == ["error"] * 3
    assert len(told.of(ToolIntent)) == 1  # what is not run has no intent


async def test_intents_of_a_batch_come_before_any_of_its_tools_starts(fake: FakeModels, turn: Run) -> None:
    """A consumer that commits each event before asking for the next has the effect ledger right."""
    order: list[str] = []

    async def note(word: str) -> str:
        """Note.

        Args:
            word: What.
        """
        order.append(f"ran {word}")
        return word

    fake.script({"tools": [call("note", word="a"), call("note", word="b")]}, {"text": "ok"})
    await turn(
        tools=[Tool(note, **READ)],
        on=lambda e: order.append(f"intent {e.input['word']}") if isinstance(e, ToolIntent) else None,
    )
    assert order[:2] == ["intent a", "intent b"]
    assert sorted(order[2:]) == ["ran a", "ran b"]


async def test_outcomes_come_as_they_finish_and_results_in_call_order(fake: FakeModels, turn: Run) -> None:
    """AG-49, AG-38.11."""
    quick_done = asyncio.Event()

    async def slow() -> str:
        """Wait for the quick one."""
        await quick_done.wait()
        return "slow"

    async def quick() -> str:
        """Be quick."""
        return "quick"

    def on(event: Any) -> None:
        if isinstance(event, ToolOutcome) and event.tool == "quick":
            quick_done.set()

    fake.script({"tools": [call("slow"), call("quick")]}, {"text": "ok"})
    told = await turn(tools=[Tool(slow, **READ), Tool(quick, **READ)], on=on)
    assert [o.tool for o in told.outcomes] == ["quick", "slow"]
    assert [result_of(r) for r in results(fake.requests[1])] == ["slow", "quick"]


async def test_calls_with_the_same_serial_key_run_one_after_another(fake: FakeModels, turn: Run) -> None:
    """AG-49."""
    inside: list[int] = []
    most = 0

    async def exclusive(n: int) -> int:
        """Be alone.

        Args:
            n: Number.
        """
        nonlocal most
        inside.append(n)
        most = max(most, len(inside))
        await asyncio.sleep(0)
        inside.remove(n)
        return n

    fake.script({"tools": [call("exclusive", n=n) for n in range(4)]}, {"text": "ok"})
    told = await turn(tools=[Tool(exclusive, serial="python", **READ)])
    assert most == 1
    assert [o.content for o in told.outcomes] == [f'{{"result":{n}}}' for n in range(4)]


async def test_no_more_calls_run_at_once_than_the_limit(fake: FakeModels, turn: Run) -> None:
    """AG-40 max_parallel_tools, max_tool_calls."""
    running = most = 0

    async def busy(n: int) -> int:
        """Work.

        Args:
            n: Number.
        """
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return n

    fake.script({"tools": [call("busy", n=n) for n in range(6)]}, {"text": "ok"})
    told = await turn(tools=[Tool(busy, **READ)], limits=Limits(max_parallel_tools=2, max_tool_calls=5))
    assert most == 2
    assert [o.status for o in told.outcomes].count("ok") == 5
    refused = next(o for o in told.outcomes if o.status == "error")
    assert "limit of 5 tool calls" in str(refused.content)


async def test_too_many_calls_in_one_answer_are_refused_as_one(fake: FakeModels, turn: Run) -> None:
    """AG-40, law 8: 20,000 calls of one answer were each judged, recorded, shown and sent again."""
    many = 3_000
    fake.script({"tools": [call("add", a=n, b=0) for n in range(many)]}, {"text": "ok"})
    told = await turn(tools=[Tool(add, **READ)], limits=Limits(max_tool_calls=10_000))
    assert [o.status for o in told.outcomes].count("ok") == MOST_CALLS
    refused = [o for o in told.outcomes if o.status != "ok"]
    assert len(refused) == 1 and "asked for 3000 calls at once" in str(refused[0].content)
    said = told.of(AssistantStep)[0]
    assert len(said.message.tool_uses) == MOST_CALLS + 1
    assert {use.id for use in said.message.tool_uses} == {outcome.call for outcome in told.outcomes}
    assert told.done.text == "ok"


async def test_an_alias_is_recorded_as_its_canonical_tool(fake: FakeModels, turn: Run) -> None:
    """TO-10."""
    fake.script({"tools": [call("plus", a=1, b=2)]}, {"text": "3"})
    told = await turn(tools=[Tool(add, aliases=("plus",), **READ)])
    assert told.of(ToolIntent)[0].tool == "add"
    assert told.of(AssistantStep)[0].message.tool_uses[0].name == "add"


# ---------------------------------------------------------------- iterations, hints, repeats


async def test_limit_four_hints_in_the_fourth_request_and_ends_with_a_summary_without_tools(
    fake: FakeModels, turn: Run
) -> None:
    """AG-41, AG-43; AG acceptance 9."""
    fake.answer(
        lambda body, n: {"tools": [call("add", a=n, b=1)]} if may_call(body) else {"text": "half done"}
    )
    told = await turn(tools=[ADD], limits=Limits(max_iterations=4))
    assert (told.done.stop_reason, told.done.text) == ("max_iterations", "half done")
    assert fake.request_count == 5
    assert "start nothing new" in texts(fake.requests[1])[-1]  # once, at the end, and it stays
    assert not any("start nothing new" in t for t in texts(fake.requests[0]))
    assert fake.requests[4]["tools"] == fake.requests[0]["tools"] and not may_call(fake.requests[4])
    assert str([e.message.text for e in told.of(Injected)]).count("start nothing new") == 1


async def test_when_the_summary_fails_the_text_lists_the_tools_that_ran(fake: FakeModels, turn: Run) -> None:
    """AG-43."""
    fake.answer(lambda body, n: {"tools": [call("add", a=n, b=1)]} if may_call(body) else {"status": 400})
    told = await turn(tools=[ADD], limits=Limits(max_iterations=2))
    assert told.done.stop_reason == "max_iterations"
    assert "add × 2" in told.done.text


@pytest.mark.parametrize(("effect", "rounds"), [("session", 5), ("read", 12)])
async def test_one_identical_call_for_ever_is_stuck_and_reading_may_be_repeated_longer(
    fake: FakeModels, turn: Run, effect: Any, rounds: int
) -> None:
    fake.answer(lambda body, n: {"tools": [call("add", a=1, b=1)]} if may_call(body) else {"text": "stopped"})
    told = await turn(tools=[ADD.with_options(effect=effect)], limits=Limits(max_iterations=50))
    assert (told.done.stop_reason, told.done.text) == ("stuck", "stopped")
    assert len(told.outcomes) == rounds
    assert len([e for e in told.of(Injected) if "something different" in e.message.text]) == 1


async def test_a_cut_answer_is_continued_at_most_three_times(fake: FakeModels, turn: Run) -> None:
    """AG-42."""
    fake.script({"text": "one ", "stop": "max_tokens"}, {"text": "two"})
    told = await turn()
    assert (told.done.stop_reason, told.done.text) == ("completed", "one two")
    fake.script({"text": "x", "stop": "max_tokens"})
    endless = await turn()
    assert (endless.done.stop_reason, endless.done.text) == ("truncated", "xxxx")


async def test_a_call_with_cut_arguments_is_not_run(fake: FakeModels, turn: Run) -> None:
    """AG-42, MO-26."""
    fake.script(
        {"tools": [{"name": "add", "raw": '{"a": 1, "b'}], "stop": "max_tokens"}, {"text": "never mind"}
    )
    told = await turn(tools=[ADD])
    assert told.done.stop_reason == "completed"
    assert told.of(ToolIntent) == []
    shown = result_of(results(fake.requests[1])[-1])
    assert "line 1" in shown and "Parameters:" in shown


async def test_an_empty_reply_is_asked_again_once(fake: FakeModels, turn: Run) -> None:
    """AG-52."""
    fake.script({"text": ""}, {"text": "here"})
    assert (await turn()).done.text == "here"
    fake.script({"text": ""})
    told = await turn()
    assert told.done.stop_reason == "model_error"
    assert fake.request_count == 4
    assert told.done.error is not None and told.done.error.retryable


# ---------------------------------------------------------------- budget, steps, resume


@pytest.mark.parametrize("cached", [0, 9_000])
async def test_what_is_sent_again_counts_once_and_no_call_is_made_after_the_token_budget(
    fake: FakeModels, turn: Run, cached: int
) -> None:
    fake.answer(
        lambda _body, n: {
            "tools": [call("add", a=n, b=1)],
            "usage": {"input": 4_000 * (n + 1), "output": 500, "cache_read": cached},
        }
    )
    told = await turn(tools=[ADD], limits=Limits(max_tokens_total=12_500, max_iterations=50))
    assert told.done.stop_reason == "token_budget"
    assert fake.request_count == 3
    assert fake.requests[-1]["max_tokens"] <= 12_500 - 8_500
    assert len(told.outcomes) == 3  # work is kept


async def test_a_money_limit_ends_the_run_where_nobody_can_answer(fake: FakeModels, turn: Run) -> None:
    """AG-44, MO-50."""
    used = {"input": 100_000, "output": 1_000}
    fake.answer(lambda _body, n: {"tools": [call("add", a=n, b=1)], "usage": used})
    limits = Limits(max_cost=0.5, max_tokens_total=None, context_window=1_000_000, max_iterations=50)
    told = await turn(tools=[ADD], limits=limits)
    assert fake.requests[1]["max_tokens"] < fake.requests[0]["max_tokens"]  # lowered to what fits
    assert told.done.stop_reason == "cost_budget"
    assert told.done.error is not None and "may spend $0.5" in told.done.error.message


async def test_one_step_runs_the_pending_calls_and_leaves_the_new_ones(fake: FakeModels, turn: Run) -> None:
    """AG-35: the calls of the last message, perhaps edited, run first; then one model call."""
    asked = Message("assistant", (ToolUseBlock("c1", "add", {"a": 20, "b": 1}),))
    fake.script({"tools": [call("add", a=5, b=5)]})
    told = await turn(None, tools=[ADD], one_step=True, history=History((user_text("add"), asked)))
    assert told.done.stop_reason == "awaiting_tools"
    assert [o.content for o in told.outcomes] == ['{"result":21}']
    assert fake.request_count == 1


async def test_a_resumed_turn_runs_only_the_calls_without_a_result(fake: FakeModels, turn: Run) -> None:
    """Resume after a crash is the same path as step mode."""
    asked = Message(
        "assistant",
        (ToolUseBlock("c1", "add", {"a": 1, "b": 1}), ToolUseBlock("c2", "add", {"a": 2, "b": 2})),
    )
    history = History.of(
        [
            UserStep(user_text("go")),
            AssistantStep(asked, "tool_use", "m", Usage()),
            ToolOutcome("c1", "add", "ok", "2"),
        ]
    )
    fake.script({"text": "fine"})
    told = await turn(None, tools=[ADD], history=history)
    assert [o.call for o in told.outcomes] == ["c2"]
    assert [result_of(r) for r in results(fake.requests[0])] == ["2", '{"result":4}']


async def test_reasoning_as_text_becomes_a_thinking_block(fake: FakeModels, turn: Run) -> None:
    """AG-16: for a model without native thinking."""
    plain = replace(settings_for(fake), overrides={NAME: ModelOverride(thinking_form="none")})
    fake.script({"text": "<think>because</think>so", "deltas": 5})
    model = open_model(NAME, plain)
    told = await turn(sampling=Sampling(chain_of_thought=True), model=model)
    await model.aclose()
    assert told.done.text == "so"
    assert "".join(e.content for e in told.of(ThinkingLive)) == "because"
    kinds = [type(b).__name__ for b in told.of(AssistantStep)[0].message.content]
    assert kinds == ["ThinkingBlock", "TextBlock"]


async def test_denied_calls_are_not_run_and_the_model_is_told_why(fake: FakeModels, turn: Run) -> None:
    """AG-59, AG-63: where nobody can answer, asking is denying."""
    fake.script({"tools": [call("add", a=1, b=1)]}, {"text": "ok"})
    told = await turn(tools=[ADD], policy=Policy.of({"ask": ["add"]}))
    assert told.outcomes[0].status == "denied"
    assert "nobody can answer" in result_of(results(fake.requests[1])[0])


@pytest.mark.parametrize("text", ["", "   "])
async def test_messages_without_content_are_not_sent(fake: FakeModels, turn: Run, text: str) -> None:
    history = History((user_text("a"), Message("assistant", (TextBlock("b"),)), Message("assistant", ())))
    fake.script({"text": "c"})
    told = await turn("d" + text, history=history)
    assert told.done.text == "c"
    assert [m["role"] for m in fake.requests[0]["messages"]] == ["user", "assistant", "user"]


async def test_a_request_that_no_provider_took_costs_nothing(fake: FakeModels, turn: Run) -> None:
    """MO-14: retries included."""
    trying = replace(settings_for(fake), retry=RetryPolicy(retries=1, base_delay_s=0, max_delay_s=0))
    model = open_model(NAME, trying)
    fake.script({"status": 529})
    told = await turn(model=model)
    await model.aclose()
    assert fake.request_count == 2 and len(told.of(Retrying)) == 1
    assert told.done.stop_reason == "model_error"
    assert (told.done.usage.input_tokens, told.done.usage.model_calls) == (0, 0)
