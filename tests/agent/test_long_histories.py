"""What a history costs as it grows: nothing in a turn may take more than one pass over it (findings: long chats)."""

import time
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.agent.compaction import estimate_tokens, plan_summary
from bowerbird.agent.history import History
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)

KINDS = st.sampled_from(["user", "assistant", "results"])


def a_message(kind: str, size: int) -> Message:
    text = "x" * size
    if kind == "results":
        return Message("user", (ToolResultBlock("c", text),))
    return Message("user" if kind == "user" else "assistant", (TextBlock(text),))


def least(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest of five runs."""
    times: list[float] = []
    for _ in range(5):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


@given(st.lists(st.tuples(KINDS, st.integers(0, 400)), min_size=2, max_size=30), st.integers(0, 4_000))
def test_a_summary_keeps_as_many_of_the_newest_messages_as_fit(
    said: list[tuple[str, int]], window: int
) -> None:
    """AG-56: the plan of one pass is the plan of looking at every possible cut."""
    messages = tuple(a_message(kind, size) for kind, size in said)
    cuts = [i for i in range(1, len(messages) + 1) if i == len(messages) or not messages[i].tool_results]
    expected = min(i for i in cuts if estimate_tokens(messages[i:]) <= window)
    plan = plan_summary(History(messages), window, share=1.0)
    assert plan is not None
    question = messages[-1].role == "user" and not messages[-1].tool_results
    assert len(plan.old) == expected - (expected == len(messages) and question)
    assert plan.old + plan.kept == messages


def test_the_plan_of_a_summary_grows_with_the_history_and_not_with_its_square() -> None:
    """Reliability 2: 8,000 messages took 25 s of the event loop, 20,000 more than two minutes."""

    def planning(count: int) -> float:
        return least(
            lambda: plan_summary(History(tuple(user_text(f"word {i}") for i in range(count))), 10**7)
        )

    small, large = planning(2_000), planning(16_000)
    assert large < small * 8 * 2.5


def test_a_text_result_is_estimated_without_looking_at_its_characters() -> None:
    """Reliability 3: 100 KB as one text cost 9.5 ms of the event loop, as blocks 0.01 ms."""
    short = [Message("user", (ToolResultBlock(f"c{i}", "x"),)) for i in range(2_000)]
    long = [Message("user", (ToolResultBlock(f"c{i}", "x" * 5_000),)) for i in range(2_000)]
    few = least(lambda: estimate_tokens([Message("user", m.content) for m in short]))
    many = least(lambda: estimate_tokens([Message("user", m.content) for m in long]))
    assert many < few * 3
    assert estimate_tokens(long) == 2_000 * 5_000 // 4


def test_every_kind_of_content_counts() -> None:
    image = ImageBlock("image/png", BlobSource("sha256:1"))
    assert Message("user", (image,)).size == 6_000
    assert Message("user", (ToolResultBlock("c", [TextBlock("abc"), image]),)).size == 6_003
    assert Message("assistant", (ToolUseBlock("c", "ls", {"path": "/"}),)).size == len('ls{"path":"/"}')
