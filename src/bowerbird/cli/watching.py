"""Following one turn to its end, and asking the person what it asks (UI-56).

Here: the loop over a session's events. Not here: drawing, how a question is read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from bowerbird.core.errors import AlreadyAnswered, NoPendingRequest
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.sessions.live.hub import Published, TurnMark

if TYPE_CHECKING:
    from bowerbird.sessions import SessionService
    from bowerbird.sessions.values import TurnInfo

LOOK_AGAIN_S = 2.0

Ask = Callable[[ApprovalRequest], Awaitable[tuple[str, str | None] | None]]
"""Returns (decision, feedback), or None when the person left the question open."""


class Watch:
    """Events of one session from `after` on; start it before submitting, so that nothing is missed.

    Example:
        watch = Watch(sessions, thread_id, after=0)
        receipt = await sessions.submit(thread_id, "hello")
        turn = await watch.turn(receipt.turn_id, painter.show, ask=None)
    """

    def __init__(self, sessions: "SessionService", thread_id: str, after: int) -> None:
        self._sessions = sessions
        self._thread_id = thread_id
        self._events: AsyncGenerator[Published, None] = sessions.follow(thread_id, after)
        self._next: asyncio.Task[Published] | None = None
        self._kept: deque[Published] = deque()

    async def begin(self) -> None:
        """Subscribe now: events from here on are kept until they are asked for."""
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._events))
            await asyncio.sleep(0)

    async def turn(self, turn_id: str, show: Callable[[Published], None], ask: Ask | None) -> "TurnInfo":
        """Show events until the turn stops; return how it stands then.

        Args:
            ask: answers its questions; None leaves them to other doors.
        """
        while True:
            published = await self._one()
            if published is None:
                turn = await self._sessions.turn(turn_id)
                if turn.state not in ("queued", "running") and not self._is_asking(turn):
                    return turn
                continue
            show(published)
            event = published.event
            is_below = published.thread_id != self._thread_id  # a subagent asks: its turn is another
            if published.turn_id != turn_id and not is_below:
                continue
            if isinstance(event, ApprovalRequest) and ask is not None:
                await self._answer(event, ask)
            elif isinstance(event, TurnMark) and event.has_stopped and event.stop_reason is not None:
                turn = await self._sessions.turn(turn_id)
                if turn.state not in ("queued", "running"):
                    return turn  # else it waited for an answer that has come already

    async def following(self, turn: "TurnInfo") -> str | None:
        """Return the turn that runs or waits to run after `turn`, say the execution of its plan."""
        turns = await self._sessions.turns(self._thread_id)
        later = [t for t in turns if t.n > turn.n and t.state in ("queued", "running", "waiting")]
        return later[0].turn_id if later else None

    @staticmethod
    def _is_asking(turn: "TurnInfo") -> bool:
        return turn.state == "waiting" and turn.stop_reason is None

    async def _answer(self, request: ApprovalRequest, ask: Ask) -> None:
        """Ask the person, until they answer or someone at another door has; other news is shown after."""
        asking = asyncio.ensure_future(ask(request))
        try:
            while not asking.done():
                await self.begin()
                assert self._next is not None
                await asyncio.wait({asking, self._next}, return_when=asyncio.FIRST_COMPLETED)
                if self._next.done():
                    self._kept.append(self._next.result())
                    self._next = None
                    if _settles(self._kept[-1], request):
                        return
            answer = asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        if answer is None:
            return
        try:
            await self._sessions.answer(request.id, answer[0], feedback=answer[1], by="cli")
        except (AlreadyAnswered, NoPendingRequest):
            return  # someone at another door was faster

    async def _one(self) -> Published | None:
        if self._kept:
            return self._kept.popleft()
        await self.begin()
        assert self._next is not None
        done, _ = await asyncio.wait({self._next}, timeout=LOOK_AGAIN_S)
        if not done:
            return None
        finished, self._next = self._next, None
        published = finished.result()
        await self.begin()
        return published

    async def aclose(self) -> None:
        """Stop watching."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        async with aclosing(self._events):
            pass


def _settles(published: Published, request: ApprovalRequest) -> bool:
    """Whether this news makes the question moot: it has an answer, or its turn was stopped.

    A turn that stopped to wait for the answer goes on asking.
    """
    event = published.event
    if isinstance(event, ApprovalAnswer):
        return event.id == request.id
    return isinstance(event, TurnMark) and event.state in ("cancelled", "interrupted", "failed")
