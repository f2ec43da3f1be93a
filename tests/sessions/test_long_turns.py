"""What is sent of a long turn, and what is kept of it (AG acceptance 4)."""

import json
from pathlib import Path

from support.agent_turns import call, result_of, results
from support.fake_models import FakeModels
from support.sessions import place

from bowerbird.tools import Tool

LENGTH = 200


async def say(number: int) -> str:
    """Say something long.

    Args:
        number: Which one.
    """
    return f"{number:03}".ljust(LENGTH, "x")


async def test_old_results_are_shortened_where_they_are_sent_and_nowhere_else(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AG-54, AG-55: each request has the last three whole; the journal keeps every byte."""
    fake.script(*({"tools": [call("say", number=n)]} for n in range(16)), {"text": "done"})
    async with place(tmp_path, fake, tools=(Tool(say, effect="read"),)) as home:
        thread = await home.session()
        assert (await home.ask(thread)).state == "done"
        kept = [body["content"] for body in await home.bodies(thread, "tool_outcome")]
    for number, request in enumerate(fake.requests):
        shown = [result_of(block) for block in results(request)]
        assert [len(text) == LENGTH for text in shown] == [n >= number - 3 for n in range(number)]
        assert all(text == "[Previous: used say]" for text in shown[: max(number - 3, 0)])
    assert len(fake.requests) == 17 and len(kept) == 16
    assert all(f"{n:03}".ljust(LENGTH, "x") in json.dumps(content) for n, content in enumerate(kept))
