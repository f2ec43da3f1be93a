"""Settings over HTTP: shown, changed, loaded again (CF-13, UI-83); a first model (UI-64, UI-83).

Here: those routes. Not here: what may be changed and how (`app/settings/desk.py`), what takes effect
(`app/reloading.py`), SIGHUP.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from bowerbird.core.errors import ConfigError
from bowerbird.server.common.context import ServerContext
from bowerbird.server.common.desk import Desk
from bowerbird.server.common.errors import Problem, problem, said
from bowerbird.server.common.json_answers import answer
from bowerbird.server.routes.common import Admin, Body, Context, Shown, StatusShown, Viewer

router = APIRouter(prefix="/api", tags=["settings"])

MOST_KEYS = 200
Key = Annotated[str, Field(min_length=1, max_length=200)]


class ReloadedShown(Shown):
    """Keys whose values changed."""

    applied: list[str]
    restart: list[str]
    warnings: list[str]


class SettingShown(Shown):
    """One setting; `locked` says why it cannot be changed here, empty when it can."""

    key: str
    value: Any
    default: Any
    origin: str
    hides: list[str]
    changed: bool
    meaning: str
    kind: Literal["int", "float", "bool", "text", "choice", "list", "secret", "url", "any"]
    choices: list[str]
    unit: str
    allowed: str
    nullable: bool
    secret: bool
    applies: str
    locked: str


class NewSettings(Body):
    """Keys to set, and keys to be what they are without the settings file."""

    values: Annotated[dict[Key, Any], Field(max_length=MOST_KEYS)] = Field(default_factory=dict[str, Any])
    reset: Annotated[list[Key], Field(max_length=MOST_KEYS)] = Field(default_factory=list[str])


class FetchShown(Shown):
    """How far the embedded model is; bytes."""

    state: Literal["idle", "running", "done", "failed"]
    small: bool
    step: str
    done: int
    total: int
    error: str


class SetupShown(Shown):
    """Whether there is a model; what would give one is told to admins."""

    model: str
    usable: bool
    problem: str
    may_change: bool
    embedded: str | None
    fetch: FetchShown | None
    providers: list[dict[str, str]]
    file: str | None
    locked: str | None


class NewFetch(Body):
    """Which embedded model to fetch."""

    small: bool = False


@router.get("/settings", response_model=list[SettingShown], summary="Settings in force, with their origins")
async def settings(context: Context, caller: Admin) -> Response:
    """Every key; secrets are masked."""
    del caller
    return answer([asdict(row) for row in _desk(context).rows()], headers={"Cache-Control": "no-store"})


@router.patch("/settings", response_model=ReloadedShown, summary="Change settings")
async def change(context: Context, caller: Admin, wanted: NewSettings) -> Response:
    """Checked whole, written to the settings file, loaded again; 409 with every error when they would be
    invalid: then nothing has changed."""
    del caller
    if not wanted.values and not wanted.reset:
        return answer({"applied": [], "restart": [], "warnings": []})
    try:
        done = await _desk(context).change(wanted.values, wanted.reset)
    except ConfigError as error:
        raise _invalid(error.problems) from error
    return answer({"applied": done.applied, "restart": done.restart, "warnings": done.warnings})


@router.get("/setup", response_model=SetupShown, summary="Whether there is a model to run on")
async def setup(context: Context, caller: Viewer) -> Response:
    """`problem` says what is missing."""
    desk, may = context.desk, caller.may("admin")
    if desk is None:
        nothing: dict[str, Any] = {
            "embedded": None,
            "fetch": None,
            "providers": [],
            "file": None,
            "locked": None,
        }
        told = {"model": context.offers.model, "usable": True, "problem": "", "may_change": False}
        return answer({**told, **nothing})
    found = await desk.setup()
    return answer(
        {
            "model": found.model,
            "usable": not found.problem,
            "problem": found.problem if may else "",
            "may_change": may,
            "embedded": found.embedded if may else None,
            "fetch": asdict(found.fetch) if may else None,
            "providers": [{"name": n, "variable": v} for n, v in found.providers] if may else [],
            "file": found.file if may else None,
            "locked": found.locked if may else None,
        },
        headers={"Cache-Control": "no-store"},
    )


@router.post("/setup/fetch", response_model=StatusShown, status_code=202, summary="Fetch the embedded model")
async def fetch(context: Context, caller: Admin, wanted: NewFetch) -> Response:
    """`GET /api/setup` says how far it is; afterwards conversations run on it."""
    del caller
    await _desk(context).fetch(wanted.small)
    return answer({"status": "running"}, 202)


@router.delete("/setup/fetch", response_model=StatusShown, summary="Stop fetching the embedded model")
async def stop_fetch(context: Context, caller: Admin) -> Response:
    """What arrived is kept for the next time."""
    del caller
    await _desk(context).stop_fetch()
    return answer({"status": "stopped"})


@router.post("/config/reload", response_model=ReloadedShown, summary="Load the settings again")
async def reload(context: Context, caller: Admin) -> Response:
    """`applied` from the next turn or connection, `restart` only after one; 409 when the settings are
    invalid, with every error: then nothing has changed."""
    del caller
    if context.reload is None:
        raise problem("conflict", "this server was not started from settings that can be loaded again")
    done = await context.reload()
    if done.errors:
        raise _invalid(done.errors)
    return answer({"applied": done.applied, "restart": done.restart, "warnings": done.warnings})


def _desk(context: ServerContext) -> Desk:
    if context.desk is None:
        raise problem("conflict", "this server was not started from settings that can be changed")
    return context.desk


def _invalid(errors: tuple[str, ...]) -> Problem:
    text = "the settings are invalid; the running ones stay"
    return problem("conflict", text, extra={"errors": [said(error) for error in errors]})
