"""From events to the wire's types (SV-41 … SV-44). Pure."""

import json
from typing import Any

import msgspec
import pytest

from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    BackgroundResult,
    Compaction,
    Egress,
    Injected,
    ModeChange,
    ModelSwitch,
    Notice,
    RunError,
    SandboxTier,
    SubagentEnd,
    TextLive,
    ThinkingLive,
    ToolIntent,
    ToolOutcome,
    ToolProgress,
    Trace,
    UsageStep,
    UserStep,
)
from bowerbird.core.messages import Message, TextBlock, ThinkingBlock, ToolUseBlock, user_text
from bowerbird.core.requests import ModelFallback, ModelInfo, ModelRequest, Retrying
from bowerbird.core.usage import Usage
from bowerbird.core.wire.kinds import PLAIN_TYPES
from bowerbird.models.wrappers.tracing import request_record
from bowerbird.server.socket.translate import Closing, Translator
from bowerbird.sessions.live.hub import InputMark, Lagged, Published, TurnMark


def shown(translator: Translator, event: Any, seq: int | None = None, **more: Any) -> list[dict[str, Any]]:
    frames = translator.frames(Published("t", "t_1", seq, event), **more)
    return [json.loads(frame.text) for frame in frames]


def answer(*blocks: Any, message_id: str = "live") -> AssistantStep:
    return AssistantStep(Message("assistant", blocks, message_id), "tool_use", "m", Usage(input_tokens=7))


def test_a_streamed_message_is_not_said_twice_and_keeps_its_id() -> None:
    wire = Translator(cursor=4)
    (delta,) = shown(wire, TextLive("hel", "live", 0))
    assert delta == {
        "type": "text_delta",
        "content": "hel",
        "message_id": "msg_5",
        "offset": 0,
        "cursor": 4,
        "turn_id": "t_1",
    }
    shown(wire, ThinkingLive("hm", "live", 0))
    shown(wire, TextLive("lo", "live", 3))
    rest = shown(wire, answer(ThinkingBlock("hm"), TextBlock("hello"), ToolUseBlock("c1", "ls", {})), 5)
    assert [event["type"] for event in rest] == ["tool_call", "message_end"]
    assert rest[1]["message_id"] == "msg_5"


def test_what_was_not_streamed_is_said_whole() -> None:
    """SV-41: `thinking` only when none was streamed."""
    seen = shown(Translator(effort="max"), answer(ThinkingBlock("hm"), TextBlock("hello")), 1)
    assert [event["type"] for event in seen] == ["thinking", "text_delta", "message_end"]
    assert (seen[0]["content"], seen[0]["effort"]) == ("hm", "max")
    assert [event["cursor"] for event in seen] == [0, 1, 1]


def test_a_record_is_passed_only_with_its_last_plain_event() -> None:
    """SV-46: who was cut between two calls gets both again."""
    calls = [ToolUseBlock(f"c{n}", "ls", {}) for n in range(3)]
    seen = shown(Translator(cursor=7), answer(*calls), 8)
    assert [event["cursor"] for event in seen] == [7, 7, 8, 8]


def test_a_message_whose_record_came_from_the_journal_is_completed() -> None:
    wire = Translator()
    shown(wire, TextLive("hel", "live", 0))
    seen = shown(wire, answer(TextBlock("hello"), message_id="msg_1"), 1)
    assert (seen[0]["content"], seen[0]["offset"], "replay" in seen[0]) == ("lo", 3, False)
    assert seen[0]["message_id"] == "msg_1"
    shown(wire, TextLive("other", "live 2", 0))
    again = shown(wire, answer(TextBlock("hello"), message_id="msg_2"), 2)
    assert (again[0]["content"], again[0]["replay"]) == ("hello", True)


def test_a_prediction_that_failed_keeps_the_id_that_viewers_know() -> None:
    wire = Translator(cursor=1)
    shown(wire, TextLive("x", "live", 0))
    shown(wire, ModeChange({"enable_plan_mode": True}, "user"), 2)
    assert shown(wire, answer(TextBlock("x")), 3)[-1]["message_id"] == "msg_2"
    replay = Translator(cursor=2, replay=True, aliases=wire.aliases)
    assert shown(replay, answer(TextBlock("x"), message_id="msg_3"), 3)[0]["message_id"] == "msg_2"


def test_results_are_cut_and_lists_follow_them() -> None:
    long = shown(Translator(), ToolOutcome("c", "bash", "ok", "x" * 2001), 1)[0]
    assert long["result"] == "x" * 2000 + "..."
    assert long["truncated"] is True
    exact = shown(Translator(), ToolOutcome("c", "bash", "ok", "x" * 2000), 1)[0]
    assert (exact["result"], exact["truncated"]) == ("x" * 2000, False)
    todos = ToolOutcome("c", "todo_write", "ok", "done", {"todos": [{"content": "a"}]})
    assert [e["type"] for e in shown(Translator(), todos, 1)] == ["tool_result", "todo_update"]
    tasks = ToolOutcome("c", "task_update", "ok", "done", {"tasks": [{"id": 1}]})
    assert [e["type"] for e in shown(Translator(), tasks, 1)] == ["tool_result", "task_update"]


