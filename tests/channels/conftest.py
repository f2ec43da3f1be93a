"""A chat of one's own for each test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.chats import ChatService, Chatting, chatting
from support.databases import database_url, postgres, postgres_url
from support.fake_models import FakeModels

__all__ = ("chat", "database_url", "fake", "postgres", "postgres_url", "service")


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture
def service() -> ChatService:
    return ChatService()


@pytest.fixture
async def chat(tmp_path: Path, fake: FakeModels, service: ChatService) -> AsyncIterator[Chatting]:
    async with chatting(tmp_path, fake, service) as opened:
        yield opened
