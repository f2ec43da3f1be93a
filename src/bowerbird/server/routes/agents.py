"""Other vendors' agents (PR-8): probed, run, remembered; the list of all agents is the catalogue's.

Here: the routes. Not here: any agent (`providers/`), whose branch a run's changes are on
(`sessions/provider_agents`).
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.contract.errors import AgentAuthError
from bowerbird.providers.contract.types import (
    MAX_PROMPT_CHARS,
    AgentCapabilities,
    AgentEvent,
    AgentRequest,
    check_prompt,
)
from bowerbird.providers.outcomes import failed
from bowerbird.server.access.staying import GONE, until_away
from bowerbird.server.common.errors import invalid, problem
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import hidden_owner, workspace_of
from bowerbird.server.routes.common import Context, Limit, Shown, StrictBody, User, Viewer
from bowerbird.server.routes.shapes import RefusedPath
from bowerbird.sessions.provider_agents.asking import event_row, events_of, request_of
from bowerbird.sessions.provider_agents.part import ProviderAgents

router = APIRouter(prefix="/api/agents", tags=["agents"])

SSE, NDJSON = "text/event-stream", "application/x-ndjson"
Name = Annotated[str, Path(max_length=64, description="Name of an agent, as the list has it.")]
SessionId = Annotated[
    str, Path(max_length=200, description="Id that a run of an agent gave, or a conversation's.")
]


class AgentRunWanted(StrictBody):
    """What an agent is asked. `conversation_id`: work on a fork of that conversation's branch.

    `max_cost`: US dollars that a program may spend on its model; one whose price is unknown is ended.
    `direct`: what a program changes lands at its end without review; for admins, where settings allow it
    (`providers.allow_direct`).
    """

    prompt: Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARS)]
    session_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    context: Annotated[dict[str, Any], Field(default_factory=dict)]
    # Strictly, only a member of the enumeration would do, which JSON has none of.
    capabilities: Annotated[
        list[Annotated[AgentCapabilities, Field(strict=False)]], Field(max_length=20, default_factory=list)
    ]
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_cost: Annotated[float, Field(gt=0, le=100_000)] | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    conversation_id: Annotated[str, Field(max_length=200)] | None = None
    branch_id: Annotated[str, Field(max_length=128)] | None = None
    snapshot_id: Annotated[str, Field(max_length=128)] | None = None
    direct: bool = False
    workspace: Annotated[str, Field(max_length=200)] | None = None


class ProbeShown(Shown):
    """Whether an agent can be used now."""

    name: str
    status: Literal["operative", "key_missing", "unreachable", "unavailable"]
    detail: str
    latency_ms: float | None
    version: str | None
    checked_at: str


class LandedUnreviewed(Shown):
    """What a run without review landed; `landing` null = nothing, and `why` says what went wrong then."""

    landing: str | None
    paths: list[str]
    stayed: list[RefusedPath]
    why: str | None = None


class AgentRunShown(Shown):
    """A run that was; `conversation_id` is the one whose branch has its changes, null where it has none.

    `state`: `running`, `done`, `failed`, or `interrupted` when the server died in it. `landed`: of a run
    without review.
    """

    session_id: str
    agent: str
    owner: str
    conversation_id: str | None
    prompt: str
    content: str
    state: Literal["running", "done", "failed", "interrupted"]
    error: str | None
    at: str
    seconds: float | None
    tokens: int | None
    cost: float | None
    model: str | None
    changes: dict[str, int] | None
    landed: LandedUnreviewed | None


class LogShown(Shown):
    """One message to an agent, or of one."""

    role: Literal["user", "assistant", "system"]
    content: str


class MemoryShown(Shown):
    """The newest 50 messages, oldest first; `conversation_id` is the one whose branch has the changes."""

    session_id: str
    conversation_id: str | None
    logs: list[LogShown]


_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events of the run; the last one has the kind `done` and the answer.",
        "content": {SSE: {"schema": {"type": "string"}}, NDJSON: {"schema": {"type": "string"}}},
    }
}


@router.get("/runs", response_model=list[AgentRunShown], summary="What other vendors' agents did last")
async def runs(context: Context, caller: Viewer, limit: Limit = 50) -> Response:
    """The caller's runs, newest first; an admin sees everybody's."""
    return answer(await _part(context).runs(hidden_owner(caller), limit))


@router.get("/memory/{session_id}", response_model=MemoryShown, summary="What was said to an agent")
async def memory(session_id: SessionId, context: Context, caller: Viewer) -> Response:
    """In the caller's runs that go on with each other, or in a conversation of theirs."""
    registry = _part(context).registry
    found = await registry.memory(session_id, owner=caller.user_id)
    if found is None:
        raise problem("not_found", "there is no such session")
    known = await registry.session(session_id, owner=caller.user_id)
    where = session_id if known is None else known.thread_id
    logs = [msgspec.structs.asdict(log) for log in found]
    return answer({"session_id": session_id, "conversation_id": where, "logs": logs})


