"""Money over the whole tree of subagents, and over a restart (SE-42, SE-43, SE acceptance 9)."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agent_turns import call
from support.children import play
from support.fake_models import FakeModels
from support.killed_app import application
from support.patience import HANG_S

from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"
LIMIT_USD = 0.10


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


def spent(directory: Path) -> float:
    """What the database says was spent, read with plain SQL."""
    database = sqlite3.connect(f"file:{directory}/data/agent.db?mode=ro", uri=True)
    try:
        assert database.execute("SELECT count(*) FROM usage WHERE cost IS NULL").fetchone() == (0,)
        return float(database.execute("SELECT coalesce(sum(cost), 0) FROM usage").fetchone()[0])
    finally:
        database.close()


async def test_eight_parallel_subagents_never_spend_more_than_the_limit_and_a_restart_forgets_nothing(
    fake: FakeModels, tmp_path: Path
) -> None:
    use = {"input": 3_000, "output": 200}
    work = {"tools": [{"name": "ls", "input": {}}], "usage": use, "ttft_s": 0.02}
    play(fake, {
        "small": [work, work, work, {"text": "ok", "usage": use}],
        "lead": [
            {"tools": [call("spawn_subagents", tasks=["small"] * 8)], "usage": use},
            {"tools": [call("spawn_subagents", tasks=["small"] * 8)], "usage": use},
            work, work, work, work, {"text": "done", "usage": use},
        ],
    })  # fmt: skip
    flags = {
        "provider.api_key": "k", "provider.base_url": fake.anthropic_url, "sandbox.tier": "none",
        "budgets.session_usd": LIMIT_USD, "agent.max_output_tokens": 1_000, "approval.timeout_s": 0.2,
    }  # fmt: skip
    async with application(tmp_path, flags, MODEL) as opened:
        made = await opened.sessions.create(NewSession(workspace=str(tmp_path / "project")))
        await opened.drive(made.thread_id)
        receipt = await opened.sessions.submit(made.thread_id, "lead")
        async with asyncio.timeout(HANG_S):
            turn = await opened.sessions.wait(receipt.turn_id)
        assert (turn.state, turn.waiting_for) == ("waiting", "budget")
    before, asked = spent(tmp_path), fake.request_count
    assert LIMIT_USD / 2 < before <= LIMIT_USD
    async with application(tmp_path, flags, MODEL) as again:
        await again.drive(made.thread_id)
        await again.sessions.tidy()
        async with asyncio.timeout(HANG_S):  # it may ask its question once more
            turn = await again.sessions.wait(receipt.turn_id)
        assert (turn.state, turn.waiting_for) == ("waiting", "budget")
        [request] = await again.sessions.pending(made.thread_id)
        assert request.kind == "budget"
        assert (spent(tmp_path), fake.request_count) == (before, asked)
        await again.sessions.answer(request.request_id, "stop", thread_id=made.thread_id)
        async with asyncio.timeout(HANG_S):
            while (await again.sessions.turn(receipt.turn_id)).state in ("waiting", "queued", "running"):
                await asyncio.sleep(0.02)
    assert spent(tmp_path) == before
