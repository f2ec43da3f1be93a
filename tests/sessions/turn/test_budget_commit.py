"""A reservation and the usage that replaces it are one transaction (SE-43, SE-56)."""

from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.sessions import changed, place, writes

from bowerbird.agent.limits import Limits
from bowerbird.sessions.turn.money import StoreBudget


async def test_a_death_after_the_answers_commit_counts_the_call_once(
    tmp_path: Path, fake: FakeModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop settles afterwards must not be needed: a process may die before it."""

    async def dies(*_: Any) -> None:
        return

    monkeypatch.setattr(StoreBudget, "settle", dies)
    fake.script(writes("a", "x"), {"text": "ok"})
    limits = Limits(max_output_tokens=2_000)
    async with place(tmp_path, fake, settings=changed(session_usd=5.0), limits=limits) as home:
        thread = await home.session()
        assert (await home.ask(thread)).state == "done"
        states = await home.store.read(
            lambda c: c.exec_driver_sql("SELECT state FROM reservations").scalars().all()
        )
        assert list(states) == ["settled", "settled"]
        assert (await home.service.tokens(thread)).calls == 2
