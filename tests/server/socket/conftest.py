"""A server of one's own for each test, with its scripted model."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture
async def server(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake) as opened:
        yield opened
