"""Conversations as such: made, listed, shown, changed, forked, deleted, restored (SV-7 … SV-10, 22, 23).

Here: the routes. Not here: their messages and turns (`turns.py`), what a list row holds (`shown.py`).
"""

from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field, model_validator
from starlette.responses import Response

from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.errors import problem
from bowerbird.server.common.forms import meant_member
from bowerbird.server.common.json_answers import NOT_BLANK, answer, clean, is_id
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import (
    EFFORTS,
    conversation,
    described,
    hidden_owner,
    new_session,
    settings_of,
)
from bowerbird.server.routes.common import (
    Before,
    Body,
    Context,
    ConversationId,
    Limit,
    Shown,
    StatusShown,
    StrictBody,
    User,
    Viewer,
    whole,
)
from bowerbird.server.routes.shapes import BranchShown, LandingUnderWay, QueuedShown
from bowerbird.sessions.searching import SessionSearch
from bowerbird.sessions.shown import hit, listed

router = APIRouter(prefix="/api", tags=["conversations"])

Effort = Annotated[EFFORTS | None, Field(description="null = configured; xhigh means max.")]
Title = Annotated[str | None, Field(max_length=500)]
Flag = bool | None
_CALLS = Field(ge=1, le=1_000_000)
ToolsOffered = Annotated[Literal["default", "full"] | None, Field(description="null = configured.")]
Network = Annotated[
    str | None, Field(max_length=2_000, description="Hosts that commands may reach, or `registries`; admins.")
]
Turns = Annotated[
    Annotated[int, BeforeValidator(whole, json_schema_input_type=Annotated[int, _CALLS]), _CALLS] | None,
    Field(description="Model calls per turn, at most as many as configured; null = as configured."),
]
Money = Annotated[
    Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None,
    Field(description="USD per turn, beside the configured limits; null = only those."),
]


class NewConversation(Body):
    """How a conversation begins; everything may be left out."""

    @model_validator(mode="before")
    @classmethod
    def _nearly(cls, given: Any) -> Any:
        """Refuse a member that is another one misspelt: what was meant would be left out silently."""
        if isinstance(given, dict):
            meant = meant_member(cast("dict[str, Any]", given), tuple(cls.model_fields))
            if meant is not None:
                raise ValueError(f"there is no member `{meant[0]}`; did you mean `{meant[1]}`?")
        return cast("Any", given)

    preset: str | None = None
    enable_teams: bool = False
    enable_tracing: bool = False
    enable_approval: Flag = None
    enable_plan_mode: bool = False
    enable_thinking: Flag = None
    thinking_effort: Effort = None
    system_prompt: Annotated[str | None, Field(max_length=262_144)] = None
    workspace: str | None = None
    model: Annotated[str | None, Field(max_length=300)] = None
    title: Title = None
    max_turns: Turns = None
    max_cost: Money = None
    memory: Flag = None
    tools: ToolsOffered = None
    network: Network = None
    landing: Annotated[Literal["review", "turn", "step"] | None, Field(description="null = configured.")] = (
        None
    )


class Changes(StrictBody):
    """What to change of a conversation; members left out stay."""

    title: Annotated[str, Field(min_length=1, max_length=500, pattern=NOT_BLANK)] | None = None
    enable_teams: Flag = None
    enable_tracing: Flag = None
    enable_approval: Flag = None
    enable_plan_mode: Flag = None
    enable_thinking: Flag = None
    thinking_effort: Effort = None
    model: Annotated[str | None, Field(max_length=300)] = None
    max_turns: Turns = None
    max_cost: Money = None
    memory: Flag = None
    tools: ToolsOffered = None
    network: Network = None


class ForkPoint(StrictBody):
    """After which turn; the last ended one when left out."""

    turn_id: Annotated[str | None, Field(max_length=200)] = None
    title: Title = None


class Made(Shown):
    """The id of a new conversation."""

    conversation_id: str


class FoundPlace(Shown):
    """Where the words of a search stand: the newest message with any of them, and that place of it."""

    cursor: int
    role: str
    text: str


class Row(Shown):
    """A conversation as lists show it. `found`: in a search, null = its title has the words."""

    id: str
    title: str | None
    created_at: str
    updated_at: str
    message_count: int
    status: str
    stop_reason: str | None
    changed_files: int
    cost: float | None
    pending_approval: bool
    found: FoundPlace | None = None


class MessageShown(Shown):
    """What somebody said, or was answered."""

    id: str
    role: str
    content: str
    created_at: str
    turn_id: str | None
    cursor: int


