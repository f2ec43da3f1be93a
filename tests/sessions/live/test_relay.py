"""Live events between processes on PostgreSQL (SE-33)."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import place

from bowerbird.core.events import AssistantStep, Notice, TextLive, ToolProgress
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.usage import Usage
from bowerbird.sessions.live.hub import InputMark, Lagged, Published, TurnMark
from bowerbird.sessions.live.relay import pieces
from bowerbird.store.sql.notify import MAX_BYTES

LONG = "é\n" * 6000


@pytest.mark.parametrize(
    "event",
    [
        TextLive("a", "m", 0), Notice("n", "x"), TurnMark("done", text="t", usage=Usage(cost=None)),
        InputMark("i_1", "t_1", 2, sender={"id": "ann"}), Lagged(),
    ],
    ids=lambda event: type(event).__name__,
)  # fmt: skip
def test_an_event_arrives_as_it_was_sent(event: object) -> None:
    published = Published("x", "t_1", None, event)  # type: ignore[arg-type]
    [sent] = pieces(published)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Published) == published


def test_what_is_too_long_is_cut_or_named_by_its_place() -> None:
    """SE-33: payloads stay below the limit; a record is read from the journal."""
    cut = pieces(Published("x", None, None, TextLive(LONG, "m", 0)))
    assert "".join(part.event.content for part in cut) == LONG  # type: ignore[union-attr]
    assert all(len(msgspec.json.encode(part)) < MAX_BYTES for part in cut)
    step = AssistantStep(Message("assistant", (TextBlock(LONG),)), "end_turn", "p:m", Usage())
    assert pieces(Published("x", "t", 7, step)) == [Published("x", "t", 7, Lagged())]
    assert pieces(Published("x", "t", None, ToolProgress("c", LONG))) == []


async def test_a_viewer_in_another_process_sees_deltas_and_every_record_once(
    tmp_path: Path, fake: FakeModels, postgres_url: str
) -> None:
    fake.script({"text": "word " * 30, "deltas": 30, "gap_s": 0.01})
    async with place(tmp_path / "a", fake, url=postgres_url) as watcher:
        async with place(tmp_path / "b", fake, url=postgres_url) as driver:
            thread = await driver.session()
            seqs: list[int] = []
            deltas = ""
            events = watcher.service.follow(thread, after=0)
            first = asyncio.ensure_future(anext(events))
            receipt = await driver.service.submit(thread, "go", kind="message")
            published = await asyncio.wait_for(first, HANG_S)
            async with asyncio.timeout(HANG_S):
                while True:
                    if published.seq is not None:
                        seqs.append(published.seq)
                    if isinstance(published.event, TextLive):
                        deltas += published.event.content
                    if isinstance(published.event, TurnMark) and published.event.has_stopped:
                        break
                    published = await anext(events)
            await events.aclose()
            await driver.service.wait(receipt.turn_id)
        assert seqs == sorted(set(seqs))
        assert "word" in deltas
