"""Many landings at once: every turn ends, the old ones are forgotten apart from them (reliability 1, D-3)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.sessions import Place

from bowerbird.workspace import Branch

SESSIONS, TURNS = 5, 8


async def test_turns_that_land_side_by_side_all_end(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept number is small, so that every landing finds something old while others look, too."""
    monkeypatch.setattr("bowerbird.workspace.landing.landings.KEPT_LANDINGS", 4)
    monkeypatch.setattr("bowerbird.workspace.landing.landings.ALWAYS_KEPT", 2)

    def answer(body: dict[str, Any], number: int) -> dict[str, Any]:
        if body["messages"][-1]["role"] == "user" and isinstance(body["messages"][-1]["content"], list):
            last = body["messages"][-1]["content"][-1]
            if last.get("type") == "tool_result":
                return {"text": "done"}
        path, content = f"f{number}.txt", str(number)
        return {"tools": [{"name": "write_file", "input": {"path": path, "content": content}}]}

    home.fake.answer(answer)
    threads = [await home.session(policy="turn") for _ in range(SESSIONS)]

    async def talk(thread: str) -> list[str]:
        return [(await home.ask(thread)).state for _ in range(TURNS)]

    async def forgetting() -> None:
        while True:
            await home.service.tidy()

    upkeep = [asyncio.create_task(forgetting()) for _ in range(2)]
    try:
        states = await asyncio.gather(*(talk(thread) for thread in threads))
    finally:
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
    assert states == [["done"] * TURNS] * SESSIONS
    assert len(list(home.project.glob("f*.txt"))) == SESSIONS * TURNS
    await home.service.tidy()
    left = [p for p in home.data.glob("branches/*/landings/*") if p.is_dir()]
    assert len(left) == 4


@pytest.mark.parametrize("error", [OSError(5, "broken"), StopIteration()], ids=["OSError", "StopIteration"])
async def test_a_landing_that_breaks_oddly_ends_its_turn_all_the_same(
    home: Place, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def breaks(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Branch, "land", breaks)
    home.fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "a.txt", "content": "x"}}]}, {"text": "done"}
    )
    turn = await home.ask(await home.session(policy="turn"))
    assert (turn.state, turn.attempt) == ("done", 1)
    assert Path(home.project / "a.txt").exists() is False
