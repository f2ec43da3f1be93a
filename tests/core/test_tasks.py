"""Tasks that nobody awaits (issue 11, step 1: one helper in place of nine hand-made ones)."""

import asyncio
import gc
import logging

import pytest

from bowerbird.core.tasks import Tasks


async def test_a_task_that_nobody_holds_runs_to_its_end() -> None:
    tasks, over = Tasks("test"), asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        await over.wait()
        done.append("done")

    tasks.spawn(work())
    await asyncio.sleep(0)
    gc.collect()
    over.set()
    await tasks.finish()
    assert done == ["done"]


async def test_a_failure_is_logged_with_what_it_belongs_to(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks("viewers of session s1")

    async def fail() -> None:
        raise ValueError("seven")

    with caplog.at_level(logging.ERROR):
        tasks.spawn(fail())
        await tasks.finish()
        await asyncio.sleep(0)
    [record] = caplog.records
    assert record.getMessage() == "viewers of session s1: a task failed"
    assert record.exc_info is not None and str(record.exc_info[1]) == "seven"


async def test_finishing_waits_for_what_begins_meanwhile() -> None:
    tasks = Tasks("test")
    done: list[int] = []

    async def work(left: int) -> None:
        await asyncio.sleep(0)
        done.append(left)
        if left:
            tasks.spawn(work(left - 1))

    tasks.spawn(work(3))
    await tasks.finish()
    assert done == [3, 2, 1, 0]


async def test_cancelling_ends_all_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """One that cancels from inside ends the others and goes on."""
    tasks = Tasks("test")
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # what it has to put away is waited for
            ended.append(name)

    async def end() -> None:
        await tasks.cancel()
        ended.append("self")

    one = tasks.spawn(wait("one"))
    tasks.spawn(wait("two"))
    await asyncio.sleep(0)
    await tasks.spawn(end())
    assert one.cancelled() and sorted(ended) == ["one", "self", "two"]
    assert not caplog.records
