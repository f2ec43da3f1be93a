"""Subagents and tournaments of a conversation (SV-62, DE-6 … DE-8, DE-21 … DE-24).

Here: the routes. Not here: what merging or ranking is (`delegation`), running them (`sessions`), their
questions, which are asked in the conversation (`socket/`, `approvals.py`).
"""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.events import Notice
from bowerbird.server.common.context import ServerContext
from bowerbird.server.common.errors import problem, said
from bowerbird.server.common.json_answers import NOT_BLANK, answer, clean, is_id
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import known_model
from bowerbird.server.conversations.files import virtual
from bowerbird.server.routes.common import (
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
from bowerbird.server.routes.review import Paths
from bowerbird.server.routes.shapes import Diff, Ranked, SaidOrDone, UsageNumbers
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.shown import tournament_row
from bowerbird.sessions.subagents.tournaments import Tournament
from bowerbird.subagents.tournament import LEAST, MOST

router = APIRouter(prefix="/api/conversations/{conversation_id}", tags=["subagents"])

_COUNT = Field(ge=LEAST, le=MOST)
Count = Annotated[int, BeforeValidator(whole, json_schema_input_type=Annotated[int, _COUNT]), _COUNT]
Text = Annotated[str, Field(min_length=1, max_length=100_000, pattern=NOT_BLANK)]
Command = Annotated[str, Field(min_length=1, max_length=10_000, pattern=NOT_BLANK)]


class SubagentShown(Shown):
    """The record of a subagent."""

    handle: str
    session: str
    parent_branch: str
    fork: str
    snapshot: str
    task: str
    agent_type: str
    agent: str
    state: str
    result: str | None
    error: str | None
    usage: UsageNumbers
    depth: int
    created: str
    ended: str | None


class SubagentWhole(SubagentShown):
    """The same, with what it changed and what it said and did."""

    diff: Diff | None
    transcript: list[SaidOrDone]


class SubagentFile(Shown):
    """A file of a subagent's fork."""

    handle: str
    path: str
    deleted: bool
    text: str


class Merge(StrictBody):
    """What is merged; everything, when nothing is said."""

    paths: Paths | None = None
    force: bool = False


class Merged(Shown):
    """Paths by what became of them."""

    written: list[str]
    deleted: list[str]
    conflicts: list[str]
    skipped: list[str]
    merged: list[str]
    unknown: list[str]


class NewTournament(StrictBody):
    """Several attempts at one task, judged by commands; without `checks` the configured ones.

    `agents` attempt in turn: names of other vendors' agents (`GET /api/agents`, type `cli`), and `self`.
    Without `attempts` there is one for each of them, or three.
    """

    task: Text
    attempts: Count | None = None
    checks: Annotated[list[Command], Field(max_length=50)] = Field(default_factory=list)
    models: Annotated[list[Annotated[str, Field(min_length=1, max_length=300)]], Field(max_length=MOST)] = (
        Field(default_factory=list)
    )
    agents: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MOST)] = (
        Field(default_factory=list)
    )
    merge: Literal["none", "best"] = "none"


class TournamentShown(Shown):
    """A tournament; `ranking` is empty and `winner` null while it runs."""

    id: str
    conversation_id: str
    state: str
    task: str
    checks: list[str]
    merge: str
    attempts: list[SubagentShown]
    winner: str | None
    ranking: list[Ranked]
    error: str | None


@router.get("/subagents", response_model=list[SubagentShown], summary="Subagents of a conversation")
async def subagents(conversation_id: ConversationId, context: Context, caller: Viewer) -> Response:
    """Oldest first, without those that were discarded."""
    row = await owned_session(context, caller, conversation_id)
    return answer([child.record() for child in await context.subagents.all(row.thread_id)])


@router.get("/subagents/{handle}", response_model=SubagentWhole, summary="One subagent, whole")
async def subagent(
    conversation_id: ConversationId,
    handle: str,
    context: Context,
    caller: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only messages with a greater cursor.")] = 0,
    limit: Limit = 1000,
) -> Response:
    """Its record, its changes against its fork point with a patch, and its transcript, page by page."""
    row = await owned_session(context, caller, conversation_id)
    child = await context.subagents.one(row.thread_id, _handle(handle))
    diff, transcript = await asyncio.gather(
        context.subagents.diff(child), context.subagents.transcript(child, after=after, limit=limit)
    )
    return answer({**child.record(), "diff": diff, "transcript": transcript})


