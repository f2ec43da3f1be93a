"""Leases: one driver at a time, takeover from the dead (SE-28, SE-29, SE-31)."""

import asyncio
import subprocess
import sys

import msgspec
from support.stores import THREAD, opened, with_lease

from bowerbird.store import Store
from bowerbird.store.rows.leases import (
    Executor,
    heartbeat,
    is_dead,
    lease_is_free,
    release_lease,
    renew_lease,
    take_lease,
    this_executor,
)
from bowerbird.store.rows.sessions import SessionRow, insert_session

SCRIPT = "from bowerbird.store.rows.leases import *; e = this_executor(); print(e.executor_id, e.pid)"


async def new_session(store: Store) -> None:
    await store.write(lambda c: insert_session(c, SessionRow(thread_id=THREAD)))


async def take(store: Store, executor: Executor, ttl_s: int = 600) -> int | None:
    await store.write(lambda c: heartbeat(c, executor))
    return await store.write(lambda c: take_lease(c, THREAD, executor.executor_id, ttl_s))


async def test_ten_at_once_get_one_lease(store: Store) -> None:
    """SE-28."""
    await new_session(store)
    found = await asyncio.gather(*(take(store, this_executor()) for _ in range(10)))
    assert sorted(epoch for epoch in found if epoch is not None) == [1]


async def test_each_taking_raises_the_epoch_also_after_a_release(store: Store) -> None:
    """SE-28."""
    await new_session(store)
    me = this_executor()
    for expected in (1, 2, 3):
        epoch = await take(store, me)
        assert epoch == expected
        await store.write(lambda c, e=epoch: release_lease(c, THREAD, e))


async def test_an_expired_lease_is_taken_and_cannot_be_renewed(store: Store) -> None:
    """SE-29."""
    await new_session(store)
    assert await take(store, this_executor(), ttl_s=0) == 1
    assert await store.write(lambda c: renew_lease(c, THREAD, 1, 600)) is False
    assert await take(store, this_executor()) == 2
    assert await store.write(lambda c: renew_lease(c, THREAD, 1, 600)) is False
    assert await store.write(lambda c: renew_lease(c, THREAD, 2, 600)) is True


async def test_who_knows_that_its_term_runs_renews_what_nobody_took_or_gave_back(store: Store) -> None:
    """SE-28: a clock that is set ahead ends no lease; one that is another's, or nobody's, stays so."""
    await new_session(store)
    assert await take(store, this_executor(), ttl_s=0) == 1
    assert await store.write(lambda c: renew_lease(c, THREAD, 1, 0, or_expired=True)) is True
    assert await take(store, this_executor(), ttl_s=0) == 2
    assert await store.write(lambda c: renew_lease(c, THREAD, 1, 600, or_expired=True)) is False
    await store.write(lambda c: release_lease(c, THREAD, 2))
    assert await store.write(lambda c: renew_lease(c, THREAD, 2, 600, or_expired=True)) is False


async def test_the_lease_of_a_dead_process_is_taken_at_once(store: Store) -> None:
    """SE-31: nobody waits 15 s for a process that was killed."""
    await new_session(store)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, pid = done.stdout.split()
    dead = msgspec.structs.replace(this_executor(), executor_id=name, pid=int(pid))
    assert is_dead(dead)
    assert await take(store, dead) == 1
    assert await store.read(lambda c: lease_is_free(c, THREAD))
    assert await take(store, this_executor()) == 2


def test_a_reused_pid_is_another_process_and_another_host_is_never_judged() -> None:
    me = this_executor()
    assert not is_dead(me)
    assert is_dead(msgspec.structs.replace(me, executor_id=f"{me.pid}-1-abcd"))
    assert not is_dead(msgspec.structs.replace(me, executor_id=f"{me.pid}-1-abcd", host="elsewhere/1/pid"))


async def test_two_processes_on_one_file_agree(tmp_path: object) -> None:
    """SE-31."""
    async with opened(tmp_path) as first, opened(tmp_path) as second:  # type: ignore[arg-type]
        epoch = await with_lease(first)
        assert await second.write(lambda c: take_lease(c, THREAD, "other", 600)) is None
        await first.write(lambda c: release_lease(c, THREAD, epoch))
        assert await second.write(lambda c: take_lease(c, THREAD, "other", 600)) == epoch + 1
