"""SB-54, SB-19, SB-33, SB-34, acceptance 3: a command multiplies, will not end, or leaves processes behind."""

import asyncio
import time

import pytest
from support.abuse import TIERS, Desk, desk_of, pids_with, pulse
from support.patience import HANG_S, patience

from bowerbird.sandbox.run.limits import RunLimits

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
LIMITS = RunLimits(memory_bytes=256 << 20, pids=64)


def unique() -> str:
    """A number for `sleep` that no other process of this machine has."""
    return f"{100_000 + time.monotonic_ns() % 10**9}"


async def gone(text: str, within_s: float) -> bool:
    """Whether no process holds `text` in its command line after so many seconds at the latest."""
    deadline = time.monotonic() + within_s
    while pids_with(text):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


@pytest.mark.parametrize("tier", TIERS)
async def test_a_fork_bomb_fails_to_fork_and_ends_with_its_command(tmp_path, tier: str):
    async with desk_of(tmp_path, tier, limits=LIMITS) as desk:
        word = unique()
        bomb = f"bomb() {{ bomb {word} | bomb {word} & }}; bomb {word}; sleep {word}"
        async with pulse():
            result = await desk.run(bomb, timeout=1.5)
            # Whichever limit is seen first: a shell that forked counts what it shares with its children.
            assert result.exit_code != 0, result
            assert result.timed_out or result.reason in ("pids", "memory"), result
            assert await gone(word, patience(1))
        await desk.assert_usable()


FORKS = """
import os, time
made = 0
try:
    while made < 700:
        if not os.fork():
            time.sleep(600)
        made += 1
    print("NO END")
except OSError as error:
    print(error.errno, made)
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_no_more_processes_start_than_are_allowed(tmp_path, tier: str):
    """SB-33: fork fails with EAGAIN; 301 is the least that the kernel takes for a namespace."""
    async with desk_of(tmp_path, tier, limits=RunLimits(pids=320)) as desk:
        async with pulse():
            result = await desk.python(FORKS)
        assert result.exit_code == 0 and result.output.startswith("11 "), result
        assert 280 < int(result.output.split()[1]) < 320 and result.stragglers_killed > 280
        await desk.assert_usable()


@pytest.mark.parametrize("how", ["return", "timeout", "cancel"])
async def test_nothing_outlives_its_command(desk: Desk, how: str):
    """SB-19, acceptance 3: children, double forks, new sessions, stopped and stubborn processes."""
    word = unique()
    stubborn = f"trap '' TERM INT HUP; while :; do sleep {word}; done"
    line = (
        f"sleep {word} & setsid sleep {word} & (sleep {word} &) ; (setsid sh -c 'sleep {word} & sleep {word}' &); "
        f'bash -c "{stubborn}" & setsid bash -c "{stubborn}" & sleep {word} & kill -STOP $!; '
        f"echo {word} > kept; echo begun; {'exit' if how == 'return' else f'sleep {word}'}"
    )
    cancel = asyncio.Event()
    begun = asyncio.Event()
    running = asyncio.create_task(
        desk.run(
            line,
            timeout=1 if how == "timeout" else 60,  # also on a busy machine it has begun by then
            cancel=cancel,
            on_output=lambda chunk: begun.set() if b"begun" in chunk else None,
        )
    )
    async with pulse():
        await begun.wait()
        if how == "cancel":
            cancel.set()
        started = time.monotonic()
        result = await running
        took = time.monotonic() - started
        assert await gone(word, 0.1)
    assert result.output.startswith("begun\n") and result.written == ["/kept"]
    if how == "return":
        assert result.exit_code == 0 and result.stragglers_killed >= 7, result
        assert "background run" in (result.note or "")
    elif how == "timeout":
        assert (result.exit_code, result.timed_out, result.reason) == (124, True, "timeout")
    else:
        assert result.cancelled and took < 1
    await desk.run("rm kept")
    await desk.assert_usable()


async def test_a_cancelled_call_kills_the_tree_and_keeps_what_it_changed(desk: Desk):
    """SB-19 by way of asyncio: the caller's task is cancelled."""
    word = unique()
    task = asyncio.create_task(
        desk.run(f"echo first > first; setsid sleep {word} & sleep {word}", timeout=60)
    )
    async with asyncio.timeout(HANG_S):
        while await desk.branch.stat("/first") is None or not pids_with(word):
            await asyncio.sleep(0.01)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < patience(2) and await gone(word, patience(2))
    assert "/first" in desk.branch.changes().written
    await desk.run("rm first")
    await desk.assert_usable()


async def test_a_stopped_command_ends_at_its_timeout(desk: Desk):
    result = await desk.run("kill -STOP $$", timeout=0.2)
    assert (result.exit_code, result.timed_out) == (124, True) and result.duration_ms < 4000
    await desk.assert_usable()


async def test_a_program_that_ignores_sigterm_is_killed_a_second_later(desk: Desk):
    """SB-19, bad input of the issue: TERM, one second, KILL; what it said and wrote is there."""
    result = await desk.run(
        "trap 'echo no > said; echo not yet' TERM; while :; do sleep 0.02; done", timeout=0.3
    )
    assert (result.exit_code, result.timed_out) == (124, True) and result.output.endswith("not yet\n")
    assert 1200 <= result.duration_ms < 5000 and result.written == ["/said"]
    polite = await desk.run("trap 'echo bye; exit 3' TERM; while :; do sleep 0.02; done", timeout=0.3)
    assert polite.exit_code == 124 and polite.output.endswith("bye\n") and polite.duration_ms < 1200
    await desk.run("rm said")
    await desk.assert_usable()


BUSY = {
    "one-process": "while True: pass",
    "many-short-ones": "import os, time\nwhile True:\n    if os.fork(): os.wait()\n    else:\n"
    "        while time.process_time() < 0.1: pass\n        os._exit(0)",
    "many-at-once": "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
}


@pytest.mark.parametrize("kind", BUSY)
@pytest.mark.parametrize("tier", TIERS)
async def test_the_time_of_a_processor_has_an_end(tmp_path, tier: str, kind: str):
    """SB-34: of all processes of a command together."""
    async with desk_of(tmp_path, tier, limits=RunLimits(cpu_seconds=1)) as desk:
        result = await desk.python(BUSY[kind], timeout=60)
        assert (result.reason, result.timed_out, result.exit_code) == ("cpu", False, 137), result
        assert result.duration_ms < 30_000
        await desk.assert_usable()
