"""Provider agents as a part of sessions: what doors ask, and the main agent's tools (PR-8, TO-48).

Here: lists, runs and memory for doors; the tools where they are offered. Not here: agents and registry
(`providers/`), how settings make them (`app/features/providers.py`).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bowerbird.core.errors import UnknownSession
from bowerbird.sessions.parts import SessionPart
from bowerbird.store.rows.sessions import find_session
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.providers.contract.agent import OnEvent
    from bowerbird.providers.contract.types import AgentRequest, AgentResponse, MemoryLog
    from bowerbird.providers.registry import Registry, ThreadMemory
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.tools import Tool

PROBE_AGE_S = 60.0  # of what lists show
MOST_REMEMBERED = 50


class Closes(Protocol):
    """Something that is closed with the agents."""

    async def close(self) -> None:
        """Close it."""
        ...


class ProviderAgents(SessionPart):
    """The provider agents of one process.

    Args:
        service: its sessions.
        make: opens the registry, with what is closed after it.
        offers_tools: whether the main agent may call them.
    """

    def __init__(
        self,
        service: "SessionService",
        make: "Callable[[], tuple[Registry, Sequence[Closes]]]",
        offers_tools: Callable[[], bool],
    ) -> None:
        self._service = service
        self._make = make
        self.offers_tools = offers_tools
        self._registry: Registry | None = None
        self._closers: Sequence[Closes] = ()

    @property
    def registry(self) -> "Registry":
        """The registry; opened with the first question, as no start needs it."""
        if self._registry is None:
            self._registry, self._closers = self._make()
        return self._registry

    # ------------------------------------------------------------ what doors ask

    async def listed(self) -> list[dict[str, Any]]:
        """Return every agent with how it was within the last minute, as doors show it."""
        from bowerbird.sessions.provider_agents.shown import agent_row

        probes = {probe.name: probe for probe in await self.registry.probe_all(max_age_s=PROBE_AGE_S)}
        return [agent_row(info, probes.get(info.name)) for info in self.registry.list_agents()]

    async def runs(self, owner: str | None, most: int) -> list[dict[str, Any]]:
        """Return the newest runs of a person, or of all for None, as doors show them."""
        from bowerbird.sessions.provider_agents.shown import run_row

        running = self.registry.active
        return [run_row(run, running) for run in await self.registry.past_runs(owner, most)]

    async def run(
        self, name: str, request: "AgentRequest", *, owner: str, on_event: "OnEvent | None" = None
    ) -> "AgentResponse":
        """See `AgentRegistry.run`."""
        return await self.registry.run(name, request, owner=owner, on_event=on_event)

    async def memory(self, session_id: str, owner: str) -> "Sequence[MemoryLog]":
        """Return what was said in a session; raises UnknownSession."""
        found = await self.registry.memory(session_id, owner=owner)
        if found is None:
            raise UnknownSession(f"session {session_id[:128]} not found")
        return found

    async def conversation(self, session_id: str, owner: str) -> str | None:
        """Return the session whose branch has the changes of one with an agent; None where it has none.

        Raises:
            UnknownSession: this person has no such session.
        """
        found = await self.registry.session(session_id, owner=owner)
        if found is None:
            raise UnknownSession(f"session {session_id[:128]} not found")
        return found.thread_id

    # ------------------------------------------------------------ the main agent's tools

    def tools(self, session: "SessionRow | None") -> "Sequence[Tool]":
        """Return the tools where settings list the agents that it may call: a run costs money."""
        if not self.offers_tools():
            return ()
        from bowerbird.tools.provider_agents import provider_agent_tools

        return provider_agent_tools(_Calls(self, session))

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Add the tools to a turn."""
        if not (own := self.tools(context.session)):
            return run
        return msgspec.structs.replace(run, tools=Toolset((*run.tools, *own), absent=run.tools.absent))

    # ------------------------------------------------------------ life

    async def deleting(self, session: "SessionRow") -> None:
        """Let go of the branch of a deleted session; what was said stays in the agent's memory."""
        from bowerbird.store.rows.providers import forget_thread

        await self._service.store.write(lambda c: forget_thread(c, session.thread_id))

    async def stop(self, grace_s: float) -> None:
        """Stop every run."""
        del grace_s
        if self._registry is not None:
            await self._registry.close()

    async def aclose(self) -> None:
        """Stop every run, and close what they shared."""
        await self.stop(0.0)
        for closer in self._closers:
            await closer.close()
        self._closers = ()


class _Calls:
    """What the tools ask, in the name of one session; see `tools.provider_agents.OtherAgents`."""

    def __init__(self, agents: ProviderAgents, session: "SessionRow | None") -> None:
        self._agents = agents
        self._thread = session.thread_id if session is not None else None
        self._owner = (session.owner or "") if session is not None else ""

    async def run(self, name: str, prompt: str) -> dict[str, Any]:
        from bowerbird.providers.contract.types import AgentRequest
        from bowerbird.sessions.provider_agents.shown import response_row

        caller = {"caller_thread": self._thread} if self._thread is not None else {}
        response = await self._agents.run(name, AgentRequest(prompt, metadata=caller), owner=self._owner)
        return response_row(response)

    async def listed(self) -> list[dict[str, Any]]:
        return await self._agents.listed()

    async def memory(self, session_id: str) -> list[dict[str, Any]]:
        return [msgspec.structs.asdict(log) for log in await self._agents.memory(session_id, self._owner)]


def thread_memory(service: "SessionService") -> "ThreadMemory":
    """Return what gives the newest 50 messages of a session of Bowerbird's to its owner (PR-32)."""

    async def said(thread_id: str, owner: str) -> "Sequence[MemoryLog] | None":
        from bowerbird.sessions.provider_agents.shown import memory_log

        row = await service.store.read(lambda c: find_session(c, thread_id))
        if row is None or (row.owner or "") != owner:
            return None
        return [memory_log(view) for view in (await service.messages(thread_id))[-MOST_REMEMBERED:]]

    return said
