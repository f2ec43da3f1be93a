"""The workspace as branches see it: live, through no link, without what is masked or hidden.

Here: looking, listing and opening below the workspace directory. Not here: layers, writing
(only a landing writes there), resolution of links and `..` (`paths.py`).
"""

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.hiding import Hiding
from bowerbird.workspace.tree.nodes import ROOT_ENTRY, Entry, entry_of

LANDING_PLACE = ".bowerbird-l_"
"""How the names begin of what a landing keeps in the workspace while it runs (`staging.py`)."""
_LANDING = f"/{LANDING_PLACE}"


class Ground:
    """What lies under all layers: a real directory, or nothing.

    Args:
        root: the workspace, resolved and absolute; None for a branch of nothing.
        masked: virtual path of the data directory when it lies inside, else None.
        hidden: tells paths that `hide` takes out of the view, None = nothing is hidden.
        copy: where processes without namespaces find the branch; that path is its root too.
    """

    def __init__(
        self,
        root: Path | None,
        *,
        masked: str | None = None,
        hidden: Hiding | None = None,
        copy: Path | None = None,
    ) -> None:
        self.root = root
        self.copy = copy
        self.masked = masked
        self._hiding = hidden
        self._prefix = f"{masked}/" if masked else None

    @property
    def hides(self) -> bool:
        """Whether `hide` takes anything out of the view."""
        return self._hiding is not None

    def hidden(self, path: str) -> bool:
        """Tell whether `hide` takes `path` out of the view."""
        return self._hiding is not None and self._hiding(path)

    def is_masked(self, path: str) -> bool:
        """Tell whether `path` is Bowerbird's own: its data directory, the place of a landing, or below."""
        if _LANDING in path:
            return True
        return self._prefix is not None and (path == self.masked or path.startswith(self._prefix))

    def shows(self, path: str) -> bool:
        """Tell whether `path` is neither masked nor hidden."""
        return not self.is_masked(path) and not self.hidden(path)

    def shows_in(self, above: str, name: str) -> bool:
        """As `shows`, cheaper, for a name in a directory that is shown itself; `above` is "" at the root."""
        if self._hiding is not None and self._hiding.below(above, name):
            return False
        if self.masked is not None and f"{above}/{name}" == self.masked:
            return False
        return not name.startswith(LANDING_PLACE)

    def not_shown(self) -> Callable[[str], bool]:
        """Return the contrary of `shows`, cheaper for many paths of few directories."""
        known: dict[str, Callable[[str], bool]] = {}

        def test(path: str) -> bool:
            above, _, name = path.rpartition("/")
            inside = known.get(above)
            if inside is None:
                inside = known[above] = self.not_shown_in(above)
            return inside(name)

        return test

    def not_shown_in(self, above: str) -> Callable[[str], bool]:
        """Return the contrary of `shows` for names in one directory; `above` is "" at the root."""
        if above and not self.shows(above):
            return lambda _: True
        exact, starts, ends = self._suspects

        def test(name: str) -> bool:
            low = name.lower()  # most names are done with this line and the next
            if low not in exact and not low.endswith(ends) and not low.startswith(starts):
                return False
            return not self.shows_in(above, name)

        return test

    @cached_property
    def _suspects(self) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
        none = frozenset[str](), (), ()
        exact, starts, ends = self._hiding.suspects if self._hiding is not None else none
        masked = {self.masked.rpartition("/")[2].lower()} if self.masked is not None else set[str]()
        return exact | masked, (*starts, LANDING_PLACE), ends

    def hidden_names(self, path: str, most: int) -> list[str]:
        """Return names in a directory of the workspace that `hide` takes out of the view, at most `most`."""
        if self.root is None or self._hiding is None or not self.shows(path):
            return []
        above = "" if path == "/" else path
        try:
            with self.handle() as root:
                fd = handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)
            try:
                found = [name for name in os.listdir(fd) if self._hiding.below(above, name)]
            finally:
                os.close(fd)
        except (InvalidWorkspace, OSError):
            return []  # gone, or not ours to read: whoever opens it hears of that
        return sorted(found, key=os.fsencode)[:most]

    @contextmanager
    def handle(self) -> Generator[int]:
        """Give a handle of the workspace directory for a moment.

        Raises:
            InvalidWorkspace: it is gone.
        """
        fd = self.open_root()
        try:
            yield fd
        finally:
            os.close(fd)

    def open_root(self) -> int:
        """Return a handle of the workspace directory; the caller closes it."""
        if self.root is None:
            raise InvalidWorkspace("this branch has no workspace")
        try:
            return os.open(self.root, handles.ROOT)
        except FileNotFoundError as error:
            raise InvalidWorkspace(f"workdir does not exist: {self.root}") from error
        except NotADirectoryError as error:
            raise InvalidWorkspace(f"workdir is not a directory: {self.root}") from error

    def look(self, path: str) -> Entry | None:
        """Return what stands at a virtual path; ancestors that are links hide it."""
        if self.root is None:
            return ROOT_ENTRY if path == "/" else None
        if not self.shows(path):
            return None
        fd = self.open_root()
        try:
            seen = handles.look(fd, os.fsencode(path[1:]))
        finally:
            os.close(fd)
        if seen is None:
            return None
        return entry_of(seen[0], f"{self.root}{path}", None, seen[1])

    def children(self, path: str) -> dict[str, Entry]:
        """Return the entries of a directory by name; empty when it is none."""
        if self.root is None or not self.shows(path):
            return {}
        above = "" if path == "/" else path
        found: dict[str, Entry] = {}
        with self.handle() as root:
            try:
                fd = handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)
            except OSError as error:
                if error.errno in handles.ABSENT:
                    return {}
                raise
            try:
                with os.scandir(fd) as items:
                    for item in items:
                        if self.shows_in(above, item.name):
                            entry = self._entry(item, fd, above)
                            if entry is not None:
                                found[item.name] = entry
            finally:
                os.close(fd)
        return found

    def _entry(self, item: "os.DirEntry[str]", fd: int, above: str) -> Entry | None:
        try:
            seen, target = handles.with_target(fd, item.name, item.stat(follow_symlinks=False))
        except OSError as error:
            if error.errno in handles.ABSENT:
                return None  # gone since the directory was read
            raise
        return entry_of(seen, f"{self.root}{above}/{item.name}", None, target)

    def open(self, path: str, flags: int = handles.FILE) -> int:
        """Open what stands at `path`; raises OSError, and FileNotFoundError when hidden."""
        if self.root is None or not self.shows(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        with self.handle() as root:
            return handles.open_beneath(root, os.fsencode(path[1:]), flags)

    def is_read_only(self, path: str) -> bool:
        """Tell whether `path` lies on a read-only mount below the workspace."""
        if self.root is None:
            return False
        with self.handle() as root:
            base = os.fstatvfs(root)
            here = path
            while here not in ("", "/"):
                try:
                    fd = handles.open_beneath(root, os.fsencode(here[1:]), handles.LOOK)
                except OSError as error:
                    if error.errno not in handles.ABSENT:
                        raise
                    here = here.rpartition("/")[0]
                    continue
                try:
                    locked = bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)
                    return locked and (
                        not base.f_flag & os.ST_RDONLY or os.fstat(fd).st_dev != os.fstat(root).st_dev
                    )
                finally:
                    os.close(fd)
        return False
