"""A store of one's own for each test, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.databases import database_url, postgres, postgres_url
from support.stores import opened

from bowerbird.store import Store

__all__ = ("database_url", "postgres", "postgres_url", "store")


@pytest.fixture
async def store(tmp_path: Path, database_url: str) -> AsyncIterator[Store]:
    async with opened(tmp_path, url=database_url) as opened_store:
        yield opened_store
