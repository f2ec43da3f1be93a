"""The open layer while processes have it mounted: read as before, written through the mount.

The kernel's overlay keeps what it knows of its upper directory in memory, so changes made behind its back
may stay unseen. Here: the few writing steps of `OpenLayer`, done through a descriptor of the mounted view;
whiteouts and opaque marks are then the kernel's business. Not here: mounting, and when a layer is live.
"""

import os
import shutil
import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bowerbird.workspace import handles
from bowerbird.workspace.nodes import parts_of
from bowerbird.workspace.open_layer import OpenLayer

STAGED_PREFIX = ".bowerbird-"
"""Names that exist for an instant in the root of the mounted view while a file is switched in."""

_staged = count()


class LiveLayer(OpenLayer):
    """The same directory as `layer`, written through `view_fd`, a descriptor of the mounted view.

    The caller keeps `view_fd` open as long as this object is used, and closes both.
    """

    def __init__(self, layer: OpenLayer, view_fd: int) -> None:
        super().__init__(layer.path, Path(f"/proc/self/fd/{view_fd}"), layer.number, None)
        self._view_fd = view_fd

    def stage_name(self) -> Path:
        """Return a free path in the root of the view: a rename must stay within one mount."""
        return Path(f"/proc/self/fd/{self._view_fd}", f"{STAGED_PREFIX}{os.getpid()}-{next(_staged)}")

    def parent(self, path: str, mode_of: Callable[[str], int]) -> int:
        """Return a handle of the directory above `path`; the view has it already."""
        above = "/".join(parts_of(path)[:-1])
        return handles.open_beneath(self._view_fd, os.fsencode(above), handles.DIRECTORY)

    def put(self, path: str, staged: Path, mode_of: Callable[[str], int], *, opaque: bool = False) -> None:
        """Switch a staged file, link or directory in; `opaque` follows from what stood there."""
        parent, name = self.parent(path, mode_of), os.fsencode(path.rpartition("/")[2])
        try:
            # Also a directory: staged in the view it is of the upper layer only, and such the overlay renames.
            os.rename(staged, name, dst_dir_fd=parent)
        finally:
            os.close(parent)

    def remove(
        self, path: str, mode_of: Callable[[str], int], *, hide: bool, keep: Path | None = None
    ) -> None:
        """Delete what the view shows at `path`; `hide` follows from what lies below."""
        if keep is not None:
            self._copy_own(path, keep)
        parent, name = self.parent(path, mode_of), path.rpartition("/")[2]
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            pass  # a process was faster
        finally:
            os.close(parent)

    def _copy_own(self, path: str, keep: Path) -> None:
        """Keep a copy of this layer's directory at `path`: out of a mount nothing can be moved."""
        source = Path(f"/proc/self/fd/{self.fd}{path}")
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, keep, symlinks=True)
