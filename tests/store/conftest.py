"""A store of one's own for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.stores import opened

from bowerbird.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path) as opened_store:
        yield opened_store
