"""Versions of the memory that is kept of a user and a workspace (SV-62, SE-44).

Here: the routes. Not here: rows (`store/rows/memory.py`), writing memory anew
(`sessions/upkeep/memory_rewriting.py`).
"""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import NOT_BLANK, answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import found_workspace
from bowerbird.server.conversations.submitting import DOOR
from bowerbird.server.routes.common import Context, Shown, StrictBody, User, Viewer, whole
from bowerbird.sessions.kept_files import MEMORY, KeptFiles, version_row
from bowerbird.sessions.shown import memory_version
from bowerbird.sessions.upkeep.memory_rewriting import Remembering, scope_of

router = APIRouter(prefix="/api/memory", tags=["memory"])

Name = Annotated[str | None, Query(max_length=200, description="A registered workspace.")]


_ID = Field(ge=1, le=(1 << 53) - 1)
Version = Annotated[int, BeforeValidator(whole, json_schema_input_type=Annotated[int, _ID]), _ID]


class VersionShown(Shown):
    """A text of the memory; `current` for the one that counts."""

    id: int
    at: str
    bytes: int
    text: str
    current: bool


class Remembered(VersionShown):
    """The version that has a new fact; `forgotten` are the oldest lines, which had no room beside it."""

    forgotten: list[str]


class Restored(StrictBody):
    """Which version is to count again; `conversation` or `workspace` as in the list."""

    version: Version
    workspace: Annotated[str | None, Field(max_length=200)] = None
    conversation: Annotated[str | None, Field(max_length=200)] = None


@router.get("/versions", response_model=list[VersionShown], summary="What was remembered")
async def versions(
    context: Context,
    caller: Viewer,
    workspace: Name = None,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """The newest 20, newest first: of `conversation`'s workspace, a registered one, else the default one."""
    owner, path = await _scope(context, caller, workspace, conversation)
    found = await context.sessions.part(Remembering).versions(owner, path)
    return answer([memory_version(version, current=index == 0) for index, version in enumerate(found)])


@router.post("/restore", response_model=VersionShown, summary="Use an earlier version again")
async def restore(context: Context, caller: User, wanted: Restored) -> Response:
    """It becomes the newest version; what counted before stays in the list."""
    owner, path = await _scope(context, caller, wanted.workspace, wanted.conversation)
    version = await context.sessions.part(Remembering).restore(owner, path, wanted.version)
    return answer(memory_version(version, current=True))


class Fact(StrictBody):
    """Something to remember; `conversation` or `workspace` as in the list."""

    text: Annotated[str, Field(min_length=1, max_length=1_000, pattern=NOT_BLANK)]
    workspace: Annotated[str | None, Field(max_length=200)] = None
    conversation: Annotated[str | None, Field(max_length=200)] = None


@router.post("", response_model=Remembered, summary="Remember something")
async def remember(context: Context, caller: User, wanted: Fact) -> Response:
    """It becomes the last line of a new version, which counts from the next turn on.

    A memory has 4,096 bytes: the oldest lines make room.
    """
    owner, path = await _scope(context, caller, wanted.workspace, wanted.conversation)
    version, forgotten = await context.sessions.part(Remembering).add(owner, path, wanted.text)
    return answer({**memory_version(version, current=True), "forgotten": forgotten})


class FileVersion(Shown):
    """What a landing made of a file or skill; `text` for a file that it left there."""

    landing: str
    at: str
    actor: str
    door: str
    paths: list[str]
    text: str | None


class LandedAgain(Shown):
    """The landing that brought a version back."""

    landing: str
    paths: list[str]


class RestoredFile(StrictBody):
    """Which version is to be there again: that after a landing."""

    landing: Annotated[str, Field(max_length=200)]
    path: Annotated[str, Field(max_length=1_000)] = MEMORY
    workspace: Annotated[str | None, Field(max_length=200)] = None


@router.get("/files", response_model=list[FileVersion], summary="Landed versions of MEMORY.md or a skill")
async def file_versions(
    context: Context,
    caller: Viewer,
    path: Annotated[
        str, Query(max_length=1_000, description="`MEMORY.md`, or a skill's directory.")
    ] = MEMORY,
    workspace: Name = None,
) -> Response:
    """The newest 20 that landed in a registered workspace, else in the default one; newest first."""
    del caller
    found = await context.sessions.part(KeptFiles).versions(_directory(context, workspace), path)
    return answer([version_row(version) for version in found])


@router.post("/files/restore", response_model=LandedAgain, summary="Land an earlier version again")
async def restore_file(context: Context, caller: User, wanted: RestoredFile) -> Response:
    """A landing like any: recorded, and undone like any."""
    made = await context.sessions.part(KeptFiles).restore(
        _directory(context, wanted.workspace), wanted.landing, wanted.path, actor=caller.user_id, door=DOOR
    )
    return answer({"landing": made.id, "paths": [entry.path.lstrip("/") for entry in made.entries]})


def _directory(context: ServerContext, workspace: str | None) -> str:
    found = found_workspace(context, workspace)
    if found is None:
        raise problem("conflict", "the server has no workspace directory (agent.workspace)")
    return found


async def _scope(
    context: ServerContext, caller: Caller, workspace: str | None, conversation: str | None
) -> tuple[str, str]:
    if conversation is not None:
        return scope_of(await owned_session(context, caller, conversation))
    return caller.owner or "", found_workspace(context, workspace) or ""
