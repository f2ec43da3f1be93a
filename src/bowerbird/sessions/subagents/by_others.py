"""Subagents whose task another vendor's agent does, on their own fork (PR-39, DE-21).

Here: one such run under its session's lease, and what is recorded of it. Not here: the agents
(`sessions/provider_agents/attempts.py`), which subagents there are (`subagents/calls.py`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from sqlalchemy import Connection

from bowerbird.core.events import AssistantStep, RunError
from bowerbird.core.forms import decode
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal
from bowerbird.sessions.dispatch.lease import Lease
from bowerbird.sessions.journal.events_as_records import MessageSeqs, to_record, user_record
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.end_transaction import Ending, end_turn
from bowerbird.store.journal.journal import Append, NewRecord, UsageRow, append_one
from bowerbird.store.rows.leases import take_lease
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.subagents import subagents_of
from bowerbird.store.rows.turns import TurnRow, turns_of
from bowerbird.store.store import Store
from bowerbird.subagents.records import Child
from bowerbird.subagents.runner import Job

if TYPE_CHECKING:
    from bowerbird.providers.contract.types import AgentResponse
    from bowerbird.subagents.shared_budget import Part

LOOK_AGAIN_S = 0.25
OVER_BUDGET = "the budget of the turn has no room for it"


class OtherAgents(Protocol):
    """Other vendors' agents, as far as they do the tasks of subagents."""

    @property
    def offered(self) -> bool:
        """Whether the main agent may let them attempt."""
        ...

    async def lacking(self, name: str) -> str | None:
        """Return why this agent cannot work on a fork now, None when it can."""
        ...

    async def work(
        self, name: str, task: str, session: SessionRow, *, seconds: float, part: "Part"
    ) -> "AgentResponse":
        """Let an agent do a task on a session's branch; cancelling ends it."""
        ...


class ByOthers(msgspec.Struct, frozen=True):
    """Runs those subagents.

    Args:
        store, settings: of the process. executor_id: who it is, for leases. agents: who can be asked.
    """

    store: Store
    settings: SessionSettings
    executor_id: str
    agents: OtherAgents

    async def run(self, job: Job, session: SessionRow) -> TurnRow:
        """Run one to its end and return its ended turn; in one process at a time."""
        epoch = await self._taken(session.thread_id)
        while epoch is None:  # a process that died holds its lease for a while yet: nothing tells of its end
            await asyncio.sleep(LOOK_AGAIN_S)
            epoch = await self._taken(session.thread_id)
        task = asyncio.current_task()
        assert task is not None
        lease = Lease(self.store, session.thread_id, epoch, self.settings, _ends(task))
        try:
            turn = await self._turn(session)
            if turn.is_ended:  # by the process that had the lease before
                return turn
            ending, said = await self._worked(job, session)
            await self._recorded(job, session, turn, epoch, ending, said)
            lease.was_released()
            return await self._turn(session)
        finally:
            await asyncio.shield(lease.aclose())

    async def _taken(self, thread_id: str) -> int | None:
        ttl_s = self.settings.lease_s
        return await self.store.write(lambda c: take_lease(c, thread_id, self.executor_id, ttl_s))

    async def _turn(self, session: SessionRow) -> TurnRow:
        return (await self.store.read(lambda c: turns_of(c, session.thread_id)))[0]

    async def _worked(self, job: Job, session: SessionRow) -> tuple[Ending, str]:
        part = job.purse.hold_part(await self._sharing(job))
        if isinstance(part, BudgetRefusal):
            return Ending("failed", "budget", Usage(), error=RunError("BudgetExceeded", OVER_BUDGET)), ""
        child, used = job.child, Usage()
        working = asyncio.ensure_future(
            self.agents.work(child.provider, child.task, session, seconds=job.seconds, part=part)
        )
        end = _ends(working)
        forget = job.stop.listen(lambda _: end())
        try:
            response = await working
            used = usage_of(response)
            return ending_of(response, used), response.content
        except asyncio.CancelledError:
            if job.stop.reason is None:
                raise  # this process ends, and the next one goes on
            return Ending("cancelled", "cancelled", Usage()), ""
        finally:
            forget()
            job.purse.settle(part.id, used)

    async def _sharing(self, job: Job) -> int:
        """Return among how many the money is divided: those of the same call."""
        child = job.child
        rows = await self.store.read(lambda c: subagents_of(c, child.parent))
        return sum(decode(row.body, Child).call == child.call for row in rows)

    async def _recorded(
        self, job: Job, session: SessionRow, turn: TurnRow, epoch: int, ending: Ending, said: str
    ) -> None:
        child, usage = job.child, ending.usage
        started: dict[str, Any] = {
            "n": turn.n,
            "inbox": [],
            "kind": turn.kind,
            "model": child.provider,
            "mode": "normal",
        }
        sender = {"id": None, "name": child.parent, "door": turn.kind}
        message = Message("assistant", (TextBlock(said),))
        answer = to_record(
            AssistantStep(message, "end_turn", child.provider, usage), turn.turn_id, MessageSeqs()
        )
        assert answer is not None, "an answer has a record"
        records = (
            NewRecord("turn_started", started, turn.turn_id),
            user_record((TextBlock(child.task),), turn.turn_id, sender),
            *((answer,) if said else ()),
        )
        used = UsageRow(
            turn.turn_id, child.name, "subagent", child.provider, usage.input_tokens, usage.output_tokens,
            0, 0, usage.cost,
        )  # fmt: skip

        def write(connection: Connection) -> None:
            append_one(connection, Append(session.thread_id, epoch, records, usage=(used,)))
            end_turn(connection, turn, epoch, ending, None)

        await self.store.write(write)


def _ends(task: "asyncio.Future[Any]") -> Callable[[], None]:
    def end() -> None:
        task.cancel()

    return end


def usage_of(response: "AgentResponse") -> Usage:
    """Return what a run used, as far as its program or the relay says. Pure."""
    known: dict[str, Any] = response.metadata.get("usage") or {}
    return Usage(
        input_tokens=int(known.get("input_tokens") or 0),
        output_tokens=int(known.get("output_tokens") or 0),
        model_calls=int(response.metadata.get("model_calls") or 0),
        cost=response.cost,
    )


def ending_of(response: "AgentResponse", usage: Usage) -> Ending:
    """Return how a subagent's turn ended that an agent's answer ends. Pure."""
    if response.error is None:
        return Ending("done", "end_turn", usage, response.content)
    kind = str(response.metadata.get("error_type") or "AgentError")
    return Ending("failed", "error", usage, response.content, RunError(kind, response.error))
