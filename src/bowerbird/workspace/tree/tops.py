"""Many given paths, asked which of them take another path in.

Here: that question, at the cost of the other path's depth, however many were given: a page sends one for each
tick. Not here: what a given path means (`landing/plan.py`, `landing/ignored.py`).
"""

from collections.abc import Iterable

from bowerbird.workspace.tree.changes import parents_of


class Tops:
    """Files and directories as virtual paths; a directory takes in all that lies below it.

    Example:
        >>> tops = Tops(["/a", "/a/b/c"])
        >>> tops.over("/a/b/c"), tops.over("/ab"), tops.inside("/a/b")
        (['/a', '/a/b/c'], [], True)
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._above: set[str] | None = None

    def over(self, path: str) -> list[str]:
        """Return those that are `path` or a directory above it, outermost first."""
        if not self._paths:
            return []
        found = ["/"] if "/" in self._paths else []
        end = path.find("/", 1)
        while end > 0:
            if path[:end] in self._paths:
                found.append(path[:end])
            end = path.find("/", end + 1)
        if path in self._paths and path != "/":
            found.append(path)
        return found

    def cover(self, path: str) -> bool:
        """Whether one of them is `path` or a directory above it."""
        return bool(self.over(path))

    def inside(self, directory: str) -> bool:
        """Whether one of them is `directory` or lies in it."""
        if directory == "/":
            return bool(self._paths)
        if self._above is None:
            self._above = parents_of(self._paths)
        return directory in self._paths or directory in self._above
