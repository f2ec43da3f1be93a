"""Clients that are closed whatever a test does, and a scripted model server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from support.fake_models import FakeModels

from bowerbird.protocols.mcp_client import McpClient, ServerSpec

Connect = Callable[..., Awaitable[McpClient]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make a client of the given servers; nothing is started yet."""
    async with AsyncExitStack() as stack:

        async def make(*specs: ServerSpec) -> McpClient:
            client = McpClient(specs)
            stack.push_async_callback(client.aclose)
            return client

        yield make


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server
