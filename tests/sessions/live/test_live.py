"""Live events in a process (SE-14, SE-33)."""

from bowerbird.core.events import MessageRestart, Notice, TextLive
from bowerbird.sessions.live.hub import MAX_EVENTS, Lagged, Live, Published, SessionEvent


def event(content: SessionEvent, thread: str = "x") -> Published:
    return Published(thread, "t_1", None, content)


async def take(live: Live, *events: Published) -> list[SessionEvent]:
    with live.subscribe("x") as viewer:
        for published in events:
            live.publish(published)
        viewer.close()
        return [published.event async for published in viewer]


async def test_adjacent_deltas_of_one_message_are_merged_without_loss() -> None:
    found = await take(
        Live(), event(TextLive("a", "m1", 0)), event(TextLive("b", "m1", 1)), event(Notice("n", "x")),
        event(TextLive("c", "m1", 2)), event(TextLive("d", "m2", 0)),
    )  # fmt: skip
    assert found == [
        TextLive("ab", "m1", 0),
        Notice("n", "x"),
        TextLive("c", "m1", 2),
        MessageRestart("m1", "the process that drove the turn ended"),  # it says another, so this one is void
        TextLive("d", "m2", 0),
    ]


async def test_events_of_other_sessions_are_not_seen() -> None:
    assert await take(Live(), event(Notice("n", "x"), "y")) == []


async def test_a_viewer_that_does_not_read_is_told_so_and_costs_a_bounded_amount() -> None:
    found = await take(Live(), *(event(Notice("n", str(i))) for i in range(MAX_EVENTS * 3)))
    assert len(found) == MAX_EVENTS + 1
    assert isinstance(found[-1], Lagged)
