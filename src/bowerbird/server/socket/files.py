"""The files of a branch as the end of a turn shows them: changed ones first, at most 1,000 (SV-42).

Here: the list and what is kept of it between turns. Not here: listings for people
(`workspace/find/browsing.py` does the looking), sending.

The tree is walked once, in a worker thread, while the model speaks; after that the end of a turn costs two
stats, and when the branch changed, its changes. A walk is repeated when it is old compared with what it
costs, so that files the user made beside us appear too.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.core.wire import FileRow
from bowerbird.server.socket.translate import Closing
from bowerbird.workspace.git.apart import in_git
from bowerbird.workspace.marks.surroundings import made_repositories
from bowerbird.workspace.tree.changes import Tops

if TYPE_CHECKING:
    from bowerbird.workspace import Branch
    from bowerbird.workspace.find.browsing import FileFacts

_log = logging.getLogger(__name__)

MOST_FILES = 1000
AGE_PER_COST = 200  # a walk of 10 ms is repeated after 2 s at the earliest
PATIENCE_S = 0.05  # the end of a turn waits no longer for a walk: a cancel is seen within 100 ms


class BranchFiles:
    """What is known of one branch's files.

    Args:
        branch: open; owned by the session service.
    """

    def __init__(self, branch: "Branch") -> None:
        self._branch = branch
        self._base: list[tuple[str, int]] = []
        self._more = True
        self._walked_at = float("-inf")
        self._cost_s = 0.0
        self._walk: asyncio.Task[None] | None = None
        self._stamp: tuple[int, ...] | None = None
        self._closing = Closing()
        self._changed: Mapping[str, FileFacts | None] = {}

    @property
    def is_current(self) -> bool:
        """Whether nothing changed since the last `closing`."""
        return self._stamp is not None and self._stamp == self._branch.stamp

    @property
    def last(self) -> Closing:
        """What the last `closing` returned."""
        return self._closing

    def look_ahead(self) -> None:
        """Begin to walk the tree if that was never done or long ago; call it when a turn begins."""
        age = time.monotonic() - self._walked_at
        if self._walk is None and age > self._cost_s * AGE_PER_COST:
            self._walk = asyncio.get_running_loop().create_task(self._walked(), name="files of a branch")

    async def closing(self) -> Closing:
        """Return the list as of now; never raises for a branch that cannot be read."""
        if self.is_current and self._walk is None:
            return self._closing
        self.look_ahead()
        if self._walk is not None:
            await asyncio.wait([self._walk], timeout=PATIENCE_S)
        stamp: tuple[int, ...] | None = self._branch.stamp
        try:
            self._changed, count = await to_thread(self._look)
        except Exception as error:  # noqa: BLE001  a turn must be shown to end, whatever its files are
            _log.warning("the changes of branch %s cannot be listed: %r", self._branch.id, error)
            stamp = None
            count = self._closing.changed
        self._closing = closing_of(self._changed, self._base, more=self._more, count=count)
        # A walk still under way ends later: then the list is made again.
        self._stamp = stamp if self._walk is None else None
        return self._closing

    async def changed(self) -> tuple[list[FileRow], int]:
        """Return the changed files alone, of which deleted ones are none, and how many a review shows."""
        closing = await self.closing()
        return changed_rows(self._changed)[:MOST_FILES], closing.changed

    def _look(self) -> "tuple[Mapping[str, FileFacts | None], int]":
        return self._branch.browse().changes(), self._branch.count()

    async def aclose(self) -> None:
        """Wait for a walk under way."""
        if self._walk is not None:
            await asyncio.wait([self._walk])

    async def _walked(self) -> None:
        began = time.monotonic()
        try:
            rows, self._more = await to_thread(lambda: self._branch.browse().some_files(MOST_FILES))
            self._base = [(row.path, row.size) for row in rows]
        except Exception as error:  # noqa: BLE001  likewise: the list stays as it was
            _log.warning("the files of branch %s cannot be listed: %r", self._branch.id, error)
        finally:
            self._walked_at = time.monotonic()
            self._cost_s = self._walked_at - began
            self._walk = None
            self._stamp = None


def closing_of(
    changed: "Mapping[str, FileFacts | None]", base: list[tuple[str, int]], *, more: bool, count: int
) -> Closing:
    """Return the list: changed files by path, then the others. Pure.

    Args:
        changed: the branch's own files by path, None = deleted; a deleted directory stands for all in it.
        base: path and size of other files, by path. more: there are further ones.
        count: changes as a review shows them.

    Example:
        >>> closing_of({"/b": None}, [("/a", 1), ("/b", 2)], more=False, count=1).files
        [{'name': 'a', 'path': 'a', 'size': 1}]
    """
    gone = {path for path, facts in changed.items() if facts is None}
    rows = changed_rows(changed)
    for path, size in base:
        if len(rows) > MOST_FILES:
            break
        if path not in changed and not (gone and _is_below(path, gone)):
            rows.append(_row(path, size))
    return Closing(rows[:MOST_FILES], more or len(rows) > MOST_FILES, count)


def changed_rows(changed: "Mapping[str, FileFacts | None]") -> list[FileRow]:
    """Return the files that the branch has its own version of, by path, without git's own. Pure."""
    present = {path: facts for path, facts in changed.items() if facts is not None and not in_git(path)}
    made = Tops(made_repositories(present))
    return [_row(path, facts.size) for path, facts in sorted(present.items()) if not made.cover(path)]


def _row(path: str, size: int) -> FileRow:
    return {"name": path.rpartition("/")[2], "path": path.lstrip("/"), "size": size}


def _is_below(path: str, gone: set[str]) -> bool:
    above = path
    while above:
        above = above.rpartition("/")[0]
        if above in gone:
            return True
    return False
