"""Which files of a walk are searched, and which are skipped and why (WS-33).

Here: sorting by size and first bytes, what searches remember for the next one.
Not here: walking, running engines, records.
"""

import os
import stat
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.merged_view import MergedView, open_regular
from bowerbird.workspace.tree.nodes import Entry

if TYPE_CHECKING:
    from bowerbird.workspace.find.python_search import PythonSearch
    from bowerbird.workspace.find.ripgrep import Ripgrep
    from bowerbird.workspace.find.walk import Found

LARGEST = 16 * 1024 * 1024
"""Files over this are skipped, in bytes."""
_MOST_REMEMBERED = 200_000
_MOST_WALKS = 64
_FILES_PER_LOOK = 256  # between two looks at the clock


class SearchMemory:
    """What searches learn and the next one uses; safe to share between branches of a workspace.

    Attributes:
        text: files known to be text, by a hash of path, inode, size and times, so that their
            first 8 KiB are not read at every search.
        met_large: a file over 16 MiB was met; ripgrep is told to leave such out from the start.
    """

    def __init__(self) -> None:
        self.text: set[int] = set()
        self.met_large = False
        self._pruned: dict[tuple[object, ...], frozenset[str]] = {}
        self._engine: Ripgrep | PythonSearch | None = None
        self._lock = threading.Lock()

    def use(self, engine: "Ripgrep | PythonSearch") -> None:
        """Search with `engine` from now on."""
        with self._lock:
            self._engine = engine

    def engine(self) -> "Ripgrep | PythonSearch":
        """Return the engine in use: ripgrep if it starts, else Python (shown in status)."""
        with self._lock:
            if self._engine is None:
                from bowerbird.workspace.find.python_search import PythonSearch
                from bowerbird.workspace.find.ripgrep import Ripgrep, find_ripgrep

                program = find_ripgrep()
                ripgrep = Ripgrep(program) if program is not None else None
                self._engine = ripgrep if ripgrep is not None and ripgrep.works() else PythonSearch()
            return self._engine

    def know(self, key: int) -> None:
        """Remember a file as text."""
        if len(self.text) >= _MOST_REMEMBERED:
            self.text.clear()
        self.text.add(key)

    def pruned(self, walk: tuple[object, ...]) -> frozenset[str] | None:
        """Return what the last walk of this kind skipped, None when there was none."""
        return self._pruned.get(walk)

    def remember(self, walk: tuple[object, ...], pruned: frozenset[str] | None) -> None:
        """Remember what a walk skipped; None forgets it."""
        with self._lock:
            if pruned is None:
                self._pruned.pop(walk, None)
                return
            if len(self._pruned) >= _MOST_WALKS:
                self._pruned.clear()
            self._pruned[walk] = pruned


class SortedFiles(msgspec.Struct):
    """The files of a walk: those to search, and the others with the reason."""

    searched: list[str] = msgspec.field(default_factory=list[str])
    skipped: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    has_large: bool = False


def sort_files(
    view: MergedView, found: "Found", memory: SearchMemory, over: Callable[[], bool]
) -> SortedFiles:
    """Sort the files of a walk.

    Args:
        over: asked now and then; True ends the sorting early.
    """
    files = SortedFiles()
    searched, stats, layered, text = files.searched, found.stats, found.layered, memory.text
    for index, path in enumerate(found.files):
        if index % _FILES_PER_LOOK == 0 and over():
            break
        entry = layered.get(path) if layered else None
        seen = stats.get(path) if entry is None else _stat(entry)
        if seen is None or not stat.S_ISREG(seen.st_mode):
            continue
        if seen.st_size > LARGEST:
            files.skipped[path] = f"larger than {LARGEST // (1024 * 1024)} MiB"
            files.has_large = files.has_large or entry is None
            continue
        # Any change of the bytes changes the time of the inode.
        key = hash((path, seen.st_ino, seen.st_size, seen.st_ctime_ns))
        if key not in text:
            reason = _unsearchable(view, path, entry)
            if reason is not None:
                files.skipped[path] = reason
                continue
            memory.know(key)
        searched.append(path)
    return files


def _stat(entry: Entry) -> os.stat_result | None:
    try:
        return os.lstat(entry.source or "")
    except OSError as error:
        if presence.is_absence(error):
            return None  # removed since
        raise


def _unsearchable(view: MergedView, path: str, entry: Entry | None) -> str | None:
    """Return why the content of a file is not searched, None when it is."""
    try:
        fd = open_regular(view, path, entry) if entry is not None else view.ground.open(path)
    except (OSError, WorkspaceError):
        return "cannot be read"
    try:
        from bowerbird.workspace.find.text import HEAD, is_binary

        return "binary" if is_binary(os.pread(fd, HEAD, 0)) else None
    except OSError:
        return "cannot be read"
    finally:
        os.close(fd)
