"""Agents, runs and answers as every door shows them.

Here: values to plain rows. Not here: where they come from.
"""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.providers.contract.types import AgentInfo, AgentProbe, AgentResponse, MemoryLog

if TYPE_CHECKING:
    from bowerbird.providers.sessions import PastRun
    from bowerbird.sessions.values import MessageView

_IMAGE = re.compile(r"\[image: [^\]\n]{0,300}\]")
PROMPT_CHARS, ANSWER_CHARS = 500, 2_000


def agent_row(info: AgentInfo, probe: AgentProbe | None) -> dict[str, Any]:
    """Return an agent as every door shows it."""
    return {
        "name": info.name,
        "display_name": info.display_name,
        "type": info.type,
        "description": info.description,
        "capabilities": [str(each) for each in info.capabilities],
        "status": probe.status if probe is not None else "unreachable",
        "detail": probe.detail if probe is not None else "not probed",
        "version": probe.version if probe is not None else None,
        "latency_ms": probe.latency_ms if probe is not None else None,
        "checked_at": probe.checked_at if probe is not None else "",
        "model": info.default_model,
        "transports": list(info.transports),
        "max_cost": info.max_cost,
        "tools": None,
    }


def response_row(response: AgentResponse) -> dict[str, Any]:
    """Return an answer as every door shows it."""
    row: dict[str, Any] = msgspec.to_builtins(response)
    return {**row, "success": response.success}


def run_row(run: "PastRun", running: Collection[int]) -> dict[str, Any]:
    """Return a past run as every door shows it."""
    answer = run.answer
    known: dict[str, Any] = answer.metadata if answer is not None else {}
    if answer is not None:
        state = "failed" if known.get("error") else "done"
    else:
        state = "running" if run.question.id in running else "interrupted"
    return {
        "session_id": run.session.session_id,
        "agent": run.session.agent_name,
        "owner": run.session.owner,
        "conversation_id": run.session.thread_id,
        "prompt": run.question.content[:PROMPT_CHARS],
        "content": answer.content[:ANSWER_CHARS] if answer is not None else "",
        "state": state,
        "error": known.get("error"),
        "at": run.question.timestamp,
        "seconds": known.get("execution_time"),
        "tokens": known.get("tokens_used"),
        "cost": known.get("cost"),
        "model": known.get("model"),
        "changes": known.get("changes"),
        "landed": known.get("landed"),
    }


def memory_log(view: "MessageView") -> MemoryLog:
    """Return a message of a session as text; an image is `[image]`."""
    return MemoryLog(view.role, _IMAGE.sub("[image]", view.content))
