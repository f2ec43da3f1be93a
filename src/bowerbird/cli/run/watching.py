"""Following one turn to its end, and asking the person what it asks (UI-56).

Here: the loop over a session's events. Not here: drawing, how a question is read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from bowerbird.cli.client.protocol import Client, News, Row
from bowerbird.cli.terminal.exits import ServerAway
from bowerbird.cli.turn.answer import Answer
from bowerbird.core.errors import AlreadyAnswered, NoPendingRequest, SessionError
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.sessions.live.hub import TurnMark

LOOK_AGAIN_S = 2.0
_UNFINISHED = ("queued", "running", "waiting")

Ask = Callable[[ApprovalRequest], Awaitable[Answer | None]]
"""Returns the answer, or None when the person left the question open."""


class Watch:
    """Events of one session from `after` on; start it before submitting, so that nothing is missed.

    Args:
        lines: have the wire's frames made too. say: told when a connection is lost, and when it is back.

    Example:
        watch = Watch(client, thread_id, after=0)
        await watch.begin()
        receipt = await client.send(thread_id, "hello")
        turn = await watch.turn(receipt["turn_id"], show, ask=None)
    """

    def __init__(
        self,
        client: Client,
        thread_id: str,
        after: int,
        *,
        lines: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._thread_id = thread_id
        self._events: AsyncGenerator[News] = client.follow(thread_id, after, lines=lines, say=say)
        self._next: asyncio.Task[News] | None = None
        self._kept: deque[News] = deque()
        self._is_there = not client.is_server
        self._is_answered = False
        self._is_lost = False
        self._put: set[str] = set()  # questions that were put to the person

    async def begin(self) -> None:
        """Subscribe now: events from here on are kept until they are asked for."""
        if self._next is not None:
            return
        self._next = asyncio.ensure_future(anext(self._events))
        await asyncio.sleep(0)
        if not self._is_there:  # a server's first news is the connection: what comes after that is seen live
            self._is_there = True
            await asyncio.wait({self._next})

    async def turn(
        self,
        turn_id: str,
        show: Callable[[News], None],
        ask: Ask | None,
        asked: ApprovalRequest | None = None,
    ) -> Row:
        """Show events until the turn stops; return how it stands then.

        Args:
            ask: answers its questions; None leaves them to other doors. asked: one that is open already.
        """
        self._is_answered = False
        if asked is not None and ask is not None:
            await self._answer(asked, ask)
        while True:
            news = await self._one()
            if news is None and self._is_lost:
                continue  # what the turn said meanwhile comes with the connection
            if news is None:
                turn = await self._turn(turn_id)
                if self._has_ended(turn) and not self._is_asking(turn):
                    return turn
                asked = open_request(turn)  # one from before this terminal came is not told anew
                if ask is not None and asked is not None and asked.id not in self._put:
                    await self._answer(asked, ask)
                continue
            another = self._begun(news)
            if another is not None and another != turn_id:
                turn = await self._turn(turn_id)
                if turn["state"] not in _UNFINISHED and await self._comes_after(another, turn):
                    self._kept.appendleft(news)  # the end of a plan's turn is not told a second time
                    return turn
            show(news)
            published = news.published
            if published is None:
                continue
            event = published.event
            # A subagent's question is asked too: its turn is another, and a server names none.
            is_below = published.thread_id != self._thread_id or self._client.is_server
            if isinstance(event, ApprovalRequest) and ask is not None:
                if published.turn_id == turn_id or is_below:
                    await self._answer(event, ask)
            elif published.turn_id == turn_id and isinstance(event, TurnMark) and event.has_stopped:
                turn = await self._turn(turn_id)
                if event.stop_reason is not None and self._has_ended(turn):
                    return turn  # else it waited for an answer that has come already

    async def begun(self, is_new: Callable[[Row], Awaitable[bool]]) -> str:
        """Return the next new turn that begins here, or goes on; all that is told meanwhile is kept."""
        held: list[News] = []
        try:
            while True:
                if (news := await self._one()) is None:
                    continue
                held.append(news)
                turn_id = self._begun(news)
                if turn_id is not None and await is_new(await self._turn(turn_id)):
                    return turn_id
        finally:
            self._kept.extendleft(reversed(held))

    async def following(self, turn: Row) -> str | None:
        """Return the turn that runs or waits to run after `turn`, or that carried its plan out meanwhile."""
        turns = await self._client.turns(self._thread_id)
        later = [t for t in turns if t["n"] > turn["n"]]
        if turn["stop_reason"] != "plan":
            later = [t for t in later if t["state"] in _UNFINISHED]
        return str(later[0]["turn_id"]) if later else None

    async def _turn(self, turn_id: str) -> Row:
        """Return how a turn stands; a server that restarts is waited for, as its events are."""
        while True:
            try:
                return await self._client.turn(self._thread_id, turn_id)
            except ServerAway:
                await asyncio.sleep(LOOK_AGAIN_S)

    def _has_ended(self, turn: Row) -> bool:
        """Whether nothing more comes of a turn; one whose question has its answer goes on in a moment."""
        state = turn["state"]
        return state not in ("queued", "running") and not (state == "waiting" and self._is_answered)

    def _begun(self, news: News) -> str | None:
        """Return the turn of this session that begins to run, or goes on."""
        published = news.published
        if published is None or published.thread_id != self._thread_id:
            return None
        is_mark = isinstance(published.event, TurnMark) and published.event.state == "running"
        return published.turn_id if is_mark else None

    async def _comes_after(self, turn_id: str, turn: Row) -> bool:
        """Whether a turn is later than `turn`; of the plan before it, news may come last."""
        return int((await self._turn(turn_id))["n"]) > int(turn["n"])

    @staticmethod
    def _is_asking(turn: Row) -> bool:
        return turn["state"] == "waiting" and turn["stop_reason"] is None

    async def _answer(self, request: ApprovalRequest, ask: Ask) -> None:
        """Ask the person, until they answer or someone at another door has; other news is shown after."""
        self._is_answered = False
        self._put.add(request.id)
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
                        self._is_answered = True
                        return
            answer = asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        if answer is None:
            return
        self._is_answered = True
        try:
            await self._client.answer(self._thread_id, request.id, answer)
        except (AlreadyAnswered, NoPendingRequest):
            return  # someone at another door was faster

    async def _one(self) -> News | None:
        if self._kept:
            return self._kept.popleft()
        await self.begin()
        assert self._next is not None
        done, _ = await asyncio.wait({self._next}, timeout=LOOK_AGAIN_S)
        if not done:
            return None
        finished, self._next = self._next, None
        self._kept.append(finished.result())
        await self.begin()
        news = self._kept.popleft()
        self._is_lost = news.is_lost
        return news

    async def aclose(self) -> None:
        """Stop watching."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        async with aclosing(self._events):
            pass


