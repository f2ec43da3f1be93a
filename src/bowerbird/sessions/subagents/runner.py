"""Subagents as durable sessions: they resume from their own journal after a kill -9 (DE-18, SE-57).

Here: how a child's turn is driven for its caller, what a turn's run gains for having children or for
being one. Not here: which children there are (`subagents/calls.py`), their rows (`records`).

A child's turn is never taken by a dispatcher: it is driven by the call of its caller, which a resumed
caller makes again and finds its children by.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.delegates import Caller, Delegate, untold
from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.agent.prompt import delegation_block
from bowerbird.agent.turn import TurnRun
from bowerbird.core.errors import SessionError, WorkspaceError
from bowerbird.core.events import RunError, SubagentEnd, SubagentStart
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_call_id, new_id
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.core.usage import Usage
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.dispatch.dispatcher import Signal, TurnRef
from bowerbird.sessions.journal.history import load
from bowerbird.sessions.parts import Delete, SessionPart
from bowerbird.sessions.subagents.by_others import ByOthers
from bowerbird.sessions.subagents.records import KIND, StoredRecords
from bowerbird.sessions.turn_maker import TurnContext
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.rows.turns import TurnRow, turns_of, update_turn
from bowerbird.store.store import Store
from bowerbird.subagents.entries import Wanted
from bowerbird.subagents.forking import checks_like, forks_of
from bowerbird.subagents.offers import Delegation
from bowerbird.subagents.records import Child
from bowerbird.subagents.roles import NEVER, AgentType, agent_types
from bowerbird.subagents.runner import ChildEnd, Job, RunCheck
from bowerbird.subagents.session_tree import Rules, Tree
from bowerbird.subagents.shared_budget import PurseBudget, of_a_child, price_of
from bowerbird.tools.together.subagents import subagent_tools

if TYPE_CHECKING:
    from bowerbird.subagents.calls import Calls
    from bowerbird.tools import Tool
    from bowerbird.workspace import Branch

DRIVE_AGAIN_S = 0.25
CLOSE_S = 2.0
_STOPS = {
    "end_turn": "completed",
    "max_turns": "max_iterations",
    "budget": "cost_budget",
    "error": "model_error",
}


class Drives(Protocol):
    """What children need of the session service."""

    async def drive(self, ref: TurnRef) -> None:
        """Drive a turn in this process until it stops, or return at once where another one does."""
        ...

    async def tell(self, ref: TurnRef, signal: Signal) -> None:
        """Let a signal reach the driver of a turn."""
        ...


class Children(SessionPart):
    """Runs subagents of sessions; implements `subagents.runner.ChildRunner`.

    Args:
        store, branches: of the process. drives: the session service.
        rules: of settings. model_of: names a session's model.
        model: of subagents, None = their caller's. temperature: likewise.
        tiers: names of model tiers. sandboxes: of the process.
        others: runs those whose task another vendor's agent does; None = nobody does.

    Attributes:
        lasting: they outlive a process that is shut down.
    """

    lasting = True

    def __init__(
        self,
        store: Store,
        branches: Branches,
        drives: Drives,
        *,
        rules: Rules,
        model_of: Callable[[SessionRow], str],
        sandboxes: SandboxHost,
        model: str | None = None,
        temperature: float | None = None,
        tiers: Sequence[str] = (),
        others: ByOthers | None = None,
    ) -> None:
        self._store = store
        self._others = others
        self._branches = branches
        self._drives = drives
        self._model_of = model_of
        self._model = model
        self._temperature = temperature
        self._tiers = tuple(tiers)
        self._sandboxes = sandboxes
        self._jobs: dict[str, Job] = {}
        self._types = dict(agent_types(rules.types))  # shared with the records
        self.records = StoredRecords(store, self._types, self._model_name)
        self.tree = Tree(self, self.records, rules)
        self.delegation = Delegation(self.tree)

    def use(
        self, rules: Rules, *, model: str | None, temperature: float | None, tiers: Sequence[str]
    ) -> None:
        """Start subagents by other settings from now on; arguments as when it was made."""
        self._model, self._temperature, self._tiers = model, temperature, tuple(tiers)
        self._types.clear()
        self._types.update(agent_types(rules.types))
        self.tree.use(rules)

    async def used_before(self, turn: TurnRow) -> Usage:
        """Return what the ended subagents of a turn used."""
        return await self.records.used_in(turn.thread_id, turn.turn_id)

    # ------------------------------------------------------------ a turn that has children, or is one

    def tools(self, session: SessionRow | None) -> "Sequence[Tool]":
        """Return what the model of a session is offered to delegate with, beside its other tools."""
        return self._tools_of(self.delegation)

    async def join(self, run: TurnRun, context: TurnContext) -> TurnRun:
        """Return a turn's run with what it may delegate; a child's also with what its caller says.

        Raises:
            SessionError: a subagent's turn that no caller waits for.
        """
        if context.session.kind != KIND:
            return run if context.session.kind == "teammate" else self._delegating(run, self.delegation)
        thread = context.session.thread_id
        job = self._jobs.get(thread)
        if job is None:
            raise SessionError(f"{thread} is a subagent: it runs only while its caller waits for it")
        return self._as_child(run, job)

    async def on_behalf(
        self,
        thread_id: str,
        policy: Policy | None = None,
        limits: Limits | None = None,
        *,
        again: tuple[str, str] | None = None,
        lasts: bool = False,
        emit: Callable[[SubagentStart | SubagentEnd], None] = untold,
    ) -> "Calls":
        """Return what a door uses for a session's subagents, beside its turns.

        Args:
            policy, limits: of subagents that are started; the defaults when None.
            again: turn and call of an earlier one, whose subagents are found again.
            lasts: the door finds them after a restart; otherwise they end with this process.
            emit: takes the events of their beginnings and ends.

        Raises:
            UnknownSession: there is no such session. InvalidWorkspace: it has no branch.
        """
        row = await self._store.read(lambda c: get_session(c, thread_id))
        turn, call = again or (new_id("t"), new_call_id())
        branch = await self._branches.of(row)
        caller = Caller(
            branch=branch.bound(turn=turn, call=call),
            session=thread_id,
            turn=turn,
            call=call,
            agent="main",
            policy=policy or Policy(),
            limits=limits or Limits(),
            returns=lasts,
            emit=emit,
        )
        return self.delegation.calls(caller)

    async def aclose(self) -> None:
        """Wait, for a moment, until the children of callers that were stopped have left their turns."""
        tasks = [running.task for running in self.tree.running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)

    async def bury(self, thread_id: str, delete: Delete) -> None:
        """Delete the sessions of a deleted session's subagents; their handles are gone."""
        for child in await self.records.of(thread_id):
            if child.state != "discarded":
                await self.tree.stop(child.session)
                await self.bury(child.session, delete)
                await delete(child.session)
                await self.records.put(msgspec.structs.replace(child, state="discarded"))

    def _as_child(self, run: TurnRun, job: Job) -> TurnRun:
        caller, kind = job.caller, job.kind
        policy = kind.policy(caller.policy)
        tools = run.tools.without(*NEVER)
        if caller.mode == "plan":
            # Its own mode stays normal: a plan that waits for a person is its caller's to make.
            looking = frozenset(tool.name for tool in tools if tool.effect in ("read", "plan"))
            policy = replace(policy, role=looking & (policy.role or looking))
        limits = replace(of_a_child(caller.limits, job.seconds), context_window=run.limits.context_window)
        child = msgspec.structs.replace(
            run,
            tools=tools,
            policy=policy,
            mode="normal",
            limits=limits,
            who=msgspec.structs.replace(run.who, agent=job.child.name, purpose="subagent"),
            sampling=run.sampling.at(self._temperature),
            budget=PurseBudget(job.purse, price_of(job.purse, run.model)),
        )
        return self._delegating(child, job.delegate) if job.delegate is not None else child

    def _delegating(self, run: TurnRun, delegation: Delegate) -> TurnRun:
        """Return a run that may have subagents, as far as depth allows."""
        if not delegation.offers:
            return run
        guidance = delegation_block(delegation.guidance, full=run.full)
        system = run.system() if callable(run.system) else run.system
        tools = run.tools.with_(*self._tools_of(delegation))
        return msgspec.structs.replace(run, tools=tools, system=(*system, guidance), delegate=delegation)

    def _tools_of(self, delegation: Delegate) -> "tuple[Tool, ...]":
        others = self._others is not None and self._others.agents.offered
        return tuple(subagent_tools(delegation.offers, others=others))

    # ------------------------------------------------------------ running

    async def refusal(self, wanted: Wanted, kind: AgentType) -> str | None:
        """See `ChildRunner`."""
        if not wanted.tier or wanted.tier in self._tiers:
            return None
        known = f"there are {', '.join(self._tiers)}" if self._tiers else "model_router is off"
        return f"there is no model tier {wanted.tier!r}; {known}"

    async def lacking(self, provider: str) -> str | None:
        """See `ChildRunner`."""
        if self._others is None:
            return f"{provider} cannot attempt here: this process asks no other vendors' agents"
        return await self._others.agents.lacking(provider)

    async def fork(self, caller: Caller, names: list[str]) -> "list[Branch]":
        """See `ChildRunner`."""
        return await to_thread(forks_of, caller.branch, names)

    async def open(self, child: Child) -> "Branch":
        """See `ChildRunner`."""
        return await self._branches.of(await self._session(child))

    async def forget(self, child: Child) -> None:
        """See `ChildRunner`."""
        try:
            await self._branches.discard(await self._session(child), keep=False)
        except WorkspaceError:
            return  # it is gone already: the process died between the files and the record

    async def run(self, job: Job) -> ChildEnd:
        """See `ChildRunner`: drives the child's one turn, or goes on with it."""
        thread = job.child.session
        turn = await self._turn(thread)
        if turn.is_ended:
            return await self._end(turn)
        if job.child.provider:
            assert self._others is not None, "`lacking` refused it where there is nobody to ask"
            return await self._end(await self._others.run(job, await self._session(job.child)))
        ref = TurnRef(thread, turn.turn_id, turn.attempt)
        stopping: list[asyncio.Task[None]] = []

        def stop(reason: str) -> None:
            kind = "interrupt" if reason == "interrupted" else "cancel"
            stopping.append(asyncio.ensure_future(self._drives.tell(ref, Signal(kind))))

        self._jobs[thread] = job
        forget = job.stop.listen(stop)
        try:
            turn = await self._driven(job, ref)
        finally:
            forget()
            del self._jobs[thread]
            await asyncio.gather(*stopping)
        return await self._end(turn)

    async def _driven(self, job: Job, ref: TurnRef) -> TurnRow:
        while True:
            await self._drives.drive(ref)
            turn = await self._turn(ref.thread_id)
            if turn.is_ended:
                return turn
            if turn.state == "waiting" or job.stop.reason is not None:
                return await self._given_up(turn)
            await asyncio.sleep(DRIVE_AGAIN_S)  # a process that died holds its lease for a while yet

    async def _given_up(self, turn: TurnRow) -> TurnRow:
        """End a turn that waits for somebody, or was never begun: its caller waits no longer."""
        stop = "cancelled" if turn.waiting_for is None else f"awaiting_{turn.waiting_for}"

        def write(connection: Connection) -> None:
            update_turn(
                connection, turn.turn_id, state="cancelled", waiting_for=None, stop_reason=stop,
                ended_at=now_iso(),
            )  # fmt: skip

        await self._store.write(write)
        return await self._turn(turn.thread_id)

    async def _end(self, turn: TurnRow) -> ChildEnd:
        records = await self._store.records(turn.thread_id)
        said = [m.text for m in load(records, turn.turn_id).history.messages if m.role == "assistant"]
        stop = turn.stop_reason or turn.state
        return ChildEnd(
            stop=_STOPS.get(stop, stop),
            text=next((text for text in reversed(said) if text), ""),
            error=None if turn.error is None else decode(turn.error, RunError),
            usage=Usage() if turn.usage is None else decode(turn.usage, Usage),
            tool_count=sum(record.type == "tool_intent" for record in records),
        )

    def checking(self, branch: "Branch") -> AbstractAsyncContextManager[RunCheck]:
        """See `ChildRunner`."""
        return checks_like(self._sandboxes)

    async def _session(self, child: Child) -> SessionRow:
        return await self._store.read(lambda c: get_session(c, child.session))

    async def _turn(self, thread: str) -> TurnRow:
        found = await self._store.read(lambda c: turns_of(c, thread))
        if not found:
            raise SessionError(f"subagent {thread} has no turn")
        return found[0]

    def _model_name(self, child: Child, parent: SessionRow) -> str:
        return child.model or self._types[child.agent_type].model or self._model or self._model_of(parent)
