"""Which session and landing a command means (UI-42, UI-45).

Here: ids, prefixes, the newest of a directory. Not here: what is done with it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.exits import USAGE, CliExit
from bowerbird.core.errors import UnknownSession

if TYPE_CHECKING:
    from bowerbird.sessions import SessionInfo, SessionService


async def newest_session(sessions: "SessionService", workspace: Path) -> "SessionInfo":
    """Return the most recently used session of a directory; raises CliExit when there is none."""
    found = await sessions.list(workspace=str(workspace), limit=1)
    if not found:
        raise CliExit(
            USAGE,
            f'no session works on {workspace}; start one: bowerbird "what to do" '
            "(`bowerbird sessions --all` lists those of other directories)",
        )
    return found[0]


async def pick_session(sessions: "SessionService", given: str | None, workspace: Path) -> "SessionInfo":
    """Return the session called `given` (an id or at least 4 characters of it), else the newest here."""
    if not given:
        return await newest_session(sessions, workspace)
    return await sessions.get(given)


async def pick_with_paths(
    sessions: "SessionService", given: str | None, paths: Sequence[str], workspace: Path
) -> "tuple[SessionInfo, list[str]]":
    """Return the session and the paths of `diff [ID] [PATHS…]`, where the first word may be either.

    A word that names a session is one; otherwise it is a path of the newest session here.
    """
    if given is None:
        return await newest_session(sessions, workspace), list(paths)
    if "/" not in given and not (workspace / given).exists():
        try:
            return await sessions.get(given), list(paths)
        except UnknownSession as error:
            if "fits" in str(error):
                raise
    return await newest_session(sessions, workspace), [given, *paths]


def branch_paths(paths: Sequence[str], workspace: Path | None) -> list[str]:
    """Return paths as a branch knows them: relative ones start in the current directory.

    Raises:
        CliExit: a path lies outside the workspace.
    """
    if workspace is None:
        return [path.lstrip("/") for path in paths]
    here = Path.cwd()
    start = here if here.is_relative_to(workspace) else workspace
    result: list[str] = []
    for path in paths:
        absolute = Path(path) if path.startswith("/") else start / path
        normal = Path(*[part for part in absolute.parts if part != "."])
        if not normal.is_relative_to(workspace):
            raise CliExit(USAGE, f"{path} is not in {workspace}")
        result.append(normal.relative_to(workspace).as_posix())
    return ["" if path == "." else path for path in result]
