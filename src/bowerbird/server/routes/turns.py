"""What is said in a conversation, and its turns: messages, queue, cancel, resume, calls (SV-19, 21, 24, 62).

Here: the routes. Not here: events (`socket/`), approvals and review (`review.py`).
"""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from bowerbird.core.errors import SessionError, UnknownSession
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import NOT_BLANK, answer, clean
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.incoming import content_of, read_message
from bowerbird.server.conversations.submitting import submit
from bowerbird.server.conversations.turn_views import answered
from bowerbird.server.routes.common import (
    Context,
    ConversationId,
    ProblemShown,
    Shown,
    StatusShown,
    StrictBody,
    User,
    Viewer,
)
from bowerbird.server.routes.shapes import Question, QueuedShown, TurnError, UsageNumbers
from bowerbird.sessions.shown import queued_row

router = APIRouter(prefix="/api/conversations/{conversation_id}", tags=["turns"])

PAGE_CHARS = 100_000


class Accepted(Shown):
    """What an accepted input became."""

    inbox_id: str
    turn_id: str
    position: int
    duplicate: bool
    open_request: str | None


class Answered(Accepted):
    """The same, with the end of its turn."""

    state: str
    stop_reason: str | None
    text: str
    usage: UsageNumbers | None
    cost: float | None
    error: TurnError | None
    request: Question | None


class TurnShown(Shown):
    """The turn that a request was about."""

    turn_id: str


class Stop(StrictBody):
    """Which turn is stopped, and how; the running one, for good, when nothing is said."""

    turn_id: Annotated[str | None, Field(max_length=200, description="Only this one.")] = None
    resumable: Annotated[bool, Field(description="It ends as `disconnected`: `resume` goes on with it.")] = (
        False
    )


class Focus(StrictBody):
    """What a summary should keep above all."""

    focus: Annotated[str | None, Field(max_length=10_000)] = None


class CallShown(Shown):
    """A tool call, its input whole, its result page by page."""

    id: str
    turn_id: str | None
    tool: str
    input: Any
    status: str | None
    result: str
    offset: int
    next_offset: int | None
    total: int
    truncated: bool
    tainted: bool


_MESSAGE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/NewMessage"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["content"],
                    "additionalProperties": False,
                    "properties": {
                        "content": {"type": "string", "minLength": 1, "pattern": NOT_BLANK},
                        "kind": {"type": "string", "enum": ["message", "steer", "interrupt"]},
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    },
                }
            },
        },
    }
}


@router.post(
    "/messages", status_code=202, response_model=Accepted, openapi_extra=_MESSAGE_BODY,
    summary="Say something", responses={200: {"model": Answered, "description": "The final answer"}},
)  # fmt: skip
async def say(
    conversation_id: ConversationId,
    request: Request,
    context: Context,
    caller: User,
    wait: Annotated[float | None, Query(ge=0, le=600, description="Seconds to wait for the answer.")] = None,
) -> Response:
    """Works without a socket; the turn does not depend on any viewer."""
    row = await owned_session(context, caller, conversation_id)
    message, images = await read_message(request)
    content = await content_of(context, row.thread_id, message, images)
    receipt = await submit(context, caller, row.thread_id, content, request, kind=message.kind)
    shown = {
        "inbox_id": receipt.inbox_id,
        "turn_id": receipt.turn_id,
        "position": receipt.position,
        "duplicate": receipt.duplicate,
        "open_request": receipt.open_request,
    }
    if not wait or receipt.open_request is not None:
        return answer(shown, 202)
    try:
        async with asyncio.timeout(wait):
            turn = await context.sessions.wait(receipt.turn_id)
    except TimeoutError:
        return answer(shown, 202)
    return answer(shown | await answered(context, turn))


