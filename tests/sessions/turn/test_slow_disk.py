"""A disk that takes its time holds up whoever writes to it, and nobody else."""

import os
import time

import pytest
from support.heartbeat import heartbeat
from support.sessions import Place, writes


async def test_calls_of_one_batch_wait_for_the_disk_in_their_threads(
    home: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropping what could have taken a call back waits for its sibling, which syncs: that was on the loop."""
    calls = [writes(f"{name}.txt", name)["tools"][0] for name in "abcd"]
    home.fake.script({"tools": calls}, {"text": "ok"})
    thread = await home.session()
    synced, slow = [], os.fdatasync

    def sync(descriptor: int) -> None:
        time.sleep(0.4)
        synced.append(descriptor)
        slow(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "fsync", sync)
    async with heartbeat() as heart:
        assert (await home.ask(thread)).state == "done"
    assert len(synced) >= len(calls)
    assert heart.longest < 0.2, heart.longest
