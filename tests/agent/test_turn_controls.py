"""People and tools that steer a turn: approval, plan mode, questions, mail, tiers (AG-39, AG-58 … AG-64)."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.agent_turns import call, result_of, results, texts
from support.fake_models import FakeModels

from bowerbird.agent.context.history import History
from bowerbird.agent.turn import Limits, Policy, Storage
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    Compaction,
    Injected,
    ModeChange,
    ModelSwitch,
    Notice,
    ToolIntent,
    ToolProgress,
    UsageStep,
    UserStep,
)
from bowerbird.core.messages import Message, ToolUseBlock, user_text
from bowerbird.models import ModelSettings, RouterSettings, TierSettings, open_router
from bowerbird.tools import Tool, ToolContext
from bowerbird.tools.plan import model_tools, plan_tools

Run = Callable[..., Any]
ASKING = Policy.of({"enable_approval": True})
MARK = ', "cache_control": {"type": "ephemeral"}'


async def act(word: str) -> str:
    """Act.

    Args:
        word: How.
    """
    return f"did {word}"


async def look() -> str:
    """Look."""
    return "seen"


ACT = Tool(act, effect="branch")
LOOK = Tool(look, effect="read", needs_approval=False)


class Person:
    """Answers requests with decisions given before; None = does not answer."""

    def __init__(self, *decisions: str | None, feedback: str | None = None) -> None:
        self.decisions = list(decisions)
        self.feedback = feedback
        self.asked: list[ApprovalRequest] = []
        self.wait_for: asyncio.Event | None = None

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        self.asked.append(request)
        if self.wait_for is not None:
            await self.wait_for.wait()
        decision = self.decisions.pop(0)
        return None if decision is None else ApprovalAnswer(request.id, decision, "ann", self.feedback)


async def test_asking_calls_are_asked_together_while_allowed_ones_before_them_run(
    fake: FakeModels, turn: Run
) -> None:
    person = Person("approve")
    person.wait_for = asyncio.Event()

    def on(event: Any) -> None:
        if getattr(event, "tool", "") == "look" and not isinstance(event, ToolIntent):
            person.wait_for.set()  # type: ignore[union-attr] - answered only after the allowed call ended

    fake.script({"tools": [call("look"), call("act", word="a"), call("act", word="b")]}, {"text": "ok"})
    told = await turn(tools=[ACT, LOOK], policy=ASKING, approver=person, on=on)
    request = told.of(ApprovalRequest)[0]
    assert [t["input"]["word"] for t in request.tools] == ["a", "b"] and request.kind == "approval"
    assert set(request.tools[0]) == {"name", "input", "id", "rules"}
    assert [result_of(r) for r in results(fake.requests[1])] == ["seen", "did a", "did b"]
    assert told.of(ApprovalAnswer)[0].decision == "approve"


async def test_a_denied_call_says_so_with_the_comment(fake: FakeModels, turn: Run) -> None:
    """AG-62."""
    fake.script({"tools": [call("act", word="a")]}, {"text": "ok"})
    told = await turn(tools=[ACT], policy=ASKING, approver=Person("deny", feedback="not today"))
    assert told.outcomes[0].status == "denied"
    assert result_of(results(fake.requests[1])[0]) == "User denied this tool call: not today"
    assert told.of(ToolIntent) == []


async def test_auto_approve_holds_for_the_rest_of_the_run(fake: FakeModels, turn: Run) -> None:
    """AG-62."""
    person = Person("auto_approve")
    fake.script({"tools": [call("act", word="a")]}, {"tools": [call("act", word="b")]}, {"text": "ok"})
    told = await turn(tools=[ACT], policy=ASKING, approver=person)
    assert [o.status for o in told.outcomes] == ["ok", "ok"] and len(person.asked) == 1


async def test_an_unanswered_request_ends_the_turn_with_the_call_still_pending(
    fake: FakeModels, turn: Run
) -> None:
    """AG-63: nothing runs; a late answer continues it and runs the call once (AG acceptance 7)."""
    fake.script({"tools": [call("act", word="a")]}, {"text": "ok"})
    told = await turn(tools=[ACT], policy=ASKING, approver=Person(None))
    assert told.done.stop_reason == "awaiting_approval" and told.outcomes == []
    history = History.of(told.events)
    use = history.pending_calls[0]
    late = {use.id: ApprovalAnswer(told.of(ApprovalRequest)[0].id, "approve")}
    resumed = await turn(None, tools=[ACT], policy=ASKING, approver=Person(), history=history, answers=late)
    assert [o.content for o in resumed.outcomes] == ["did a"]
    assert resumed.done.stop_reason == "completed"


async def test_what_an_approver_raises_passes_through(fake: FakeModels, turn: Run) -> None:
    class Broken:
        async def ask(self, request: ApprovalRequest) -> None:
            raise RuntimeError("door fell off")

    fake.script({"tools": [call("act", word="a")]})
    with pytest.raises(RuntimeError, match="door fell off"):
        await turn(tools=[ACT], policy=ASKING, approver=Broken())


# ---------------------------------------------------------------- plan mode


async def test_plan_mode_denies_acting_and_ends_with_the_plan(fake: FakeModels, turn: Run) -> None:
    """AG-64; AG acceptance 6."""
    fake.script({"tools": [call("act", word="a")]}, {"tools": [call("exit_plan_mode", plan="1. look")]})
    told = await turn(tools=[*plan_tools(), ACT, LOOK], mode="plan")
    assert told.outcomes[0].status == "denied" and "plan mode" in str(told.outcomes[0].content)
    assert (told.done.stop_reason, told.done.text) == ("plan_ready", "1. look")
    offered = [t["name"] for t in fake.requests[0]["tools"]]
    assert {"act", "exit_plan_mode", "look"} <= {*offered}
    assert "Plan mode: look and plan only" in str(fake.requests[0]["system"])


async def test_the_final_reply_in_plan_mode_is_the_plan(fake: FakeModels, turn: Run) -> None:
    """AG-64."""
    fake.script({"text": "1. do it"})
    told = await turn(tools=plan_tools(), mode="plan")
    assert (told.done.stop_reason, told.done.text) == ("plan_ready", "1. do it")


async def test_entering_plan_mode_changes_what_may_be_called(fake: FakeModels, turn: Run) -> None:
    fake.script({"tools": [call("enter_plan_mode")]}, {"tools": [call("act")]}, {"text": "the plan"})
    told = await turn(tools=[*plan_tools(), ACT])
    assert told.of(ModeChange)[0].changes == {"enable_plan_mode": True}
    assert [(o.tool, o.status) for o in told.outcomes] == [("enter_plan_mode", "ok"), ("act", "denied")]
    assert fake.requests[1]["tools"] == fake.requests[0]["tools"]
    assert told.done.stop_reason == "plan_ready"


# ---------------------------------------------------------------- questions


async def test_a_question_is_answered_by_the_person(fake: FakeModels, turn: Run) -> None:
    """TO-36."""
    fake.script({"tools": [call("ask_user", question="red?", options=["yes", "no"])]}, {"text": "ok"})
    person = Person("answer", feedback="yes")
    told = await turn(tools=plan_tools(), approver=person)
    assert person.asked[0].kind == "user" and person.asked[0].text == "red?"
    assert result_of(results(fake.requests[1])[0]) == "yes"
    assert told.outcomes[0].status == "ok"


async def test_a_question_where_nobody_can_answer_is_an_error_at_once(fake: FakeModels, turn: Run) -> None:
    """TO-36."""
    fake.script({"tools": [call("ask_user", question="red?")]}, {"text": "ok"})
    told = await turn(tools=plan_tools())
    assert told.outcomes[0].status == "error" and "nobody can answer" in str(told.outcomes[0].content)


async def test_an_unanswered_question_waits_and_other_results_are_not_held_back(
    fake: FakeModels, turn: Run
) -> None:
    fake.script({"tools": [call("ask_user", question="red?"), call("look")]})
    told = await turn(tools=[*plan_tools(), LOOK], approver=Person(None))
    assert told.done.stop_reason == "awaiting_user"
    assert [o.tool for o in told.outcomes] == ["look"]


# ---------------------------------------------------------------- mail, tiers


class Box:
    """Mail by poll."""

    def __init__(self, *polls: list[Any]) -> None:
        self.polls = list(polls)

    async def poll(self) -> list[Any]:
        return self.polls.pop(0) if self.polls else []


async def test_mail_and_steering_join_before_the_next_model_call(fake: FakeModels, turn: Run) -> None:
    """AG-39, AG-46."""
    notice = Injected("background", user_text("<background>done</background>"), ids=("bg_1",))
    steer = UserStep(user_text("use blue"), steer=True)
    fake.script({"tools": [call("look")]}, {"text": "ok"})
    told = await turn(tools=[LOOK], inbox=Box([], [notice, steer]))
    assert not any("done" in t for t in texts(fake.requests[0]))
    assert texts(fake.requests[1])[-2:] == ["<background>done</background>", "use blue"]
    assert told.of(Injected)[0].ids == ("bg_1",)


async def test_switch_model_holds_from_the_next_call_of_the_same_turn(fake: FakeModels, turn: Run) -> None:
    """MO-43, MO-46, TO-47."""
    router_settings = RouterSettings(
        enabled=True,
        default_tier="lite",
        tiers={
            name: TierSettings("anthropic", model, base_url=fake.anthropic_url, api_key="k")
            for name, model in (("lite", "claude-haiku-4-5"), ("expert", "claude-opus-4-1"))
        },
    )
    settings = ModelSettings(router=router_settings)
    router = open_router(settings)
    fake.script({"tools": [call("look"), call("switch_model", tier="expert")]}, {"text": "ok"})
    told = await turn(tools=[LOOK, *model_tools(router.tiers)], model=router, router=router, tier="lite")
    await router.aclose()
    assert [r["model"] for r in fake.requests] == ["claude-haiku-4-5", "claude-opus-4-1"]
    assert told.of(ModelSwitch) == [ModelSwitch("expert", "tool")]
    first, second = (r["system"] for r in fake.requests)
    assert first[:-1] == second[:-1]
    assert "tier lite" in first[-1]["text"] and "tier expert" in second[-1]["text"]


async def test_a_tool_reports_its_progress_ten_times_a_second_at_most(fake: FakeModels, turn: Run) -> None:
    """TO-51: what comes too soon is lost, and the tool is not slowed."""
    took = 0.0

    async def busy(context: ToolContext) -> str:
        """Work."""
        nonlocal took
        begun = time.monotonic()
        for number in range(2000):
            context.progress(f"{number} of 2000")
        took = time.monotonic() - begun
        return "worked"

    fake.script({"tools": [call("busy")]}, {"text": "ok"})
    told = await turn(tools=[Tool(busy, effect="read")])
    said = told.of(ToolProgress)
    assert said[0].text == "0 of 2000" and len(said) <= 1 + took / 0.1
    assert result_of(results(fake.requests[1])[0]) == "worked"


async def test_the_beginning_of_a_request_stays_whatever_approval_or_mail_is(
    fake: FakeModels, turn: Run
) -> None:
    """MO-55: tools and system are the same bytes, and the messages only grow."""
    notice = Injected("background", user_text("<background>done</background>"), ids=("bg_1",))
    fake.script({"tools": [call("look")]}, {"text": "ok"}, {"text": "ok"})
    await turn(tools=[ACT, LOOK], inbox=Box([], [notice]))
    await turn(tools=[ACT, LOOK], policy=ASKING)
    first, mailed, asking = (
        {key: json.dumps(r[key]).replace(MARK, "") for key in ("tools", "system")} for r in fake.requests
    )
    assert first == mailed == asking
    assert texts(fake.requests[1])[:1] == texts(fake.requests[0])


# ---------------------------------------------------------------- compaction


class Shelf:
    """Keeps transcripts."""

    def __init__(self) -> None:
        self.saved: list[int] = []

    async def save(self, messages: Any) -> str:
        self.saved.append(len(messages))
        return ".transcripts/t.jsonl"


def is_summary(body: dict[str, Any]) -> bool:
    return "You summarise" in str(body.get("system"))


async def test_a_full_window_is_summarised_before_the_next_call(fake: FakeModels, turn: Run) -> None:
    """AG-56."""
    shelf = Shelf()

    def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
        if is_summary(body):
            return {"text": "SUMMARY OF ALL", "usage": {"input": 10, "output": 5}}
        if n == 0:
            return {"tools": [call("look")], "usage": {"input": 150_000, "output": 5}}
        return {"text": "ok", "usage": {"input": 100, "output": 1}}

    fake.answer(answer)
    told = await turn("the question", tools=[LOOK], storage=Storage(transcripts=shelf))
    assert told.done.stop_reason == "completed" and fake.request_count == 3
    made = told.of(Compaction)[0]
    assert made.reason == "auto" and made.transcript == ".transcripts/t.jsonl" and shelf.saved == [3]
    after = texts(fake.requests[2])
    assert "SUMMARY OF ALL" in after[0] and "the question" in after[0]
    assert told.of(UsageStep)[0].purpose == "compact"
    assert any(n.kind == "compact" for n in told.of(Notice))
    assert told.done.usage.model_calls == 3


async def test_the_compact_tool_reaches_the_summariser_with_its_focus(fake: FakeModels, turn: Run) -> None:
    """AG-58."""
    steps = [{"tools": [call("compact", focus="the colours")]}, {}, {"text": "ok"}]
    fake.answer(lambda body, n: {"text": "S"} if is_summary(body) else steps[n])
    said = [user_text("w" * 900), Message("assistant", user_text("v" * 900).content)]
    told = await turn(tools=plan_tools(), history=History(tuple(said)))
    assert told.of(Compaction)[0].reason == "tool" and told.of(Compaction)[0].focus == "the colours"
    assert "the colours" in texts(fake.requests[1])[0]


async def test_a_person_s_wish_is_granted_once_even_if_there_is_nothing_to_do(
    fake: FakeModels, turn: Run
) -> None:
    """AG-58: it stood until a later turn was summarised, which nobody had asked for then."""
    fake.answer(lambda body, _n: {"text": "S"} if is_summary(body) else {"text": "ok"})
    told = await turn("short", tools=[LOOK], compact="")
    assert told.of(Compaction) == [] and fake.request_count == 1
    assert told.of(ModeChange) == [ModeChange({"compact": None}, "user")]
    assert "nothing to summarise" in next(n for n in told.of(Notice) if n.kind == "compact_skipped").text


async def test_a_wish_is_the_person_s_also_in_a_turn_that_goes_on(fake: FakeModels, turn: Run) -> None:
    """It counted as the tool's, which clears nothing, in a resumed turn whose tools run first."""
    fake.answer(lambda body, _n: {"text": "S"} if is_summary(body) else {"text": "ok"})
    said = (user_text("w" * 900), Message("assistant", user_text("v" * 900).content), user_text("go"))
    asked = Message("assistant", (ToolUseBlock("c1", "look", {}),))
    told = await turn(None, tools=[LOOK], history=History((*said, asked)), compact="names")
    assert told.outcomes[0].status == "ok"
    assert [(made.reason, made.focus) for made in told.of(Compaction)] == [("user", "names")]


