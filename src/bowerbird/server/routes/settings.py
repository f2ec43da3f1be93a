"""Loading the settings again over HTTP, which `bowerbird config reload` asks for (CF-13).

Here: that route. Not here: what takes effect (`app/reloading.py`), SIGHUP.
"""

from fastapi import APIRouter
from starlette.responses import Response

from bowerbird.server.common.errors import problem, said
from bowerbird.server.common.json_answers import answer
from bowerbird.server.routes.common import Admin, Context, Shown

router = APIRouter(prefix="/api/config", tags=["settings"])


class ReloadedShown(Shown):
    """Keys whose values changed."""

    applied: list[str]
    restart: list[str]
    warnings: list[str]


@router.post("/reload", response_model=ReloadedShown, summary="Load the settings again")
async def reload(context: Context, caller: Admin) -> Response:
    """`applied` from the next turn or connection, `restart` only after one; 409 when the settings are
    invalid, with every error: then nothing has changed."""
    del caller
    if context.reload is None:
        raise problem("conflict", "this server was not started from settings that can be loaded again")
    done = await context.reload()
    if done.errors:
        text = "the settings are invalid; the running ones stay"
        raise problem("conflict", text, extra={"errors": [said(error) for error in done.errors]})
    return answer({"applied": done.applied, "restart": done.restart, "warnings": done.warnings})
