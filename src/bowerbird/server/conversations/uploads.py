"""Files that people upload: onto a conversation's branch, or as a recorded landing (SV-16).

Here: where uploaded files go, all or none. Not here: taking a body apart (`http/multipart.py`).

Without a conversation the files land at once, by the user, from a branch that only carries uploads: so
they are checked, atomic and undoable like any landing.
"""

import posixpath
import shutil
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import NotFound
from bowerbird.core.ids import new_id
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.server.common.errors import problem
from bowerbird.server.conversations.files import virtual
from bowerbird.server.conversations.submitting import DOOR

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.server.http.multipart import Uploaded
    from bowerbird.workspace import Branch, Workspace
    from bowerbird.workspace.find.browsing import Browse

STAGING = "uploads"
_NAME = "uploads"


@asynccontextmanager
async def staging(data_dir: Path) -> "AsyncGenerator[Path, None]":
    """Give a private directory for one request's files; it is gone afterwards."""
    directory = data_dir / STAGING / new_id("u")
    directory.mkdir(mode=0o700, parents=True)
    try:
        yield directory
    finally:
        await to_thread(shutil.rmtree, directory, ignore_errors=True)


async def upload_place(context: "ServerContext", subdir: str, branch: "Browse | None") -> str:
    """Return the virtual directory that `subdir` names; raises Problem 403 where it is outside, or reserved.

    With a leading slash it must be there already, as paths of other answers are: `/etc` is a mistake, and
    would make a directory `etc` in the workspace.

    Args:
        branch: that the upload goes to; None = it lands.
    """
    above = virtual(subdir)
    if subdir.startswith("/") and above != "/":
        look = branch or (await context.branches.workspace(workspace_of_uploads(context))).browse()
        if not await to_thread(look.has_directory, above):
            raise problem(
                "forbidden",
                f"there is no directory {subdir} here; leave out the slash to make it",
            )
    return above


def placed(above: str, files: "Sequence[Uploaded]") -> list[tuple[str, Path]]:
    """Return each file's virtual path in the directory `above`, and its source."""
    return [(virtual(posixpath.join(above, file.name)), file.source) for file in files]


async def put_on_branch(branch: "Branch", files: list[tuple[str, Path]]) -> list[str]:
    """Put files on a conversation's branch; returns their paths."""
    return [path.lstrip("/") for path in await in_thread(branch.take, files)]


async def land_upload(
    context: "ServerContext",
    caller: "Caller",
    place: str,
    files: list[tuple[str, Path]],
    accept: Sequence[str] = (),
) -> list[str]:
    """Land files in a workspace as the caller's; returns their paths.

    Args:
        accept: paths that the caller names although programs would run or obey them.

    Raises:
        LandingRefused, ReadOnly, PathEscape …: nothing was changed.
    """
    workspace = await context.branches.workspace(place)
    branch = await _carrier(context, workspace, place)
    paths = await context.sessions.review.land_upload(branch, files, accept, actor=caller.user_id, door=DOOR)
    return [path.lstrip("/") for path in paths]


async def _carrier(context: "ServerContext", workspace: "Workspace", place: str) -> "Branch":
    """Return the branch that carries the uploads of a workspace, made at the first one."""
    key = f"uploads:{place}"
    known = await context.sessions.lookup.noted(key)
    if known is not None:
        try:
            return await to_thread(workspace.open, known)
        except NotFound:
            pass  # somebody emptied the data directory: begin anew
    branch = await to_thread(workspace.branch, _NAME)
    await context.sessions.lookup.note(key, branch.id)
    return branch


def remove_stale(data_dir: Path) -> None:
    """Remove what uploads of a process that died left behind. Blocks."""
    shutil.rmtree(data_dir / STAGING, ignore_errors=True)


def workspace_of_uploads(context: "ServerContext") -> str:
    """Return the directory that uploads land in; a Problem 409 when there is none."""
    place = context.settings.workspace
    if place is None:
        raise problem("conflict", "the server has no workspace directory (agent.workspace)")
    Path(place).mkdir(parents=True, exist_ok=True)
    return place
