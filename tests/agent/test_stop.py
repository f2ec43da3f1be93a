"""The stop signal cancels the awaits it guards and nothing else (AG-45)."""

import asyncio

import pytest

from bowerbird.agent.stop import Stopped, StopSignal


async def test_setting_ends_a_guarded_await_at_once() -> None:
    stop = StopSignal()
    asyncio.get_running_loop().call_soon(stop.set, "interrupted")
    with pytest.raises(Stopped) as stopped:
        await stop.guard(asyncio.Event().wait())
    assert stopped.value.reason == "interrupted"
    await asyncio.sleep(0)  # the task itself is not cancelled
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_an_unguarded_await_is_left_alone() -> None:
    stop = StopSignal()
    asyncio.get_running_loop().call_soon(stop.set)
    await asyncio.sleep(0.001)
    assert stop.reason == "cancelled"


async def test_the_first_reason_stays_and_reaches_children() -> None:
    parent = StopSignal()
    child = StopSignal(parent)
    parent.set("deadline")
    parent.set("cancelled")
    assert child.reason == "deadline"
    assert await child.wait() == "deadline"
    with pytest.raises(Stopped):
        await child.guard(asyncio.sleep(10))


async def test_a_detached_child_is_not_set() -> None:
    parent = StopSignal()
    child = StopSignal(parent)
    child.detach()
    parent.set()
    assert child.reason is None


async def test_a_cancellation_from_outside_wins() -> None:
    stop = StopSignal()

    async def work() -> None:
        await stop.guard(asyncio.Event().wait())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_await_that_swallows_the_cancellation_still_stops() -> None:
    stop = StopSignal()

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "ignored"
        return "never"

    asyncio.get_running_loop().call_soon(stop.set)
    with pytest.raises(Stopped):
        await stop.guard(stubborn())
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_setting_it_inside_the_guarded_await_stops_when_it_returns() -> None:
    stop = StopSignal()

    async def sets() -> int:
        stop.set()
        return 1

    with pytest.raises(Stopped):
        await stop.guard(sets())
    await asyncio.sleep(0)
