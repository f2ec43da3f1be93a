"""A scripted model server, a model that speaks to it, and turns collected event by event."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import NAME, Told, settings_for
from support.fake_models import FakeModels

from bowerbird.agent.agent import Agent
from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.messages import user_text
from bowerbird.models import Model, open_model
from bowerbird.tools import Toolset


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture
async def model(fake: FakeModels) -> AsyncIterator[Model]:
    opened = open_model(NAME, settings_for(fake))
    yield opened
    await opened.aclose()


@pytest.fixture
def turn(model: Model) -> Callable[..., Any]:
    """Run one turn to its end: `await turn("hello", tools=[...], limits=...)`."""

    async def run(text: str | None = "hello", *, tools: Any = (), on: Any = None, **options: Any) -> Told:
        told = Told()
        given = {"model": model, "new": (user_text(text),) if text is not None else (), **options}
        run = TurnRun(tools=tools if isinstance(tools, Toolset) else Toolset(tools), **given)
        async with aclosing(run_turn(run)) as events:
            async for event in events:
                told.events.append(event)
                if on is not None:
                    on(event)
        return told

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with two files."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("alpha\n")
    (root / "b.txt").write_text("beta\n")
    return root


@pytest.fixture
def make(model: Model) -> Iterator[Any]:
    """Make agents that are closed at the end: `make(workdir, **parameters)`."""
    made: list[Agent] = []

    def agent(workdir: Path | None = None, **parameters: Any) -> Agent:
        made.append(Agent(workdir=workdir, language_model=model, **parameters))
        return made[-1]

    yield agent
    for each in made:
        each.close()
