"""A registry of agents for tests of doors: what an agent does is what its prompt says.

Here: an `AgentRegistry` that keeps sessions in memory. Not here: real agents (`providers`).

Prompts: `say TEXT`, `fail TEXT`, `raise TEXT`, `wait` (until it is stopped), anything else is answered with itself.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from bowerbird.providers.contract.agent import OnEvent
from bowerbird.providers.contract.errors import AgentNotFound, AgentSessionError
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentInfo,
    AgentProbe,
    AgentRequest,
    AgentResponse,
    MemoryLog,
)
from bowerbird.sessions.provider_agents.part import ProviderAgents


def use_agents(application: Any, registry: "Registry") -> None:
    """Let the doors of an application ask this registry."""
    vars(application.sessions.part(ProviderAgents))["_registry"] = registry


def agents_of(application: Any) -> Any:
    """The registry that doors ask."""
    return application.sessions.part(ProviderAgents).registry


ABLE = (AgentCapabilities.TEXT_COMPLETION, AgentCapabilities.STREAMING)


class Registry:
    """Two agents, `claude` and `absent`; the second has no program."""

    def __init__(self, names: Sequence[str] = ("claude", "absent")) -> None:
        self.names = tuple(names)
        self.sessions: dict[tuple[str, str], list[MemoryLog]] = {}
        self.running = 0
        self.most_running = 0
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.four_run = asyncio.Event()

    def list_agents(self) -> Sequence[AgentInfo]:
        return [
            AgentInfo(name, name.title(), "api", f"The agent {name}.", ABLE, "model-1", ("api",))
            for name in self.names
        ]

    async def probe_agent(self, name: str, *, live: bool = False) -> AgentProbe:
        status = "unavailable" if name == "absent" else "operative"
        return AgentProbe(
            name, status, "no program at /opt/agents/bin/absent" if name == "absent" else "ready"
        )

    async def probe_all(self, *, max_age_s: float = 0.0) -> Sequence[AgentProbe]:
        return [await self.probe_agent(name) for name in self.names]

    async def run(
        self, name: str, request: AgentRequest, *, owner: str, on_event: OnEvent | None = None
    ) -> AgentResponse:
        if name not in self.names:
            raise AgentNotFound(f"no agent is named {name}")
        session_id = request.session_id or f"sess_{len(self.sessions):024x}"
        if request.session_id is not None and (owner, session_id) not in self.sessions:
            raise AgentSessionError(f"there is no session {session_id}")
        logs = self.sessions.setdefault((owner, session_id), [])
        logs.append(MemoryLog("user", request.prompt))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.started.set()
        if self.running == 4:
            self.four_run.set()
        try:
            if on_event is not None:
                on_event(AgentEvent("text", "thinking about it"))
            word, _, rest = request.prompt.partition(" ")
            if word == "wait":
                await asyncio.Event().wait()
            if word == "raise":
                raise RuntimeError(rest)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # a second blow here would leave the process behind
            self.stopped.set()
            raise
        finally:
            self.running -= 1
        if word == "fail":
            return AgentResponse("", "t", error=rest, session_id=session_id)
        content = rest if word == "say" else request.prompt
        logs.append(MemoryLog("assistant", content))
        return AgentResponse(content, "t", session_id=session_id)

    async def memory(self, session_id: str, *, owner: str) -> Sequence[MemoryLog] | None:
        return self.sessions.get((owner, session_id))

    async def close(self) -> None:
        return None
