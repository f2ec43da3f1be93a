"""Going through the directories of a tree, however deep, with one handle at a time.

Here: opening the next directory from where the last one is, not from the top. Not here: what is in them.

A process may make more directories than there are handles, and nest them so deep that walking from the top
for each would take minutes. So from one directory to the next it goes up by `..` and down by name.
"""

import os
from collections.abc import Callable

from bowerbird.workspace.tree import handles

_Identity = tuple[int, int]


def _near(above: int, name: str) -> int:
    return os.open(name, handles.DIRECTORY, dir_fd=above)


def _far(root: int, path: str) -> int:
    return handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)


class Descent:
    """Opens one directory of a tree after the other, the last one given up for the next; through no link.

    In depth-first order the cost grows with the number of directories. What stands above is known by its
    identity, so a process that moves directories meanwhile cannot lead it elsewhere.

    Args:
        root: a handle of the tree, the caller's.
        near: opens a directory by its name in another. far: opens one by its path from the root.
    """

    def __init__(
        self, root: int, near: Callable[[int, str], int] = _near, far: Callable[[int, str], int] = _far
    ) -> None:
        self._root = root
        self._near, self._far = near, far
        self._trail: list[tuple[str, _Identity]] = []  # each right below the one before; the last is open
        self._fd = -1
        self._gone: str | None = None

    def open(self, path: str) -> int | None:
        """Return a handle of the directory at `path`, valid until the next call; None when it is gone.

        Raises:
            OSError: it cannot be opened for another reason.
        """
        if self._gone is not None and path.startswith(self._gone):
            return None
        above, _, name = path.rpartition("/")
        try:
            near = path != "" and self._climb(above)
            fd = self._near(self._fd, name) if near else self._far(self._root, path)
        except OSError as error:
            if error.errno in handles.ABSENT:
                self._gone = f"{path}/"
                return None
            raise
        if not near:
            self._trail.clear()
        self._take(fd)
        seen = os.fstat(fd)
        self._trail.append((path, (seen.st_dev, seen.st_ino)))
        return fd

    def close(self) -> None:
        """Close the last handle."""
        self._trail.clear()
        self._take(-1)

    def _take(self, fd: int) -> None:
        before, self._fd = self._fd, fd  # forgotten first: a number must not be closed twice
        if before >= 0:
            os.close(before)

    def _climb(self, to: str) -> bool:
        """Go up to a directory that was passed on the way; False where it was not, or is elsewhere now."""
        index = to.count("/") - self._trail[0][0].count("/") if self._trail else -1
        if not 0 <= index < len(self._trail) or self._trail[index][0] != to:
            return False
        while len(self._trail) > index + 1:
            self._trail.pop()
            try:
                self._take(os.open("..", handles.ROOT, dir_fd=self._fd))
                seen = os.fstat(self._fd)
                moved = self._trail[-1][1] != (seen.st_dev, seen.st_ino)
            except OSError:
                moved = True  # or closed to us meanwhile
            if moved:
                self._trail.clear()  # from here on nothing is known
                return False
        return True
