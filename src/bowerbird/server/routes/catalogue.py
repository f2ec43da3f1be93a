"""What conversations are offered: tools, skills, presets, agents, workspaces (SV-11 … SV-13, SV-62).

Here: those lists, and writing skills. Not here: how they are chosen for a turn (`app/`), SKILL.md's form
(`skills/`).
"""

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from bowerbird.core.threads import to_thread
from bowerbird.server.common.context import Named
from bowerbird.server.common.errors import invalid, problem
from bowerbird.server.common.json_answers import NOT_BLANK, answer
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.skill_files import NAME, delete_skill, write_skill
from bowerbird.server.conversations.uploads import staging
from bowerbird.server.http.multipart import receive_files
from bowerbird.server.routes.common import (
    MULTIPART_FILES,
    Admin,
    Body,
    Context,
    Shown,
    StatusShown,
    Viewer,
)
from bowerbird.sessions.shown import tool_row
from bowerbird.skills.commands import custom_commands

router = APIRouter(prefix="/api", tags=["catalogue"])

MAX_BODY = 256 * 1024


class NamedShown(Shown):
    """A name and what it is for."""

    name: str
    description: str


class ToolShown(NamedShown):
    """A tool; `effect`: `read`, `plan`, `session`, `branch` or `outside`."""

    effect: str
    aliases: list[str]
    input_schema: dict[str, Any]


class SkillShown(NamedShown):
    """A skill with its text."""

    body: str


class CommandShown(NamedShown):
    """A custom command; `$ARGUMENTS` in `body` stands for what is typed after its name."""

    arguments: str
    model: str
    tools: list[str]
    body: str


class ModelShown(Shown):
    """A model that can be chosen; prices in USD for a million tokens, null when unknown.

    `configured`: settings name it; the others are those that a provider with a key is known to have.
    """

    name: str
    window: int
    input_usd: float | None
    output_usd: float | None
    configured: bool


class NewSkill(Body):
    """A skill to write."""

    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    description: Annotated[str, Field(min_length=1, max_length=1024, pattern=NOT_BLANK)]
    body: Annotated[str, Field(max_length=MAX_BODY)]


class SkillListed(NamedShown):
    """A skill; `hidden` says why agents do not see it."""

    hidden: str | None


class AgentShown(NamedShown):
    """An agent that work can be given to; `tools` null = those of its caller.

    `type`: `subagent`, or `api`, `cli`, `local` for another vendor's agent, whose state is a minute old at
    most. `status`: `operative`, `key_missing`, `unreachable` or `unavailable`; `detail` says why.
    `max_cost`: US dollars that one run may cost, null = no limit.
    """

    type: str
    status: str
    detail: str
    model: str | None
    tools: list[str] | None
    display_name: str
    capabilities: list[str]
    transports: list[str]
    max_cost: float | None
    version: str | None
    latency_ms: float | None
    checked_at: str


class WorkspaceShown(Shown):
    """A directory that conversations can work on; `name` None is the default one."""

    name: str | None
    path: str
    landing: str


def _listed(items: Any) -> list[dict[str, str]]:
    return [{"name": item.name, "description": item.description} for item in items]


