"""Which changes stay on the branch unless they are named: caches, and what git ignores (GI-7).

Here: that one rule. Not here: the syntax of ignore files (`tree/ignore.py`), where they lie in a view
(`find/gitignored.py`).
"""

from collections.abc import Callable, Collection
from pathlib import Path

from bowerbird.workspace.tree.changes import Change, covers


class Ignored:
    """Tells whether a path is ignored, and what of it stays.

    Args:
        is_cache: by `landing.ignore`. by_git: by the view's ignore files. root: the workspace.
    """

    def __init__(
        self, is_cache: Callable[[str], bool], by_git: Callable[[str], bool], root: Path | None
    ) -> None:
        self._is_cache = is_cache
        self._by_git = by_git
        self._root = root
        self._tracked: Callable[[str], bool] | None = None

    def __call__(self, path: str) -> bool:
        """Whether settings or git's ignore files name a path, itself or a directory above it."""
        return self._is_cache(path) or self._by_git(path)

    def staying(self, named: Collection[str], include: Collection[str] = ()) -> Callable[[Change], bool]:
        """Return the test for what stays on the branch.

        Args:
            named: the paths given to a landing; naming a directory around an ignored path does not name it.
            include: ignored paths that land with the rest; a directory takes all that it holds.
        """
        exact = frozenset(named)
        tops = [*include, *(path for path in named if path != "/" and self(path))]
        known: dict[str, bool] = {}

        def stays(change: Change) -> bool:
            path = change.path
            if path not in known:
                is_named = path in exact or any(covers(top, path) for top in tops)
                known[path] = not is_named and self._stays(path, is_new=change.base is None)
            return known[path]

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
    return lambda path: (above / path.lstrip("/")).as_posix() in index