class Conversation(Shown):
    """A conversation with its messages."""

    id: str
    title: str | None
    system_prompt: str | None
    preset: str
    model: str
    enable_teams: bool
    enable_tracing: bool
    enable_approval: bool
    enable_plan_mode: bool
    enable_thinking: Annotated[bool | None, Field(description="null = as the model does by itself.")]
    thinking_effort: str
    created_at: str
    messages: list[MessageShown]
    total_input_tokens: int
    total_output_tokens: int
    cursor: int
    queued: list[QueuedShown]
    branch: BranchShown | None
    landing: LandingUnderWay | None
    parent: str | None
    cost: float | None


@router.post("/chat", response_model=Made, summary="Begin a conversation")
async def begin(context: Context, caller: User, wanted: NewConversation | None = None) -> Response:
    """Makes the conversation and its branch; costs no model call. An empty body is valid."""
    asked = wanted or NewConversation()
    new = new_session(context, caller, asked.model_dump())
    session = await context.sessions.create(new)
    context.presence.touched(session.thread_id)
    return answer({"conversation_id": session.thread_id})


@router.get("/conversations", response_model=list[Row], summary="Conversations, the newest first")
async def conversations(
    context: Context,
    caller: Viewer,
    limit: Limit = 1000,
    before: Before = None,
    q: Annotated[str | None, Query(max_length=500, description="Title or id contains this.")] = None,
    search: Annotated[
        str | None,
        Query(max_length=500, description="Title and messages have these words; at most 100 a page."),
    ] = None,
) -> Response:
    """The caller's own; all of them for an admin."""
    if before is not None:
        await _known(context, caller, before)
    if search is not None and clean(search).strip():
        hits = await context.sessions.part(SessionSearch).find(
            clean(search), owner=hidden_owner(caller), before=before, limit=limit
        )
        asking = await context.sessions.asking()
        return answer([hit(one, asked=one.info.thread_id in asking) for one in hits])
    found = await context.sessions.list(
        before=before, query=clean(q) if q else None, owner=hidden_owner(caller), limit=limit
    )
    asking = await context.sessions.asking()
    return answer([listed(info, asked=info.thread_id in asking) for info in found])


async def _known(context: ServerContext, caller: Caller, before: str) -> None:
    """Refuse a place in the list that there is not: an empty page would read as its end."""
    row = await context.sessions.find(before, deleted=True) if is_id(before) else None
    if row is None or not caller.owns(row.owner):
        raise problem(
            "not_found", "there is no such conversation in `before`; begin the list again without it"
        )


@router.get("/conversations/{conversation_id}", response_model=Conversation, summary="One conversation")
async def show(
    conversation_id: ConversationId,
    context: Context,
    caller: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only messages with a greater cursor.")] = 0,
    limit: Limit = 1000,
) -> Response:
    """With its messages, page by page when there are many; totals count every model call."""
    row = await owned_session(context, caller, conversation_id)
    return answer(await conversation(context, row, after=after, limit=limit))


@router.delete(
    "/conversations/{conversation_id}", response_model=StatusShown, summary="Delete a conversation"
)
async def delete(conversation_id: ConversationId, context: Context, caller: User) -> Response:
    """Running turn and background commands are cancelled first; unlanded work can be restored for 7 days."""
    row = await owned_session(context, caller, conversation_id)
    await context.sessions.delete(row.thread_id)
    context.presence.forget(row.thread_id)
    return answer({"status": "deleted"})


@router.post("/conversations/{conversation_id}/restore", response_model=Row, summary="Undo a deletion")
async def restore(conversation_id: ConversationId, context: Context, caller: User) -> Response:
    """Brings a deleted conversation back with its branch; one that is not deleted stays as it is."""
    row = await owned_session(context, caller, conversation_id, deleted=True)
    if row.deleted_at is not None:
        await context.sessions.restore(row.thread_id)
    return answer(listed(await context.sessions.get(row.thread_id)))


@router.patch("/conversations/{conversation_id}", response_model=Conversation, summary="Change settings")
async def change(
    conversation_id: ConversationId, changes: Changes, context: Context, caller: User
) -> Response:
    """Stored, and shown to every viewer; a turn that runs goes on with what it began with."""
    row = await owned_session(context, caller, conversation_id)
    given = {name: getattr(changes, name) for name in changes.model_fields_set}
    await context.sessions.set_flags(row.thread_id, settings_of(context, caller, given))
    return answer(await described(context, await context.sessions.row(row.thread_id)))


@router.post(
    "/conversations/{conversation_id}/fork", status_code=201, response_model=Made, summary="Go on apart"
)
async def fork(
    conversation_id: ConversationId, context: Context, caller: User, point: ForkPoint | None = None
) -> Response:
    """A new conversation with the history and the files as they were at the end of a turn."""
    row = await owned_session(context, caller, conversation_id)
    asked = point or ForkPoint()
    title = clean(asked.title) if asked.title else None
    child = await context.sessions.fork(row.thread_id, asked.turn_id, title)
    context.presence.touched(child.thread_id)
    return answer({"conversation_id": child.thread_id}, 201)