def test_questions_and_answers_by_kind() -> None:
    wire = Translator()
    tools = ({"name": "bash", "input": {"command": "ls"}, "id": "c1"},)
    asked = shown(wire, ApprovalRequest("r_1", "approval", ("c1",), tools, expires_at="2030"), 1)
    assert asked[0]["tools"] == list(tools)
    assert (asked[0]["request_id"], asked[0]["expires_at"]) == ("r_1", "2030")
    assert [e["type"] for e in shown(wire, TurnMark("waiting", "approval"))] == []
    late = shown(wire, TurnMark("waiting", "approval", "approval_timeout", usage=Usage()))
    assert [e["type"] for e in late] == ["done"] and late[0]["waiting_for"] == "approval"
    said = shown(wire, ApprovalAnswer("r_1", "auto_approve"), 2)[0]
    assert (said["decision"], said["tools"]) == ("auto_approved", list(tools))
    shown(wire, ApprovalRequest("r_2", "plan", text="do it"), 3)
    assert shown(wire, ApprovalAnswer("r_2", "approve"), 4)[0]["type"] == "plan_approved"
    shown(wire, ApprovalRequest("r_3", "plan", text="do it"), 5)
    no = shown(wire, ApprovalAnswer("r_3", "reject", feedback="shorter"), 6)[0]
    assert (no["type"], no["feedback"]) == ("plan_rejected", "shorter")
    money = shown(wire, ApprovalRequest("r_4", "budget", text="0.5 of 0.5 USD are spent"), 7)
    assert [e["type"] for e in money] == ["error", "budget_exceeded"]


def test_the_end_of_a_turn() -> None:
    """SV-42."""
    wire = Translator(plan_mode=True)
    shown(wire, answer(TextBlock("x")), 1)
    usage = Usage(input_tokens=9, output_tokens=3, cost=None, subagents=Usage(input_tokens=2))
    closing = Closing([{"name": "a", "path": "a", "size": 1}], truncated=True, changed=1)
    (done,) = shown(
        wire, TurnMark("done", stop_reason="end_turn", snapshot="s_1", usage=usage), 2, closing=closing
    )
    assert done["usage"] == {
        "input_tokens": 9, "output_tokens": 3, "last_input_tokens": 7, "plan_mode": True,
        "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0, "cost": None,
        "subagents": done["usage"]["subagents"],
    }  # fmt: skip
    assert done["usage"]["subagents"]["input_tokens"] == 2
    assert (done["snapshot_id"], done["changed"], done["files_truncated"]) == ("s_1", 1, True)
    failed = shown(
        wire, TurnMark("failed", stop_reason="error", error=RunError("ModelError", "at /srv/x/y.db")), 3
    )
    assert [e["type"] for e in failed] == ["error", "done"]
    assert (failed[0]["code"], failed[0]["message"]) == ("model_error", "at y.db")
    spent = shown(wire, TurnMark("done", stop_reason="token_budget"), 4)
    assert [e.get("code") for e in spent] == ["token_budget", None]
    (stopped,) = shown(wire, TurnMark("interrupted", stop_reason="interrupted"), 5)
    assert stopped["type"] == "interrupted"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (TurnMark("running"), "turn_started"),
        (TurnMark("queued"), "turn_queued"),
        (InputMark("i_1", "t_1", 2, sender={"id": "u", "secret": "s"}, text="hi"), "turn_queued"),
        (Retrying(1, 0.5, "busy"), "retrying"),
        (ModelFallback("a", "b", "busy"), "model_fallback"),
        (ToolProgress("c", "half"), "tool_progress"),
        (ModelSwitch("big", "tool"), "settings"),
        (ModeChange({"model": "x"}, "user"), "settings"),
        (Notice("landing", "2 paths landed"), "landing"),
        (Egress("a.example", 443, "allowed"), "egress"),
        (SandboxTier("copy", "copy", {}), "sandbox_tier"),
    ],
)
def test_added_types_are_for_v2_only(event: Any, kind: str) -> None:
    (frame,) = Translator().frames(Published("t", "t_1", None, event))
    assert frame.v2
    assert json.loads(frame.text)["type"] == kind
    assert kind not in PLAIN_TYPES


