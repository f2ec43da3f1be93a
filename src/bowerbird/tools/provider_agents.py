"""The tools `execute_agent`, `list_agents` and `get_agent_memory`: other vendors' agents (TO-48).

Here: what a model asks for and is shown. Not here: the agents (`providers/`), which of them are offered
(`app/features/providers.py`), who is asked first (`agent/permissions.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bowerbird.core.errors import BowerbirdError, ToolError
from bowerbird.tools.limits import cut_middle
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

ANSWER_CHARS = 15_000
PATHS_SHOWN = 20
LONGEST_S = 3_600.0


class OtherAgents(Protocol):
    """What the tools need of the agents, in the name of one session."""

    async def run(self, name: str, prompt: str) -> Mapping[str, Any]:
        """Run one; raises BowerbirdError where there is none of this name, or nothing to ask."""
        ...

    async def listed(self) -> Sequence[Mapping[str, Any]]:
        """Return all of them with their states."""
        ...

    async def memory(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Return what was said in a session; raises BowerbirdError without one."""
        ...


def provider_agent_tools(agents: OtherAgents) -> list[Tool]:
    """Return the three tools over these agents."""

    async def execute_agent(agent_name: str, prompt: str) -> ToolResult:
        """Give work to another vendor's agent and wait for its answer.

        It knows nothing of this conversation: write all that it needs into the prompt. What it sees leaves
        this machine and may cost money. One that edits files works on a fork of this branch, in a session of
        its own that the user reviews; nothing of it is on this branch.

        Args:
            agent_name: Name of the agent, as list_agents has it.
            prompt: What it should do.
        """
        try:
            answer = await agents.run(agent_name, prompt)
        except BowerbirdError as error:
            raise ToolError(str(error)) from error
        return shown(agent_name, answer)

    async def list_agents() -> ToolResult:
        """List the other vendors' agents: what each can do, and whether it can be used now."""
        rows = await agents.listed()
        lines = [
            f"{row['name']} ({row['type']}, {row['status']}): {row['description']} {row['detail']}".rstrip()
            for row in rows
        ]
        return ToolResult("\n".join(lines) or "no agents are offered", data={"agents": [*map(dict, rows)]})

    async def get_agent_memory(session_id: str) -> ToolResult:
        """Show what was said in a session with another vendor's agent, newest 50 messages.

        Args:
            session_id: Id of the session, as execute_agent gave it.
        """
        try:
            logs = await agents.memory(session_id)
        except BowerbirdError as error:
            raise ToolError(str(error)) from error
        text = "\n\n".join(f"[{log['role']}] {log['content']}" for log in logs)
        cut = cut_middle(text or "nothing was said", ANSWER_CHARS)
        return ToolResult(cut, data={"logs": [*map(dict, logs)]}, truncated=cut != text, tainted=True)

    return [
        Tool(execute_agent, effect="outside", timeout_s=LONGEST_S),
        Tool(list_agents, effect="read"),
        Tool(get_agent_memory, effect="read"),
    ]


def shown(name: str, answer: Mapping[str, Any]) -> ToolResult:
    """Return what a model sees of an agent's answer: what it said, what it changed, where that is."""
    parts = [str(answer.get("content") or "")]
    if answer.get("error"):
        parts.append(f"{name} failed: {answer['error']}")
    changes: Mapping[str, Any] = answer.get("changes") or {}
    paths = [*changes.get("written", ()), *changes.get("deleted", ())]
    metadata: Mapping[str, Any] = answer.get("metadata") or {}
    thread = metadata.get("thread_id")
    if paths:
        more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
        parts.append(
            f"It changed {len(paths)} files: {', '.join(paths[:PATHS_SHOWN])}{more}. They are in the session "
            f"{thread}, where the user reviews them; this branch does not have them."
        )
    elif thread:
        parts.append("It changed no files.")
    parts.append(f"Session of the agent: {answer.get('session_id')}")
    text = cut_middle("\n\n".join(part for part in parts if part), ANSWER_CHARS)
    data = {key: answer.get(key) for key in ("session_id", "error", "changes", "cost", "tokens_used")}
    return ToolResult(
        text, data={**data, "thread_id": thread}, is_error=bool(answer.get("error")), tainted=True
    )
