"""Whether git's ignore files of a view name a path (for `ignored:true` in landing plans).

Here: the chain of `.gitignore` from the root to a path. Not here: the rules' syntax
(`tree/ignore.py`), walks.
"""

import os

from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.ignore import MOST_BYTES, Chain, extended, ignored
from bowerbird.workspace.tree.merged_view import MergedView


class GitIgnored:
    """Answers for many paths of one view; ignore files are read once.

    Args:
        view: as of now.
    """

    def __init__(self, view: MergedView) -> None:
        self._view = view
        self._chains: dict[str, Chain | None] = {}

    def __call__(self, path: str) -> bool:
        """Tell whether `path` is ignored, itself or through a directory above it."""
        above, _, name = path.rpartition("/")
        chain = self._chain(above)
        if chain is None:
            return True
        entry = self._view.lookup(path) if chain else None
        return bool(chain) and ignored(chain, path, name, is_dir=entry is not None and entry.kind == "dir")

    def whole(self, directory: str) -> bool:
        """Tell whether a directory is ignored with all it holds; "" is the root."""
        return self._chain(directory) is None

    def _chain(self, directory: str) -> Chain | None:
        """The rules that hold in a directory, None when it is ignored as a whole."""
        todo: list[str] = []  # no recursion: a process may nest directories deeper than Python's stack
        while directory and directory not in self._chains:
            todo.append(directory)
            directory = directory.rpartition("/")[0]
        if directory not in self._chains:
            self._chains[""] = self._extended((), "")
        chain = self._chains[directory]
        for below in reversed(todo):
            if chain is not None and ignored(chain, below, below.rpartition("/")[2], is_dir=True):
                chain = None
            if chain is not None:
                chain = self._extended(chain, below)
            self._chains[below] = chain
        return chain

    def _extended(self, chain: Chain, directory: str) -> Chain:
        text = ignore_text(self._view, f"{directory}/.gitignore")
        return extended(chain, text, len(directory) + 1) if text else chain


def ignore_text(view: MergedView, path: str) -> str:
    """Return the rules of an ignore file of a view; none where there is none that is ours to read."""
    entry = view.lookup(path)
    if entry is None or entry.kind != "file":
        return ""
    try:
        fd = view.open(path, entry)
    except OSError as error:
        if presence.is_absence(error) or isinstance(error, PermissionError):
            return ""  # removed since, or not ours to read
        raise
    try:
        return os.pread(fd, MOST_BYTES, 0).decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)
