"""Review: diff, landing, undo, discarding, comments (SV-25 … SV-28).

Here: the routes. Not here: what landing is (`workspace`), events that tell viewers (`socket/`).
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import NOT_BLANK, answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.files import virtual, virtual_paths
from bowerbird.server.conversations.review import (
    branch_of,
    following,
    landing_by_id,
    landings_of,
    require_branch,
    running_landings,
    shown_landing,
    snapshot_of,
)
from bowerbird.server.conversations.submitting import DOOR, submit
from bowerbird.server.routes.commits import Commit, CommitOn
from bowerbird.server.routes.common import (
    Before,
    Context,
    ConversationId,
    Limit,
    Shown,
    StrictBody,
    User,
    Viewer,
    whole,
)
from bowerbird.server.routes.conflicts import Resolved, takes_of
from bowerbird.server.routes.shapes import (
    CheckShown,
    Diff,
    FoldedRow,
    GitRepository,
    LandedPath,
    LandedRepository,
    LandingUnderWay,
    RefusedPath,
)
from bowerbird.server.routes.turns import Accepted
from bowerbird.sessions.wishes import NO_CHECK, NOTHING_CODE, NOTHING_TO_LAND, CommitWish, ToLand

router = APIRouter(prefix="/api", tags=["review"])

OfConversation = Annotated[str | None, Query(description="Only landings of this conversation's branch.")]

PathText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="From the workspace's top; a leading slash may be left out.",
    ),
]
Paths = list[PathText]  # how many: as the body may hold
Hunks = list[Annotated[str, Field(max_length=200)]]
_LINE = Field(ge=1, le=10_000_000)
Line = Annotated[int, BeforeValidator(whole, json_schema_input_type=Annotated[int, _LINE]), _LINE]
PathsQuery = Annotated[
    list[str],
    Query(
        default_factory=list,
        description="Only these files or directories; none = all. A leading slash may be left out.",
    ),
]


class Land(StrictBody):
    """What lands; everything, when nothing is said."""

    plan: Annotated[str | None, Field(max_length=200)] = None
    paths: Paths | None = None
    hunks: Hunks | None = None
    accept: Paths = Field(default_factory=list)
    include: Paths = Field(default_factory=list, description="Ignored paths to land, with all they hold.")
    force: bool = False
    partial: bool = False
    commits: Literal["fetch", "fast_forward", "never"] | None = Field(
        default=None, description="What becomes of commits; null = as the setting git.land says."
    )
    commit: CommitOn | None = None
    seen: dict[str, Annotated[str, Field(max_length=64)]] | None = Field(
        default=None,
        description="`state` of each path as it was shown; what would land otherwise is refused as `moved`.",
    )
    resolved: Resolved | None = Field(
        default=None, description="Decisions of conflicting places, by path; they need `plan`."
    )


class Undo(StrictBody):
    """What is taken back; all of the landing, when nothing is said."""

    paths: Paths | None = None
    hunks: Hunks | None = None
    force: bool = False
    commit: Commit | None = None


class FixLanding(StrictBody):
    """`retry` goes on where it stopped, `take_back` brings files back, `give_up` leaves them as they are."""

    how: Literal["retry", "take_back", "give_up"]


class Discard(StrictBody):
    """What is thrown away; everything, when nothing is said."""

    paths: Annotated[list[PathText], Field(min_length=1)] | None = None


class Comment(StrictBody):
    """A remark about lines of a changed file."""

    path: PathText
    side: Literal["old", "new"] = "new"
    line: Line
    end_line: Line | None = None
    text: Annotated[str, Field(min_length=1, max_length=10_000, pattern=NOT_BLANK)]


class Comments(StrictBody):
    """Remarks that become one message."""

    comments: Annotated[list[Comment], Field(min_length=1, max_length=100)]


class PlanRow(Shown):
    """What a landing would do to one path.

    `path` begins with a slash. `grade`: `needs_accept` lands only when the path is in `accept`; `held` is
    taken by this landing and left by automatic ones; `free` is neither. `reasons`: a sentence for each of
    `flags`. `taint`: what had been read from outside when it was written. `state` names what is shown of it:
    a landing sends it back as `seen`.
    """

    path: str
    op: str
    state: str
    base: str | None
    current: str | None
    new: str | None
    drift: Literal["none", "same", "mergeable", "conflict"]
    flags: list[str]
    grade: Literal["needs_accept", "held", "free"]
    reasons: list[str]
    ignored: bool
    tainted: bool
    taint: list[str]
    hunks: list[str]


class Plan(Shown):
    """What a landing would do; `folded`: what stays on the branch, one row for each top directory."""

    plan: str
    entries: list[PlanRow]
    commits: bool
    in_git: bool
    folded: list[FoldedRow]


class ReviewShown(Shown):
    """What changed, and what landing it would do, of one state of the branch."""

    diff: Diff
    plan: Plan


class LandingShown(Shown):
    """The record of a landing or an undo; paths begin with a slash."""

    id: str
    kind: str
    state: str
    at: str
    branch: str
    entries: list[LandedPath]
    refused: list[RefusedPath]
    history: list[LandedRepository]


class LandingRuns(LandingUnderWay):
    """A landing that runs, and where."""

    conversation_id: str


class Discarded(Shown):
    """What was thrown away (paths begin with a slash), and where it can be found for 7 days."""

    status: str
    paths: list[str]
    branch: str | None


_PATCH: dict[int | str, dict[str, Any]] = {200: {"content": {"text/x-diff": {"schema": {"type": "string"}}}}}


@router.get("/conversations/{conversation_id}/diff", response_model=Diff, summary="Changes")
async def diff(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    path: PathsQuery,
    since: Annotated[str | None, Query(max_length=200, description="A snapshot, or a turn.")] = None,
    format: Literal["json", "unified"] = "json",  # noqa: A002 - the member's name on the wire
) -> Response:
    """Against the fork point, or against an earlier state; non-empty `flags` is the red lane.

    `git` tells what happened in git directories, which have no files here; `folded` what stays on the branch
    by itself, one row for each top directory. Both are empty where paths or `since` are given.

    With `format=unified` the answer is that of `GET …/patch`.
    """
    if format == "unified":
        return await patch(conversation_id, context, caller, path, since)
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    snapshot = await snapshot_of(context, row, since)
    return answer(await context.sessions.review.diff(row.thread_id, virtual_paths(path), snapshot))


@router.get(
    "/conversations/{conversation_id}/git", response_model=list[GitRepository], summary="What happened in git"
)
async def git(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """Refs, commits, stashes and settings of the branch's git directories, which are in no diff."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    return answer((await context.sessions.review.git(row.thread_id)).record())