@pytest.mark.parametrize("broken", [{"status": 400}, {"text": " "}], ids=["fails", "says-nothing"])
async def test_when_no_summary_helps_the_oldest_exchanges_are_left_out(
    fake: FakeModels, turn: Run, broken: dict[str, Any]
) -> None:
    """AG-57."""
    said: list[Message] = []
    for n in range(6):
        said += [user_text(f"question {n} " + "q" * 800), Message("assistant", user_text("a" * 800).content)]
    fake.answer(lambda body, _n: broken if is_summary(body) else {"text": "ok"})
    limits = Limits(context_window=2_000)
    told = await turn("next?", history=History(tuple(said)), limits=limits)
    assert told.done.stop_reason == "completed"
    first = texts(fake.requests[-1])[0]
    assert "earlier exchanges were left out" in first
    assert "next?" in texts(fake.requests[-1])[-1]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."),
        (413, "Request exceeds the maximum size"),
        (500, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
    ],
    ids=["claude", "gemini", "bytes", "lmstudio"],
)
async def test_an_overflow_is_summarised_and_asked_again(
    fake: FakeModels, turn: Run, status: int, message: str
) -> None:
    """AG-56."""
    error = {"type": "invalid_request_error", "message": message}
    too_long = {"status": status, "body": {"type": "error", "error": error}}

    def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
        if is_summary(body):
            return {"text": "S"}
        return too_long if n == 0 else {"text": "fine"}

    fake.answer(answer)
    said = (user_text("w" * 900), Message("assistant", user_text("v" * 900).content))
    told = await turn(history=History(said))
    assert (told.done.stop_reason, told.done.text) == ("completed", "fine")
    assert told.of(Compaction)[0].reason == "overflow"


