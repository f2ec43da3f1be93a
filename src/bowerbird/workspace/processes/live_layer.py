"""The open layer while processes have it mounted: read as before, written through the mount.

The kernel's overlay keeps what it knows of its upper directory in memory, so changes made behind its back
may stay unseen. Here: the few writing steps of `OpenLayer`, done through a descriptor of the mounted view;
whiteouts and opaque marks are then the kernel's business. Not here: mounting, and when a layer is live.

Processes may swap anything in the view meanwhile. So entries are staged in `work/`, out of their reach, and
carried over by handles: what is swapped makes a call fail or change the view, never anything else.
"""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from bowerbird.core.errors import Stale
from bowerbird.workspace.tree import handles, owned
from bowerbird.workspace.tree.layers import is_opaque, make_opaque, make_whiteout
from bowerbird.workspace.tree.nodes import is_whiteout, parts_of
from bowerbird.workspace.tree.open_layer import OpenLayer, discard

_STAGED_PREFIX = ".bowerbird-staged-"
# Names that exist for an instant in the root of the mounted view while an entry is switched in.

_staged = count()


class LiveLayer(OpenLayer):
    """The same directory as `layer`, written through `view_fd`, a descriptor of the mounted view.

    The caller keeps `view_fd` open as long as this object is used.
    """

    live = True

    def __init__(self, layer: OpenLayer, view_fd: int) -> None:
        super().__init__(layer.path, layer.work, layer.number, None)
        self.hold()
        self._view_fd = view_fd

    def parent(self, path: str, mode_of: Callable[[str], int]) -> int:
        """Return a handle of the directory above `path`; the view has it already."""
        above = "/".join(parts_of(path)[:-1])
        return handles.open_beneath(self._view_fd, os.fsencode(above), handles.DIRECTORY)

    def put(self, path: str, staged: Path, mode_of: Callable[[str], int], *, opaque: bool = False) -> None:
        """Switch a staged file, link or directory in; `opaque` follows from what stood there."""
        with _told(path):
            parent, name = self.parent(path, mode_of), os.fsencode(path.rpartition("/")[2])
        passing = f"{_STAGED_PREFIX}{os.getpid()}-{next(_staged)}".encode()
        try:
            folder = os.open(staged.parent, handles.DIRECTORY)
            try:
                owned.copy_entry(folder, os.fsencode(staged.name), self._view_fd, passing)
            finally:
                os.close(folder)
            with _told(path):
                owned.carry(passing, name, source=self._view_fd, target=parent)
        except BaseException:
            owned.remove_tree(self._view_fd, passing)
            raise
        finally:
            os.close(parent)
        discard(staged)

    def remove(
        self, path: str, mode_of: Callable[[str], int], *, hide: bool, keep: Path | None = None
    ) -> None:
        """Delete what the view shows at `path`; `hide` follows from what lies below."""
        if keep is not None:
            self._copy_own(path, keep)
        with suppress(FileNotFoundError), _told(path, FileNotFoundError):  # a process was faster
            parent = self.parent(path, mode_of)
            try:
                owned.remove_tree(parent, os.fsencode(path.rpartition("/")[2]))
            finally:
                os.close(parent)

    def _copy_own(self, path: str, keep: Path) -> None:
        """Keep a copy of this layer's directory at `path`: out of a mount nothing can be moved."""
        try:
            source = owned.open_beneath(self.fd, path)
        except OSError as error:
            if error.errno in handles.ABSENT:
                return
            raise
        try:
            _copy_layer(source, keep)
        finally:
            os.close(source)

    def drop_staged(self) -> None:
        """Delete what a killed server left in the root while it switched an entry in."""
        for name in os.listdir(self._view_fd):
            if name.startswith(_STAGED_PREFIX):
                owned.remove_tree(self._view_fd, name)


@contextmanager
def _told(path: str, *passing: type[OSError]) -> Generator[None]:
    """Say of what a process swapped on the way that it did; `passing` are left as they are."""
    try:
        yield
    except OSError as error:
        if error.errno not in handles.SWAPPED or isinstance(error, passing):
            raise
        raise Stale(f"{path[1:]} was changed by a process while it was written; look again", path) from error


def _copy_layer(source: int, keep: Path) -> None:
    """Copy a directory of a layer, marks included, to where no process reaches."""
    _copy_directory(source, keep)
    for path, above, name, status in owned.every(source):
        to = Path(f"{keep}{path}")
        try:
            if is_whiteout(status):
                make_whiteout(to)
            elif stat.S_ISDIR(status.st_mode):
                inner = owned.open_directory(above, name)
                try:
                    _copy_directory(inner, to)
                finally:
                    os.close(inner)
            elif stat.S_ISLNK(status.st_mode):
                to.symlink_to(handles.read_link(above, name))
            elif stat.S_ISREG(status.st_mode):
                folder = os.open(to.parent, handles.DIRECTORY)
                try:
                    owned.copy_file(above, os.fsencode(name), folder, os.fsencode(name))
                finally:
                    os.close(folder)
        except OSError as error:
            if error.errno not in handles.ABSENT:
                raise  # else a process took it away between two looks


def _copy_directory(source: int, to: Path) -> None:
    to.mkdir(mode=0o700)
    if is_opaque(source):
        make_opaque(to)
    to.chmod(stat.S_IMODE(os.fstat(source).st_mode) | 0o700)