@router.get(
    "/conversations/{conversation_id}/patch",
    response_class=Response,
    responses=_PATCH,
    summary="Changes as a patch",
)
async def patch(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    path: PathsQuery,
    since: Annotated[str | None, Query(max_length=200, description="A snapshot, or a turn.")] = None,
) -> Response:
    """The same changes as `git apply` takes them."""
    row = await owned_session(context, caller, conversation_id)
    branch = await branch_of(context, row)
    text = await to_thread(
        branch.unified,
        virtual_paths(path) or None,
        3,
        await snapshot_of(context, row, since),
        ignored=False,
    )
    return Response(text.encode("utf-8", "surrogateescape"), media_type="text/x-diff")


@router.get("/conversations/{conversation_id}/landing-plan", response_model=Plan, summary="What would land")
async def landing_plan(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    path: PathsQuery,
    include: Annotated[
        list[str], Query(default_factory=list, description="Ignored paths that are to land with the rest.")
    ],
) -> Response:
    """With the drift of each path against the workspace; changes nothing."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    named, included = virtual_paths(path), virtual_paths(include) or ()
    return answer((await context.sessions.review.plan(row.thread_id, named, included)).record())


@router.get("/conversations/{conversation_id}/review", response_model=ReviewShown, summary="Changes and plan")
async def review(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """What is drawn before a landing: send `state` of each path back as `seen`, and what has moved since is
    refused, not landed unseen."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    return answer(await context.sessions.review.review(row.thread_id))