@router.get("/queue", response_model=list[QueuedShown], summary="Inputs that wait for their turn")
async def queue(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """In the order they will run."""
    row = await owned_session(context, caller, conversation_id)
    return answer([queued_row(found) for found in await context.sessions.queued(row.thread_id)])


@router.delete("/queue/{inbox_id}", response_model=StatusShown, summary="Take a waiting input back")
async def take_back(
    conversation_id: ConversationId, inbox_id: str, context: Context, caller: User
) -> Response:
    """409 once its turn has begun."""
    row = await owned_session(context, caller, conversation_id)
    await context.sessions.take_back(row.thread_id, inbox_id)
    return answer({"status": "cancelled"})


@router.post("/cancel", status_code=202, response_model=TurnShown, summary="Stop the running turn")
async def cancel(
    conversation_id: ConversationId, context: Context, caller: User, wanted: Stop | None = None
) -> Response:
    """What it finished stays; queued messages run next. 409 `not_running` when nothing runs."""
    row = await owned_session(context, caller, conversation_id)
    asked = wanted or Stop()
    if asked.resumable or asked.turn_id is not None:
        running = [turn for turn in await context.sessions.turns(row.thread_id) if turn.state == "running"]
        if not running or asked.turn_id not in (None, running[0].turn_id):
            raise problem("not_running", "that turn does not run")
        if asked.resumable:
            await context.sessions.disconnect(running[0].turn_id)
            return answer({"turn_id": running[0].turn_id}, 202)
    try:
        turn_id = await context.sessions.cancel(row.thread_id)
    except UnknownSession:
        raise
    except SessionError as error:
        raise problem("not_running", "nothing runs in this conversation") from error
    return answer({"turn_id": turn_id}, 202)


@router.post("/resume", status_code=202, response_model=TurnShown, summary="Go on with a failed turn")
async def resume(conversation_id: ConversationId, context: Context, caller: User) -> Response:
    """Under the same turn id. 409 when there is nothing to go on with."""
    row = await owned_session(context, caller, conversation_id)
    try:
        turn = await context.sessions.resume(thread_id=row.thread_id)
    except UnknownSession:
        raise
    except SessionError as error:
        code = error.code if error.code != "session_error" else "not_running"
        raise problem(code, str(error), status=409) from error
    context.presence.touched(row.thread_id)
    return answer({"turn_id": turn.turn_id}, 202)


@router.post("/compact", status_code=202, response_model=StatusShown, summary="Summarise the history")
async def compact(
    conversation_id: ConversationId, context: Context, caller: User, wanted: Focus | None = None
) -> Response:
    """The summary is made before the next model call and stands for the history sent; nothing is lost."""
    row = await owned_session(context, caller, conversation_id)
    focus = clean((wanted or Focus()).focus or "")
    await context.sessions.set_flags(row.thread_id, {"compact": focus})
    return answer({"status": "accepted"}, 202)


@router.get("/calls/{call_id}", response_model=CallShown, summary="One tool call, whole",
            responses={404: {"model": ProblemShown}})  # fmt: skip
async def call(
    conversation_id: ConversationId,
    call_id: str,
    context: Context,
    caller: Viewer,
    offset: Annotated[int, Query(ge=0, le=2**53, description="First character of the result.")] = 0,
) -> Response:
    """The full input and result, in pages of 100,000 characters."""
    row = await owned_session(context, caller, conversation_id)
    found = await context.sessions.call(row.thread_id, call_id)
    text = _text_of(found.content)
    page = text[offset : offset + PAGE_CHARS]
    following = offset + len(page)
    return answer(
        {
            "id": found.call_id,
            "turn_id": found.turn_id,
            "tool": found.tool,
            "input": found.input,
            "status": found.status,
            "result": page,
            "offset": offset,
            "next_offset": following if following < len(text) else None,
            "total": len(text),
            "data": found.data,
            "truncated": found.truncated,
            "tainted": found.tainted,
            "ms": found.ms,
            "blob": found.blob,
            "cursor": found.cursor,
        }
    )


def _text_of(content: list[dict[str, Any]]) -> str:
    parts = [str(block.get("text") or f"[{block.get('type')}]") for block in content]
    return "\n".join(parts)
