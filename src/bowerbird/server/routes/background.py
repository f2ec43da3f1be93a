"""Background commands of a conversation: listed, looked at, cancelled (SV-10, SV-62, DE-27 … DE-31).

Here: the routes. Not here: starting one, which is the agent's (`tools`), running (`sandbox`).
"""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.routes.common import Context, ConversationId, Shown, User, Viewer

router = APIRouter(prefix="/api/conversations/{conversation_id}/background", tags=["background"])


class RunShown(Shown):
    """A background command: `running`, or how it ended; `lost` when its server died."""

    task_id: str
    status: str
    command: str
    exit_code: int | None
    duration_ms: int | None
    tail: str
    output: str
    total_bytes: int
    truncated: bool
    spill: str | None


@router.get("", response_model=list[RunShown], summary="Background commands, the oldest first")
async def background(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """Those that run and those that ended, with what they have printed so far."""
    row = await owned_session(context, caller, conversation_id)
    return answer(
        [] if row.branch_id is None else await to_thread(context.sandboxes.background_runs, row.branch_id)
    )


@router.post("/{task_id}/cancel", response_model=RunShown, summary="Cancel a background command")
async def cancel(conversation_id: ConversationId, task_id: str, context: Context, caller: User) -> Response:
    """Kills its whole process tree; one that ended stays as it is. 409 when another server runs it."""
    row = await owned_session(context, caller, conversation_id)
    if row.branch_id is None:
        raise problem("not_found", f"there is no background command {task_id!r}")
    ended: list[dict[str, Any]] = await context.sandboxes.cancel_background(row.branch_id, task_id)
    return answer(ended[0])