@router.post("/conversations/{conversation_id}/land", response_model=LandingShown, summary="Land changes")
async def land(
    conversation_id: ConversationId, context: Context, caller: User, wanted: Land | None = None
) -> Response:
    """All or nothing: 409 `stale` when the plan or a hunk is no longer what it was, 409 `landing_refused`
    with the refused paths on a conflict or a flag that is not accepted, 409 `nothing_to_land` where no such
    path has changed; then nothing has changed."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    given = wanted or Land()
    asked = ToLand(
        paths=virtual_paths(given.paths),
        hunks=given.hunks,
        accept=[path if path == "*" else virtual(path) for path in given.accept],
        force=given.force,
        partial=given.partial,
        plan=given.plan,
        seen=None if given.seen is None else {virtual(path): state for path, state in given.seen.items()},
        commits=given.commits,
        include=virtual_paths(given.include) or (),
        commit=given.commit and CommitWish(given.commit.message, branch=given.commit.branch),
        resolved=takes_of(given.resolved),
    )
    landing = await context.sessions.review.land(row.thread_id, asked, actor=caller.user_id, door=DOOR)
    if not landing.entries and not landing.history:
        raise problem(NOTHING_CODE, NOTHING_TO_LAND.replace("session", "conversation"))
    return answer(shown_landing(landing))


@router.get("/conversations/{conversation_id}/check", response_model=CheckShown, summary="What a check found")
async def check(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """The newest one since the server started; `command` is empty where no check is configured."""
    row = await owned_session(context, caller, conversation_id)
    return answer(context.sessions.review.newest_check(row.branch_id))


@router.post(
    "/conversations/{conversation_id}/check", status_code=202, response_model=CheckShown,
    summary="Check before landing",
)  # fmt: skip
async def begin_check(conversation_id: ConversationId, context: Context, caller: User) -> Response:
    """Runs the configured command on a copy of the branch, without network; the branch stays as it is.

    One that runs already goes on. 409 where no check is configured (`landing.check`).
    """
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    if not context.sessions.settings.landing_check:
        raise problem("conflict", NO_CHECK)
    found = await context.sessions.review.begin_check(row.thread_id)
    return answer(found.record(), 202)


@router.get("/landings", response_model=list[LandingShown], summary="Landings, the newest first")
async def landings(
    context: Context, caller: Viewer, limit: Limit = 100, conversation: OfConversation = None,
    before: Before = None,
) -> Response:  # fmt: skip
    """Of the caller's conversations and uploads, or of one conversation's branch."""
    found = following(await landings_of(context, caller, conversation), before)
    return await to_thread(lambda: answer([shown_landing(landing) for landing in found[:limit]]))


@router.get("/landings/running", response_model=list[LandingRuns], summary="Landings that run now")
async def running(context: Context, caller: Viewer) -> Response:
    """How far landings and undos of more than 100 files in the caller's conversations are.

    Viewers of the conversation get the same as `landing_progress`.
    """
    return answer(await running_landings(context, caller))


@router.get("/landings/{landing_id}/diff", response_model=Diff, summary="What a landing did")
async def landing_diff(landing_id: str, context: Context, caller: Viewer, path: PathsQuery) -> Response:
    """In the form of a conversation's diff; only files are named in `path`."""
    _, landing = await landing_by_id(context, caller, landing_id)
    return answer(await to_thread(lambda: landing.diff(virtual_paths(path) or None).record()))


@router.post("/landings/{landing_id}/undo", response_model=LandingShown, summary="Take a landing back")
async def undo(landing_id: str, context: Context, caller: User, wanted: Undo | None = None) -> Response:
    """409 `landing_refused` where files were edited since, unless `force`."""
    directory, landing = await landing_by_id(context, caller, landing_id)
    given = wanted or Undo()
    undone = await context.sessions.review.undo(
        directory, landing.id, paths=virtual_paths(given.paths), hunks=given.hunks, force=given.force,
        commit=given.commit and CommitWish(given.commit.message), actor=caller.user_id, door=DOOR,
    )  # fmt: skip
    return answer(shown_landing(undone))


@router.post("/landings/{landing_id}/fix", response_model=LandingShown, summary="Fix a stuck landing")
async def fix(landing_id: str, context: Context, caller: User, wanted: FixLanding) -> Response:
    """For one whose state is `needs_attention`; its `troubles` say where and why."""
    directory, landing = await landing_by_id(context, caller, landing_id)
    fixed = await context.sessions.review.fix(directory, landing.id, wanted.how)
    return answer(shown_landing(fixed))


@router.post("/conversations/{conversation_id}/discard", response_model=Discarded, summary="Discard changes")
async def discard(
    conversation_id: ConversationId, context: Context, caller: User, wanted: Discard | None = None
) -> Response:
    """All unlanded changes (restorable for 7 days), or those at some paths.

    409 `branch_busy` while a background command writes them, as for landing.
    """
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    gone = await context.sessions.review.discard(row.thread_id, virtual_paths((wanted or Discard()).paths))
    return answer(gone.record())


@router.post(
    "/conversations/{conversation_id}/comments", status_code=202, response_model=Accepted,
    summary="Comment on lines",
)  # fmt: skip
async def comment(
    conversation_id: ConversationId, wanted: Comments, request: Request, context: Context, caller: User
) -> Response:
    """Becomes one message that quotes path and lines; its turn is queued."""
    row = await owned_session(context, caller, conversation_id)
    require_branch(row)
    virtual_paths([one.path for one in wanted.comments])  # refuses what leads outside
    text = await context.sessions.review.comment(row.thread_id, wanted.comments)
    receipt = await submit(context, caller, row.thread_id, text, request)
    return answer(receipt, 202)
