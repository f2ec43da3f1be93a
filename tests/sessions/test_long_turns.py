"""What is sent of a long turn, and what is kept of it (AG acceptance 4)."""

import json
from pathlib import Path

import pytest
from support.agent_turns import call, result_of, results
from support.fake_models import FakeModels
from support.sessions import place

from bowerbird.agent.limits import Limits
from bowerbird.tools import Tool

LENGTH = 200


async def say(number: int) -> str:
    """Say something long.

    Args:
        number: Which one.
    """
    return f"{number:03}".ljust(LENGTH, "x")


@pytest.mark.parametrize("keep", [0, 0.6])
async def test_old_results_are_shortened_where_they_are_sent_and_nowhere_else(
    tmp_path: Path, fake: FakeModels, keep: float
) -> None:
    """By the old rule each request has the last three whole, else all; the journal keeps every byte."""
    fake.script(*({"tools": [call("say", number=n)]} for n in range(16)), {"text": "done"})
    limits = Limits(max_iterations=50, keep_results=keep)
    async with place(tmp_path, fake, tools=(Tool(say, effect="read"),), limits=limits) as home:
        thread = await home.session()
        assert (await home.ask(thread)).state == "done"
        kept = [body["content"] for body in await home.bodies(thread, "tool_outcome")]
    for number, request in enumerate(fake.requests):
        shown = [result_of(block) for block in results(request)]
        assert [len(text) == LENGTH for text in shown] == [
            bool(keep) or n >= number - 3 for n in range(number)
        ]
        cleared = [] if keep else shown[: max(number - 3, 0)]
        assert all(text.startswith("[Previous: used say. ") for text in cleared)
    assert len(fake.requests) == 17 and len(kept) == 16
    assert all(f"{n:03}".ljust(LENGTH, "x") in json.dumps(content) for n, content in enumerate(kept))
