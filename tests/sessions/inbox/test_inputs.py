"""Accepting inputs: order, duplicates, limits, answers (SE-17 … SE-21)."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.stores import THREAD, opened

from bowerbird.core.errors import (
    AlreadyAnswered,
    InvalidArgument,
    NoPendingRequest,
    QueueFull,
    UnknownSession,
)
from bowerbird.sessions.inbox.accept import Accepted, Offered, accept, accept_answer, content_of
from bowerbird.sessions.settings import SessionSettings
from bowerbird.store import Store
from bowerbird.store.rows.sessions import SessionRow, get_session, insert_session
from bowerbird.store.rows.turns import TurnRow, get_turn, inputs_of, turns_of, update_turn

IMAGE = {"type": "image", "media_type": "image/png", "source": {"blob": "sha256:a"}}
LIMITS = SessionSettings(queue_per_session=3, queue_total=5)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path) as opened_store:
        await opened_store.write(lambda c: insert_session(c, SessionRow(thread_id=THREAD)))
        yield opened_store


async def offer(store: Store, key: str, kind: Any = "message", thread: str = THREAD, **more: Any) -> Accepted:
    offered = Offered(thread, "test", key, kind, {"id": "me"}, {"content": []}, **more)
    return await store.write(lambda c: accept(c, offered, LIMITS))


async def set_state(store: Store, turn_id: str, **values: Any) -> None:
    await store.write(lambda c: update_turn(c, turn_id, **values))


async def turns(store: Store) -> list[TurnRow]:
    return await store.read(lambda c: turns_of(c, THREAD))


async def test_one_input_submitted_ten_times_at_once_is_one_turn(store: Store) -> None:
    """SE-17, acceptance 3."""
    found = await asyncio.gather(*(offer(store, "same") for _ in range(10)))
    assert len({accepted.receipt.inbox_id for accepted in found}) == 1
    assert sorted(accepted.receipt.duplicate for accepted in found) == [False] + [True] * 9
    assert sum(accepted.wake is not None for accepted in found) == 1
    assert len(await turns(store)) == 1


async def test_the_two_thousandth_that_waits_is_accepted_nearly_as_the_tenth(store: Store) -> None:
    """Every open turn was read and built anew for each message."""
    roomy = SessionSettings(queue_per_session=10_000, queue_total=10_000)
    accepted = 0

    def more(connection: Any, count: int) -> float:
        nonlocal accepted
        began = time.process_time()
        for _ in range(count):
            accepted += 1
            offered = Offered(THREAD, "test", str(accepted), "message", {}, {"content": []})
            assert accept(connection, offered, roomy).receipt.position == accepted - 1
        return time.process_time() - began

    async def cost() -> float:
        return min([await store.write(lambda c: more(c, 10)) for _ in range(5)])

    few = await cost()
    await store.write(lambda c: more(c, 2_000))
    assert await cost() < 10 * few


async def test_turns_are_in_the_order_of_acceptance(store: Store) -> None:
    """SE-18."""
    found = [await offer(store, str(i)) for i in range(3)]
    assert [accepted.receipt.position for accepted in found] == [0, 1, 2]
    assert [(t.n, t.turn_id) for t in await turns(store)] == [
        (i + 1, accepted.receipt.turn_id) for i, accepted in enumerate(found)
    ]


async def test_a_full_queue_refuses_with_a_retry_time_and_stores_nothing(store: Store) -> None:
    """SE-18."""
    for i in range(3):
        await offer(store, str(i))
    with pytest.raises(QueueFull, match="queue_per_session") as caught:
        await offer(store, "one too many")
    assert caught.value.retry_after_s > 0
    assert len(await turns(store)) == 3
    await store.write(lambda c: insert_session(c, SessionRow(thread_id="other")))
    await offer(store, "a", thread="other")
    await offer(store, "b", thread="other")
    with pytest.raises(QueueFull, match="queue_total"):
        await offer(store, "c", thread="other")


async def test_the_title_is_the_first_100_characters_until_renamed(store: Store) -> None:
    """SE-24."""
    await offer(store, "1", text="x" * 150)
    await offer(store, "2", text="second")
    assert (await store.read(lambda c: get_session(c, THREAD))).title == "x" * 100


async def test_a_steer_joins_the_running_turn_or_becomes_one(store: Store) -> None:
    """SE-19."""
    first = await offer(store, "1")
    await set_state(store, first.receipt.turn_id, state="running")
    joined = await offer(store, "2", "steer")
    assert joined.receipt.turn_id == first.receipt.turn_id
    assert joined.wake is None
    await set_state(store, first.receipt.turn_id, state="done")
    alone = await offer(store, "3", "steer")
    assert alone.wake is not None
    assert len(await turns(store)) == 2


async def test_an_interrupt_goes_ahead_of_the_queue(store: Store) -> None:
    """SE-19."""
    running, waiting = await offer(store, "1"), await offer(store, "2")
    await set_state(store, running.receipt.turn_id, state="running")
    stop = await offer(store, "3", "interrupt")
    assert stop.interrupt is not None
    assert stop.interrupt.turn_id == running.receipt.turn_id
    assert [t.turn_id for t in await turns(store)] == [
        running.receipt.turn_id, stop.receipt.turn_id, waiting.receipt.turn_id,
    ]  # fmt: skip
    assert [t.n for t in await turns(store)] == [1, 2, 3]


async def test_an_interrupt_with_nothing_running_is_a_message(store: Store) -> None:
    """SE-19."""
    accepted = await offer(store, "1", "interrupt")
    assert accepted.interrupt is None
    assert accepted.wake is not None


async def test_a_message_to_a_turn_whose_question_is_over_supersedes_it(store: Store) -> None:
    """Nobody can answer any more: the turn ends, and the message is the next."""
    waiting = await offer(store, "1")
    await set_state(store, waiting.receipt.turn_id, state="waiting", waiting_for="approval")
    new = await offer(store, "2")
    assert new.wake is not None
    assert new.wake.turn_id == waiting.receipt.turn_id
    notes = await store.read(lambda c: inputs_of(c, turn_id=waiting.receipt.turn_id, kinds=("notification",)))
    assert len(notes) == 1
    turn = await store.read(lambda c: get_turn(c, waiting.receipt.turn_id))
    assert turn.state == "queued"
    with pytest.raises(NoPendingRequest):
        await store.write(lambda c: accept_answer(c, turn, "r_1", {}, {}))


async def test_the_second_answer_is_told_that_it_is_late(store: Store) -> None:
    """SE-21."""
    accepted = await offer(store, "1")
    await set_state(store, accepted.receipt.turn_id, state="waiting", waiting_for="approval")
    turn = await store.read(lambda c: get_turn(c, accepted.receipt.turn_id))
    results = await asyncio.gather(
        *(store.write(lambda c: accept_answer(c, turn, "r_1", {}, {})) for _ in range(5)),
        return_exceptions=True,
    )
    assert [r for r in results if r is True] == [True]
    assert sum(isinstance(r, AlreadyAnswered) for r in results) == 4


async def test_nothing_is_accepted_for_an_unknown_session(store: Store) -> None:
    with pytest.raises(UnknownSession):
        await offer(store, "1", thread="nobody")


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ({"text": "x"}, "content"),
        ({"content": 5}, "content"),
        ({"content": [{"type": "text"}]}, "cannot be read"),
        ({"content": ["x"]}, "cannot be read"),
        ("x" * 11, "message_mb"),
        (
            {"content": [{"type": "image", "media_type": "image/png", "source": {"blob": "sha256:a"}}] * 21},
            "20",
        ),
    ],
)
def test_a_malformed_message_is_refused_naming_what_is_wrong(body: Any, match: str) -> None:
    """SE-48."""
    with pytest.raises(InvalidArgument, match=match):
        content_of(body, SessionSettings(message_bytes=10))
