"""Claude Code on a branch of a project, where there is no gateway (AS-62).

Here: a chat's message as a run of the provider agent, and the conversations that were held so. Not here: the
agent, its sandbox and its session (`sessions/provider_agents`), the review of what it changed (`review/`).

Its conversations are Bowerbird's own: the program in the sandbox has a home of its own, and cannot go on with
one that was held on the host.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import from_iso
from bowerbird.gateway.claude_code import ClaudeAnswer, ClaudeRequest
from bowerbird.gateway.claude_projects import TITLE_CHARS, Talk
from bowerbird.providers.contract.errors import AgentTimeout
from bowerbird.providers.contract.types import AgentRequest
from bowerbird.store.rows.sessions import find_session

if TYPE_CHECKING:
    from bowerbird.providers.contract.types import AgentResponse
    from bowerbird.sessions.provider_agents.part import ProviderAgents
    from bowerbird.store.store import Store

AGENT = "claude_code"
MOST_TALKS = 200  # questions that are looked at, the newest first


class BranchClaude:
    """See `gateway.claude_code.ClaudeCode`.

    Args:
        agents: gives the provider agents of the process. store: holds the sessions of their runs.
    """

    where = (
        "Claude Code works on a branch of this project, in a sandbox: your files stay as they are until you "
        "land what it changed. Its conversations on the host itself are others."
    )

    def __init__(self, agents: "ProviderAgents", store: "Store") -> None:
        self._agents = agents
        self._store = store

    async def run(self, request: ClaudeRequest) -> ClaudeAnswer:
        """See `ClaudeCode`; runs of one conversation wait for each other."""
        told = {"workspace": request.cwd} | ({"model": request.model} if request.model else {})
        asked = AgentRequest(
            request.text, timeout=request.timeout_s, metadata=told, session_id=request.session_id
        )
        return answer_of(await self._agents.run(AGENT, asked, owner=request.user), request.timeout_s)

    async def talks(self, user: str, cwd: str) -> Sequence[Talk]:
        """See `ClaudeCode`."""
        found: dict[str, Talk] = {}
        places = {cwd, await to_thread(os.path.realpath, cwd)}
        for past in await self._agents.registry.past_runs(user, MOST_TALKS):
            session, said = past.session, " ".join(past.question.content.split())[:TITLE_CHARS]
            if session.agent_name != AGENT or session.thread_id is None:
                continue
            known = found.get(session.session_id)
            if known is None:
                thread_id = session.thread_id
                row = await self._store.read(lambda c, thread_id=thread_id: find_session(c, thread_id))
                if row is None or row.workspace not in places:
                    continue
                at = from_iso(past.question.timestamp).timestamp()
                found[session.session_id] = Talk(session.session_id, said, at, 1)
            else:  # older: what was said first is the title
                found[session.session_id] = Talk(known.session_id, said, known.mtime, known.count + 1)
        return list(found.values())

    async def doctor(self) -> Sequence[str]:
        """See `ClaudeCode`."""
        probe = await self._agents.registry.probe_agent(AGENT)
        mark = "✓" if probe.status == "operative" else "✗"
        return [f"{mark} Claude Code on a branch: {probe.status}. {probe.detail}".rstrip()]


def answer_of(response: "AgentResponse", timeout_s: float) -> ClaudeAnswer:
    """Return a run's answer as the mode shows it. Pure."""
    known = response.metadata
    thread_id = known.get("thread_id")
    timed_out = known.get("error_type") == AgentTimeout.__name__
    said = response.content.strip()
    if timed_out:
        stopped = (
            f"Claude Code was stopped after {timeout_s:,.0f} s. The conversation is kept: "
            "your next message goes on with it."
        )
        said = f"{said}\n\n{stopped}".strip()
    elif response.error is not None:
        said = f"{response.error}\n\n{said}".strip()
    return ClaudeAnswer(
        said or "Done.",
        is_error=response.error is not None,
        timed_out=timed_out,
        session_id=response.session_id,
        cost_usd=response.cost or 0.0,
        thread_id=thread_id if isinstance(thread_id, str) else None,
    )
