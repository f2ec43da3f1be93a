"""How often viewers hear of a landing, whatever its size and speed (reliability 7)."""

import asyncio
import time

import pytest

from bowerbird.core.events import LandingProgress
from bowerbird.core.threads import in_thread
from bowerbird.sessions.live import hub
from bowerbird.sessions.live.hub import Live
from bowerbird.sessions.live.landing_watch import EVERY_S, FEW_FILES, Told, watched

THREAD = "0123456789ab"


def files(told: Told, total: int) -> None:
    for done in range(total + 1):
        told(LandingProgress("land", "placing", done, total))


async def test_a_million_files_are_some_events_and_the_last_always_comes() -> None:
    live, heard = Live(), list[LandingProgress]()
    live.tap(THREAD, lambda published: heard.append(published.event), lambda: None)  # type: ignore[arg-type]
    began = time.monotonic()
    async with watched(live, THREAD, "t_1") as told:
        await in_thread(files, told, 200_000)
        while not heard:
            await asyncio.sleep(0.01)
    took = time.monotonic() - began
    assert len(heard) <= took / EVERY_S + 1, "at most four times a second, and the last"
    assert heard[-1] == LandingProgress("land", "over", 200_000, 200_000)
    assert [progress.done for progress in heard] == sorted(progress.done for progress in heard)


async def test_also_a_landing_that_is_refused_has_an_end() -> None:
    live, heard = Live(), list[LandingProgress]()
    live.tap(THREAD, lambda published: heard.append(published.event), lambda: None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="refused"):
        async with watched(live, THREAD) as told:
            told(LandingProgress("land", "checking", 7, FEW_FILES + 1))
            raise ValueError("refused")
    assert heard == [LandingProgress("land", "over", 7, FEW_FILES + 1)]
    assert live.landing(THREAD) is None


async def test_a_small_landing_disturbs_nobody() -> None:
    live, heard, mine = Live(), list[object](), list[LandingProgress]()
    live.tap(THREAD, heard.append, lambda: None)
    async with watched(live, THREAD, also=mine.append) as told:
        files(told, FEW_FILES)
        await asyncio.sleep(2 * EVERY_S)
    assert heard == [] and len(mine) == FEW_FILES + 1, "who asked hears all of it"


async def test_a_landing_whose_process_died_is_not_shown_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process's last word may never come."""
    live = Live()
    progress = LandingProgress("undo", "placing", 5, 500, "l_1")
    live.show(hub.Published(THREAD, None, None, progress))
    assert live.landing(THREAD) == progress and live.landings() == {THREAD: progress}
    monkeypatch.setattr(hub, "SILENT_S", -1.0)
    assert live.landing(THREAD) is None and live.landings() == {}
