"""Deliveries: with the turn's end, in order, again until they arrive, never lost (SE-37, 38, 55)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place, writes

from bowerbird.agent.policy import Policy
from bowerbird.core.timestamps import to_iso
from bowerbird.sessions import DeliveryFailed, Parcel
from bowerbird.sessions.delivery.messages import parcel_of
from bowerbird.sessions.delivery.outbox import FIRST_DELAY_S, LONGEST_DELAY_S, after_failure
from bowerbird.store.rows.outbox import OutboxRow, parcels, update_parcel

CHAT = {"kind": "chat", "channel": "telegram", "chat_id": "5", "thread_id": "telegram_5"}


@dataclass
class Door:
    """A door that notes what it is given, and fails as told."""

    fails: list[Exception] = field(default_factory=list[Exception])
    sent: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    before: Callable[[], Any] | None = None
    door: str = "telegram"

    def parts(self, text: str) -> Sequence[Mapping[str, Any]]:
        return [{"text": line} for line in text.splitlines()]

    async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
        if self.before is not None:
            await self.before()
        if self.fails:
            raise self.fails.pop(0)
        self.sent.append((address, ("plain " if parcel.is_plain else "") + parcel.content["text"], key))
        return f"m{len(self.sent)}"


async def stored(home: Place) -> list[OutboxRow]:
    return await home.store.read(parcels)


async def until_sent(home: Place, count: int) -> None:
    async def all_there() -> bool:
        return sum(row.state == "sent" for row in await stored(home)) == count

    await home.until(all_there)


async def test_an_answer_is_delivered_in_its_parts_and_in_order(home: Place) -> None:
    """SE-37: rows of the end's transaction, keys of SE-38."""
    door = Door()
    home.service.outbox.serve(door)
    home.fake.script({"text": "one\ntwo"}, {"text": "three"})
    thread = await home.session(**CHAT)
    first = await home.ask(thread)
    await home.ask(thread)
    await until_sent(home, 3)
    assert [text for _, text, _ in door.sent] == ["one", "two", "three"]
    assert [key for *_, key in door.sent[:2]] == [f"{first.turn_id}:answer:{n}" for n in (0, 1)]
    assert {address for address, *_ in door.sent} == {"5"}
    assert [row.receipt for row in await stored(home)] == ["m1", "m2", "m3"]


async def test_what_is_not_a_chat_owes_nothing(home: Place) -> None:
    home.fake.script({"text": "ok"})
    await home.ask(await home.session())
    assert await stored(home) == []


async def test_an_answer_made_while_the_door_was_down_is_delivered_by_the_next_process(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-38: also one that a process was sending when it died."""
    fake.script({"text": "a\nb"})
    async with place(tmp_path, fake, url=database_url) as first:
        await first.ask(await first.session(**CHAT))
        (row,) = await stored(first)  # nobody served the door: one part
        await first.store.write(
            lambda c: update_parcel(c, row.id, state="sending", receipt="1-1-gone", next_at="9999")
        )
    async with place(tmp_path, fake, url=database_url) as second:
        door = Door()
        second.service.outbox.serve(door)
        await until_sent(second, 1)
    assert [text for _, text, _ in door.sent] == ["a\nb"]


async def test_a_failing_delivery_keeps_its_order_and_is_tried_again(
    home: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-37: what comes later waits; another address does not."""
    monkeypatch.setattr("bowerbird.sessions.delivery.outbox.FIRST_DELAY_S", 0.01)
    door = Door(fails=[DeliveryFailed("away"), OSError("cut"), DeliveryFailed("slow", retry_after_s=0.02)])
    home.fake.script({"text": "one"}, {"text": "two"})
    thread = await home.session(**CHAT)
    await home.ask(thread)
    await home.ask(thread)
    home.service.outbox.serve(door)
    await until_sent(home, 2)
    assert [text for _, text, _ in door.sent] == ["one", "two"]
    assert [row.attempts for row in await stored(home)] == [4, 1]


async def test_refused_formatting_is_sent_once_more_as_plain_text(home: Place) -> None:
    """SE-37."""
    door = Door(fails=[DeliveryFailed("bad markup", is_formatting=True)])
    home.service.outbox.serve(door)
    home.fake.script({"text": "*x"})
    await home.ask(await home.session(**CHAT))
    await until_sent(home, 1)
    assert [text for _, text, _ in door.sent] == ["plain *x"]


async def test_what_cannot_be_delivered_is_dead_shown_and_can_be_sent_again(home: Place) -> None:
    """SE-37."""
    door = Door(fails=[DeliveryFailed("the chat is gone", is_final=True)])
    home.service.outbox.serve(door)
    home.fake.script({"text": "x"})
    await home.ask(await home.session(**CHAT))

    async def given_up() -> bool:
        return [row.state for row in await stored(home)] == ["dead"]

    await home.until(given_up)
    (row,) = await stored(home)
    assert row.last_error == "the chat is gone"
    await home.service.outbox.resend(row.id)
    await until_sent(home, 1)


async def test_a_request_is_delivered_with_its_id_while_the_turn_waits(
    tmp_path: Path, fake: FakeModels, database_url: str
) -> None:
    """SE-37: the row is in the request's transaction."""
    fake.script(writes("a", "x"), {"text": "done"})
    async with place(tmp_path, fake, url=database_url, policy=Policy.of({"ask": ["write_file"]})) as home:
        asked: list[Parcel] = []

        class Asked(Door):
            async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
                asked.append(parcel)
                return "m"

        home.service.outbox.serve(Asked())
        thread = await home.session(**CHAT)
        receipt = await home.service.submit(thread, "go")
        async with asyncio.timeout(HANG_S):
            while not asked:
                await asyncio.sleep(0.01)
        assert asked[0].kind == "request"
        assert asked[0].content["tools"][0]["name"] == "write_file"
        await home.service.answer(asked[0].content["request_id"], "approve")
        assert (await home.service.wait(receipt.turn_id)).state == "done"


async def test_a_turn_that_fails_says_so_to_its_chat(home: Place) -> None:
    home.fake.script({"status": 400, "body": {"error": {"type": "invalid_request_error", "message": "no"}}})
    await home.ask(await home.session(**CHAT))
    (row,) = await stored(home)
    assert parcel_of(row).kind == "error"


@given(attempts=st.integers(1, 60), chance=st.floats(0, 1), asked=st.none() | st.floats(0, 10_000),
       age_h=st.floats(0, 30))  # fmt: skip
def test_tries_are_spread_bounded_and_end_after_the_age(
    attempts: int, chance: float, asked: float | None, age_h: float
) -> None:
    """SE-37: 1 s doubling to 300 s, what the receiver asked for, at most the age."""
    now = datetime.now(UTC)
    parcel = Parcel("answer", {}, to_iso(now - timedelta(hours=age_h)))
    verdict = after_failure(DeliveryFailed("x", retry_after_s=asked), parcel, attempts, now, 24.0, chance)
    if verdict.delay_s is None:
        assert age_h + max(LONGEST_DELAY_S, asked or 0) / 3600 >= 24
        return
    own = min(FIRST_DELAY_S * 2 ** (attempts - 1), LONGEST_DELAY_S)
    assert min(own, asked or own) <= verdict.delay_s <= max(own * 1.25, asked or 0, 1)
    assert verdict.delay_s >= (asked or 0)
    assert age_h * 3600 + verdict.delay_s <= 24 * 3600 + 1
