"""Two real servers and the command work on one data directory in turns (issue 10, point 5; reliability 6, server 3).

Half of the messages failed with `BranchBusy`: the lock of a branch was kept for five minutes after its last use.
`benchmarks/shared_data.py` does the same 300 times.
"""

import asyncio
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import patience
from support.shared_data import Shared

pytestmark = pytest.mark.timeout(patience(36))


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nobody_is_refused_and_every_line_is_there_once(
    tmp_path: Path, fake: FakeModels, database: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("postgres") if database == "postgresql" else None
    url = asyncio.run(server.database()) if server is not None else ""
    try:
        with Shared(tmp_path / "place", fake, url) as shared:
            shared.run(6, 1)
        assert shared.refused == []
        assert sum(shared.done.values()) == 6
    finally:
        if server is not None:
            asyncio.run(server.give_back(url))
