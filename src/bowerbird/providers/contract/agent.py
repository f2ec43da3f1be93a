"""The two protocols between rooms: one agent, and the registry that doors ask (PR-8, PR-11).

Here: their shapes. Not here: an implementation (`providers/registry.py`, the adapters).
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentInfo,
    AgentProbe,
    AgentRequest,
    AgentResponse,
    MemoryLog,
)

OnEvent = Callable[[AgentEvent], None]


class ProviderAgent(Protocol):
    """One vendor's agent, without sessions: what the registry keeps of it is the registry's."""

    @property
    def info(self) -> AgentInfo:
        """Return what lists show of it."""
        ...

    def get_capabilities(self) -> frozenset[AgentCapabilities]:
        """Return what it can do."""
        ...

    def supports_capability(self, capability: AgentCapabilities) -> bool:
        """Whether it can do that."""
        ...

    async def execute(self, request: AgentRequest) -> AgentResponse:
        """Run a request to its end; what goes wrong is in `error` (PR-12). Cancelling stops the agent."""
        ...

    def stream(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Run a request and yield what happens; ends with `done`, after `error` where it failed."""
        ...

    async def probe(self, *, live: bool = False) -> AgentProbe:
        """Find out whether it can be used; never raises (PR-6, PR-7)."""
        ...

    async def test_connection(self) -> bool:
        """Whether a live probe says `operative`."""
        ...

    async def close(self) -> None:
        """Stop its runs and let go of what it holds."""
        ...


class AgentRegistry(Protocol):
    """What doors ask: who there is, how they are, a run with its session, a session's memory."""

    def list_agents(self) -> Sequence[AgentInfo]:
        """Return the agents that settings offer, in catalogue order."""
        ...

    async def probe_agent(self, name: str, *, live: bool = False) -> AgentProbe:
        """Probe one agent; an unknown name is `unavailable`, "Unknown agent"."""
        ...

    async def probe_all(self, *, max_age_s: float = 0.0) -> Sequence[AgentProbe]:
        """Return one probe for each agent within 12 s whatever hangs; not older than `max_age_s` seconds."""
        ...

    async def run(
        self, name: str, request: AgentRequest, *, owner: str, on_event: OnEvent | None = None
    ) -> AgentResponse:
        """Run an agent in a session of `owner`'s (PR-30).

        The question is kept before the call, the answer after it.

        Args:
            on_event: told what happens, on the event loop; must not block.

        Raises:
            AgentNotFound: no such agent; nothing was started or kept.
        """
        ...

    async def memory(self, session_id: str, *, owner: str) -> Sequence[MemoryLog] | None:
        """Return the newest 50 messages, oldest first; None where `owner` has no such session (PR-32)."""
        ...

    async def close(self) -> None:
        """Stop all runs."""
        ...
