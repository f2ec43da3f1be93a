"""One stage for the tests of a file: sandboxes cost more than what runs in them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.agent_programs import Stage, stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A stage of the overlay tier."""
    async with stage(tmp_path_factory.mktemp("stage")) as opened:
        yield opened
