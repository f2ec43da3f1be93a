"""The session service: the one thing every door talks to (SE-17 … SE-24, 36, 49).

Here: the calls of doors, in terms of sessions, turns and requests. Not here: how a turn is driven
(`turn/driver.py`), rules of acceptance (`inbox/accept.py`), wire forms.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any

from msgspec.structs import replace

from bowerbird.core.errors import InvalidArgument, SessionError
from bowerbird.core.events import CallAnswer
from bowerbird.core.ids import new_id
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.branches.landing_checks import Checking
from bowerbird.sessions.delivery.outbox import Outbox
from bowerbird.sessions.dispatch.dispatcher import Dispatcher, LocalDispatcher, Signal, TurnRef
from bowerbird.sessions.forks import delete_session, finish_deletions
from bowerbird.sessions.inbox.accept import Accepted, Offered, accept_answer, content_of, take_back
from bowerbird.sessions.inbox.answers import answer_body, check_decision, find_request
from bowerbird.sessions.journal.audit_log import AuditLog
from bowerbird.sessions.journal.history_cache import Recall
from bowerbird.sessions.live.hub import InputMark, Live, Published, TurnMark
from bowerbird.sessions.live.relay import Relay
from bowerbird.sessions.lookup import Lookup
from bowerbird.sessions.money_limits import Authority, permit_raise
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.queries import Reader
from bowerbird.sessions.review import Review
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.begin_on_accept import EarlyStarts
from bowerbird.sessions.turn.begin_transaction import sender_of
from bowerbird.sessions.turn.driver import Driver
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.undriven_turns import cancel_paused, cancel_undriven, queue_again
from bowerbird.sessions.turn_maker import TurnMaker
from bowerbird.sessions.upkeep.keepers import Keepers
from bowerbird.sessions.upkeep.retention import Removed, tidy
from bowerbird.sessions.upkeep.startup import raise_counters
from bowerbird.sessions.values import InputKind, Receipt, TurnInfo
from bowerbird.sessions.views import input_mark, turn_info
from bowerbird.store.rows.turns import OPEN, TurnRow, get_turn, turns_of
from bowerbird.store.store import Store

LOOK_AGAIN_S = 0.25
LET_GO_S = 0.02  # until a driver that was stopped has given its lease back


class SessionService(Reader):
    """Durable sessions over one store.

    Args:
        store: open; closed by its owner.
        maker: makes each turn's model, tools and instructions.
        branches: the data directory's branches; made from the store's directory when None.
        settings: limits and times.
        attended: whether a person can answer questions; False denies what would ask.
        dispatcher: who runs turns; in this process when None. drives: whose; None = all (`LocalDispatcher`).
        checking: runs the command that judges changes before they land; None = nothing does.
        live: shows what happens; made when None.
        parts: gives the features of its sessions, in their order; asked once.

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
        checking: Checking | None = None,
        live: Live | None = None,
        parts: "Callable[[SessionService], Sequence[SessionPart]]" = lambda _: (),
    ) -> None:
        self.store = store
        self.settings = settings or SessionSettings()
        self.live = live or Live()
        self._drivers: dict[str, Driver] = {}
        self._relayed = False
        self._draining = False
        self._drives_all = drives is None
        self.keepers = Keepers(self, drives_all=self._drives_all)
        local = LocalDispatcher(store, self.settings, deliver=self._deliver, drain=self._drain, drives=drives)
        self._dispatcher: Dispatcher = dispatcher or local
        self._room: Callable[[str], int] = local.room if dispatcher is None else lambda _: 0
        self._early = EarlyStarts()
        self.executor_id = local.executor.executor_id
        self.parts = tuple(parts(self))
        self._context = DriverContext(
            store=store,
            branches=branches or Branches(store.data_dir),
            maker=maker,
            settings=self.settings,
            live=self.live,
            audit=AuditLog(store.data_dir / "sessions"),
            executor_id=self.executor_id,
            outbox=Outbox(store, self.executor_id, max_age_h=self.settings.outbox_age_h),
            attended=attended,
            recall=Recall(store),
            parts=self.parts,
        )
        self.lookup = Lookup(store)
        self.review = Review(self, self._context.branches, checking)

    def use(self, settings: SessionSettings) -> None:
        """Follow other limits and times with the next input and turn."""
        self.settings = settings
        self._context = replace(self._context, settings=settings)

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Mend what a crash left, then take queued and orphaned turns."""
        await raise_counters(self.store, self._context.audit.directory)
        await self.keepers.start(self._context.audit, self._context.branches.look_after)
        await finish_deletions(self._context)
        if self.store.notices is not None and not self._relayed:
            self._relayed = True
            await Relay(self.store.notices, self.live).start()
        await self._dispatcher.start(self._drive)
        await self.outbox.start()
        for part in self.parts:
            await part.start(drives_all=self._drives_all)

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop driving within the grace; running turns stay resumable. Closes branches."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (self.settings.grace_s if grace_s is None else grace_s)
        self._drain()  # turns of sessions come to their steps' ends meanwhile
        for part in reversed(self.parts):
            await part.stop(max(0.0, until - loop.time()))
        await self._dispatcher.stop(max(0.0, until - loop.time()))
        await self._early.put_back(self.store)
        await self.outbox.stop()
        await self.keepers.aclose()
        self.live.close()
        await self._context.branches.aclose()

    async def tidy(self) -> Removed:
        """Remove what is older than settings keep it; runs by itself at start and every hour."""
        context = self._context
        return await tidy(self.store, context.audit, self.settings, self.delete, branches=context.branches)

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
        """Accept an input durably; the turn it becomes is driven in its order.

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
        room = self._room(thread_id)
        work = asyncio.ensure_future(self._early.accept(self._context, offered, room))
        try:
            accepted = await asyncio.shield(work)
        except asyncio.CancelledError:
            # Nobody waits for the receipt; a turn that was begun must reach its driver all the same.
            await asyncio.wait([work])
            if not work.cancelled() and work.exception() is None:
                await self.go_on(offered, work.result())
            raise
        await self.go_on(offered, accepted)
        return accepted.receipt

    async def go_on(self, offered: Offered, accepted: Accepted) -> None:
        """Show an input that was accepted, and have its turn driven."""
        receipt = accepted.receipt
        if not (receipt.duplicate or accepted.answers):
            mark = input_mark(offered, receipt)
            self.live.publish(Published(offered.thread_id, receipt.turn_id, None, mark))
        if accepted.interrupt is not None:
            await self._signal(accepted.interrupt, Signal("interrupt"))
        if accepted.superseded is not None:
            await self._signal(accepted.superseded, Signal("answer"))
        if accepted.wake is not None:
            await self.wake(accepted.wake)

    async def take_back(self, thread_id: str, inbox_id: str) -> None:
        """Cancel an accepted input before its turn begins; every viewer is told.

        Raises:
            UnknownSession: no such input. NotQueued: its turn has begun.
        """
        row = await self.store.write(lambda c: take_back(c, thread_id, inbox_id))
        turn_id = row.turn_id or ""
        mark = InputMark(row.id, turn_id, kind=row.kind, state="cancelled", sender=sender_of(row))
        self.live.publish(Published(thread_id, turn_id or None, None, mark))

    async def answer(
        self,
        request_id: str | None,
        decision: str,
        *,
        thread_id: str | None = None,
        feedback: str | None = None,
        by: str = "",
        door: str = "cli",
        authority: Authority = "admin",
        calls: Mapping[str, CallAnswer] = MappingProxyType({}),
    ) -> None:
        """Answer a pending request; the first answer counts, from whatever door.

        Args:
            request_id: None means the one pending request of `thread_id`.
            decision: one of `inbox/answers.py`, by the kind of the request; any text for a question.
            feedback: a comment, a plan's correction, the amount in USD to raise by.
            authority: what the answerer may decide beside the session's own affairs. calls: single ones.

        Raises:
            NotAllowed, AlreadyAnswered, NoPendingRequest, InvalidArgument: nothing is changed.
        """
        turn, request = await find_request(self.store, request_id, thread_id)
        check_decision(request, decision, calls, feedback)
        body = answer_body(request.id, decision, by, feedback, calls)
        sender = {"id": by or None, "door": door}
        if request.kind == "budget" and decision == "raise":
            await permit_raise(self.store, request, body, turn.thread_id, self.settings, authority)
        wake = await self.store.write(lambda c: accept_answer(c, turn, request.id, body, sender))
        await self._signal(turn, Signal("answer", request.id))
        if wake:
            await self.wake(turn)

    async def cancel(self, thread_id: str) -> str:
        """Stop the running or waiting turn, or the one about to run, and what runs beside; returns its id.

        What it finished stays; what is queued behind it runs next. Where only parts worked, the id is "".

        Raises:
            SessionError: nothing runs.
        """
        has_ended = any([await part.cancel(thread_id) for part in self.parts])
        open_turns = await self.store.read(lambda c: turns_of(c, thread_id, OPEN))
        first = open_turns[0] if open_turns else None
        active = next((turn for turn in open_turns if turn.state in ("running", "waiting")), first)
        if active is None:
            if has_ended:
                return ""
            raise SessionError(f"nothing runs in session {thread_id}")
        if active.turn_id in self._drivers:
            await self._signal(active, Signal("cancel"))
            return active.turn_id
        stopped = await self.store.write(lambda c: cancel_undriven(c, active.turn_id))
        if stopped.state == "running":  # another process drives it
            await self._signal(active, Signal("cancel"))
        elif stopped.state == "cancelled":
            mark = TurnMark("cancelled", stop_reason="cancelled")
            self.live.publish(Published(thread_id, active.turn_id, None, mark))
        else:
            await self._signal(active, Signal("cancel"))
            await self.wake(stopped)
        return active.turn_id

    async def disconnect(self, turn_id: str) -> None:
        """Stop a running turn because its last viewer left; it ends as `disconnected`, resumable.

        Nothing happens to a turn that has ended, or that waits for a person without being driven.
        """
        turn = await self.store.read(lambda c: get_turn(c, turn_id))
        if turn.turn_id in self._drivers or turn.state == "running":
            await self._signal(turn, Signal("disconnect"))

    async def resume(self, turn_id: str | None = None, *, thread_id: str | None = None) -> TurnInfo:
        """Go on with a turn that failed or whose process died, under its own id.

        Args:
            turn_id: None means the session's newest turn that can be resumed.

        Raises:
            TurnRunning: it runs. SessionError: it ended well, or a newer turn has run since.
        """
        row = await self.store.write(lambda c: queue_again(c, turn_id, thread_id))
        await self.wake(row)
        return turn_info(row)

    async def delete(self, thread_id: str) -> None:
        """Delete a session, which stops its turn; unlanded work can be restored for 7 days."""
        session = await self.row(thread_id)
        if session.branch_id is not None:
            await self.review.stop_check(session.branch_id)
        for part in self.parts:
            await part.deleting(session)
        await self._delete_one(thread_id)
        for part in reversed(self.parts):
            await part.bury(thread_id, self._delete_one)
        self.live.publish(Published(thread_id, None, None, TurnMark("cancelled", stop_reason="deleted")))

    async def _delete_one(self, thread_id: str) -> None:
        while not await delete_session(self._context, thread_id):
            with contextlib.suppress(SessionError):  # it has ended by itself
                await self.wait(await self.cancel(thread_id))
            await asyncio.sleep(LET_GO_S)

    async def wait(self, turn_id: str) -> TurnInfo:
        """Return the turn once it has ended or waits for a person, whichever process drives it."""
        thread_id = (await self.turn(turn_id)).thread_id
        with self.live.subscribe(thread_id) as viewer:
            while True:
                now = await self.turn(turn_id)
                if now.state not in ("queued", "running"):
                    return now
                await viewer.news_of(turn_id, LOOK_AGAIN_S)

    # ------------------------------------------------------------ inside

    async def _drive(self, ref: TurnRef) -> None:
        if ref.turn_id in self._drivers:
            return
        driver = Driver(self._context, ref, self._early.take(ref.turn_id))
        self._drivers[ref.turn_id] = driver
        try:
            following = await driver.run()
        finally:
            del self._drivers[ref.turn_id]
        if following is None and driver.was_cancelled:
            following = await self.store.write(lambda c: cancel_paused(c, ref.turn_id))
        if following is not None:
            await self.wake(following)

    async def drive(self, ref: TurnRef) -> None:
        """Drive a subagent's turn for its caller until it stops, outside of the dispatcher's slots."""
        if self._draining:
            await asyncio.Event().wait()  # nothing more is begun here: whoever waits is cancelled soon
        await self._drive(ref)

    async def tell(self, ref: TurnRef, signal: Signal) -> None:
        """Let a signal reach the driver of a turn."""
        await self._dispatcher.signal(ref, signal)

    def _deliver(self, ref: TurnRef, signal: Signal) -> bool:
        driver = self._drivers.get(ref.turn_id)
        if driver is None:
            return False
        driver.signal(signal)
        return True

    def _drain(self) -> None:
        self._draining = True
        for driver in self._drivers.values():
            driver.drain()

    async def wake(self, turn: TurnRow) -> None:
        """Have a turn driven that was queued."""
        await self._dispatcher.submit(TurnRef(turn.thread_id, turn.turn_id, turn.attempt))

    async def _signal(self, turn: TurnRow, signal: Signal) -> None:
        await self._dispatcher.signal(TurnRef(turn.thread_id, turn.turn_id, turn.attempt), signal)
