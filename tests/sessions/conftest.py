"""A service of one's own for each test, with its scripted model."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.sessions import Place, place


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture
async def home(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Place]:
    async with place(tmp_path, fake) as opened_place:
        yield opened_place