async def test_a_window_that_is_smaller_than_is_planned_with_ends_no_session(
    fake: FakeModels, turn: Run
) -> None:
    """A server of one's own, say, of which nobody said how little it takes: the second summary keeps less."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}

    def answer(asked: dict[str, Any], _n: int) -> dict[str, Any]:
        if len(json.dumps(asked)) > 24_000:
            return {"status": 400, "body": body}
        return {"text": "S" if is_summary(asked) else "fine"}

    fake.answer(answer)
    said = [(user_text("w" * 900), Message("assistant", user_text("v" * 900).content)) for _ in range(60)]
    summed = Compaction(said[0][0].id, said[1][1].id, "S", "auto", None, None)
    history = History(tuple(m for pair in said for m in pair), compactions=(summed,))
    told = await turn(history=history)
    assert (told.done.stop_reason, told.done.text) == ("completed", "fine")


async def test_one_message_that_is_too_large_is_named_with_its_size(fake: FakeModels, turn: Run) -> None:
    """AG-57."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}
    fake.script({"status": 400, "body": body})
    told = await turn("w" * 40_000, limits=Limits(context_window=4_000))
    assert told.done.stop_reason == "model_error"
    assert told.done.error is not None and "40,000 characters" in told.done.error.message


async def test_a_pending_call_is_never_summarised_away(fake: FakeModels, turn: Run) -> None:
    asked = Message("assistant", (ToolUseBlock("c1", "look", {}),))
    fake.script({"text": "ok"})
    told = await turn(None, tools=[LOOK], history=History((user_text("go"), asked)), compact="")
    assert told.done.stop_reason == "completed" and told.outcomes[0].status == "ok"
