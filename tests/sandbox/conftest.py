"""Fixtures of the sandbox's tests: one desk per tier and file for hostile commands, so that what one leaves
behind would harm the next.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from support.abuse import TIERS, Desk, Host, desk_of, host_of

FILES = {"a.txt": "of the workspace\n", "dir/inner.txt": "inner\n", "bin/tool": "#!/bin/sh\necho tool\n"}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host with secrets."""
    with host_of(tmp_path_factory.mktemp("host")) as host:
        yield host


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TIERS)
async def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Desk]:
    """A branch with its sandbox, one per tier for all cases of a file."""
    async with desk_of(tmp_path_factory.mktemp("desk"), request.param, FILES) as opened:
        yield opened
