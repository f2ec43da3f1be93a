"""Other vendors' agents as those who attempt a task on a subagent's fork (PR-39).

Here: who can, and the request that it becomes; implements `subagents.by_others.OtherAgents`. Not here:
ranking and checks (`bowerbird.subagents.tournament`), the session of the attempt (`sessions/subagents`).
"""

from typing import TYPE_CHECKING

from bowerbird.providers.contract.types import AgentCapabilities, AgentRequest, AgentResponse, BranchRef
from bowerbird.subagents.records import SELF

if TYPE_CHECKING:
    from bowerbird.sessions.provider_agents.part import ProviderAgents
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.subagents.shared_budget import Part


class Attempts:
    """What tournaments ask of the agents of a process."""

    def __init__(self, agents: "ProviderAgents") -> None:
        self._agents = agents

    @property
    def offered(self) -> bool:
        """Whether settings list the agents that the main agent may call."""
        return self._agents.offers_tools()

    async def lacking(self, name: str) -> str | None:
        """Return why an agent cannot attempt: nobody of this name, no files, or nothing that runs."""
        registry = self._agents.registry
        edits = AgentCapabilities.FILE_OPERATIONS
        known = {info.name: info for info in registry.list_agents()}
        able = [n for n, info in known.items() if info.type == "cli" and edits in info.capabilities]
        those = f"those that can attempt are {', '.join((*able, SELF))}"
        if name not in known:
            return f"there is no agent {name[:64]!r}; {those}"
        if name not in able:
            return f"{name} does not work on files; {those}"
        probe = await registry.probe_agent(name)
        return None if probe.status == "operative" else f"{name} cannot attempt: {probe.detail}"

    async def work(
        self, name: str, task: str, session: "SessionRow", *, seconds: float, part: "Part"
    ) -> AgentResponse:
        """Run an agent on a session's branch; an attempt that is resumed goes on in the agent's session."""
        assert session.branch_id is not None, "a subagent has a fork"
        request = AgentRequest(
            task,
            timeout=min(seconds, self._agents.registry.timeout(name)),
            session_id=session.thread_id,
            branch=BranchRef(session.branch_id),
            max_tokens=part.tokens,
            max_cost=part.usd,
        )
        return await self._agents.run(name, request, owner=session.owner or "")
