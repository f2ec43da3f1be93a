"""Making a whole frozen layer at once, to be put on a stack by one rename.

Here: a layer directory built in `work/` from results of a merge or from the trees of other
layers, with hard links of frozen files. Not here: what goes in, bases, the manifest.

Nothing shows before the caller renames the finished directory to `layers/<n>`: a kill on
the way leaves a directory in `work/` and the branch as it was (WS-48).
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.layers import Marks, make_opaque, make_whiteout
from bowerbird.workspace.tree.nodes import Entry, Node, walk
from bowerbird.workspace.tree.threeway import Side


class LayerBuilder:
    """Builds one layer directory.

    Args:
        directory: a path that does not exist yet, on the branch's filesystem.
        marks_file: where deletions go on filesystems that cannot hold whiteouts, else None.

    Attributes:
        paths, bytes: how much the layer overrides so far.
    """

    def __init__(self, directory: Path, marks_file: Path | None) -> None:
        directory.mkdir(mode=0o700)
        self.directory = directory
        self.paths = 0
        self.bytes = 0
        self._root = os.fspath(directory)
        self._marks_file = marks_file
        self._deleted: set[str] = set()
        self._opaque: set[str] = set()
        self._made: set[str] = {"", "/"}
        self._locked: list[tuple[str, int]] = []

    def put(self, path: str, side: Side, dir_modes: Mapping[str, int]) -> None:
        """Add a file, link or directory.

        Args:
            dir_modes: permission bits of directories above that exist in the view.
        """
        self._parents(path, dir_modes)
        self.paths += 1
        target = self._root + path
        if side.kind == "dir":
            self._directory(path, side.mode or dir_modes.get(path, 0o755))
        elif side.kind == "symlink":
            Path(target).symlink_to(side.target or "")
        elif side.content is not None:
            self.bytes += side.content.size
            frozen = side.content.frozen
            # A link shares the mode, so a file whose mode was merged is written anew.
            if frozen is None or not _has_mode(frozen, side.mode) or not _link(frozen, target):
                self._write(target, side)

    def white_out(self, path: str, dir_modes: Mapping[str, int]) -> None:
        """Hide what lower layers have at `path`."""
        self._parents(path, dir_modes)
        self.paths += 1
        if self._marks_file is None:
            make_whiteout(self._root + path)
        else:
            self._deleted.add(path)

    def add_tree(self, tree: Node, *, copy: bool = False) -> None:
        """Add everything that other layers override.

        Args:
            copy: copy files, because they may still be written; frozen ones are linked.
        """
        if tree.cut:
            self._mark_opaque("/")
        directories: list[tuple[str, Entry]] = []
        for path, node in walk(tree):
            entry = node.entry
            if entry is None:
                self.white_out(path, {})
                continue
            if entry.kind == "dir":
                self._directory(path, entry.mode)
                if node.cut:
                    self._mark_opaque(path)
                directories.append((path, entry))
                continue
            source = entry.source or ""
            if copy:
                try:
                    _copy_file(source, self._root + path, entry)
                except OSError as error:
                    if error.errno not in handles.ABSENT:
                        raise
                    continue  # a process took it away since it was listed
            elif not _link(source, self._root + path):
                _copy_file(source, self._root + path, entry)
            self.paths += 1
            self.bytes += entry.size
        for path, entry in reversed(directories):
            if entry.mtime_ns:
                os.utime(self._root + path, ns=(entry.mtime_ns, entry.mtime_ns))

    def finish(self) -> Path:
        """Write the deletions of filesystems without whiteouts and return the directory."""
        if self._marks_file is not None and (self._deleted or self._opaque):
            Marks(frozenset(self._deleted), frozenset(self._opaque)).save(self._marks_file)
        for path, mode in reversed(self._locked):
            Path(self._root + path).chmod(mode)
        return self.directory

    def _parents(self, path: str, dir_modes: Mapping[str, int]) -> None:
        above = path.rpartition("/")[0]
        if above in self._made:
            return
        self._parents(above, dir_modes)
        self._directory(above, dir_modes.get(above, 0o755))

    def _directory(self, path: str, mode: int) -> None:
        if path not in self._made:
            Path(self._root + path).mkdir(mode=0o700)
            self._made.add(path)
        Path(self._root + path).chmod(mode | 0o700)
        if mode & 0o700 != 0o700:
            self._locked.append((path, mode))  # entered once more before it may be closed

    def _mark_opaque(self, path: str) -> None:
        if self._marks_file is None:
            make_opaque(self._root + (path if path != "/" else ""))
        else:
            self._opaque.add(path)

    def _write(self, target: str, side: Side) -> None:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if side.content is not None:
                side.content.write_to(fd)
            os.fchmod(fd, side.mode)
        finally:
            os.close(fd)


def _has_mode(path: str, mode: int) -> bool:
    return stat.S_IMODE(os.lstat(path).st_mode) == stat.S_IMODE(mode)


def _link(source: str, target: str) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # too many links on one inode, or another filesystem: the caller copies
        return False
    return True


def _copy_file(source: str, target: str, entry: Entry) -> None:
    if entry.kind == "symlink":
        Path(target).symlink_to(entry.target or "")
        return
    if entry.kind == "special":
        return  # never opened; a socket or FIFO has no bytes to keep
    read = os.open(source, handles.FILE)
    try:
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            handles.copy_bytes(read, write)
            os.fchmod(write, entry.mode)
            os.utime(write, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(write)
    finally:
        os.close(read)
