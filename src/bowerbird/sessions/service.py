"""The session service: the one thing every door talks to (SE-17 … SE-24, 36, 49).

Here: the calls of doors, in terms of sessions, turns and requests. Not here: how a turn is
driven (`driver.py`), rules of acceptance (`inputs.py`), wire forms.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import InvalidArgument, SessionError
from bowerbird.core.ids import new_id
from bowerbird.sessions.answers import check_decision, find_request
from bowerbird.sessions.audit import AuditLog
from bowerbird.sessions.branches import Branches
from bowerbird.sessions.catalogue import Catalogue
from bowerbird.sessions.dispatcher import Dispatcher, LocalDispatcher, Signal, TurnRef
from bowerbird.sessions.driver import Driver
from bowerbird.sessions.follow import follow
from bowerbird.sessions.forks import delete_session
from bowerbird.sessions.house import House
from bowerbird.sessions.inputs import Offered, accept, accept_answer, content_of
from bowerbird.sessions.live import Live, Published, Subscription, TurnMark
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.setup import TurnMaker
from bowerbird.sessions.startup import forget_old_inputs, mend_audit_logs, raise_counters
from bowerbird.sessions.stopping import cancel_waiting, queue_again
from bowerbird.sessions.values import InputKind, Receipt, TurnInfo
from bowerbird.sessions.views import all_turns, turn_info
from bowerbird.store.journal import Record
from bowerbird.store.store import Store
from bowerbird.store.turns import OPEN, TurnRow, get_turn, turns_of

if TYPE_CHECKING:
    pass

LOOK_AGAIN_S = 0.25


class SessionService(Catalogue):
    """Durable sessions over one store.

    Args:
        store: open; closed by its owner.
        maker: makes each turn's model, tools and instructions.
        branches: the data directory's branches; made from the store's directory when None.
        settings: limits and times.
        attended: whether a person can answer questions; False denies what would ask.
        dispatcher: who runs turns; in this process when None.
        drives: which threads' turns this process runs; None = all (see `LocalDispatcher`).

    Example:
        async with SessionService(store, maker) as service:
            session = await service.create(NewSession(workspace="/home/me/project"))
            receipt = await service.submit(session.thread_id, "Fix the failing test")
            turn = await service.wait(receipt.turn_id)
    """

    def __init__(
        self,
        store: Store,
        maker: TurnMaker,
        *,
        branches: Branches | None = None,
        settings: SessionSettings | None = None,
        attended: bool = True,
        dispatcher: Dispatcher | None = None,
        drives: Callable[[str], bool] | None = None,
    ) -> None:
        self.settings = settings or SessionSettings()
        self.live = Live()
        self._drivers: dict[str, Driver] = {}
        local = LocalDispatcher(store, self.settings, deliver=self._deliver, drain=self._drain, drives=drives)
        self._dispatcher: Dispatcher = dispatcher or local
        self._house = House(
            store=store,
            branches=branches or Branches(store.data_dir),
            maker=maker,
            settings=self.settings,
            live=self.live,
            audit=AuditLog(store.data_dir / "sessions"),
            executor_id=local.executor.executor_id,
            attended=attended,
        )

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Mend what a crash left, then take queued and orphaned turns."""
        await raise_counters(self.store, self._house.audit.directory)
        await mend_audit_logs(self.store, self._house.audit)
        await forget_old_inputs(self.store, self.settings.dedupe_days)
        await self._dispatcher.start(self._drive)

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop driving within the grace; running turns stay resumable. Closes branches."""
        await self._dispatcher.stop(self.settings.grace_s if grace_s is None else grace_s)
        self.live.close()
        await self._house.branches.aclose()

    async def __aenter__(self) -> "SessionService":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # ------------------------------------------------------------ turns

    async def submit(
        self,
        thread_id: str,
        body: str | Mapping[str, Any],
        door: str = "cli",
        sender: Mapping[str, Any] | None = None,
        dedupe_key: str | None = None,
        kind: InputKind = "message",
        *,
        turn_kind: str = "user",
    ) -> Receipt:
        """Accept an input durably; the turn it becomes is driven in its order (SE-17).

        Args:
            body: text, or `{"content": text or blocks}`.
            door: where it came from; with `dedupe_key` it names the input for ever.
            sender: `id` and `name` of the person.
            dedupe_key: the door's own id of the message; None makes one.
            kind: `message`, `steer` (joins a running turn) or `interrupt` (stops it first).
            turn_kind: what is recorded in `turn_started`.

        Raises:
            UnknownSession, QueueFull, StorageFull, InvalidArgument: nothing is stored.
        """
        if kind not in ("message", "steer", "interrupt"):
            raise InvalidArgument(f"kind is {kind!r}; use message, steer or interrupt (answers: `answer`)")
        content, text = content_of(body, self.settings)
        self.store.require_space()
        offered = Offered(
            thread_id=thread_id,
            door=door,
            dedupe_key=dedupe_key or new_id("i"),
            kind=kind,
            sender=dict(sender or {}),
            body={"content": content},
            text=text,
            turn_kind=turn_kind,
        )
        accepted = await self.store.write(lambda c: accept(c, offered, self.settings))
        if accepted.interrupt is not None:
            await self._signal(accepted.interrupt, Signal("interrupt"))
        if accepted.superseded is not None:
            await self._signal(accepted.superseded, Signal("answer"))
        if accepted.wake is not None:
            await self._wake(accepted.wake)
        return accepted.receipt

    async def answer(
        self,
        request_id: str | None,
        decision: str,
        *,
        thread_id: str | None = None,
        feedback: str | None = None,
        by: str = "",
        door: str = "cli",
    ) -> None:
        """Answer a pending request; the first answer counts, from whatever door (SE-21).

        Args:
            request_id: None means the one pending request of `thread_id`.
            decision: `approve`, `deny`, `auto_approve`; `approve`, `reject` for a plan; `happened`,
                `did_not_happen`, `run_again` for an effect; `raise`, `stop` for a budget; any text
                for a question.
            feedback: a comment, a plan's correction, the amount in USD to raise by.

        Raises:
            AlreadyAnswered, NoPendingRequest, InvalidArgument: nothing is changed.
        """
        turn, request = await find_request(self.store, request_id, thread_id)
        check_decision(request, decision)
        body = {"request_id": request.id, "decision": decision, "by": by, "feedback": feedback}
        sender = {"id": by or None, "door": door}
        wake = await self.store.write(lambda c: accept_answer(c, turn, request.id, body, sender))
        await self._signal(turn, Signal("answer", request.id))
        if wake:
            await self._wake(turn)

    async def cancel(self, thread_id: str) -> str:
        """Stop the running or waiting turn; what it finished stays. Returns its id.

        Raises:
            SessionError: nothing runs.
        """
        active = await self._active(thread_id)
        if active is None:
            raise SessionError(f"nothing runs in session {thread_id}")
        await self._signal(active, Signal("cancel"))
        if active.turn_id not in self._drivers:
            waiting = await self.store.write(lambda c: cancel_waiting(c, active.turn_id))
            if waiting is not None:
                await self._wake(waiting)
        return active.turn_id

    async def resume(self, turn_id: str | None = None, *, thread_id: str | None = None) -> TurnInfo:
        """Go on with a turn that failed or whose process died, under its own id (SE-22).

        Args:
            turn_id: None means the session's newest turn that can be resumed.

        Raises:
            TurnRunning: it runs. SessionError: it ended well, or a newer turn has run since.
        """
        row = await self.store.write(lambda c: queue_again(c, turn_id, thread_id))
        await self._wake(row)
        return turn_info(row)

    async def delete(self, thread_id: str) -> None:
        """Delete a session; its unlanded work can be restored for 7 days (SE-49)."""
        active = await self._active(thread_id)
        if active is not None and active.state == "running":
            await self.cancel(thread_id)
            await self.wait(active.turn_id)
        await delete_session(self._house, thread_id)
        self.live.publish(Published(thread_id, None, None, TurnMark("cancelled", stop_reason="deleted")))

    async def turn(self, turn_id: str) -> TurnInfo:
        """Return a turn; raises UnknownSession."""
        return await self.store.read(lambda c: turn_info(get_turn(c, turn_id)))

    async def turns(self, thread_id: str) -> list[TurnInfo]:
        """Return the turns of a session's history in order."""
        return await self.store.read(lambda c: all_turns(c, thread_id))

    async def wait(self, turn_id: str) -> TurnInfo:
        """Return the turn once it has ended or waits for a person, whichever process drives it."""
        thread_id = (await self.turn(turn_id)).thread_id
        with self.live.subscribe(thread_id) as viewer:
            while True:
                now = await self.turn(turn_id)
                if now.state not in ("queued", "running"):
                    return now
                await _news_of(viewer, turn_id)

    # ------------------------------------------------------------ reading along

    async def history(self, thread_id: str, *, after: int = 0, limit: int | None = None) -> list[Record]:
        """Return a session's records with seq > `after`, in order, a fork's inherited ones included."""
        return await self.store.records(thread_id, after=after, limit=limit)

    def subscribe(self, thread_id: str) -> Subscription:
        """Watch what this process does in a session, from now on."""
        return self.live.subscribe(thread_id)

    def follow(self, thread_id: str, after: int | None = None) -> AsyncGenerator[Published, None]:
        """Watch a session whoever drives it, from a place in its journal; see `follow.follow`."""
        return follow(self.store, self.live, thread_id, after)

    # ------------------------------------------------------------ inside

    async def _drive(self, ref: TurnRef) -> None:
        if ref.turn_id in self._drivers:
            return
        driver = Driver(self._house, ref)
        self._drivers[ref.turn_id] = driver
        try:
            following = await driver.run()
        finally:
            del self._drivers[ref.turn_id]
        if following is not None:
            await self._wake(following)

    def _deliver(self, ref: TurnRef, signal: Signal) -> bool:
        driver = self._drivers.get(ref.turn_id)
        if driver is None:
            return False
        driver.signal(signal)
        return True

    def _drain(self) -> None:
        for driver in self._drivers.values():
            driver.drain()

    async def _wake(self, turn: TurnRow) -> None:
        await self._dispatcher.submit(TurnRef(turn.thread_id, turn.turn_id, turn.attempt))

    async def _signal(self, turn: TurnRow, signal: Signal) -> None:
        await self._dispatcher.signal(TurnRef(turn.thread_id, turn.turn_id, turn.attempt), signal)

    async def _active(self, thread_id: str) -> TurnRow | None:
        found = await self.store.read(lambda c: turns_of(c, thread_id, OPEN))
        return next((turn for turn in found if turn.state in ("running", "waiting")), None)


async def _news_of(viewer: Subscription, turn_id: str) -> None:
    """Return when the turn may have stopped: it said so here, or a moment has passed elsewhere."""
    try:
        async with asyncio.timeout(LOOK_AGAIN_S):
            async for published in viewer:
                event = published.event
                if published.turn_id == turn_id and isinstance(event, TurnMark) and event.has_stopped:
                    return
            await asyncio.sleep(LOOK_AGAIN_S)  # the service stopped; another process may drive the turn
    except TimeoutError:
        return
