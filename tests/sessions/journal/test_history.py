"""Records and events, there and back; the history a model is sent (SE-7, 8, 10, 11, MO-32)."""

import json
from typing import Any

import msgspec
import pytest

from bowerbird.agent.context.history import History, closed_calls
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    CallAnswer,
    Compaction,
    Injected,
    ModeChange,
    ModelSwitch,
    StepEvent,
    ToolIntent,
    ToolOutcome,
    UsageStep,
    UserStep,
)
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    user_text,
)
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.events_as_records import MessageSeqs, events_of, to_record
from bowerbird.sessions.journal.history import load
from bowerbird.store.journal.journal import CORRUPT, NewRecord, Record, encode_body

AT = "2026-11-20T09:00:00.123456+00:00"
CALLS = (ToolUseBlock("c1", "read_file", {"path": "a"}), ToolUseBlock("c2", "bash", {"command": "ls"}))
ASKS = AssistantStep(
    Message("assistant", (ThinkingBlock("hm", "sig", "p:m"), TextBlock("Let me look."), *CALLS)),
    "tool_use", "p:m", Usage(input_tokens=10, output_tokens=3, model_calls=1, cost=0.01),
)  # fmt: skip
EVENTS: list[StepEvent] = [
    UserStep(Message("user", (TextBlock("hi"), ImageBlock("image/png", BlobSource("sha256:ab"))))),
    UserStep(user_text("and quick"), steer=True),
    ASKS,
    AssistantStep(
        Message("assistant", (TextBlock("cut"),)), "partial", "p:m", Usage(cost=None), {"c9": "bad"}
    ),
    ToolIntent("c1", "read_file", {"path": "a"}, "read"),
    ToolIntent("c2", "bash", {"command": "ls"}, "branch", "m_1"),
    ToolIntent("c3", "pay", {"sum": 1}, "outside", None, "t:c3"),
    ToolOutcome("c1", "read_file", "ok", "text", ms=12),
    ToolOutcome("c2", "bash", "error", "no", {"error": "no"}, truncated=True, tainted=True, blob="sha256:cd"),
    Injected("background", user_text("ready"), ("n1",)),
    ApprovalRequest("r_1", "approval", ("c2",), ({"name": "bash", "input": {}, "id": "c2"},)),
    ApprovalAnswer("r_1", "deny", "me", "not now"),
    ModelSwitch("expert", "tool"),
    ModeChange({"enable_plan_mode": True}, "tool"),
    ApprovalAnswer(
        "r_2", "approve", calls={"c2": CallAnswer("approve", command="ls -l"), "c3": CallAnswer("deny", "no")}
    ),
]


def numbered(new: list[NewRecord], first: int = 1) -> list[Record]:
    return [
        Record(1, seq, r.turn, r.type, AT, 1, msgspec.json.decode(encode_body(r.body)))
        for seq, r in enumerate(new, first)
    ]


def journal(*events: StepEvent, turn: str = "t_1") -> list[Record]:
    """Records as a driver would have written them."""
    seqs = MessageSeqs()
    new: list[NewRecord] = []
    for event in events:
        record = to_record(event, turn, seqs)
        if record is not None:
            new.append(record)
            seqs.add(event, len(new))
    return numbered(new)


def user_step(text: str) -> UserStep:
    return UserStep(user_text(text))


def said(text: str, stop: str) -> AssistantStep:
    return AssistantStep(Message("assistant", (TextBlock(text),)), stop, "p:m", Usage())


def plain(event: StepEvent | None) -> Any:
    """The event without what a record does not keep: ids and times of messages."""
    data: Any = msgspec.to_builtins(event)
    if "message" in data:
        data["message"] = {"role": data["message"]["role"], "content": data["message"]["content"]}
    return data


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_survives_its_record(event: StepEvent) -> None:
    """SE-7; tool names of outcomes come from the call."""
    records = journal(ASKS, event)
    read = [found for _, found in events_of(records)][-1]
    assert plain(read) == plain(event)


