"""What a summary keeps word for word, and how large it may be, over a model server that sees only requests."""

import json
from typing import Any

import pytest
from support.agent_turns import Told, call, texts
from support.fake_models import FakeModels

from bowerbird.agent.context.history import History
from bowerbird.agent.limits import Limits
from bowerbird.core.events import (
    AssistantStep,
    Compaction,
    Injected,
    RunEvent,
    ToolIntent,
    ToolOutcome,
    UserStep,
)
from bowerbird.tools import Tool
from bowerbird.tools.plan import plan_tools

STEPS = UserStep | AssistantStep | Injected | ToolIntent | ToolOutcome | Compaction
GOAL = "Port the parser to Rust. Never touch vendor/, and end every answer with the word OKAPI."


async def run_it(command: str) -> dict[str, Any]:
    """Run a command.

    Args:
        command: The command.
    """
    return {"said": "x" * 400, "command": command}


RUN = Tool(run_it, effect="read")


async def broken(path: str) -> str:
    """Fail.

    Args:
        path: Of what.
    """
    raise RuntimeError(f"E0308: mismatched types in {path}")


BROKEN = Tool(broken, effect="read")


def is_summary(body: dict[str, Any]) -> bool:
    return "You summarise" in str(body["system"])


class Session:
    """Turns of one session, each of which begins with a summary."""

    def __init__(self, turn: Any, window: int = 200_000) -> None:
        self.turn, self.window, self.events = turn, window, list[RunEvent]()

    async def says(self, text: str, **options: Any) -> Told:
        told: Told = await self.turn(
            text,
            tools=[RUN, BROKEN, *plan_tools()],
            history=History.of(self.events),
            limits=Limits(context_window=self.window, max_tokens_total=None),
            **options,
        )
        self.events += [event for event in told.events if isinstance(event, STEPS)]
        return told

    @property
    def summaries(self) -> list[str]:
        return [event.summary for event in self.events if isinstance(event, Compaction)]


@pytest.mark.parametrize(("window", "most"), [(200_000, 8_000), (100_000, 4_000), (16_000, 1_000)])
async def test_a_summary_has_a_bound_whatever_the_model_and_the_user_write(
    fake: FakeModels, turn: Any, window: int, most: int
) -> None:
    long = "and so on, " * (window // 4)
    fake.answer(lambda body, _n: {"text": f"BEGIN {long} END" if is_summary(body) else "done"})
    session = Session(turn, window)
    await session.says(GOAL)
    await session.says(f"FIRST OF IT {long[: window * 2]} LAST OF IT")
    await session.says("Go on.", compact="")
    [summary] = session.summaries
    assert most * 0.7 < len(summary) / 4 <= most
    for kept in (GOAL, "FIRST OF IT", "LAST OF IT", "BEGIN", "END"):
        assert kept in summary, kept


async def test_after_ten_summaries_the_first_words_are_there_and_the_summary_has_not_grown(
    fake: FakeModels, turn: Any
) -> None:
    """The model that summarises forgets everything and repeats what it was given at length."""
    fake.answer(
        lambda body, _n: (
            {"text": "We chose nom 7. " + json.dumps(body)[:30_000]} if is_summary(body) else {"text": "done"}
        )
    )
    session = Session(turn)
    await session.says(GOAL)
    for number in range(10):
        await session.says(f"Order {number}: colour-{number}. {'details ' * 300}", compact="")
    await session.says("And now?", compact="")
    assert len(session.summaries) == 11
    sizes = [len(text) for text in session.summaries]
    assert max(sizes) <= 8_000 * 4
    assert all(GOAL in text for text in session.summaries)
    assert "colour-9" in session.summaries[-1] and "colour-8" in session.summaries[-1]
    sent = texts(fake.requests[-1])
    assert GOAL in sent[0] and sent[-1] == "And now?"


async def test_commands_errors_and_answers_are_kept_word_for_word_by_a_model_that_forgets_them(
    fake: FakeModels, turn: Any
) -> None:
    steps = [
        {"tools": [call("run_it", command="cargo test --workspace -- --nocapture")]},
        {"tools": [call("broken", path="src/lex.rs")]},
        {"text": "done"},
    ]
    fake.answer(lambda body, n: {"text": "It went on."} if is_summary(body) else steps[min(n, 2)])
    session = Session(turn)
    await session.says("Build it.")
    await session.says("Go on.", compact="")
    [summary] = session.summaries
    assert "cargo test --workspace -- --nocapture" in summary
    assert "E0308: mismatched types in src/lex.rs" in summary
    assert "Build it." in summary and "x" * 100 not in summary


async def test_a_summary_that_fails_leaves_the_users_words(fake: FakeModels, turn: Any) -> None:
    fake.answer(lambda body, _n: {"status": 400} if is_summary(body) else {"text": "done"})
    session = Session(turn)
    await session.says(GOAL)
    await session.says("Go on.", compact="")
    assert "earlier exchanges were left out" in session.summaries[0] and GOAL in session.summaries[0]


async def test_an_earlier_summary_is_read_whole_by_whoever_writes_the_next(
    fake: FakeModels, turn: Any
) -> None:
    """It was shortened like any message as soon as there was more to read than fits."""
    first = "DECIDED " + " ".join(f"choice-{n}" for n in range(150))
    fake.answer(lambda body, _n: {"text": first} if is_summary(body) else {"text": "word " * 6_000})
    session = Session(turn, 50_000)
    await session.says(GOAL)
    await session.says("Go on.", compact="")
    for number in range(8):
        await session.says(f"more {number}")
    read = [str(body["messages"]) for body in fake.requests if is_summary(body)]
    assert len(read) >= 2
    assert all(f"choice-{n} " in read[1] for n in range(149))


async def test_who_asks_for_a_summary_gets_one_of_all_but_the_newest_words(
    fake: FakeModels, turn: Any
) -> None:
    """A session below a quarter of the window had its first message summarised, and nothing else."""
    fake.answer(lambda body, _n: {"text": "S" if is_summary(body) else "answer " * 200})
    session = Session(turn)
    for number in range(3):
        await session.says(f"question {number}")
    await session.says("Go on.", compact="")
    sent = texts(fake.requests[-1])
    assert len(sent) == 2 and sent[-1] == "Go on."