async def stop_turn(
    client: Client, thread_id: str, turn_id: str, inbox_id: str | None, say: Callable[[str], None]
) -> None:
    """Stop a turn, or take its message back where it has not begun: what runs before it is another door's."""
    turn = await client.turn(thread_id, turn_id) if turn_id else None
    with suppress(SessionError):  # it ended, or began, in this moment
        if turn is not None and turn["state"] == "queued" and inbox_id is not None:
            await client.take_back(thread_id, inbox_id)
            say("taken back before it began; nothing else was stopped")
            return
        await client.cancel(thread_id)


def open_request(turn: Row) -> ApprovalRequest | None:
    """Return what a turn waits for, as `Client.turn` tells it; None for nothing."""
    found = turn["request"]
    if found is None:
        return None
    tools = tuple(found["tools"])
    return ApprovalRequest(found["request_id"], found["kind"], tools=tools, text=found["text"])


def _settles(news: News, request: ApprovalRequest) -> bool:
    """Whether this news makes the question moot: it has an answer, or its turn was stopped.

    A turn that stopped to wait for the answer goes on asking.
    """
    event = news.published.event if news.published is not None else None
    if isinstance(event, ApprovalAnswer):
        return event.id == request.id
    return isinstance(event, TurnMark) and event.state in ("cancelled", "interrupted", "failed")
