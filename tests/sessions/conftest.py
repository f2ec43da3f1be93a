"""A service of one's own for each test, with its scripted model, on both databases."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.databases import database_url, postgres, postgres_url
from support.fake_models import FakeModels
from support.sessions import Place, place

__all__ = ("database_url", "fake", "home", "postgres", "postgres_url")


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture
async def home(tmp_path: Path, fake: FakeModels, database_url: str) -> AsyncIterator[Place]:
    async with place(tmp_path, fake, url=database_url) as opened_place:
        yield opened_place
