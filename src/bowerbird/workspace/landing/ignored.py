"""Which changes stay on the branch unless they are named: caches, and what git ignores (GI-7).

Here: that one rule. Not here: the syntax of ignore files (`tree/ignore.py`), where they lie in a view
(`find/gitignored.py`).
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from bowerbird.workspace.compare.renames import renames_of
from bowerbird.workspace.tree.changes import Change, Divided, Tops, Whole, side_of
from bowerbird.workspace.tree.stack import Stack


class ByGit(Protocol):
    """What git's ignore files of a view name."""

    def __call__(self, path: str) -> bool:
        """Whether they name a path, itself or a directory above it."""
        ...

    def whole(self, directory: str) -> bool:
        """Whether they name a directory, or one above it; all that it holds is ignored then."""
        ...


def without_moved(stack: Stack, found: Divided) -> Divided:
    """Let what stays by itself, but is a file under a new name that is to go, land with that."""
    gone = [change for change in found.changes if change.new is None]
    if not gone or not found.staying:
        return found
    names = {change.path.rpartition("/")[2] for change in gone}
    sizes = {change.base.content.size for change in gone if change.base is not None and change.base.content}
    made = [
        Change(path, None, side_of(stack, path, entry))
        for path, size in found.staying.items()
        if (size in sizes or path.rpartition("/")[2] in names) and (entry := stack.lookup(path)) is not None
    ]
    moved = renames_of([*gone, *made]).keys() & found.staying.keys()
    changes = [*found.changes, *(change for change in made if change.path in moved)]
    left = {path: size for path, size in found.staying.items() if path not in moved}
    return Divided(sorted(changes, key=lambda change: os.fsencode(change.path)), left, found.whole)


class Ignored:
    """Tells whether a path is ignored, and what of it stays.

    Args:
        is_cache: by `landing.ignore`. by_git: by the view's ignore files. root: the workspace.
    """

    def __init__(self, is_cache: Callable[[str], bool], by_git: ByGit, root: Path | None) -> None:
        self._is_cache = is_cache
        self._by_git = by_git
        self._root = root
        self._tracked: Callable[[str], bool] | None = None

    def __call__(self, path: str) -> bool:
        """Whether settings or git's ignore files name a path, itself or a directory above it."""
        return self._is_cache(path) or self._by_git(path)

    def staying(self, named: Collection[str], include: Collection[str] = ()) -> "Staying":
        """Return the test for what stays on the branch.

        Args:
            named: the paths given to a landing; naming a directory around an ignored path does not name it.
            include: ignored paths that land with the rest; a directory takes all that it holds.
        """
        tops = Tops([*include, *(path for path in named if path != "/" and self(path))])
        return Staying(self, frozenset(named), tops)

    def whole(self, directory: str) -> Whole:
        """Tell what stays in a directory whatever its name is; "" is the root."""
        if self._is_cache(directory):
            return "all"
        in_git = "/.git/" in f"{directory}/"
        return "new" if not in_git and self._by_git.whole(directory) else ""

    def stays(self, path: str, *, is_new: bool) -> bool:
        """Tell whether a path stays, asked of itself."""
        if self._is_cache(path):
            return True
        if "/.git/" in path or path.endswith("/.git") or not self._by_git(path):
            return False
        return is_new or not self.is_tracked(path)

    def is_tracked(self, path: str) -> bool:
        """Whether git has a path of the workspace in its index."""
        if self._tracked is None:
            self._tracked = tracked_in(self._root)
        return self._tracked(path)


class Staying:
    """The test for what stays on the branch, of a path and whether nothing stood there before.

    What lies in a directory that is ignored as a whole costs next to nothing.

    Args:
        rule: of ignored paths. exact: paths that are named. tops: named ones that take in all below them.
    """

    def __init__(self, rule: Ignored, exact: Collection[str], tops: Tops) -> None:
        self._rule, self._exact, self._tops = rule, exact, tops
        self._known: dict[str, Whole] = {}

    def whole(self, directory: str) -> Whole:
        """See `Stays`."""
        known = self._known.get(directory)
        if known is None:
            near = self._tops.cover(directory or "/") or self._tops.inside(directory or "/")
            known = self._known[directory] = "" if near else self._rule.whole(directory)
        return known

    def __call__(self, path: str, is_new: bool) -> bool:
        """See `Stays`."""
        whole = self.whole(path.rpartition("/")[0])
        if whole == "all":
            return True
        if whole == "new" and not path.endswith("/.git"):
            return is_new or not self._rule.is_tracked(path)
        if path in self._exact or self._tops.cover(path):
            return False
        return self._rule.stays(path, is_new=is_new)


def tracked_in(root: Path | None) -> Callable[[str], bool]:
    """Return the test for paths of a workspace that git has in its index, whatever ignore files say."""
    import pygit2

    if root is None:
        return lambda _: False
    try:
        place = pygit2.discover_repository(str(root))
        repository = pygit2.Repository(place) if place else None
        if repository is None or repository.is_bare:
            return lambda _: False
        index = repository.index
        above = root.resolve().relative_to(Path(repository.workdir).resolve())
    except (pygit2.GitError, OSError, ValueError):
        return lambda _: True  # it cannot be known here, and what is tracked must land
    start = "" if above == Path() else f"{above.as_posix()}/"
    return lambda path: start + path.lstrip("/") in index
