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

    def _chain(self, directory: str) -> Chain | None:
        """The rules that hold in a directory, None when it is ignored as a whole."""
        if directory in self._chains:
            return self._chains[directory]
        chain: Chain | None = ()
        if directory:
            above, _, name = directory.rpartition("/")
            chain = self._chain(above)
            if chain is not None and ignored(chain, directory, name, is_dir=True):
                chain = None
        if chain is not None:
            text = ignore_text(self._view, f"{directory}/.gitignore")
            if text:
                chain = extended(chain, text, len(directory) + 1)
        self._chains[directory] = chain
        return chain


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
