"""Where a file conflicts with what a person changed meanwhile, and what they decide of it (UI-89).

Here: the route and the forms. Not here: landing the decisions (`review.py`), finding conflicts (`workspace`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.files import virtual
from bowerbird.server.conversations.review import require_branch
from bowerbird.server.routes.common import Context, ConversationId, Shown, StrictBody, Viewer

if TYPE_CHECKING:
    from bowerbird.workspace.tree.regions import Take

router = APIRouter(prefix="/api", tags=["review"])


class Taken(StrictBody):
    """What becomes of one conflicting place: the lines of one side, of both (`ours` first), or a text."""

    take: Literal["ours", "theirs", "both", "text"]
    text: Annotated[str, Field(max_length=1_000_000)] = ""


Resolved = dict[Annotated[str, Field(min_length=1, max_length=4096)], list[Taken]]


class PlaceShown(Shown):
    """Successive lines; `ours` is the person's file, `theirs` the branch's.

    `kind`: `same` nobody changed them, `ours`, `theirs` one side did, `both` alike, `conflict`. `lines`: of
    the longest version; `cut`: how many of them are left out of the middle of the texts.
    """

    kind: Literal["same", "ours", "theirs", "both", "conflict"]
    lines: int
    cut: int
    base: str
    ours: str
    theirs: str


class ConflictShown(Shown):
    """A path that cannot land without a decision; `path` begins with a slash.

    `plan` names the landing of this path alone and goes with the decisions. `places` is null where there are
    no lines to decide on: binary or huge files, links, deletions.
    """

    path: str
    reason: str
    plan: str
    places: list[PlaceShown] | None


@router.get(
    "/conversations/{conversation_id}/conflict",
    response_model=ConflictShown,
    summary="Where a file conflicts",
)
async def conflict(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    path: Annotated[str, Query(min_length=1, max_length=4096)],
) -> Response:
    """404 where it does not conflict. The decisions are `resolved` of `POST …/land`, by path and in order."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    return answer((await context.sessions.review.conflict(row.thread_id, virtual(path))).record())


def takes_of(given: Mapping[str, Sequence[Taken]] | None) -> dict[str, "list[Take]"]:
    """Return decisions as landings take them."""
    return {
        virtual(path): [one.text.encode() if one.take == "text" else one.take for one in taken]
        for path, taken in (given or {}).items()
    }
