"""How answers, errors and events of every adapter are made, the same for all (PR-11, PR-12).

Here: the answer to a request with its ids copied, an error as a value, the text of a prompt with its context,
one answer out of a stream. Not here: who is asked.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bowerbird.providers.contract.errors import AgentExecutionError, AgentRateLimited
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentInfo,
    AgentRequest,
    AgentResponse,
)


def answered(request: AgentRequest, content: str, **more: Any) -> AgentResponse:
    """Return an answer with the ids of its request."""
    return AgentResponse(
        content,
        request.trace_id,
        request_id=request.id,
        session_id=request.session_id,
        **more,
    )


def failed(
    request: AgentRequest,
    error: Exception,
    *,
    content: str = "",
    metadata: Mapping[str, Any] | None = None,
    **more: Any,
) -> AgentResponse:
    """Return an answer that says what went wrong; `content` is the text that had arrived."""
    known: dict[str, Any] = {**(metadata or {}), "error_type": type(error).__name__}
    if isinstance(error, AgentRateLimited) and error.retry_after_s is not None:
        known["retry_after_s"] = error.retry_after_s
    if isinstance(error, AgentExecutionError) and error.exit_code is not None:
        known["exit_code"] = error.exit_code
    return answered(request, content, error=str(error), metadata=known, **more)


def lacking(info: AgentInfo, request: AgentRequest) -> AgentCapabilities | None:
    """Return the first capability that is asked for and not there."""
    return next((c for c in request.capabilities if c not in info.capabilities), None)


def prompt_text(request: AgentRequest) -> str:
    """Return the prompt, with the context as a fenced JSON block behind it (PR-14)."""
    if not request.context:
        return request.prompt
    said = json.dumps(request.context, ensure_ascii=False, indent=2, default=str)
    fence = "```"
    while fence in said:
        fence += "`"
    return f"{request.prompt}\n\n{fence}json\n{said}\n{fence}"


def history_text(request: AgentRequest) -> str:
    """Return what was said before as text, for an agent that has no session of its own any more."""
    said = "\n\n".join(f"[{log.role}] {log.content}" for log in request.history)
    return (
        f"What was said before:\n\n{said}\n\nNow:\n\n{prompt_text(request)}" if said else prompt_text(request)
    )


async def last_of(events: AsyncIterator[AgentEvent]) -> AgentResponse:
    """Return the answer that the stream of a run ends with."""
    response: AgentResponse | None = None
    async for event in events:
        response = event.response or response
    if response is None:  # an adapter that breaks the contract must not look like a short success
        raise RuntimeError("the stream of a provider agent ended without its answer")
    return response