@pytest.mark.parametrize(
    ("event", "keys"),
    [
        (EVENTS[0], ["content", "sender", "steer"]),
        (ASKS, ["content", "stop_reason", "model", "usage"]),
        (EVENTS[4], ["call", "tool", "input", "class", "mark", "key"]),
        (EVENTS[7], ["call", "status", "content", "truncated", "ms", "blob"]),
        (Injected("recovery", user_text("x")), ["source", "content"]),
        (ApprovalRequest("r", "user", ("c",)), ["id", "kind", "calls", "expires_at"]),
        (EVENTS[11], ["id", "decision", "by", "feedback"]),
        (Compaction("a", "b", "s", "auto"), ["from_seq", "to_seq", "summary", "reason", "focus"]),
        (EVENTS[13], ["enable_plan_mode", "by"]),
        (EVENTS[12], ["tier", "by"]),
    ],
)
def test_bodies_have_exactly_the_keys_of_the_chapter(event: StepEvent, keys: list[str]) -> None:
    """SE-7."""
    record = to_record(event, "t_1", MessageSeqs())
    assert record is not None
    assert list(record.body) == keys


def test_ledger_classes_are_those_of_the_chapter() -> None:
    """SE-25, TO-7."""
    found = {
        effect: to_record(ToolIntent("c", "t", {}, effect), "t", MessageSeqs()).body["class"]  # type: ignore[union-attr, arg-type]
        for effect in ("read", "plan", "session", "branch", "outside")
    }
    assert found == {
        "read": "read", "plan": "store", "session": "store", "branch": "branch", "outside": "external",
    }  # fmt: skip


def test_null_fields_of_blocks_are_not_stored() -> None:
    """SE-10."""
    step = AssistantStep(
        Message("assistant", (ThinkingBlock("hm"), TextBlock("x"))), "end_turn", "p:m", Usage()
    )
    record = to_record(step, "t_1", MessageSeqs())
    assert record is not None
    assert json.loads(encode_body(record.body))["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "x"},
    ]


def test_a_usage_step_has_no_record() -> None:
    assert to_record(UsageStep("compact", "p:m", Usage()), "t_1", MessageSeqs()) is None


def test_outcomes_in_any_order_give_one_message_in_call_order() -> None:
    """SE-11."""
    records = journal(
        user_step("go"),
        ASKS,
        ToolOutcome("c2", "bash", "ok", "two"),
        ToolOutcome("c1", "read_file", "ok", "one"),
    )
    history = load(records, "t_1").history
    assert [r.tool_use_id for r in history.messages[-1].tool_results] == ["c1", "c2"]
    assert history.pending_calls == ()


def test_a_missing_result_is_pending_here_and_filled_in_what_is_sent() -> None:
    """SE-11: each tool_use has exactly one result directly after it."""
    records = journal(user_step("go"), ASKS, ToolIntent("c2", "bash", {}, "branch", "m_1"))
    history = load(records, "t_1").history
    assert [use.id for use in history.pending_calls] == ["c1", "c2"]
    sent = closed_calls([*history.messages, user_text("next")], history)
    results = sent[sent.index(history.messages[1]) + 1].tool_results
    assert [(r.tool_use_id, r.is_error) for r in results] == [("c1", True), ("c2", True)]


def test_a_compaction_names_records_and_comes_back_as_messages() -> None:
    """SE-7, SE-8."""
    seqs = MessageSeqs()
    first, results = user_step("old"), ToolOutcome("c2", "bash", "ok", "x")
    new: list[NewRecord] = []
    for event in (first, ASKS, ToolOutcome("c1", "read_file", "ok", "y"), results, user_step("new")):
        new.append(record := to_record(event, "t_1", seqs))  # type: ignore[arg-type]
        assert record is not None
        seqs.add(event, len(new))
    compaction = Compaction(first.message.id, f"{ASKS.message.id}_results", "in short", "auto")
    new.append(record := to_record(compaction, "t_1", seqs))  # type: ignore[arg-type]
    assert record is not None
    assert (record.body["from_seq"], record.body["to_seq"]) == (1, 4)
    history = load(numbered(new), "t_1").history
    assert len(history.messages) == 4  # history keeps everything
    [found] = history.compactions
    ids = [message.id for message in history.messages]
    assert (ids.index(found.from_id), ids.index(found.to_id)) == (0, 2)


def test_unknown_types_newer_versions_and_marks_are_kept_and_not_sent() -> None:
    """SE-7."""
    records = numbered([NewRecord("turn_started", {"n": 1}), NewRecord("from_the_future", {"x": 1})])
    records.append(Record(2, 3, "t_1", "user", AT, 1, {"content": []}))
    assert [event for _, event in events_of(records)] == [None, None, None]
    assert load(records, "t_1").history.messages == ()


