"""What doors ask of an agent: plain members to a request, events to plain members.

Here: that translation, and events put together for a reader who is slow. Not here: who may ask.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from bowerbird.core.errors import BowerbirdError, InvalidArgument
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentRequest,
    AgentResponse,
    BranchRef,
)
from bowerbird.providers.outcomes import failed
from bowerbird.providers.sessions import check_session_id
from bowerbird.sessions.provider_agents.shown import response_row

Run = Callable[[Callable[[AgentEvent], None]], Awaitable[AgentResponse]]


def request_of(wanted: Mapping[str, Any], *, workspace: str | None) -> AgentRequest:
    """Return the request that a door's members make.

    Args:
        wanted: `prompt`, and of `context, capabilities, timeout, session_id, max_tokens, max_cost,
            model, conversation_id, branch_id, snapshot_id, direct` those that are there; `conversation_id`
            names the session whose branch is forked.
        workspace: directory of a new branch.

    Raises:
        InvalidArgument: an unknown capability, what is no id, or a snapshot without its branch.
    """
    names: list[str] = list(wanted.get("capabilities") or ())
    try:
        capabilities = tuple(AgentCapabilities(name) for name in names)
    except ValueError as error:
        known = ", ".join(AgentCapabilities)
        raise InvalidArgument(f"{error}; capabilities are {known}") from error
    if wanted.get("session_id") is not None:
        check_session_id(str(wanted["session_id"]))
    branch, snapshot = wanted.get("branch_id"), wanted.get("snapshot_id")
    if snapshot and not branch:
        raise InvalidArgument("snapshot_id needs the branch_id that it is of")
    told = {
        "workspace": workspace,
        "caller_thread": wanted.get("conversation_id"),
        "model": wanted.get("model"),
    }
    return AgentRequest(
        str(wanted["prompt"]),
        context=dict(wanted.get("context") or {}),
        capabilities=capabilities,
        timeout=wanted.get("timeout"),
        metadata={name: value for name, value in told.items() if value is not None},
        session_id=wanted.get("session_id"),
        max_tokens=wanted.get("max_tokens"),
        max_cost=wanted.get("max_cost"),
        branch=BranchRef(branch, snapshot) if branch else None,
        direct=bool(wanted.get("direct")),
    )


def event_row(event: AgentEvent) -> dict[str, Any]:
    """Return an event as doors show it; that of the end has the answer."""
    row: dict[str, Any] = {"kind": event.kind, "text": event.text, "data": msgspec.to_builtins(event.data)}
    if event.response is not None:
        row["response"] = response_row(event.response)
    return row


async def events_of(run: Run, request: AgentRequest) -> AsyncGenerator[AgentEvent]:
    """Yield a run's events, `done` with the answer last; closing the generator ends the run.

    What a slow reader has not taken is kept as one piece of text: it is never more than the answer.
    """
    waiting: deque[AgentEvent] = deque()
    there = asyncio.Event()

    def told(event: AgentEvent) -> None:
        if event.kind == "done":
            return  # the registry's own answer is the last word
        if waiting and waiting[-1].kind == event.kind and event.kind in ("text", "thinking"):
            event = AgentEvent(event.kind, waiting.pop().text + event.text)
        waiting.append(event)
        there.set()

    task = asyncio.ensure_future(run(told))
    task.add_done_callback(lambda _: there.set())
    try:
        while True:
            while waiting:
                yield waiting.popleft()
            if task.done():
                break
            there.clear()
            await there.wait()
        try:
            response = await task
        except BowerbirdError as error:  # the stream has begun: said in it
            response = failed(request, error)
            yield AgentEvent("error", str(error), {"error_type": type(error).__name__})
        yield AgentEvent("done", response=response)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
