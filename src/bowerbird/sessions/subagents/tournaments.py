"""Tournaments that a door begins: they run beside turns and go on after a restart (DE-21, DE-26, SV-62).

Here: beginning them, finding them again, what is known of one. Not here: attempts, checks and ranking
(`bowerbird.subagents.tournament`), routes.

A tournament has the id of the call that its attempts are recorded under; its wish and its result are on
their records, so that there is nothing else to keep.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.core.errors import BowerbirdError, InvalidArgument, SessionError
from bowerbird.core.events import SubagentEnd, SubagentStart
from bowerbird.core.forms import decode
from bowerbird.sessions.live.hub import Live, Published
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.subagents.runner import Children
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.rows.subagents import subagents_in_contests
from bowerbird.store.store import Store
from bowerbird.subagents.records import Child, Contest

if TYPE_CHECKING:
    from bowerbird.subagents.calls import Calls
    from bowerbird.subagents.tournament import Wish

_log = logging.getLogger(__name__)

LOOK_AGAIN_S = 0.25

Terms = Callable[[SessionRow], tuple[Policy, Limits]]


@dataclass(frozen=True, slots=True)
class Tournament:
    """What is known of a tournament.

    Attributes:
        id: of it. attempts: the records of its attempts, in order; discarded ones too.
    """

    id: str
    attempts: tuple[Child, ...]

    @property
    def contest(self) -> Contest:
        """What was asked for, and the result once there is one."""
        found = self.attempts[0].contest
        assert found is not None, "a tournament's attempts say what they are attempts of"
        return found

    @property
    def state(self) -> str:
        """`running`, `finished` or `failed`."""
        result = self.contest.result
        if result is None:
            return "running"
        return "failed" if "error" in result else "finished"


class _Running(msgspec.Struct):
    calls: "Calls"
    task: "asyncio.Task[dict[str, Any]]"
    begun: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class Tournaments(SessionPart):
    """The tournaments that doors of this process began; belongs to one event loop.

    Args:
        store, children, live: of the process.
        terms: permissions and limits of a session's subagents.
    """

    def __init__(self, store: Store, children: Children, live: Live, terms: Terms) -> None:
        self._store = store
        self._children = children
        self._live = live
        self._terms = terms
        self._running: dict[str, _Running] = {}

    async def begin(
        self,
        thread_id: str,
        task: str,
        *,
        attempts: int | None = None,
        checks: Sequence[str] = (),
        models: Sequence[str] = (),
        merge: str = "none",
        agents: Sequence[str] = (),
    ) -> Tournament:
        """Start one and return it once its attempts are on record.

        Raises:
            InvalidArgument: what is asked for is no tournament. SessionError: it cannot start now.
            TurnRunning: a turn works on the branch. UnknownSession: there is no such session.
        """
        from bowerbird.sessions.subagents.for_doors import require_quiet
        from bowerbird.subagents.tournament import wish

        rules = self._children.tree.rules
        asked = wish(task, attempts, checks or rules.checks, models, merge, agents)
        problem = asked.problem()
        if problem is not None:
            raise InvalidArgument(problem)
        await require_quiet(self._store, thread_id)
        calls = await self._calls(thread_id)
        running = self._start(calls, asked)
        waiting = asyncio.ensure_future(running.begun.wait())
        try:
            await asyncio.wait((waiting, running.task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not running.begun.is_set():
            raise SessionError(str((await running.task).get("error")))
        found = await self.find(thread_id, calls.caller.call)
        assert found is not None, "it is on record"
        return found

    async def find(self, thread_id: str, tournament_id: str) -> Tournament | None:
        """Return a session's tournament, None when it has no such one."""
        children = await self._children.records.of(thread_id)
        mine = tuple(child for child in children if child.call == tournament_id and child.contest is not None)
        return Tournament(tournament_id, mine) if mine else None

    async def all(self, thread_id: str) -> list[Tournament]:
        """Return a session's tournaments that doors began, the newest first."""
        groups: dict[str, list[Child]] = {}
        for child in await self._children.records.of(thread_id):
            if child.contest is not None:
                groups.setdefault(child.call, []).append(child)
        return [Tournament(call, tuple(children)) for call, children in reversed(groups.items())]

    async def start(self, *, drives_all: bool) -> None:
        """Go on with those that a process that died, or was stopped, left, when a server starts."""
        if not drives_all:
            return
        from bowerbird.subagents.tournament import Wish

        rows = await self._store.read(subagents_in_contests)
        groups: dict[tuple[str, str], list[Child]] = {}
        for child in (decode(row.body, Child) for row in rows):
            groups.setdefault((child.parent, child.call), []).append(child)
        for (thread_id, call), attempts in groups.items():
            contest = attempts[0].contest
            if contest is None or contest.result is not None or call in self._running:
                continue
            if all(child.state == "discarded" for child in attempts):
                continue
            try:
                calls = await self._calls(thread_id, again=(attempts[0].turn, call))
            except BowerbirdError as error:  # say the session was deleted
                _log.warning("tournament %s of %s is not resumed: %s", call, thread_id, error)
                continue
            asked = Wish(
                contest.task, contest.attempts, contest.checks, contest.models, contest.merge, contest.agents
            )
            self._start(calls, asked)

    async def deleting(self, session: SessionRow) -> None:
        """End the tournaments of a session, which is about to be deleted."""
        mine = [r for r in self._running.values() if r.calls.caller.session == session.thread_id]
        for running in mine:
            running.calls.caller.stop.set("cancelled")
            running.task.cancel()
        await asyncio.gather(*(running.task for running in mine), return_exceptions=True)

    async def aclose(self) -> None:
        """Leave what runs to the next process."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------ inside

    async def _calls(self, thread_id: str, again: tuple[str, str] | None = None) -> "Calls":
        row = await self._store.read(lambda c: get_session(c, thread_id))
        policy, limits = self._terms(row)
        turn = again[0] if again is not None else None

        def emit(event: SubagentStart | SubagentEnd) -> None:
            self._live.publish(Published(thread_id, turn, None, event))

        return await self._children.on_behalf(thread_id, policy, limits, again=again, lasts=True, emit=emit)

    def _start(self, calls: "Calls", asked: "Wish") -> _Running:
        caller = calls.caller
        name = f"tournament {caller.call}"
        begun = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._run(calls, asked, begun), name=name)
        running = self._running[caller.call] = _Running(calls, task, begun)
        task.add_done_callback(lambda _: self._running.pop(caller.call, None))
        return running

    async def _run(self, calls: "Calls", asked: "Wish", begun: asyncio.Event) -> dict[str, Any]:
        try:
            from bowerbird.subagents.tournament import held

            apart = msgspec.structs.replace(asked, merge="none")
            result = await held(calls, apart, contest=asked.contest, admitted=lambda _: begun.set())
            if asked.merge == "best" and result.get("winner"):
                result["merge"] = await self._merged(calls, str(result["winner"]))
        except Exception as error:  # noqa: BLE001  nobody waits for it: its failure is its result
            _log.warning("tournament %s failed: %s", calls.caller.call, error, exc_info=error)
            result = {"error": f"{type(error).__name__}: {error}"}
        await self._note(calls, result)
        return result

    async def _merged(self, calls: "Calls", winner: str) -> dict[str, Any]:
        """Merge when no turn works on the branch: what it sees must not change under it."""
        thread_id = calls.caller.session
        while True:
            if await self._store.read(lambda c: lease_is_free(c, thread_id)):
                return await calls.merge(winner)
            await asyncio.sleep(LOOK_AGAIN_S)  # another process may hold the lease: nothing tells of its end

    async def _note(self, calls: "Calls", result: dict[str, Any]) -> None:
        """Keep the result on the first attempt's record, as that stands by now."""
        records, caller = self._children.records, calls.caller
        for child in await records.of(caller.session):
            if child.call == caller.call and child.contest is not None:
                await records.put(
                    msgspec.structs.replace(
                        child, contest=msgspec.structs.replace(child.contest, result=result)
                    )
                )
                return
