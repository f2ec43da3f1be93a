"""What is sent of a history (AG-47, AG-54 … AG-57): pure, so mostly laws."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.agent.context.compaction import (
    estimate_tokens,
    plan_summary,
    sent_view,
    standing_messages,
    summary_text,
)
from bowerbird.agent.context.history import EFFECT_UNKNOWN, NOT_EXECUTED, History, HistoryBuilder
from bowerbird.core.events import (
    AssistantStep,
    Compaction,
    Injected,
    RunEvent,
    ToolIntent,
    ToolOutcome,
    UserStep,
)
from bowerbird.core.messages import Message, ToolUseBlock, result_text, user_text
from bowerbird.core.usage import Usage

LONG = "x" * 200


def asks(*names: str, at: int = 0) -> AssistantStep:
    uses = tuple(ToolUseBlock(f"c{at}_{n}", name, {}) for n, name in enumerate(names))
    return AssistantStep(Message("assistant", uses), "tool_use", "m", Usage())


def told(step: AssistantStep, text: str = LONG) -> list[ToolOutcome]:
    return [ToolOutcome(use.id, use.name, "ok", text) for use in step.message.tool_uses]


def rounds(count: int, names: tuple[str, ...] = ("read_file",), text: str = LONG) -> list[RunEvent]:
    events: list[RunEvent] = [UserStep(user_text("go"))]
    for at in range(count):
        step = asks(*names, at=at)
        events += [step, *told(step, text)]
    return events


def shown(history: History) -> list[str]:
    return [result_text(r) for m in sent_view(history).messages for r in m.tool_results]


def test_without_a_room_sixteen_results_are_sent_with_the_last_three_whole() -> None:
    """AG-55; AG acceptance 4."""
    history = History.of(rounds(16), room=0)
    assert [text.startswith("[Previous: used read_file.") for text in shown(history)] == [True] * 13 + [
        False
    ] * 3
    assert shown(history)[13:] == [LONG] * 3
    assert [result_text(r) for m in history.messages for r in m.tool_results] == [LONG] * 16


def test_a_parallel_batch_is_seen_whole_once() -> None:
    """AG-55; AG acceptance 4."""
    events = rounds(1, ("read_file",) * 5)
    assert shown(History.of(events, room=0)) == [LONG] * 5
    step = asks("ls", at=9)
    assert shown(History.of([*events, step, *told(step, "short")], room=0)).count(LONG) == 2


def test_short_results_and_skills_stay() -> None:
    assert shown(History.of(rounds(6, text="short"), room=0)) == ["short"] * 6
    assert shown(History.of(rounds(6, ("read_skill",)), room=0)) == [LONG] * 6
    assert shown(History.of(rounds(6, ("read_skill",)), room=300)) == [LONG] * 6


def test_results_are_whole_until_the_room_is_full_and_then_cleared_in_one_large_step() -> None:
    room = 20 * len(LONG)
    counts = []
    for count in range(1, 24):
        texts = shown(History.of(rounds(count), room=room))
        counts.append(sum(text != LONG for text in texts))
        assert texts[-3:] == [LONG] * min(count, 3)
    steps = [later - earlier for earlier, later in itertools.pairwise(counts) if later != earlier]
    assert counts[17] == 0 and len(steps) == 1 and steps[0] > 8


def test_large_results_go_before_small_ones_of_the_same_age() -> None:
    step = asks("ls", "read_file", at=0)
    events: list[RunEvent] = [UserStep(user_text("go")), step]
    events += [ToolOutcome("c0_0", "ls", "ok", LONG), ToolOutcome("c0_1", "read_file", "ok", "y" * 4_000)]
    later = [asks("ls", at=at) for at in range(1, 5)]
    for one in later:
        events += [one, *told(one)]
    texts = shown(History.of(events, room=4_500))
    assert texts[0] == LONG and texts[1].startswith("[Previous: used read_file.")


NAMES = st.sampled_from(["read_file", "read_skill", "ls"])
BATCHES = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=5), st.integers(0, 250), st.booleans()), max_size=12
)


def events_of(batches: list[tuple[list[str], int, bool]]) -> list[RunEvent]:
    events: list[RunEvent] = [UserStep(user_text("go"))]
    for at, (names, size, says) in enumerate(batches):
        step = asks(*names, at=at)
        events += [step, *told(step, "y" * size)]
        if says:
            events.append(UserStep(user_text(f"and {at}")))
    return events


@given(BATCHES, st.sampled_from([0, 500, 1_000, 2_000]))
def test_once_replaced_always_replaced(batches: list[tuple[list[str], int, bool]], room: int) -> None:
    """AG-55: so the cached prefix of a provider stays good."""
    events = events_of(batches)
    replaced: dict[str, str] = {}
    for end in range(1, len(events) + 1):
        history = History.of(events[:end], room=room)
        if history.pending_calls:
            continue  # nothing is sent before all results of a message are there
        now = {r.tool_use_id: result_text(r) for m in sent_view(history).messages for r in m.tool_results}
        for call, text in replaced.items():
            assert now[call] == text
        replaced |= {call: text for call, text in now.items() if text.startswith("[Previous: used ")}


@given(BATCHES, st.sampled_from([0, 500, 1_000]))
def test_a_history_that_grew_sends_what_one_read_anew_sends(
    batches: list[tuple[list[str], int, bool]], room: int
) -> None:
    """Else the beginning would change when a process ends, and with each turn."""
    events = events_of(batches)
    grown = HistoryBuilder(History(room=room))
    between = HistoryBuilder()  # as a session keeps it, whatever room the next turn has
    for end, event in enumerate(events, 1):
        grown.add(event)
        between.add(event)
        anew = sent_view(History.of(events[:end], room=room)).messages
        assert list(sent_view(grown.build()).messages) == list(anew)
        assert list(sent_view(between.build().within(room)).messages) == list(anew)


@given(BATCHES, st.integers(0, 60))
def test_every_call_has_exactly_one_result_directly_after_it(
    batches: list[tuple[list[str], int, bool]], cut: int
) -> None:
    """SE-11, AG-47: whatever is missing."""
    history = History.of(events_of(batches)[: cut or None])
    messages = sent_view(history).messages
    for at, message in enumerate(messages):
        if message.tool_uses:
            assert [u.id for u in message.tool_uses] == [r.tool_use_id for r in messages[at + 1].tool_results]
        if message.tool_results:
            assert messages[at - 1].tool_uses


def test_orphans_say_whether_they_were_started() -> None:
    """AG-47."""
    step = asks("bash", "write_file")
    started = ToolIntent("c0_0", "bash", {}, "branch")
    history = History.of([UserStep(user_text("go")), step, started, UserStep(user_text("well?"))])
    assert shown(history) == [EFFECT_UNKNOWN, NOT_EXECUTED]


def test_results_without_a_call_are_left_out() -> None:
    """AG-47."""
    stray = history_message_with_result("nobody")
    assert sent_view(History((user_text("hi"), stray))).messages[-1].text == "hi"


def history_message_with_result(call: str) -> Message:
    from bowerbird.core.messages import ToolResultBlock

    return Message("user", (ToolResultBlock(call, "late"),))


def test_unsent_messages_are_kept_but_not_sent() -> None:
    """MO-32."""
    partial = Message("assistant", ())
    said = AssistantStep(Message("assistant", user_text("half").content), "partial", "m", Usage())
    history = History.of([UserStep(user_text("q")), said], unsent=[said.message.id])
    assert [m.text for m in history.messages] == ["q", "half"]
    assert [m.text for m in sent_view(history).messages] == ["q"]
    assert partial.content == ()


def test_the_history_of_a_journal_equals_that_of_the_run() -> None:
    """Result messages have ids derived from the message that asked."""
    events = rounds(3, ("read_file", "ls"))
    mixed = [events[0], events[1], events[3], events[2], *events[4:]]
    assert [m.id for m in History.of(events).messages] == [m.id for m in History.of(mixed).messages]
    assert History.of(events).messages[2].tool_results == History.of(mixed).messages[2].tool_results


def test_cache_marks_are_the_last_shortened_result_and_the_newest_message() -> None:
    """MO-54."""
    view = sent_view(History.of(rounds(6), room=0))
    last_short = max(
        i for i, m in enumerate(view.messages) for r in m.tool_results if result_text(r).startswith("[Prev")
    )
    assert view.cache_marks == (last_short, len(view.messages) - 1)


# ---------------------------------------------------------------- summaries


@given(BATCHES, st.integers(1, 2_000))
def test_a_summary_never_divides_call_and_result(
    batches: list[tuple[list[str], int, bool]], window: int
) -> None:
    """AG-47, AG-56: any number of messages."""
    history = History.of(events_of(batches))
    plan = plan_summary(history, window)
    if plan is None:
        return
    assert (*plan.old, *plan.kept) == history.messages
    assert plan.old
    if plan.kept:
        assert not plan.kept[0].tool_results
    made = Compaction(plan.old[0].id, plan.old[-1].id, "short", "auto")
    after = History(history.messages, (made,))
    assert [m.id for m in standing_messages(after)][1:] == [m.id for m in plan.kept]
    assert sent_view(after).messages[0].text == "short"


def test_the_users_last_message_is_kept_verbatim_and_injected_ones_are_not_taken_for_it() -> None:
    """AG-56."""
    events = [
        UserStep(user_text("the real question")),
        *rounds(3, text="z" * 4_000)[1:],
        Injected("runtime", user_text("a corrective message")),
    ]
    plan = plan_summary(History.of(events), 400)
    assert plan is not None and plan.request is not None and plan.request.text == "the real question"
    text = summary_text("done this", plan, ".transcripts/t.jsonl", {"Changed files": "a.py", "Plan": ""})
    for part in ("the real question", ".transcripts/t.jsonl", "## Changed files\na.py", "done this"):
        assert part in text
    assert "## Plan" not in text


def test_a_second_summary_stands_for_the_first_and_what_followed() -> None:
    history = History.of(rounds(4))
    ids = [m.id for m in history.messages]
    first = Compaction(ids[0], ids[2], "first", "auto")
    second = Compaction(ids[0], ids[6], "second", "auto")
    after = History(history.messages, (first, second))
    assert standing_messages(after)[0].text == "second"
    assert len(standing_messages(after)) == len(ids) - 6


def test_the_estimate_grows_with_the_text() -> None:
    assert estimate_tokens([user_text("x" * 400)]) == 100
