"""Commands that people run on a conversation's branch (UI-74).

Here: the route. Not here: when they may run (`sessions/own_commands.py`), the agent's own commands.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from bowerbird.server.common.json_answers import NOT_BLANK, answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.routes.common import Context, ConversationId, Shown, StrictBody, User
from bowerbird.sessions.own_commands import OwnCommands

router = APIRouter(prefix="/api/conversations/{conversation_id}", tags=["commands"])

LOOK_S = 0.2  # how soon it is noticed that nobody waits any more


class Command(StrictBody):
    """A line for the shell."""

    command: Annotated[str, Field(min_length=1, max_length=10_000, pattern=NOT_BLANK)]


class CommandShown(Shown):
    """How a command ended; `output` ends with notes in brackets. `stopped`: whoever asked went away."""

    command: str
    exit_code: int
    output: str
    stopped: bool
    seconds: float


@router.post("/command", response_model=CommandShown, summary="Run a command of yours on the branch")
async def run(
    conversation_id: ConversationId, request: Request, context: Context, caller: User, wanted: Command
) -> Response:
    """In the sandbox, as the agent's commands; 409 while a turn is under way.

    Closing the connection stops it.
    """
    row = await owned_session(context, caller, conversation_id)
    stop = asyncio.Event()
    commands = context.sessions.part(OwnCommands)
    running = asyncio.create_task(commands.run(row.thread_id, wanted.command, stop))
    try:
        while not (await asyncio.wait([running], timeout=LOOK_S))[0]:
            if await request.is_disconnected():
                stop.set()
    finally:
        stop.set()  # also where the server ends: what it printed until then is in the record
    return answer(await running)
