"""The three tools over the registry of provider agents (PT-1 … PT-6).

Here: what they take, what they answer, in exactly these words. Not here: agents and their sessions
(`providers`), how results travel (`server.py`).
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import new_id
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server import results
from bowerbird.protocols.mcp_server.apart import CallerGone, apart
from bowerbird.protocols.mcp_server.ground import McpGround
from bowerbird.protocols.mcp_server.limits import CallLimits
from bowerbird.protocols.mcp_server.tool import NULLABLE_TEXT, Call, McpTool, Result, output, parameters, text
from bowerbird.providers.contract.errors import AgentNotFound
from bowerbird.providers.contract.types import AgentRequest, check_prompt

if TYPE_CHECKING:
    from bowerbird.providers.contract.agent import AgentRegistry
    from bowerbird.providers.contract.types import AgentEvent, AgentInfo, AgentProbe, AgentResponse

PROBE_AGE_S = 60.0
MOST_LOGS = 50
TOLD_CHARS = 200

_log = logging.getLogger(__name__)


def agent_tools(ground: McpGround) -> tuple[McpTool, ...]:
    """Return the three tools."""
    tools = _AgentTools(ground)
    return (
        McpTool(
            name="list_agents",
            title="List agents",
            description="List the provider agents that execute_agent can run, with status and capabilities.",
            parameters=parameters(),
            output=output(agents={"type": "array", "items": _AGENT}, count={"type": "integer"}),
            run=tools.list_agents,
            needs="viewer",
            read_only=True,
            idempotent=True,
        ),
        McpTool(
            name="execute_agent",
            title="Run an agent",
            description=(
                "Run a provider agent (see list_agents) with a prompt and return its answer. A coding agent "
                "works on a fresh branch: nothing it changes reaches the user's files by itself. Give the "
                "session_id of an earlier answer to go on with that conversation."
            ),
            parameters=parameters(
                ("agent_name", "prompt"),
                agent_name=text("Name of the agent, as list_agents gives it."),
                prompt=text("What the agent should do."),
                session_id=text("Session to go on with; leave it out to begin one."),
            ),
            output=output(content={"type": "string"}, session_id={"type": "string"}),
            run=tools.execute,
            open_world=True,
            destructive=False,
        ),
        McpTool(
            name="get_agent_memory",
            title="Read an agent's session",
            description="Return the newest 50 messages of a session of execute_agent, oldest first.",
            parameters=parameters(("session_id",), session_id=text("Id that execute_agent returned.")),
            output=output(session_id={"type": "string"}, logs={"type": "array", "items": _LOG}),
            run=tools.memory,
            needs="viewer",
            read_only=True,
            idempotent=True,
        ),
    )


_NAMES = {"type": "array", "items": {"type": "string"}}
_AGENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "display_name": {"type": "string"},
        "type": {"type": "string", "enum": ["api", "cli", "local"]},
        "description": {"type": "string"},
        "capabilities": _NAMES,
        "status": {"type": "string"},
        "detail": {"type": "string"},
        "default_model": NULLABLE_TEXT,
        "transports": _NAMES,
    },
}
_LOG: dict[str, Any] = {
    "type": "object",
    "properties": {"role": {"type": "string"}, "content": {"type": "string"}},
}


class _AgentTools:
    def __init__(self, ground: McpGround) -> None:
        self._ground = ground
        self._limits = CallLimits()

    # ------------------------------------------------------------ execute_agent

    async def execute(self, call: Call) -> Result:
        """Run an agent in the caller's name."""
        registry, name = self._ground.agents(), str(call.arguments["agent_name"])
        if name not in {info.name for info in registry.list_agents()}:
            return results.agent_not_found(name)
        rules = self._ground.rules()
        try:
            check_prompt(str(call.arguments["prompt"]))
            with self._limits.run(
                call.caller.user_id, per_minute=rules.calls_per_minute, running=rules.running
            ):
                response = await apart(self._run(registry, name, call), call.gone)
        except CallerGone:
            return results.agent_failed(name, "the caller left; the agent was stopped")
        except AgentNotFound:
            return results.agent_not_found(name)
        except Exception as error:  # noqa: BLE001 - whatever an agent's adapter raises is this one answer (PT-3)
            return results.agent_failed(name, self._told(error, f"execute_agent of {name}"))
        return await to_thread(self._answer, name, response)  # an answer can be long to search for secrets

    async def _run(self, registry: "AgentRegistry", name: str, call: Call) -> "AgentResponse":
        workspace = self._ground.places.workspace()
        request = AgentRequest(
            str(call.arguments["prompt"]),
            session_id=call.text("session_id"),
            metadata={} if workspace is None else {"workspace": workspace},
        )

        def heard(event: "AgentEvent") -> None:
            words = " ".join(event.text[: 4 * TOLD_CHARS].split())[:TOLD_CHARS]
            call.told(self._ground.redact(f"{event.kind}: {words}" if words else event.kind))

        return await registry.run(name, request, owner=call.caller.user_id, on_event=heard)

    def _answer(self, name: str, response: "AgentResponse") -> Result:
        redact = self._ground.redact
        if response.error is not None:
            return results.agent_failed(
                name, results.details(response.error, redact) or "no reason was given"
            )
        return results.success(
            content=redact(response.content), message=None, session_id=response.session_id or ""
        )

    # ------------------------------------------------------------ the others

    async def list_agents(self, call: Call) -> Result:
        """List agents with probes that are a minute old at most."""
        registry = self._ground.agents()
        infos = registry.list_agents()
        probes = await apart(_probed(registry, bool(infos)), call.gone)
        agents = [self._item(info, probes.get(info.name)) for info in infos]
        return results.success(agents=agents, count=len(agents))

    def _item(self, info: "AgentInfo", probe: "AgentProbe | None") -> dict[str, Any]:
        return {
            "name": info.name,
            "display_name": info.display_name,
            "type": info.type,
            "description": info.description,
            "capabilities": [str(one) for one in info.capabilities],
            "status": probe.status if probe is not None else "unavailable",
            "detail": results.details(probe.detail, self._ground.redact)
            if probe is not None
            else "not probed",
            "default_model": info.default_model,
            "transports": list(info.transports),
        }

    async def memory(self, call: Call) -> Result:
        """Return a session's newest messages."""
        session_id = str(call.arguments["session_id"])
        try:
            found = await self._ground.agents().memory(session_id, owner=call.caller.user_id)
        except InvalidArgument:  # no id has this form
            found = None
        except Exception as error:  # noqa: BLE001 - whatever reading it raises is this one answer (PT-3)
            return results.memory_failed(session_id, self._told(error, "get_agent_memory"))
        if found is None:
            return results.session_not_found(session_id)
        redact = self._ground.redact
        logs = [{"role": one.role, "content": redact(one.content)} for one in found[-MOST_LOGS:]]
        return results.success(session_id=session_id, logs=logs)

    def _told(self, error: Exception, where: str) -> str:
        words = results.words_of(error, self._ground.redact)
        if words is not None:
            return words
        reference = new_id("ref")
        _log.error("%s failed [reference %s]", where, reference, exc_info=error)
        return f"something went wrong in the server; its log has the details under {reference}"


async def _probed(registry: "AgentRegistry", has_agents: bool) -> Mapping[str, "AgentProbe"]:
    if not has_agents:
        return {}
    return {probe.name: probe for probe in await registry.probe_all(max_age_s=PROBE_AGE_S)}
