"""What people always allow (UI-71): listed and taken back.

Here: the routes. Not here: how a rule is made, which is an answer to a question (`approvals.py`), what it
covers (`agent/always.py`).
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from starlette.responses import Response

from bowerbird.server.common.json_answers import answer
from bowerbird.server.conversations.conversations import hidden_owner
from bowerbird.server.routes.common import Context, Shown, StatusShown, User, Viewer
from bowerbird.sessions.permission_rules import PermissionRules
from bowerbird.sessions.shown import permission

router = APIRouter(prefix="/api/permissions", tags=["approvals"])

RuleId = Annotated[int, Path(ge=1, le=(1 << 53) - 1)]


class PermissionShown(Shown):
    """A rule that somebody's answer left: calls that it covers are not asked about.

    `target` is the conversation or the directory that it holds in, "" for `everywhere`.
    """

    id: int
    scope: Literal["session", "workspace", "everywhere"]
    target: str
    rule: str
    user: str
    by: str
    at: str


@router.get("", response_model=list[PermissionShown], summary="What is always allowed")
async def permissions(context: Context, caller: Viewer) -> Response:
    """The caller's, newest first; an admin sees everybody's."""
    found = await context.sessions.part(PermissionRules).list(hidden_owner(caller))
    return answer([permission(row) for row in found])


@router.delete("/{rule_id}", response_model=StatusShown, summary="Take a permission back")
async def remove(rule_id: RuleId, context: Context, caller: User) -> Response:
    """The next call like it is asked about again; a turn that runs keeps what it began with."""
    await context.sessions.part(PermissionRules).remove(rule_id, hidden_owner(caller))
    return answer({"status": "removed"})