@router.get("/subagents/{handle}/file", response_model=SubagentFile, summary="A subagent's file")
async def file(
    conversation_id: ConversationId,
    handle: str,
    context: Context,
    caller: Viewer,
    path: Annotated[str, Query(min_length=1, max_length=4096, description="In its fork.")],
) -> Response:
    """Its version of one file, as its caller reads it: cut where it is long."""
    row = await owned_session(context, caller, conversation_id)
    return answer(await context.subagents.file(row.thread_id, _handle(handle), path))


@router.post("/subagents/{handle}/merge", response_model=Merged, summary="Merge a subagent's work")
async def merge(
    conversation_id: ConversationId,
    handle: str,
    context: Context,
    caller: User,
    wanted: Merge | None = None,
) -> Response:
    """Into the conversation's branch, three-way; conflicts are listed and left as they are, unless `force`.

    409 while a turn of the conversation, or the subagent itself, runs.
    """
    row = await owned_session(context, caller, conversation_id)
    asked = wanted or Merge()
    paths = None if asked.paths is None else [virtual(path) for path in asked.paths]
    found = await context.subagents.merge(row.thread_id, _handle(handle), paths, force=asked.force)
    await context.sessions.note_changes(row.thread_id)
    text = f"merged {len(found['written']) + len(found['deleted'])} paths of {handle}"
    _tell(context, row.thread_id, text)
    return answer(found)


@router.post("/subagents/{handle}/discard", response_model=StatusShown, summary="Discard a subagent")
async def discard(conversation_id: ConversationId, handle: str, context: Context, caller: User) -> Response:
    """Frees its fork; one that runs is cancelled first."""
    row = await owned_session(context, caller, conversation_id)
    await context.subagents.discard(row.thread_id, _handle(handle))
    _tell(context, row.thread_id, f"discarded {handle}")
    return answer({"status": "discarded"})


@router.post(
    "/attempts", status_code=202, response_model=TournamentShown, summary="Begin a tournament"
)  # fmt: skip
async def begin(
    conversation_id: ConversationId, wanted: NewTournament, context: Context, caller: User
) -> Response:
    """Forks the conversation's branch for each attempt; they run beside turns and outlive a restart.

    409 while a turn works on the branch, without any check, or when fewer than two attempts can start.
    """
    row = await owned_session(context, caller, conversation_id)
    models = [known_model(context, name, ("body", "models", n)) for n, name in enumerate(wanted.models)]
    try:
        tournament = await context.tournaments.begin(
            row.thread_id,
            clean(wanted.task),
            attempts=wanted.attempts,
            checks=[clean(check) for check in wanted.checks],
            models=models,
            merge=wanted.merge,
            agents=wanted.agents,
        )
    except InvalidArgument as error:
        # The body's form was checked before: what is left is that no checks are configured.
        raise problem("conflict", said(str(error))) from error
    context.presence.touched(row.thread_id)
    return answer(_shown(row.thread_id, tournament), 202)


@router.get("/attempts", response_model=list[TournamentShown], summary="Tournaments of a conversation")
async def tournaments(
    conversation_id: ConversationId, context: Context, caller: Viewer, limit: Limit = 100
) -> Response:
    """Those begun here, the newest first, each as it stands; not those that the agent held in a turn."""
    row = await owned_session(context, caller, conversation_id)
    found = await context.tournaments.all(row.thread_id)
    return answer([_shown(row.thread_id, tournament) for tournament in found[:limit]])


@router.get("/attempts/{tournament_id}", response_model=TournamentShown, summary="How a tournament stands")
async def attempts(
    conversation_id: ConversationId, tournament_id: str, context: Context, caller: Viewer
) -> Response:
    """With the records of its attempts; once it has ended also the ranking."""
    row = await owned_session(context, caller, conversation_id)
    found = await context.tournaments.find(row.thread_id, tournament_id) if is_id(tournament_id) else None
    if found is None:
        raise problem("not_found", "this conversation has no such tournament")
    return answer(_shown(row.thread_id, found))


def _shown(thread_id: str, tournament: Tournament) -> dict[str, Any]:
    row = tournament_row(thread_id, tournament)
    return {**row, "error": said(row["error"]) if row["error"] is not None else None}


def _handle(handle: str) -> str:
    if not is_id(handle):
        raise problem("not_found", "unknown subagent handle")
    return handle


def _tell(context: ServerContext, thread_id: str, text: str) -> None:
    context.sessions.live.publish(Published(thread_id, None, None, Notice("subagents", text)))
