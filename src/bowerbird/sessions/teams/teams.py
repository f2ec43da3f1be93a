"""The teams of a process: who keeps whose teammates going, and what their turns are given (DE-46 … DE-67).

Here: starting, finding again, ending teammates; requests that expire; a lead's and a teammate's `TurnRun`.
Not here: one teammate's life (`teammate.py`), the tools' calls (`tool_calls.py`), rules and rows
(`bowerbird.teams`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.turn import TurnRun
from bowerbird.core.errors import BowerbirdError, UnknownSession
from bowerbird.core.events import Injected
from bowerbird.core.messages import user_text
from bowerbird.core.timestamps import from_iso, now_iso
from bowerbird.core.usage import Usage
from bowerbird.sessions.dispatch.dispatcher import Signal, TurnRef
from bowerbird.sessions.live.hub import Published, TurnMark
from bowerbird.sessions.parts import Delete, SessionPart
from bowerbird.sessions.teams.hub import TeamHub
from bowerbird.sessions.teams.tool_calls import TeamToolCalls
from bowerbird.sessions.teams.wake_lead import KIND as WOKEN
from bowerbird.sessions.turn_maker import TurnContext
from bowerbird.store.rows.leases import living_executors
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.team_mail import MessageRow, due_requests, leads_with_mail, next_expiry, unread
from bowerbird.store.rows.teams import MemberRow, living_members, member_at, members_of, take_member
from bowerbird.store.rows.turns import OPEN, TurnRow, turns_of
from bowerbird.teams.changes import KIND, count_usage, living, set_status
from bowerbird.teams.readable_copies import team_name
from bowerbird.teams.rules import LOOKING, TOOLS, Ended, TeamRules, identity, mail_text, wire
from bowerbird.tools.together.team import lead_tools, teammate_tools
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.sessions.teams.teammate import Life
    from bowerbird.tools.tool import Tool

SWEEP_S = 5.0
CLOSE_S = 30.0
LET_GO_S = 5.0
MAIL_CHARS = 100_000  # of one call of a model; what is beyond comes with the next

_log = logging.getLogger(__name__)


class TeamInbox:
    """Mail of one lead or teammate for its turns: told once, marked in the transaction that records it."""

    def __init__(self, hub: TeamHub, thread_id: str) -> None:
        self._hub = hub
        self._thread_id = thread_id

    async def poll(self) -> Sequence[Injected]:
        """See `agent.turn.Inbox`."""
        chosen = _fitting(await self.look())
        if not chosen:
            return ()
        text = user_text(mail_text([wire(row) for row in chosen]))
        return (Injected("inbox", text, ids=tuple(row.id for row in chosen)),)

    async def look(self) -> list[MessageRow]:
        """Return what is unread, and note whether a plan waits for an answer."""
        rows, waits = await self._hub.store.read(self._look)
        if waits:
            self._hub.awaiting.add(self._thread_id)
        else:
            self._hub.awaiting.discard(self._thread_id)
        return rows

    def _look(self, connection: Connection) -> tuple[list[MessageRow], bool]:
        from bowerbird.teams.requests import waits_for_plan

        member = member_at(connection, self._thread_id)
        waits = member is not None and waits_for_plan(connection, member)
        return unread(connection, self._thread_id), waits


class Teams(SessionPart):
    """Runs the teammates of sessions.

    Args:
        hub: what the parts share. runs: whether this process runs what a session has.
        model: of teammates, None = their lead's. temperature: likewise.
        model_of: names a session's model. silent_s: after so long a process counts as dead.
    """

    def __init__(
        self,
        hub: TeamHub,
        *,
        runs: Callable[[str], bool],
        model_of: Callable[[SessionRow], str],
        model: str | None = None,
        temperature: float | None = None,
        silent_s: int = 15,
        sweep_s: float = SWEEP_S,
    ) -> None:
        self.hub = hub
        self._runs = runs
        self._model_of = model_of
        self._model = model
        self._temperature = temperature
        self._silent_s = silent_s
        self._sweep_s = sweep_s
        self._lives: dict[str, tuple[Life, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self.desk = TeamToolCalls(
            hub,
            start=self._start,
            stop=self._stop,
            model_of=lambda row: self._model or self._model_of(row),
        )
        hub.live.relay(self._heard)
        hub.boards.listen(lambda _key, _state: hub.ring_all())

    def use(self, rules: TeamRules, *, model: str | None, temperature: float | None) -> None:
        """Follow other rules with the next thing that happens, another model with the next turn."""
        self.hub.rules = rules
        self._model, self._temperature = model, temperature

    def turn_ending(self, connection: Connection, turn: TurnRow) -> Usage | None:
        """Count what teammates used since the lead's last turn: each of their turns counts once."""
        return count_usage(connection, turn.thread_id, turn.turn_id)

    # ------------------------------------------------------------ life of the process

    async def start(self, *, drives_all: bool) -> None:
        """Go on with the teammates that a process which died left, and wake leads that have mail."""
        if self._keepers:
            return
        await self.adopt()
        for lead in await self.hub.store.read(leads_with_mail):
            if self._runs(lead):
                await self.hub.wake_lead(lead)
        self._keepers = [
            asyncio.create_task(self._sweep(), name="bowerbird-teams"),
            asyncio.create_task(self._clock(), name="bowerbird-team-requests"),
        ]

    async def stop(self, grace_s: float) -> None:
        """Leave every teammate to the next process; turns get the grace to reach a step's end."""
        self.hub.stopping = True
        self.hub.ring_all()
        for keeper in self._keepers:
            keeper.cancel()
        tasks = [task for _, task in self._lives.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
            late = [task for task in tasks if not task.done()]
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1.0)
        others = [*self._keepers, *self._tasks]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def adopt(self) -> None:
        """Keep those living teammates going that are this process's to run and that nobody else keeps."""
        hub = self.hub
        rows = [row for row in await hub.store.read(living_members) if self._runs(row.lead)]
        rows = [row for row in rows if row.thread_id not in self._lives]
        if not rows or hub.stopping:
            return
        alive = await hub.store.read(lambda c: living_executors(c, self._silent_s))
        for row in rows:
            if row.holder in alive - {hub.holder}:
                continue
            dead = () if row.holder is None else (row.holder,)
            taken = await hub.store.write(partial(take_member, row=row, holder=hub.holder, dead=dead))
            if taken and not hub.stopping:
                await hub.know(row.lead)
                self._start(_held(row, hub.holder))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_s)
            try:
                await self.adopt()
            except BowerbirdError as error:
                _log.warning("teams: %s", error)

    async def _clock(self) -> None:
        """Expire requests that nobody answered in time."""
        while True:
            self.hub.asked.clear()
            try:
                until = await self.hub.store.read(next_expiry)
                wait_s = None if until is None else (from_iso(until) - datetime.now(UTC)).total_seconds()
                if wait_s is not None and wait_s <= 0:
                    await self._expire()
                    continue
            except BowerbirdError as error:
                _log.warning("requests of teams: %s", error)
                wait_s = self._sweep_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._sweep_s if wait_s is None else min(wait_s, self._sweep_s)):
                    await self.hub.asked.wait()

    async def _expire(self) -> None:
        from bowerbird.teams.requests import expire

        now = now_iso()
        for request in await self.hub.store.read(lambda c: due_requests(c, now)):
            try:
                done = await self.hub.store.write(partial(expire, request=request))
            except UnknownSession:  # it is deleted, its requests with it
                continue
            if done:
                await self.hub.announce(request.lead)

    def _start(self, row: MemberRow) -> None:
        from bowerbird.sessions.teams.teammate import Life

        if row.thread_id in self._lives or self.hub.stopping:
            return
        life = Life(self.hub, row)
        task = asyncio.create_task(life.run(), name=f"teammate {row.thread_id}")
        self._lives[row.thread_id] = (life, task)
        task.add_done_callback(partial(self._gone, row))

    def _gone(self, row: MemberRow, task: "asyncio.Task[None]") -> None:
        self._lives.pop(row.thread_id, None)
        self.hub.forget(row.thread_id)
        if not self.hub.stopping:
            self._later(self._let_go(row))
        error = None if task.cancelled() else task.exception()
        if error is not None:  # a defect ends one life with its name; the sweep begins another
            _log.error("teammate %s", row.thread_id, exc_info=error)

    async def _let_go(self, row: MemberRow) -> None:
        await asyncio.sleep(LET_GO_S)  # copies that are being written on its fork are done by then
        if row.thread_id not in self._lives:
            await self.hub.let_go(row)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _heard(self, published: Published) -> None:
        # A turn that ended may have been too far to read what came last.
        event = published.event
        if not isinstance(event, TurnMark) or event.state != "done":
            return
        if self.hub.has_team(published.thread_id) and not self.hub.stopping:
            self._later(self._after(published.thread_id))

    async def _after(self, thread_id: str) -> None:
        try:
            if await self.hub.has_mail(thread_id):
                await self.hub.wake_lead(thread_id)
        except BowerbirdError as error:
            _log.warning("session %s was not woken: %s", thread_id, error)

    # ------------------------------------------------------------ ending teammates

    async def cancel(self, thread_id: str) -> bool:
        """End a session's teammates because a person cancelled it; returns whether there were any."""
        rows = await self.hub.store.read(lambda c: living(c, thread_id))
        await asyncio.gather(*(self._stop(row, "interrupted") for row in rows))
        return bool(rows)

    async def close(self, lead: str, status: Ended = "shutdown") -> None:
        """End a session's teammates and wait until they have ended.

        Args:
            status: `shutdown` merges what they have done so far, `interrupted` keeps that apart.
        """
        rows = await self.hub.store.read(lambda c: living(c, lead))
        await asyncio.gather(*(self._stop(row, status) for row in rows))
        waiting = [self._lives[row.thread_id][1] for row in rows if row.thread_id in self._lives]
        if waiting:
            await asyncio.wait(waiting, timeout=CLOSE_S)

    async def changing(self, thread_id: str, changes: Mapping[str, Any]) -> None:
        """End the team of a session that is to have none."""
        if changes.get("enable_teams", True) is not True:
            await self.close(thread_id)

    async def deleting(self, session: SessionRow) -> None:
        """End a session's team, what it did apart."""
        await self.close(session.thread_id, "interrupted")

    async def bury(self, thread_id: str, delete: Delete) -> None:
        """Delete the sessions of a deleted session's teammates, which have ended."""
        for row in await self.hub.store.read(lambda c: members_of(c, thread_id)):
            with contextlib.suppress(UnknownSession):
                await delete(row.thread_id)
        self.hub.forget_team(thread_id)

    async def _stop(self, row: MemberRow, status: Ended) -> None:
        if row.thread_id not in self._lives:
            await self.adopt()
        found = self._lives.get(row.thread_id)
        if found is not None:
            await found[0].stop(status)
            return
        # Another process keeps it going: that one hears of its turn's end, or finds it ended.
        turns = await self.hub.store.read(lambda c: turns_of(c, row.thread_id, OPEN))
        for turn in turns:
            ref = TurnRef(turn.thread_id, turn.turn_id, turn.attempt)
            await self.hub.drives.tell(ref, Signal("cancel"))
        if not turns:
            await self.hub.store.write(lambda c: set_status(c, row, status))
            await self.hub.announce(row.lead)

    # ------------------------------------------------------------ turns

    def tools(self, session: SessionRow | None) -> "Sequence[Tool]":
        """Return what the model of a session with teams is offered, beside its other tools."""
        return self._lead_tools if session is not None and session.flags.get("enable_teams") else ()

    @cached_property
    def _lead_tools(self) -> "tuple[Tool, ...]":
        return tuple(lead_tools(self.desk))

    @cached_property
    def _own_tools(self) -> "tuple[Tool, ...]":
        return tuple(teammate_tools(self.desk))

    async def join(self, run: TurnRun, context: TurnContext) -> TurnRun:
        """Return a turn's run with what it has of a team: as a lead, as a teammate, or nothing."""
        if context.session.kind == KIND:
            return await self._as_teammate(run, context)
        wanted = context.flags.get("enable_teams") or context.turn.kind == WOKEN
        if context.session.kind == "subagent" or not wanted:
            return run
        lead = context.session.thread_id
        await self.hub.know(lead)
        if context.turn.started_at is not None:
            # An attempt that died may have left the branch taken back to before a merge of its time.
            await self.hub.merge_again(lead, context.turn.started_at)
        await self.hub.copy(lead)
        return msgspec.structs.replace(
            run, tools=run.tools.with_(*self._lead_tools), inbox=TeamInbox(self.hub, lead)
        )

    async def _as_teammate(self, run: TurnRun, context: TurnContext) -> TurnRun:
        thread = context.session.thread_id
        inbox = TeamInbox(self.hub, thread)
        member = await self.hub.store.read(lambda c: member_at(c, thread))
        if member is None:
            raise UnknownSession(f"{thread} is not a teammate's session")
        await inbox.look()  # calls that a dead process left are judged before the first poll
        lead = await self.hub.session(member.lead)
        own = self._own_tools
        there = [tool.name for tool in run.tools if tool.name in TOOLS]
        tools = Toolset((*run.tools.only(*there), *own), absent=run.tools.absent)
        # In plan mode it looks and talks; a plan that waits for a person is its lead's to make.
        names = LOOKING if lead.flags.get("enable_plan_mode") else frozenset(TOOLS)
        await self.hub.know(member.lead)
        return msgspec.structs.replace(
            run,
            tools=tools,
            more_tools=None,
            delegate=None,
            policy=replace(run.policy, role=names | {tool.name for tool in own}),
            mode="normal",
            sampling=run.sampling.at(self._temperature),
            inbox=inbox,
            who=msgspec.structs.replace(
                run.who,
                agent=member.name,
                purpose="teammate",
                identity=identity(member.name, member.role, team_name(member.lead)),
                awaiting=lambda: thread in self.hub.awaiting,
            ),
        )


def _fitting(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the oldest messages that one call of a model is given, at least one."""
    chosen: list[MessageRow] = []
    size = 0
    for row in rows:
        size += len(row.content)
        if chosen and size > MAIL_CHARS:
            break
        chosen.append(row)
    return chosen


def _held(row: MemberRow, holder: str) -> MemberRow:
    return msgspec.structs.replace(row, holder=holder)
