"""Subagents of an `Agent`, run in its own process and event loop (DE-20).

Here: a child made from its caller's agent (DE-3), its run, its checks. Not here: which children there
are (`calls`), children that outlive a process (`bowerbird.sessions.subagents.runner`).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.agent.branch_files import BranchStore
from bowerbird.agent.delegates import Caller, ChildRun
from bowerbird.agent.prompt import get_subagent_instructions
from bowerbird.agent.result import RunDone
from bowerbird.core.errors import NotFound
from bowerbird.core.events import SubagentEnd, ToolIntent
from bowerbird.core.messages import message_from_data
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.subagents.entries import Wanted
from bowerbird.subagents.forking import checks_in, forks_of
from bowerbird.subagents.records import Child
from bowerbird.subagents.roles import NEVER, AgentType
from bowerbird.subagents.runner import ChildEnd, Job, RunCheck
from bowerbird.subagents.shared_budget import PurseBudget, of_a_child, price_of

if TYPE_CHECKING:
    from bowerbird.agent.agent import Agent
    from bowerbird.models.budget import Budget
    from bowerbird.models.protocol import Model
    from bowerbird.tools.processes.family import ProcessSetup
    from bowerbird.workspace import Branch

# What is the caller's own affair and not inherited.
_NOT_INHERITED: dict[str, Any] = {
    "schema": None, "data_model": None, "prompt_template": None, "examples": None, "description": None,
    "final_instructions": None, "use_inputs_schema": False, "use_outputs_schema": False,
    "autonomous": True, "streaming": False, "return_inputs_with_trajectory": True, "landing": "review",
    "max_subagent_depth": 0, "enable_approval": False,
}  # fmt: skip


class InProcessRunner:
    """Runs children of one agent; implements `runner.ChildRunner`.

    Args:
        agent: the caller's. model: of subagents, None = the agent's own. tiers: model tiers by name.
        provider: of model names without one.
        setup: how processes are run.

    Attributes:
        forks: open branches of subagents, by id.
        lasting: they end with their caller's run.
    """

    lasting = False

    def __init__(
        self,
        agent: "Agent",
        setup: "ProcessSetup",
        *,
        model: str | None = None,
        tiers: Sequence[str] = (),
        provider: str = "anthropic",
    ) -> None:
        self._agent = agent
        self._setup = setup
        self._model = model
        self._tiers = tuple(tiers)
        self._provider = provider
        self.forks: dict[str, Branch] = {}
        self._probing = asyncio.Lock()

    async def refusal(self, wanted: Wanted, kind: AgentType) -> str | None:
        """See `ChildRunner`."""
        if not wanted.tier or wanted.tier in self._tiers:
            return None
        known = f"there are {', '.join(self._tiers)}" if self._tiers else "model_router is off"
        return f"there is no model tier {wanted.tier!r}; {known}"

    async def lacking(self, provider: str) -> str | None:
        """See `ChildRunner`."""
        return f"{provider} cannot attempt here: other vendors' agents work for sessions, not in a program"

    async def fork(self, caller: Caller, names: list[str]) -> "list[Branch]":
        """See `ChildRunner`."""
        made = await to_thread(forks_of, caller.branch, names)
        self.forks.update({fork.id: fork for fork in made})
        return made

    async def open(self, child: Child) -> "Branch":
        """See `ChildRunner`."""
        found = self.forks.get(child.fork)
        if found is None:
            raise NotFound(f"the fork of {child.handle} is gone")
        return found

    async def forget(self, child: Child) -> None:
        """See `ChildRunner`."""
        fork = self.forks.pop(child.fork, None)
        if fork is not None:
            await to_thread(fork.discard, keep=False)

    async def run(self, job: Job) -> ChildEnd:
        """See `ChildRunner`."""
        agent = self._agent.replace(**self._changes(job))
        child = ChildRun(
            session=job.child.session,
            stop=job.stop,
            setup=await self._ready(job.fork),
            delegate=job.delegate,
            budget=lambda model: _budget(job, model),
            without=NEVER,
        )
        tools = 0
        done: RunDone[Any] | None = None
        async with aclosing(agent.stream_child(job.child.task, child, job.caller.approver)) as events:
            async for event in events:
                if isinstance(event, ToolIntent):
                    tools += 1
                elif isinstance(event, SubagentEnd):
                    tools += event.tool_count
                elif isinstance(event, RunDone):
                    done = event
        await _keep_transcript(job, done)
        if done is None:
            return ChildEnd(stop="cancelled", tool_count=tools)
        return ChildEnd(
            stop=done.stop_reason, text=done.text, error=done.error, usage=done.usage, tool_count=tools
        )

    async def _ready(self, branch: "Branch") -> "ProcessSetup":
        """Return the setup with what this host gives: it is found out once, not by every child."""
        async with self._probing:
            if self._setup.status is None:
                host = SandboxHost(branch.processes().data_dir, self._setup.sandbox, remember=True)
                try:
                    self._setup = msgspec.structs.replace(self._setup, status=await host.status())
                finally:
                    await host.close()
            return self._setup

    def _changes(self, job: Job) -> dict[str, Any]:
        """Return how the child's parameters differ from its caller's agent's."""
        kind, wanted = job.kind, job.wanted
        model: Any = wanted.model or kind.model or self._model or self._agent.language_model
        if isinstance(model, str) and not set(":/") & set(model):
            model = f"{self._provider}:{model}"
        if wanted.tier:
            model = f"tier:{wanted.tier}"
        return {
            **_NOT_INHERITED,
            "name": job.child.name,
            "branch": job.fork,
            "language_model": model,
            "instructions": kind.instructions or get_subagent_instructions(),
            "mode": job.caller.mode,
            "permissions": kind.policy(job.caller.policy),
            "limits": of_a_child(job.caller.limits, job.seconds),
            "max_iterations": job.caller.limits.max_iterations,
        }

    @asynccontextmanager
    async def checking(self, branch: "Branch") -> AsyncGenerator[RunCheck, None]:
        """See `ChildRunner`."""
        setup = await self._ready(branch)
        async with checks_in(branch.processes().data_dir, setup.sandbox, setup.status) as run:
            yield run


async def _keep_transcript(job: Job, done: RunDone[Any] | None) -> None:
    """Keep what a child said and did as a private file of its fork: nothing of it is lost."""
    if done is not None:
        messages = [message_from_data(message) for message in done.result.messages]
        await BranchStore(job.fork).save(messages)


def _budget(job: Job, model: "Model") -> "Budget":
    return PurseBudget(job.purse, price_of(job.purse, model))
