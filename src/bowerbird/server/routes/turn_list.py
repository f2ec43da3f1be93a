"""Turns of a conversation as things of their own, and its messages with their tool calls.

Here: the routes. Not here: saying something and stopping (`turns.py`), events (`socket/`).
"""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from bowerbird.core.errors import UnknownTurn
from bowerbird.server.common.context import ServerContext
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.turn_views import answered, turn_row
from bowerbird.server.routes.common import (
    Context,
    ConversationId,
    Limit,
    ProblemShown,
    Shown,
    Viewer,
    shape_of,
)
from bowerbird.server.routes.shapes import Question, Sender, TurnError, UsageNumbers
from bowerbird.sessions.shown import messages_page
from bowerbird.sessions.values import Turn, TurnInfo

router = APIRouter(prefix="/api/conversations/{conversation_id}", tags=["turns"])


class TurnRow(shape_of(Turn, without="thread_id")):
    """How a turn stands."""

    usage: UsageNumbers | None
    error: TurnError | None


class OneTurn(TurnRow):
    """The same with its answer so far, and the question that waits, if one does."""

    text: str
    request: Question | None


class Turns(Shown):
    """A page of turns; `next_after` is null at the end."""

    turns: list[TurnRow]
    next_after: int | None


class CallRow(Shown):
    """A tool call; its result cut at 2,000 characters (`GET …/calls/{id}` has it whole)."""

    id: str
    tool: str
    input: Any
    status: str | None
    result: str | None
    truncated: bool
    tainted: bool


class MessageRow(Shown):
    """What a person said (`sender`), or the agent (`tool_calls`)."""

    id: str
    turn_id: str | None
    cursor: int
    role: str
    content: str
    created_at: str
    sender: Sender | None = None
    tool_calls: list[CallRow] | None = None


class Messages(Shown):
    """A page of messages; `next_after` is null at the end."""

    messages: list[MessageRow]
    next_after: int | None


@router.get("/turns", response_model=Turns, summary="Turns")
async def turns(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only turns with a greater number `n`.")] = 0,
    limit: Limit = 100,
) -> Response:
    """In order, a fork's inherited ones first."""
    row = await owned_session(context, caller, conversation_id)
    found = [turn for turn in await context.sessions.turns(row.thread_id) if turn.n > after]
    page = found[:limit]
    following = page[-1].n if len(found) > limit else None
    return answer({"turns": [turn_row(turn) for turn in page], "next_after": following})


@router.get(
    "/turns/{turn_id}", response_model=OneTurn, summary="One turn", responses={404: {"model": ProblemShown}}
)
async def turn(
    conversation_id: ConversationId,
    turn_id: str,
    context: Context,
    caller: Viewer,
    wait: Annotated[float | None, Query(ge=0, le=600, description="Seconds to wait for its end.")] = None,
) -> Response:
    """With `wait`, once it has ended or waits for a person; after that time as it stands then."""
    row = await owned_session(context, caller, conversation_id)
    found = await _turn_of(context, row.thread_id, turn_id)
    if wait:
        try:
            async with asyncio.timeout(wait):
                found = await context.sessions.wait(found.turn_id)
        except TimeoutError:
            found = await context.sessions.turn(found.turn_id)
    return answer(turn_row(found) | await answered(context, found))


@router.get("/messages", response_model=Messages, summary="Messages with their tool calls")
async def messages(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only messages with a greater cursor.")] = 0,
    limit: Limit = 100,
) -> Response:
    """What was said and done, in order, from the conversation's beginning; `next_after` goes on from here."""
    row = await owned_session(context, caller, conversation_id)
    page, following = await messages_page(context.sessions, row.thread_id, after=after, limit=limit)
    return answer({"messages": page, "next_after": following})


async def _turn_of(context: ServerContext, thread_id: str, turn_id: str) -> TurnInfo:
    for found in await context.sessions.turns(thread_id):
        if found.turn_id == turn_id:
            return found
    raise UnknownTurn("this conversation has no such turn; GET …/turns lists them")
