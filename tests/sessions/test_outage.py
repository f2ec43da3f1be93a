"""PostgreSQL goes away in the middle of a turn, and comes back (SE-58)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.postgres import PostgresServer, postgres_server
from support.sessions import changed, gapless, place, writes


@pytest.fixture
def restless(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that the test may stop; the shared one says whether there is PostgreSQL at all."""
    with postgres_server() as server:
        yield server


async def test_a_turn_pauses_while_the_server_is_away_and_goes_on(
    tmp_path: Path, fake: FakeModels, restless: PostgresServer
) -> None:
    """SE-58: no failure and nothing twice, although the lease's time ran out meanwhile."""
    steps = [writes(f"{number}.txt", "x") for number in range(4)]
    fake.script(*steps, {"text": "done"})
    url = await restless.database()
    async with place(tmp_path, fake, url=url, settings=changed(lease_s=1, heartbeat_s=0.3)) as home:
        thread = await home.session()
        receipt = await home.service.submit(thread, "go")
        await fake.wait_requests(1)
        await asyncio.to_thread(restless.stop, crash=True)
        late = asyncio.create_task(home.service.submit(thread, "and then"))
        await asyncio.sleep(1.5)  # longer than the lease
        assert not late.done()
        await asyncio.to_thread(restless.start)
        async with asyncio.timeout(HANG_S):
            turn = await home.service.wait(receipt.turn_id)
            second = await home.service.wait((await late).turn_id)
        assert (turn.state, second.state) == ("done", "done")
        records = await home.service.history(thread)
        assert gapless(records)
        assert [record.type for record in records].count("tool_outcome") == 4
