"""What a branch hides of its workspace, as a layer of whiteouts for processes (WS-8, WS-9, SB-8).

Here: finding the topmost hidden paths, keeping a layer that hides them. Not here: which paths are hidden
(`tree/ground.py`), mounting.
"""

import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path

from bowerbird.workspace.tree import handles, presence
from bowerbird.workspace.tree.descent import Descent
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.layers import make_whiteout
from bowerbird.workspace.tree.open_layer import discard

_FEW = 200
_SHARE = 0.05
"""Above so many directories, looking through them takes at most this share of the time."""

Sign = tuple[int, int, int]


class Mask:
    """The mask of one branch for one sandbox, made anew when other paths are hidden than before.

    Args:
        ground: the workspace and what of it the branch shows.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._directory: Path | None = None
        self._seen: dict[str, tuple[Sign, tuple[str, ...], tuple[str, ...]]] = {}
        self._hidden: tuple[str, ...] | None = None
        self._made = 0
        self._next_s = 0.0  # when many directories are looked at again, `time.monotonic()`

    def layer(self, directory: Path) -> Path:
        """Return the layer to mount right above the workspace; another path when other things are hidden.

        Looks at every directory of the workspace, and into those that changed since the last call. In a large
        workspace that is done only now and then: what gets a hidden name meanwhile is hidden a little later.

        Args:
            directory: of the sandbox alone: who takes a mask away that another one has mounted, shows what
                it hid. It holds one layer after the other.
        """
        if directory != self._directory:
            self._directory, self._hidden = directory, None
        elif self._hidden is not None and time.monotonic() < self._next_s:
            return directory / str(self._made)
        start = time.monotonic()
        hidden = tuple(sorted(self._find(), key=os.fsencode))
        if len(self._seen) > _FEW:
            now = time.monotonic()
            self._next_s = now + (now - start) / _SHARE
        if hidden != self._hidden:
            self._hidden = None  # nothing is hidden before all of it is
            discard(directory)
            self._made += 1
            self._build(directory / str(self._made), hidden)
            self._hidden = hidden
        return directory / str(self._made)

    def _find(self) -> list[str]:
        """Return the topmost workspace paths that no view shows."""
        hidden: list[str] = []
        seen: dict[str, tuple[Sign, tuple[str, ...], tuple[str, ...]]] = {}
        root = self._ground.open_root()
        descent = Descent(root)
        try:
            todo = [""]
            while todo:
                above = todo.pop()
                try:
                    fd = descent.open(above)
                except PermissionError:
                    continue  # no process of this user's can look into it either
                if fd is None:
                    continue
                status = os.fstat(fd)
                sign = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
                known = self._seen.get(above)
                found = known if known is not None and known[0] == sign else self._look(fd, above, sign)
                seen[above] = found
                hidden += found[1]
                todo += found[2]
        finally:
            descent.close()
            os.close(root)
        self._seen = seen
        return hidden

    def _look(self, fd: int, above: str, sign: Sign) -> tuple[Sign, tuple[str, ...], tuple[str, ...]]:
        hidden: list[str] = []
        inner: list[str] = []
        with os.scandir(fd) as items:
            for item in items:
                path = f"{above}/{item.name}"
                if not self._ground.shows_in(above, item.name):
                    hidden.append(path)
                elif item.is_dir(follow_symlinks=False):
                    inner.append(path)
        return sign, tuple(hidden), tuple(inner)

    def _build(self, layer: Path, hidden: Sequence[str]) -> None:
        layer.mkdir(mode=0o755, parents=True)
        root = self._ground.open_root()
        try:
            for path in hidden:
                self._make_way(root, layer, path.rpartition("/")[0])
                make_whiteout(f"{layer}{path}")
            self._take_mode(root, layer, "")
        finally:
            os.close(root)

    def _make_way(self, root: int, layer: Path, path: str) -> None:
        """Make the directories above a whiteout; the topmost layer's mode is what processes see."""
        if not path or presence.is_directory(f"{layer}{path}"):
            return
        self._make_way(root, layer, path.rpartition("/")[0])
        Path(f"{layer}{path}").mkdir(mode=0o755)
        self._take_mode(root, layer, path)

    def _take_mode(self, root: int, layer: Path, path: str) -> None:
        try:
            fd = handles.open_beneath(root, os.fsencode(path[1:]), handles.DIRECTORY)
        except OSError as error:
            if presence.is_absence(error) or isinstance(error, PermissionError):
                return  # gone meanwhile, or closed to everybody here: there is nothing to see in it
            raise
        try:
            Path(f"{layer}{path}").chmod(stat.S_IMODE(os.fstat(fd).st_mode) | 0o700)
        finally:
            os.close(fd)
