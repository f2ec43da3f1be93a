"""The assistant's own files: out of commits, and their landed versions (AS-43).

Here: what a start does about `MEMORY.md`, versions of it and of skills, one of them brought back. Not here:
reading memory files (`memory/`), the memory that is kept by itself (`upkeep/memory_rewriting.py`).

Both changes are landings of a branch that carries nothing else: checked, atomic, recorded, undoable. The mark
of a tracked file is the one exception: it lies in git's index, which never lands as a file, so it is logged
with the command that takes it back.
"""

import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import BowerbirdError, InvalidArgument, NotFound, WorkspaceError
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.sessions.parts import SessionPart
from bowerbird.workspace.git.kept_out import EXCLUDE, keep_tracked_out, standing_of
from bowerbird.workspace.git.running import GitFailed
from bowerbird.workspace.landing.versions import LandedVersion, state_after, versions_of

if TYPE_CHECKING:
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.service import SessionService
    from bowerbird.workspace import Branch, Landing, Workspace

MEMORY = "MEMORY.md"
NAME = "kept files"
MOST_PATHS = 100  # named of a version

_log = logging.getLogger(__name__)


class KeptFiles(SessionPart):
    """Those files of a process.

    Args:
        workspace: returns the server's own, None where nothing is remembered. skills: returns the directory
            of skills, relative to it.
    """

    def __init__(
        self, service: "SessionService", branches: "Branches", workspace: Callable[[], Path | None],
        skills: Callable[[], str],
    ) -> None:  # fmt: skip
        self._service = service
        self._branches = branches
        self._workspace = workspace
        self._skills = skills

    async def start(self, *, drives_all: bool) -> None:
        """Keep `MEMORY.md` of the server's workspace out of commits; what cannot be is logged."""
        root = self._workspace() if drives_all else None
        if root is None:
            return
        try:
            await self._keep_out(root)
        except (BowerbirdError, GitFailed, OSError) as error:
            _log.warning("%s in %s may get into commits: %s", MEMORY, root, error)

    async def versions(self, directory: str, path: str = MEMORY) -> list[LandedVersion]:
        """Return the newest 20 landed versions of `MEMORY.md` or of a skill, newest first.

        Raises:
            InvalidArgument: another path. WorkspaceError: no such directory.
        """
        top = self._top(path)
        workspace = await self._branches.workspace(directory)
        return await to_thread(lambda: versions_of(workspace.landings(), top))

    async def restore(
        self, directory: str, landing_id: str, path: str = MEMORY, *, actor: str, door: str
    ) -> "Landing":
        """Land a version again, as it was after a landing.

        Raises:
            NotFound: that landing is not kept, or did not change the path. InvalidArgument: it is so already.
        """
        top = self._top(path)
        workspace = await self._branches.workspace(directory)
        gone, files = await to_thread(lambda: state_after(workspace.landings(), landing_id, top))
        with tempfile.TemporaryDirectory(prefix="bowerbird-version-") as place:
            copies = await to_thread(_copied, files, Path(place))
            branch = await self._carrier(workspace, directory)
            return await self._landed(branch, copies, gone, actor=actor, door=door)

    # ------------------------------------------------------------ how

    async def _keep_out(self, root: Path) -> None:
        stands = await to_thread(standing_of, root, MEMORY)
        if stands.standing == "tracked":
            await in_thread(keep_tracked_out, root, MEMORY)
            _log.info(
                "%s is tracked: commits leave its changes out now; `git update-index --no-skip-worktree %s` "
                "in %s takes that back", MEMORY, MEMORY, root,
            )  # fmt: skip
        if stands.standing != "free":
            return
        workspace = await self._branches.workspace(str(root))
        branch = await self._carrier(workspace, str(root))
        with tempfile.TemporaryDirectory(prefix="bowerbird-exclude-") as place:
            source = Path(place, "exclude")
            await to_thread(source.write_bytes, stands.exclude)
            landing = await self._landed(branch, [(EXCLUDE, source)], set(), actor="bowerbird", door="start")
        _log.info("%s stays out of commits: .git/info/exclude names it (%s)", MEMORY, landing.id)

    async def _landed(
        self, branch: "Branch", files: Sequence[tuple[str, Path]], gone: set[str], *, actor: str, door: str
    ) -> "Landing":
        await in_thread(branch.begin_turn)  # what the user changed since is no conflict
        written = await in_thread(branch.take, list(files))
        for path in sorted(gone):
            if await branch.stat(path) is not None:
                await branch.delete(path)
        known = frozenset((await in_thread(branch.changes)).paths)
        # What is in git's own directory is no change of the workspace, and lands by name.
        changed = [path for path in {*written, *gone} if path in known or path == EXCLUDE]
        if not changed:
            raise InvalidArgument("it is as it was then already")
        try:
            return await in_thread(
                lambda: branch.land(changed, accept=changed, force=True, actor=actor, door=door)
            )
        except WorkspaceError:
            await in_thread(branch.revert, [path for path in changed if path in known])
            raise

    async def _carrier(self, workspace: "Workspace", directory: str) -> "Branch":
        key = f"{NAME}:{directory}"
        known = await self._service.lookup.noted(key)
        if known is not None:
            try:
                return await to_thread(workspace.open, known)
            except NotFound:
                pass  # somebody emptied the data directory: begin anew
        branch = await to_thread(workspace.branch, NAME)
        await self._service.lookup.note(key, branch.id)
        return branch

    def _top(self, path: str) -> str:
        name, skills = path.strip("/"), self._skills().strip("/")
        parts = name.split("/")
        is_skill = name.startswith(f"{skills}/") and len(parts) == len(skills.split("/")) + 1
        if name != MEMORY and not (is_skill and parts[-1] not in ("", ".", "..")):
            raise InvalidArgument(f"versions are kept of {MEMORY} and of skills, as {skills}/NAME")
        return f"/{name}"


def version_row(version: LandedVersion) -> dict[str, Any]:
    """Return a version as doors show it."""
    text = None if version.content is None else version.content.decode("utf-8", "replace")
    return {
        "landing": version.landing, "at": version.at, "actor": version.actor, "door": version.door,
        "paths": [path.lstrip("/") for path in version.paths[:MOST_PATHS]], "text": text,
    }  # fmt: skip


def _copied(files: dict[str, Any], place: Path) -> list[tuple[str, Path]]:
    """Copy a version's files: the landing that holds them may be forgotten meanwhile."""
    copies: list[tuple[str, Path]] = []
    for number, (path, side) in enumerate(files.items()):
        target = place / str(number)
        shutil.copyfile(side.content.frozen, target)
        target.chmod(side.mode or 0o644)
        copies.append((path, target))
    return copies
