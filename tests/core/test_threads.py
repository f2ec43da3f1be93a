"""Whoever waits for a worker thread wakes up, whatever the thread ends with (reliability 1)."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.patience import HANG_S
from support.stores import opened

from bowerbird.core.errors import StoreError
from bowerbird.core.threads import ThreadDefect, in_thread, to_thread
from bowerbird.workspace import Workspace

# A fixed bound: a hang is what is looked for.
SOON_S = HANG_S
ENDS: tuple[BaseException, ...] = (
    StopIteration(),
    StopIteration(7),
    GeneratorExit(),
    SystemExit(3),
    KeyboardInterrupt(),
)


def ends_with(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize("bridge", [to_thread, in_thread])
@pytest.mark.parametrize("error", ENDS, ids=repr)
async def test_every_end_of_a_thread_wakes_the_caller(
    bridge: Callable[[Callable[[], None]], Awaitable[None]], error: BaseException
) -> None:
    with pytest.raises(ThreadDefect, match=type(error).__name__):
        async with asyncio.timeout(SOON_S):
            await bridge(ends_with(error))


@pytest.mark.parametrize("bridge", [to_thread, in_thread])
async def test_an_ordinary_error_arrives_as_it_is(
    bridge: Callable[[Callable[[], None]], Awaitable[None]],
) -> None:
    with pytest.raises(OSError, match="plain"):
        await bridge(ends_with(OSError("plain")))


async def test_a_cancelled_caller_waits_for_a_call_that_cannot_be_taken_back() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(SOON_S)
        ended.set()
        raise StopIteration

    call = asyncio.create_task(in_thread(work))
    await to_thread(begun.wait, SOON_S)
    call.cancel()
    await asyncio.sleep(0)
    assert not call.done()
    may_end.set()
    with contextlib.suppress(asyncio.CancelledError):
        async with asyncio.timeout(SOON_S):
            await call
    assert ended.is_set() and call.cancelled()


async def test_a_file_tool_whose_thread_stops_oddly_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w").mkdir()
    with Workspace(tmp_path / "w", data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        monkeypatch.setattr("bowerbird.workspace.registry.state.BranchState.writing", _stops)
        with pytest.raises(ThreadDefect):
            async with asyncio.timeout(SOON_S):
                await branch.write_file("a.txt", "a")


async def test_the_store_wakes_its_readers_and_writers(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for ask in (store.read, store.write):
            with pytest.raises((ThreadDefect, StoreError), match="StopIteration"):
                async with asyncio.timeout(SOON_S):
                    await ask(_stops)
        async with asyncio.timeout(SOON_S):
            assert await store.write(lambda _: 1) == 1, "the writer goes on"


def _stops(*_: Any) -> Any:
    raise StopIteration
