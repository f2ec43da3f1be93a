"""The task board of a workspace, to look at (SV-62, DE-32, DE-43).

Here: that route. Not here: changing tasks, which agents do (`tools/together/board.py`); the board itself.

Looking is a use: task files that are in a workspace without a board are taken over at the first look.
"""

import logging
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from bowerbird.boards.boards import BoardKey, board_at, board_of
from bowerbird.core.events import Notice
from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import found_workspace
from bowerbird.server.routes.common import Context, Shown, Viewer
from bowerbird.sessions.live.hub import Published

_log = logging.getLogger(__name__)
router = APIRouter(prefix="/api", tags=["tasks"])

Status = Literal["pending", "in_progress", "completed"]


class TaskShown(Shown):
    """A task of the board; what blocks it and what it blocks follow from its links."""

    id: int
    subject: str
    description: str
    status: str
    blockedBy: list[int]
    blocks: list[int]
    owner: str
    activeForm: str
    metadata: dict[str, Any]


@router.get("/tasks", response_model=list[TaskShown], summary="The task board of a workspace")
async def tasks(
    context: Context,
    caller: Viewer,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    workspace: Annotated[str | None, Query(max_length=200, description="A registered one.")] = None,
    status: Annotated[Status | None, Query()] = None,
) -> Response:
    """In numeric order: of `conversation`'s workspace, of a registered one, else of the default one."""
    key = await _board(context, caller, conversation, workspace)
    if key is not None:
        for warning in await context.boards.open(key):
            await _warn(context, key, warning)
    state = None if key is None else await context.boards.state(key)
    found = () if state is None else state.tasks
    return answer([task for task in found if status is None or task["status"] == status])


async def _warn(context: ServerContext, key: BoardKey, warning: str) -> None:
    """Name a file that was not taken over to the viewers of the workspace's conversations, and in the log."""
    _log.warning("the task board of %s: %s", key.name, warning)
    live = context.sessions.live
    for thread_id in await context.boards.sessions_on(key, live.watched()):
        live.publish(Published(thread_id, None, None, Notice("tasks", warning)))


async def _board(
    context: ServerContext, caller: Caller, conversation: str | None, workspace: str | None
) -> BoardKey | None:
    if conversation is not None:
        return board_of(await owned_session(context, caller, conversation))
    path = found_workspace(context, workspace)
    return None if path is None else board_at(path)
