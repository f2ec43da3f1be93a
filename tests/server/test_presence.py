"""Who watches, and one release after the last one (SV-53)."""

import asyncio

import pytest
from support.patience import HANG_S

from bowerbird.server.common.presence import Presence, Verdict


class Releases:
    """Records releases; answers BUSY as often as asked to."""

    def __init__(self, busy: int = 0) -> None:
        self.seen: list[str] = []
        self.done = asyncio.Event()
        self._busy = busy

    async def __call__(self, thread_id: str) -> Verdict:
        self.seen.append(thread_id)
        if self._busy:
            self._busy -= 1
            return Verdict.BUSY
        self.done.set()
        return Verdict.RELEASED


async def test_only_the_last_viewer_starts_the_delay_and_coming_back_calls_it_off() -> None:
    releases = Releases()
    presence = Presence(0.05, releases)
    assert presence.joined("a") == 1 and presence.joined("a") == 2
    assert presence.left("a") == 1
    presence.left("a")
    presence.joined("a")
    other = Presence(0.05, Releases())
    other.touched("b")
    await asyncio.wait_for(other._release.done.wait(), HANG_S)  # type: ignore[attr-defined]
    assert releases.seen == [], "the later delay is over, the earlier one was called off"
    presence.left("a")
    await asyncio.wait_for(releases.done.wait(), HANG_S)
    assert releases.seen == ["a"]
    await presence.aclose()
    await other.aclose()


async def test_a_busy_conversation_is_looked_at_again() -> None:
    releases = Releases(busy=2)
    presence = Presence(0.0, releases)
    presence.touched("a")
    await asyncio.wait_for(releases.done.wait(), HANG_S)
    assert releases.seen == ["a", "a", "a"]
    await presence.aclose()


@pytest.mark.parametrize("forgotten", [True, False])
async def test_a_deleted_conversation_is_not_released(forgotten: bool) -> None:
    releases = Releases()
    presence = Presence(0.0 if not forgotten else 60.0, releases)
    presence.touched("a")
    if forgotten:
        presence.forget("a")
        assert not presence._timers
    else:
        await asyncio.wait_for(releases.done.wait(), HANG_S)
    await presence.aclose()


async def test_deserted_waits_for_the_last_viewer() -> None:
    presence = Presence(60.0, Releases())
    await asyncio.wait_for(presence.deserted(), HANG_S)
    presence.joined("a")
    waiting = asyncio.create_task(presence.deserted())
    await asyncio.sleep(0)
    assert not waiting.done()
    presence.left("a")
    await asyncio.wait_for(waiting, HANG_S)
    await presence.aclose()


async def test_whoever_waits_for_somebody_hears_of_the_first_viewer() -> None:
    """What only turns need is loaded when somebody comes."""
    presence = Presence(60.0, Releases())
    waiting = asyncio.create_task(presence.somebody())
    presence.touched("a")
    await asyncio.sleep(0)
    assert not waiting.done()
    presence.joined("a")
    await asyncio.wait_for(waiting, HANG_S)
    await presence.aclose()