@pytest.mark.parametrize(
    "event",
    [
        Lagged(), Injected("inbox", user_text("x")), UserStep(user_text("x"), steer=True), ToolIntent("c", "bash", {}, "read"),
        UsageStep("title", "m", Usage()), Notice("compact", "x"), TurnMark("waiting", "approval"),
    ],
)  # fmt: skip
def test_what_viewers_are_not_told(event: Any) -> None:
    assert shown(Translator(), event) == []


def test_small_plain_events() -> None:
    request = ModelRequest((user_text("hi"),), purpose="title")
    record = json.loads(msgspec.json.encode(request_record(1, request, ModelInfo("p", "m"))))
    [frame] = shown(Translator(), Trace(record))
    assert frame == {key: value for key, value in record.items() if key != "purpose"} | {
        "cursor": 0,
        "turn_id": "t_1",
    }
    run = {"task_id": "b1", "status": "done", "command": "c" * 100, "result": "r" * 600}
    told = shown(Translator(), BackgroundResult((run,)))[0]["notifications"][0]
    assert (len(told["command"]), len(told["result"])) == (80, 500)
    assert shown(Translator(), Compaction("a", "b", "s", "auto"), 1)[0]["type"] == "compact"
    assert shown(Translator(), ModeChange({"enable_teams": 1}, "user"), 1)[0]["enabled"] is True


def test_undecodable_text_is_shown_not_raised() -> None:
    assert "\\udc80" not in shown(Translator(), TextLive("a\udc80", "m", 0))[0]["content"]
    assert shown(Translator(), ToolOutcome("c", "bash", "ok", "a\udc80b"), 1)[0]["result"]


def below(thread: str, event: Any) -> Published:
    return Published(thread, "t_c", None, event)


def test_questions_of_subagents_are_theirs_until_they_are_answered_or_the_subagent_ends() -> None:
    """SV-39, SV-41: the end of the conversation's own turn takes back its own questions only."""
    wire = Translator(thread_id="t")
    for name in ("a", "b"):
        request = ApprovalRequest(f"r_{name}", "approval", ("c",), ({"name": "bash", "id": "c"},))
        (frame,) = wire.frames(below(f"t.sub_{name}", request))
        assert json.loads(frame.text)["subagent_id"] == f"t.sub_{name}"
    shown(wire, ApprovalRequest("r_own", "approval", ("d",), ({"name": "ls", "id": "d"},)))
    assert [json.loads(frame.text)["request_id"] for frame in wire.pending()] == ["r_a", "r_b", "r_own"]
    assert "subagent_id" in wire.pending()[0].text and "subagent_id" not in wire.pending()[2].text
    (answered,) = wire.frames(below("t.sub_a", ApprovalAnswer("r_a", "deny")))
    told = json.loads(answered.text)
    assert (told["decision"], told["subagent_id"], told["tools"][0]["name"]) == ("denied", "t.sub_a", "bash")
    assert wire.plan_mode is False
    shown(wire, TurnMark("cancelled", stop_reason="cancelled"))
    assert list(wire.requests) == ["r_b"]
    end = SubagentEnd("t.sub_b", "", "general", Usage(), "subagent_1", "t", "failed", 0, 1.0)
    kinds = [(event["type"], event.get("decision")) for event in shown(wire, end)]
    assert kinds == [("tool_approval_result", "timeout"), ("subagent_end", None)]
    assert not wire.requests and not wire.asked_by


def test_a_question_in_the_subagents_own_conversation_is_an_ordinary_one() -> None:
    wire = Translator(thread_id="t.sub_a")
    (frame,) = wire.frames(below("t.sub_a", ApprovalRequest("r", "approval", ("c",), ())))
    assert "subagent_id" not in json.loads(frame.text) and not wire.asked_by


def test_an_input_is_told_to_whoever_comes_between_its_acceptance_and_its_turn() -> None:
    """SV-47, UI-86: it is in no record yet, so that no replay has it."""
    wire = Translator(cursor=4)
    (told,) = shown(wire, InputMark("i_1", "t_1", text="Do it"))
    (waiting,) = [json.loads(frame.text) for frame in wire.waiting()]
    assert waiting == told and told["content"] == "Do it"
    shown(wire, InputMark("i_2", "t_2", text="later"))
    shown(wire, InputMark("i_2", "t_2", state="cancelled"))
    shown(wire, TurnMark("running"), 5)
    assert wire.waiting() == []
    assert shown(wire, UserStep(user_text("Do it")), 6) == []


def test_an_input_nobody_here_was_told_of_is_told_when_its_record_comes() -> None:
    """SV-47, UI-86: a room that was made after the input was accepted."""
    wire = Translator(cursor=4)
    shown(wire, TurnMark("running"), 5)
    (told,) = shown(wire, UserStep(user_text("Do it")), 6)
    assert (told["type"], told["content"], told["turn_id"]) == ("turn_queued", "Do it", "t_1")
    assert shown(wire, UserStep(user_text("steered"), steer=True), 7) == []