@router.get("/tools", response_model=list[ToolShown], summary="Tools that a conversation is offered")
async def tools(
    context: Context, caller: Viewer, conversation: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Of a new conversation with the defaults, or of `conversation`."""
    session = None if conversation is None else await owned_session(context, caller, conversation)
    return answer([tool_row(tool) for tool in await context.offers.tools(session)])


@router.get("/presets", response_model=list[NamedShown], summary="Presets of instructions")
async def presets(context: Context, caller: Viewer) -> Response:
    """`coding` and `work` ship with the program; further ones come from `PROMPTS_DIR`."""
    del caller
    return answer(_listed(await to_thread(context.offers.presets)))


@router.get("/models", response_model=list[ModelShown], summary="Models that a conversation can run on")
async def models(context: Context, caller: Viewer) -> Response:
    """Those that settings name first; each can be used: it has its key, or needs none."""
    del caller
    return answer([model.record() for model in await to_thread(context.offers.models)])


@router.get("/agents", response_model=list[AgentShown], summary="Agents that can be given work")
async def agents(context: Context, caller: Viewer) -> Response:
    """The types of subagents, custom ones too, then other vendors' agents; whether each can be used now."""
    del caller
    return answer(await context.offers.agents())


@router.get("/workspaces", response_model=list[WorkspaceShown], summary="Directories to work on")
async def workspaces(context: Context, caller: Viewer) -> Response:
    """The default directory and those of `workspace.registered`."""
    del caller
    settings = context.settings
    rows = [(None, settings.workspace), *settings.registered.items()]
    return answer(
        [{"name": name, "path": path, "landing": settings.landing} for name, path in rows if path is not None]
    )


@router.get("/commands", response_model=list[CommandShown], summary="Commands of the workspace")
async def commands(
    context: Context, caller: Viewer, conversation: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Of `.bowerbird/commands` in the conversation's workspace, else in the default one; texts to send."""
    place = context.settings.workspace
    if conversation is not None:
        place = (await owned_session(context, caller, conversation)).workspace
    found = await to_thread(custom_commands, Path(place), None) if place is not None else []
    return answer([command.record() for command in found])


@router.get("/skills", response_model=list[SkillListed], summary="Skills that agents see")
async def skills(
    context: Context,
    caller: Viewer,
    every: Annotated[bool, Query(alias="all", description="Hidden ones, too, with the reason.")] = False,
) -> Response:
    """Those of the default workspace and the bundled ones."""
    del caller
    library = context.offers.skills()
    if library is None:
        return answer([])
    found = await to_thread(library.all if every else library.offered)
    return answer([{"name": s.name, "description": s.description, "hidden": s.hidden} for s in found])


@router.get("/skills/{name}", response_model=SkillShown, summary="One skill with its text")
async def skill(name: str, context: Context, caller: Viewer) -> Response:
    """404 for a skill that is not offered."""
    del caller
    library = context.offers.skills()
    found = None if library is None else await to_thread(library.get, name)
    if found is None or library is None:
        raise problem("not_found", "there is no such skill")
    body = await to_thread(library.body, found)
    return answer({"name": found.name, "description": found.description, "body": body})


@router.post("/skills", response_model=NamedShown, summary="Write a skill")
async def new_skill(
    wanted: NewSkill, context: Context, caller: Admin, overwrite: Annotated[bool, Query()] = False
) -> Response:
    """409 for a name that exists, unless `overwrite`."""
    del caller
    directory, library = context.offers.skills_dir(), context.offers.skills()
    if directory is None or library is None:
        raise problem("conflict", "skills are turned off (skills.enabled)")
    if len(wanted.body.encode()) > MAX_BODY:
        raise invalid(("body", "body"), f"the text is larger than {MAX_BODY} bytes", "string_too_long")
    if not overwrite and await to_thread(library.get, wanted.name) is not None:
        raise problem("conflict", f"there is a skill {wanted.name} already; use ?overwrite=true")
    description = " ".join(wanted.description.split())
    await to_thread(write_skill, directory, Named(wanted.name, description), wanted.body, overwrite=overwrite)
    return answer({"name": wanted.name, "description": description})


@router.post(
    "/skills/archive", response_model=NamedShown, openapi_extra=MULTIPART_FILES, summary="Install a skill"
)
async def new_archive(
    request: Request, context: Context, caller: Admin, overwrite: Annotated[bool, Query()] = False
) -> Response:
    """From a zip file of at most 5 MiB, 500 entries, 20 MiB unpacked; 422 names the entry that cannot be."""
    from bowerbird.server.conversations.skill_archives import install_archive

    del caller
    directory = context.offers.skills_dir()
    if directory is None:
        raise problem("conflict", "skills are turned off (skills.enabled)")
    context.store.require_space()
    async with staging(context.data_dir) as place:
        kind = request.headers.get("content-type", "")
        received = await receive_files(request.stream(), kind, place, context.settings)
        if len(received) != 1:
            raise invalid(("body", "files"), "send one archive at a time")
        skill = await to_thread(install_archive, directory, received[0].source, overwrite=overwrite)
    return answer({"name": skill.name, "description": skill.description})


@router.delete("/skills/{name}", response_model=StatusShown, summary="Delete a skill")
async def remove_skill(name: str, context: Context, caller: Admin) -> Response:
    """Bundled skills cannot be deleted."""
    del caller
    directory = context.offers.skills_dir()
    if directory is None:
        raise problem("not_found", "there is no such skill")
    await to_thread(delete_skill, directory, name)
    return answer({"status": "deleted"})
