"""A scripted model server and agents of the library that have subagents."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import NAME, settings_for
from support.fake_models import FakeModels

from bowerbird import Agent
from bowerbird.models import Model, open_model


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
def project(tmp_path: Path) -> Path:
    """A directory with a file of twenty lines."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    return root


@pytest.fixture
def make(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make agents with subagents, closed at the end: `make(workdir, **parameters)`."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    made: list[Agent] = []

    def agent(workdir: Path | None = None, **parameters: Any) -> Agent:
        given = {"max_subagent_depth": 1, "language_model": model, **parameters}
        made.append(Agent(workdir=workdir, **given))
        return made[-1]

    yield agent
    for each in made:
        each.close()
