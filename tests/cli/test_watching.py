"""Which turn a terminal follows, whatever order a slow machine tells of two in (UI-56)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from bowerbird.cli.client.protocol import News, Row
from bowerbird.cli.run.watching import Watch
from bowerbird.cli.turn.answer import Answer
from bowerbird.core.events import ApprovalRequest, TextLive
from bowerbird.sessions.live.hub import Published, TurnMark

ROWS: dict[str, Row] = {
    "t_1": {"turn_id": "t_1", "n": 1, "state": "done", "stop_reason": "plan"},
    "t_2": {"turn_id": "t_2", "n": 2, "state": "done", "stop_reason": "end_turn"},
}


class Told:
    """A client to which a server tells of two turns, each of which has ended by the time it is asked of."""

    is_server = True

    def __init__(self, *events: tuple[str, Any]) -> None:
        self.events = events
        self.answers: list[str] = []

    async def follow(self, thread_id: str, after: int, **_: Any) -> AsyncGenerator[News]:
        yield News(None)  # the connection
        for turn_id, event in self.events:
            yield News(Published(thread_id, turn_id, None, event))
        await asyncio.Event().wait()

    async def turn(self, thread_id: str, turn_id: str) -> Row:
        return ROWS[turn_id]

    async def turns(self, thread_id: str) -> Sequence[Row]:
        return list(ROWS.values())

    async def answer(self, thread_id: str, request_id: str, answer: Answer) -> None:
        self.answers.append(answer.decision)


async def test_the_turn_that_carries_a_plan_out_is_shown_however_late_the_plans_own_end_is_told() -> None:
    """UI-56: its answer never appeared where the plan's turn was told of again after the other had ended."""
    told = Told(
        ("t_1", ApprovalRequest("r_1", "plan", text="The plan.")),
        ("t_1", TurnMark("done", stop_reason="plan")),
        ("t_1", TurnMark("running")),
        ("t_2", TurnMark("running")),
        ("t_2", TextLive("Carried out.", "msg_1", 0)),
        ("t_2", TurnMark("done", stop_reason="end_turn")),
    )
    watch = Watch(told, "s", 0)  # type: ignore[arg-type]
    shown: list[str] = []

    def show(news: News) -> None:
        if news.published is not None and isinstance(news.published.event, TextLive):
            shown.append(news.published.event.content)

    async def ask(request: ApprovalRequest) -> Answer:
        return Answer("approve")

    await watch.begin()
    planned = await watch.turn("t_1", show, ask)
    following = await watch.following(planned)
    assert following == "t_2"
    await watch.turn(following, show, ask)
    await watch.aclose()
    assert told.answers == ["approve"] and shown == ["Carried out."]
