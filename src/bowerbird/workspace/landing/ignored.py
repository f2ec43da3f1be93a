"""Which changes stay on the branch unless they are named: caches, and what git ignores (GI-7).

Here: that one rule. Not here: the syntax of ignore files (`tree/ignore.py`), where they lie in a view
(`find/gitignored.py`).
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal, Protocol

from bowerbird.workspace.tree.tops import Tops


class ByGit(Protocol):
    """What git's ignore files of a view name."""

    def __call__(self, path: str) -> bool:
        """Whether they name a path, itself or a directory above it."""
        ...

    def whole(self, directory: str) -> bool:
        """Whether they name a directory, or one above it; all that it holds is ignored then."""
        ...


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

    def staying(self, named: Collection[str], include: Collection[str] = ()) -> Callable[[str, bool], bool]:
        """Return the test for what stays on the branch, of a path and whether nothing stood there before.

        What lies in a directory that is ignored as a whole costs next to nothing.

        Args:
            named: the paths given to a landing; naming a directory around an ignored path does not name it.
            include: ignored paths that land with the rest; a directory takes all that it holds.
        """
        exact = frozenset(named)
        tops = Tops([*include, *(path for path in named if path != "/" and self(path))])
        known: dict[str, Literal["cache", "git", ""]] = {}

        def whole(directory: str) -> Literal["cache", "git", ""]:
            if tops.cover(directory or "/") or tops.inside(directory or "/"):
                return ""
            if self._is_cache(directory):
                return "cache"
            in_git = "/.git/" in f"{directory}/"
            return "git" if not in_git and self._by_git.whole(directory) else ""

        def stays(path: str, is_new: bool) -> bool:
            above = path.rpartition("/")[0]
            because = known.get(above)
            if because is None:
                because = known[above] = whole(above)
            if because == "cache":
                return True
            if because == "git" and not path.endswith("/.git"):
                return is_new or not self._is_tracked(path)
            if path in exact or tops.cover(path):
                return False
            return self._stays(path, is_new=is_new)

        return stays

    def _stays(self, path: str, *, is_new: bool) -> bool:
        if self._is_cache(path):
            return True
        if "/.git/" in path or path.endswith("/.git") or not self._by_git(path):
            return False
        return is_new or not self._is_tracked(path)

    def _is_tracked(self, path: str) -> bool:
        if self._tracked is None:
            self._tracked = tracked_in(self._root)
        return self._tracked(path)


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
