"""Questions that wait for a person (SV-29), and traces of model calls (SV-33).

Here: the routes. Not here: what an answer does (`sessions`).
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from bowerbird.core.errors import AlreadyAnswered
from bowerbird.core.events import CallAnswer
from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import hidden_owner
from bowerbird.server.conversations.submitting import DOOR
from bowerbird.server.routes.common import (
    Body,
    Context,
    ConversationId,
    Limit,
    StatusShown,
    User,
    Viewer,
)
from bowerbird.server.routes.shapes import Question, TraceRecord
from bowerbird.sessions.inbox.answers import DECISIONS
from bowerbird.sessions.shown import question

router = APIRouter(prefix="/api", tags=["approvals"])

WORDS = sorted({word for words in DECISIONS.values() for word in words})


class CallDecision(Body):
    """Of one call among several; with `command` that one is run in place of the call's own."""

    decision: Literal["approve", "deny"]
    feedback: Annotated[str | None, Field(max_length=100_000)] = None
    command: Annotated[str | None, Field(min_length=1, max_length=100_000)] = None


class Decision(Body):
    """An answer: approve, deny, auto_approve, always_…; approve, reject for a plan; others by kind.

    A question of the agent (kind `user`) takes any text; `deny` leaves it unanswered. Where it offers
    options, a word that answers other kinds is refused unless it is one of them, or `feedback` has the words.
    """

    decision: Annotated[str, Field(min_length=1, max_length=100_000, json_schema_extra={"enum": [*WORDS]})]
    feedback: Annotated[str | None, Field(max_length=100_000)] = None
    amount: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    calls: Annotated[dict[str, CallDecision], Field(max_length=1000, default_factory=dict)]


@router.get("/approvals", response_model=list[Question], summary="Questions that wait")
async def approvals(context: Context, caller: Viewer) -> Response:
    """Of the caller's conversations, oldest first."""
    found = await context.sessions.pending(owner=hidden_owner(caller))
    return answer([question(request) for request in found])


@router.post("/approvals/{request_id}", response_model=StatusShown, summary="Answer a question")
async def decide(request_id: str, wanted: Decision, context: Context, caller: User) -> Response:
    """Any door may answer; the first answer counts. 409 `already_answered`."""
    thread_id, kind = await _pending(context, caller, request_id)
    if wanted.decision in WORDS and wanted.decision not in DECISIONS.get(kind, WORDS):
        fitting = ", ".join(DECISIONS[kind])
        raise problem(
            "conflict", f"{wanted.decision} does not answer a question of kind {kind}; use {fitting}"
        )
    feedback = wanted.feedback
    if kind == "budget" and wanted.amount is not None:
        feedback = str(wanted.amount)
    await context.sessions.answer(
        request_id,
        wanted.decision,
        thread_id=thread_id,
        feedback=feedback,
        by=caller.user_id,
        door=DOOR,
        authority=caller.authority,
        calls={call: CallAnswer(**said.model_dump()) for call, said in wanted.calls.items()},
    )
    return answer({"status": "accepted"})


async def _pending(context: ServerContext, caller: Caller, request_id: str) -> tuple[str, str]:
    """Return the thread and kind of a pending request of the caller's."""
    for request in await context.sessions.pending(owner=hidden_owner(caller)):
        if request.request_id == request_id:
            return request.thread_id, request.kind
    known = await context.sessions.lookup.owner_of_answer(request_id)
    if known is not None and caller.owns(known[1]):
        raise AlreadyAnswered("this question was answered before")
    gone = "it may have expired, or its turn was stopped: send the message again"
    raise problem("not_found", f"no such question waits for an answer; {gone}")


@router.get(
    "/conversations/{conversation_id}/traces", response_model=list[TraceRecord], summary="Model calls"
)
async def traces(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only what follows this number.")] = 0,
    limit: Limit = 100,
) -> Response:
    """Stored `llm_request` and `llm_response` records, while tracing was on; secrets are masked."""
    row = await owned_session(context, caller, conversation_id)
    return answer(await context.sessions.lookup.traces(row.thread_id, after, limit))
