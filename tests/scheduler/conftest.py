"""Schedules of one's own for each test, on both databases."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.databases import database_url, postgres, postgres_url
from support.fake_models import FakeModels
from support.schedules import Scheduled, scheduled

__all__ = ("database_url", "fake", "home", "postgres", "postgres_url")


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        server.script({"text": "Said."})
        yield server


@pytest.fixture
async def home(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Scheduled]:
    async with scheduled(tmp_path, fake) as opened:
        yield opened