@router.post("/{name}/probe", response_model=ProbeShown, summary="Whether an agent can be used")
async def probe(
    name: Name,
    context: Context,
    caller: User,
    live: Annotated[bool, Query(description="Ask the vendor, too: is the key right?")] = False,
) -> Response:
    """Without `live` it costs nothing: is there a key, is the program there."""
    del caller
    _require(context, name)
    return answer(msgspec.structs.asdict(await _part(context).registry.probe_agent(name, live=live)))


@router.post("/{name}/run", response_class=Response, responses=_STREAM, summary="Give an agent work")
async def run(name: Name, body: AgentRunWanted, request: Request, context: Context, caller: User) -> Response:
    """`Accept: application/x-ndjson` gives lines of JSON, else SSE. Closing the connection ends the run."""
    _require(context, name)
    if body.direct and not caller.may("admin"):
        raise problem("forbidden", "a run without review needs the role admin")
    if body.conversation_id is not None:
        await owned_session(context, caller, body.conversation_id)
    try:
        check_prompt(body.prompt)
    except InvalidArgument as error:
        raise invalid(("body", "prompt"), str(error)) from error
    try:
        wanted = request_of(body.model_dump(), workspace=workspace_of(context, body.workspace))
    except InvalidArgument as error:  # its text names what is wrong: a session id, a snapshot
        raise invalid(("body",), str(error)) from error
    _part(context).registry.check(name, wanted)
    part, lines = _part(context), NDJSON in request.headers.get("accept", "")
    events = _while_admitted(
        events_of(lambda told: part.run(name, wanted, owner=caller.user_id, on_event=told), wanted),
        until_away(context, caller, request.scope["state"].get("expires_at")),
        wanted,
    )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _chunks(events, lines=lines), headers=headers, media_type=NDJSON if lines else SSE
    )


async def _while_admitted(
    events: AsyncGenerator[AgentEvent], away: Coroutine[Any, Any, None], wanted: AgentRequest
) -> AsyncGenerator[AgentEvent]:
    """Yield a run's events; it ends with an error when its caller may not be here any more (SV-55)."""
    gone = asyncio.create_task(away, name="credential of a run")
    try:
        async with aclosing(events):
            while True:
                step = asyncio.ensure_future(anext(events, None))
                try:
                    await asyncio.wait((step, gone), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not step.done():  # cancelled before the events are closed: that ends the run
                        step.cancel()
                        await asyncio.wait((step,))
                if step.cancelled():
                    break
                if (event := step.result()) is None:
                    return
                yield event
        yield AgentEvent("error", GONE, {"error_type": AgentAuthError.__name__})
        yield AgentEvent("done", response=failed(wanted, AgentAuthError(GONE)))
    finally:
        gone.cancel()


async def _chunks(events: AsyncGenerator[AgentEvent], *, lines: bool) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        async for event in events:
            data = msgspec.json.encode(event_row(event))
            yield data + b"\n" if lines else b"data: " + data + b"\n\n"


def _part(context: Context) -> ProviderAgents:
    return context.sessions.part(ProviderAgents)


def _require(context: Context, name: str) -> None:
    if name not in {info.name for info in _part(context).registry.list_agents()}:
        raise problem("not_found", "there is no such agent; GET /api/agents lists them")