def test_a_damaged_record_is_a_note_in_its_place() -> None:
    """SE-59."""
    records = journal(user_step("one"), user_step("two"))
    records.insert(1, Record(1, 9, "t_1", CORRUPT, "", 0, {"reason": "missing", "raw": "", "thread": "x"}))
    records.append(Record(1, 10, "t_1", "assistant", AT, 1, {"content": [{"type": "text"}]}))
    texts = [message.text for message in load(records, "t_1").history.messages]
    assert texts[0] == "one"
    assert "Record 9" in texts[1]
    assert texts[2] == "two"
    assert "Record 10" in texts[3]


def test_a_partial_answer_is_sent_after_a_cancel_and_not_when_a_failed_turn_is_resumed() -> None:
    """MO-32."""
    partial = AssistantStep(Message("assistant", (TextBlock("I was"),)), "partial", "p:m", Usage())
    begun = journal(user_step("go"), partial)

    def ended(state: str) -> list[Record]:
        return [*begun, Record(1, 3, "t_1", "turn_ended", AT, 1, {"state": state})]

    assert load(ended("cancelled"), "t_2").history.unsent == frozenset()
    assert load(ended("failed"), "t_2").history.unsent == frozenset()
    assert load(ended("failed"), "t_1").history.unsent == {"msg_2"}
    resumed = [*ended("failed"), Record(1, 4, "t_1", "tool_outcome", AT, 2, begun[0].body)]
    assert "msg_2" in load(resumed, "t_2").history.unsent


def test_the_state_of_a_turn_is_read_from_its_records() -> None:
    """SE-20, SE-22, AG-62."""
    request = ApprovalRequest("r_1", "approval", ("c2",))
    turn = load(
        journal(
            user_step("go"),
            ASKS,
            ToolIntent("c1", "read_file", {}, "read"),
            ToolOutcome("c1", "read_file", "ok", "x"),
            ModelSwitch("expert", "tool"),
            ModeChange({"enable_plan_mode": True}, "tool"),
            request,
        ),
        "t_1",
    ).turn
    assert [(c.call, c.outcome_seq is not None) for c in turn.calls] == [("c1", True), ("c2", False)]
    assert [r.id for r in turn.open_requests] == ["r_1"]
    assert (turn.tier, turn.changes) == ("expert", {"enable_plan_mode": True})
    assert (turn.used.input_tokens, turn.used.tool_calls) == (10, 1)
    assert not turn.final


@pytest.mark.parametrize(
    ("last", "final"),
    [
        pytest.param(said("42", "end_turn"), True, id="answer"),
        pytest.param(said("4", "partial"), False, id="partial"),
        pytest.param(said("4", "max_tokens"), False, id="cut"),
        pytest.param(said(" ", "end_turn"), False, id="empty"),
        pytest.param(ASKS, False, id="calls"),
        pytest.param(UserStep(user_text("wait"), steer=True), False, id="steer after it"),
    ],
)
def test_a_turn_whose_answer_is_recorded_needs_only_its_end(last: StepEvent, final: bool) -> None:
    """SE-54: killed between the last step and turn_ended, no model is asked again."""
    assert load(journal(user_step("go"), last), "t_1").turn.final is final


def test_the_history_is_the_same_whether_it_was_lived_or_read() -> None:
    """MO-53: ids apart."""
    events: list[StepEvent] = [
        user_step("go"),
        ASKS,
        ToolOutcome("c1", "read_file", "ok", "x"),
        ToolOutcome("c2", "bash", "ok", "y"),
        said("done", "end_turn"),
    ]
    lived, read = History.of(events), load(journal(*events), "t_1").history
    assert [(m.role, m.content) for m in lived.messages] == [(m.role, m.content) for m in read.messages]


def test_an_edited_command_is_still_the_edited_one_after_run_it_again() -> None:
    """UI-71, SE-27: what a person made of a command is not forgotten by their next word about the call."""
    tools = ({"name": "bash", "input": {"command": "ls"}, "id": "c2"},)
    events: list[StepEvent] = [
        ASKS,
        ApprovalRequest("r_1", "approval", ("c2",), tools),
        ApprovalAnswer("r_1", "approve", calls={"c2": CallAnswer("approve", command="ls -l")}),
        ToolIntent("c2", "bash", {"command": "ls -l"}, "outside"),
        ApprovalRequest("r_2", "effect", ("c2",), tools),
        ApprovalAnswer("r_2", "run_again"),
    ]
    records = [record for event in events if (record := to_record(event, "t", MessageSeqs({}))) is not None]
    found = load(numbered(records), "t").turn
    assert found.answers["c2"].decision == "run_again"
    assert found.answers["c2"].calls["c2"].command == "ls -l"
    assert [call.answer for call in found.calls if call.call == "c2"] == ["run_again"]
