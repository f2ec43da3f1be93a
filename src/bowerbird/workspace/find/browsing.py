"""One consistent look at the files of a branch or of a workspace, for people (SV-14, SV-15, SV-17).

Here: listing everything with sizes, opening one file safely, which paths a branch changed and when. Not
here: file tools of agents (`files/file_branch.py`), diffs, forms of a door.

All calls block; servers run them in a worker thread.
"""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from bowerbird.core.errors import IsDirectory, NotFound, SpecialFile, WorkspaceError
from bowerbird.workspace.find.walk import Found, Walker
from bowerbird.workspace.tree.glob import compile_glob
from bowerbird.workspace.tree.merged_view import MergedView, open_regular
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import missing, resolve, shown, shown_path, sort_paths
from bowerbird.workspace.tree.reserved import is_reserved
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.stack_reading import steady


class FileFacts(msgspec.Struct, frozen=True):
    """One file of a listing.

    Attributes:
        path: shown form with a leading slash. size: bytes. changed: by the branch that was looked at.
    """

    path: str
    size: int
    mtime_ns: int
    changed: bool = False


class OpenFile(msgspec.Struct, frozen=True):
    """A regular file, opened for reading; whoever gets it closes `fd`."""

    path: str
    fd: int
    size: int
    mtime_ns: int


_R = TypeVar("_R")


class Browse:
    """A look at one state; make one per call.

    Args:
        view: gives the merged view.
        changed: what the branch overrides by path, None = deleted; nothing for a workspace.
        stack: of the branch, whose layers may go away meanwhile: then it is looked at again.
    """

    def __init__(
        self,
        view: Callable[[], MergedView],
        changed: Callable[[], Mapping[str, Entry | None]] = dict,
        stack: Stack | None = None,
    ) -> None:
        self._fresh, self._stack = view, stack
        self._view = view()
        self._changed = changed

    def steadily(self, look: Callable[[], _R]) -> _R:
        """Return what `look` says of one state."""

        def anew() -> _R:
            self._view = self._fresh()
            return look()

        return look() if self._stack is None else self._stack.steadily(anew)

    @steady
    def files(self, limit: int) -> tuple[list[FileFacts], bool]:
        """Return at most `limit` files by path, and whether there are more.

        Links are listed when they lead to a file inside; reserved directories are left out.
        """
        found = Walker(self._view, compile_glob("**/*"), include_ignored=True, with_stats=True).run()
        links = {link: entry for link in found.links if (entry := self._file_behind(link)) is not None}
        paths = sort_paths([*found.files, *links])
        changed = self._changed()
        rows: list[FileFacts] = []
        for path in paths:
            if len(rows) >= limit:
                return rows, True
            entry = found.layered.get(path) if path not in links else links[path]
            seen = found.stats.get(path)
            if entry is not None:
                size, mtime = entry.size, entry.mtime_ns
            elif seen is not None:
                size, mtime = seen.st_size, seen.st_mtime_ns
            else:
                continue  # gone since its directory was read
            rows.append(FileFacts(shown(path), size, mtime, path in changed))
        return rows, False

    @steady
    def some_files(self, most: int) -> tuple[list[FileFacts], bool]:
        """Return about the first `most` files that a walk meets, by path, and whether there are more.

        The cost is that of the files returned, however large the tree: for lists that are cut anyway. Git's
        own files are none of them.
        """
        seen: list[Found] = []
        walker = Walker(
            self._view,
            compile_glob("**/*"),
            include_ignored=True,
            with_stats=True,
            stop=lambda: len(seen[0].files) >= most,
            without_git=True,
        )
        found = walker.run(seen.append)
        changed = self._changed()
        rows: list[FileFacts] = []
        for path in sort_paths(found.files)[:most]:
            entry, stat = found.layered.get(path), found.stats.get(path)
            if entry is not None:
                rows.append(FileFacts(shown(path), entry.size, entry.mtime_ns, path in changed))
            elif stat is not None:
                rows.append(FileFacts(shown(path), stat.st_size, stat.st_mtime_ns, path in changed))
        return rows, len(found.files) >= most

    @steady
    def names(self, most: int) -> tuple[list[str], bool]:
        """Return paths of files that no ignore rule leaves out, at most `most`, and whether there are more.

        What a person types names from: no sizes, no leading slash; names that cannot be typed are left out.
        """
        found = Walker(self._view, compile_glob("**/*")).run()
        paths = [path[1:] for path in (*found.files, *found.links) if path.isprintable()]
        return sorted(paths)[:most], len(paths) > most

    @steady
    def changes(self) -> dict[str, FileFacts | None]:
        """Return the files that the branch has its own version of, None for what it deleted."""
        found: dict[str, FileFacts | None] = {}
        for path, entry in self._changed().items():
            if is_reserved(path) or not self._view.ground.shows(path):
                continue
            if entry is None:
                found[shown(path)] = None
            elif entry.kind == "file":
                found[shown(path)] = FileFacts(shown(path), entry.size, entry.mtime_ns, True)
        return found

    @steady
    def open(self, path: str) -> OpenFile:
        """Open a regular file; links are followed as long as they stay inside.

        Raises:
            NotFound, IsDirectory, SpecialFile, PathEscape, TooManyLinks, InvalidPath.
        """
        found = resolve(self._view, path)
        entry = found.entry
        if entry is None:
            raise missing(self._view, found.path)
        if entry.kind == "dir":
            raise IsDirectory(f"{shown_path(found.path)} is a directory", found.path)
        if entry.kind != "file":
            raise SpecialFile(f"{shown_path(found.path)} is not a regular file", found.path)
        if is_reserved(found.path) and not is_reserved(path):
            raise NotFound(f"{shown_path(found.path)} does not exist", found.path)  # a link into our records
        fd = open_regular(self._view, found.path, entry)
        seen = os.fstat(fd)
        return OpenFile(shown(found.path), fd, seen.st_size, seen.st_mtime_ns)

    @steady
    def has_directory(self, path: str) -> bool:
        """Whether a directory stands at a path, or where links at it lead."""
        try:
            entry = resolve(self._view, path).entry
        except WorkspaceError:
            return False
        return entry is not None and entry.kind == "dir"

    def _file_behind(self, link: str) -> Entry | None:
        try:
            found = resolve(self._view, link)
        except WorkspaceError:
            return None  # it leads nowhere, or out
        inside = found.entry is not None and found.entry.kind == "file" and not is_reserved(found.path)
        return found.entry if inside else None
