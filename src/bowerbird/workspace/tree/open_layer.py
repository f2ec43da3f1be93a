"""The open layer of a branch: the one directory that changes, written atomically.

Here: probing it without reading it whole, staging in `work/` and switching entries in by
one rename, whiteouts and opaque directories in kernel form or as JSON marks.
Not here: what is below it, bases (`fork_point.py`), limits, journals; callers hold the lock.

Everything is staged in `work/` and becomes visible by one rename (or exchange), so that a
kill at any instant leaves each path whole: before or after (WS-59). All steps go through
directory handles: a process of the sandbox that swaps links in cannot lead a write outside.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bowerbird.workspace.tree import handles, owned
from bowerbird.workspace.tree.layers import Marks, is_opaque, make_opaque, make_whiteout, scan
from bowerbird.workspace.tree.nodes import WHITEOUT, Node, entry_of, is_whiteout, parts_of

_opening = threading.Lock()
_staged = count()  # names in work/ are unique within the process; other processes have other pids


def _nobody_hears() -> None:
    return


class OpenLayer:
    """One open layer; whoever holds this object keeps seeing it, also after it was renamed (sealed).

    Args:
        path: the directory `open/`.
        work: scratch directory on the same filesystem.
        number: the layer's number once sealed.
        marks_file: `layers/<n>.json` where the filesystem cannot hold whiteouts, else None.
    """

    live = False
    """Whether processes have the layer mounted, see `LiveLayer`."""

    def __init__(
        self,
        path: Path,
        work: Path,
        number: int,
        marks_file: Path | None,
        on_write: Callable[[], None] = _nobody_hears,
    ) -> None:
        self._on_write = on_write
        self.path = path
        self.number = number
        self.marks_file = marks_file
        self.work = work
        self._handle: handles.Handle | None = None
        self._marks = Marks()
        self._marks_sign: tuple[int, int, int] | None = None

    @property
    def fd(self) -> int:
        """The directory's handle, opened at first use and closed when this object is dropped."""
        return self.hold().number

    def hold(self) -> handles.Handle:
        """Open the directory now: what has its name later may be another."""
        if self._handle is None:
            with _opening:
                if self._handle is None:
                    self._handle = handles.Handle(os.open(self.path, handles.DIRECTORY))
        return self._handle

    # ------------------------------------------------------------ reading

    def marks(self) -> Marks | None:
        """Return the JSON marks, None in kernel form; noticed when another process wrote them."""
        if self.marks_file is None:
            return None
        sign = _sign(self.marks_file)
        if sign != self._marks_sign:
            self._marks = Marks.load(self.marks_file)
            self._marks_sign = sign
        return self._marks

    def find(self, path: str) -> Node | None:
        """Return what this layer says about `path`, without the children of a directory.

        None = nothing, a node without entry = hidden by a whiteout, file or opaque directory.
        """
        parts = parts_of(path)
        marks = self.marks()
        cut = is_opaque(self.fd) if marks is None else "/" in marks.opaque
        fd, above = self.fd, ""
        try:
            for index, name in enumerate(parts):
                above = f"{above}/{name}"
                if marks is not None and above in marks.deleted:
                    return WHITEOUT
                try:
                    seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    if not stat.S_ISDIR(seen.st_mode):
                        return self._leaf(seen, fd, path) if index == len(parts) - 1 else WHITEOUT
                    inner = owned.open_directory(fd, name)
                except OSError as error:
                    if error.errno in handles.ABSENT:
                        return WHITEOUT if cut else None
                    raise
                if fd != self.fd:
                    os.close(fd)
                fd = inner
                cut = cut or (is_opaque(fd) if marks is None else above in marks.opaque)
            return Node(entry_of(os.fstat(fd), f"{self.path}{path}", self.number), cut)
        finally:
            if fd != self.fd:
                os.close(fd)

    def _leaf(self, seen: os.stat_result, fd: int, path: str) -> Node:
        if self.marks_file is None and is_whiteout(seen):
            return WHITEOUT
        seen, target = handles.with_target(fd, path.rpartition("/")[2], seen)
        return Node(entry_of(seen, f"{self.path}{path}", self.number, target), cut=True)

    def scan(self) -> Node:
        """Return everything this layer overrides; cost grows with that."""
        return scan(self.fd, self.path, self.number, self.marks())

    def one_level(self, path: str, *, deep: bool = False) -> Node | None:
        """Return what this layer says about the directory `path` and its direct children, or all below."""
        node = self.find(path)
        if node is None or node.entry is None or node.entry.kind != "dir":
            return node
        try:
            fd = owned.open_beneath(self.fd, path if path != "/" else "")
        except OSError as error:
            if error.errno in handles.ABSENT:
                return None
            raise
        try:
            children = scan(fd, self.path, self.number, self.marks(), at=path, deep=deep).children
        finally:
            os.close(fd)
        return Node(node.entry, node.cut, children)

    def is_empty(self) -> bool:
        """Tell whether nothing was changed since the last seal."""
        marks = self.marks()
        if marks is not None and (marks.deleted or marks.opaque):
            return False
        with os.scandir(self.fd) as found:
            return next(iter(found), None) is None and not is_opaque(self.fd)

    # ------------------------------------------------------------ staging

    def stage_name(self) -> Path:
        """Return a free path in `work/`."""
        return self.work / f"{os.getpid()}-{next(_staged)}"

    def stage_file(
        self, content: bytes | int, mode: int, *, mtime_ns: int | None = None, sync: bool = False
    ) -> Path:
        """Write a complete file into `work/`.

        Args:
            content: the bytes, or a handle to copy from (holes stay holes).
            mode: permission bits.
            mtime_ns: modification time to set; the clock's when None.
            sync: wait until the bytes are on disk.
        """
        staged = self.stage_name()
        fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                if isinstance(content, int):
                    handles.copy_bytes(content, fd)
                else:
                    view = memoryview(content)
                    while view:
                        view = view[os.write(fd, view) :]
                os.fchmod(fd, mode)
                if mtime_ns is not None:
                    os.utime(fd, ns=(mtime_ns, mtime_ns))
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
        except BaseException:
            staged.unlink()
            raise
        return staged

    # ------------------------------------------------------------ switching

    def parent(self, path: str, mode_of: Callable[[str], int]) -> int:
        """Return a handle of the directory above `path`, copied up where this layer lacks it.

        Args:
            mode_of: permission bits of a directory of the merged view.

        Raises:
            NotADirectoryError: something else stands on the way.
        """
        fd, above = os.dup(self.fd), ""
        try:
            for name in parts_of(path)[:-1]:
                above = f"{above}/{name}"
                try:
                    inner = owned.open_directory(fd, name)
                except FileNotFoundError:
                    staged = self.stage_name()
                    mode = mode_of(above)  # asked before the directory stands in this layer
                    staged.mkdir()
                    staged.chmod(mode)
                    owned.carry(staged, name, target=fd)
                    inner = os.open(name, handles.DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = inner
        except BaseException:
            os.close(fd)
            raise
        return fd

    def put(self, path: str, staged: Path, mode_of: Callable[[str], int], *, opaque: bool = False) -> None:
        """Switch a staged file, link or directory in; one step for every reader.

        A directory of this layer must have been removed before something else takes its place.
        `opaque`: the staged directory hides what lower layers have there.
        """
        self._on_write()
        parent, name = self.parent(path, mode_of), os.fsencode(path.rpartition("/")[2])
        try:
            marks = self.marks()
            is_dir = stat.S_ISDIR(staged.lstat().st_mode)
            if marks is None:
                if is_dir and opaque:
                    make_opaque(staged)
                if is_dir and _stands(parent, name):
                    self._exchange(staged, parent, name)
                else:
                    owned.carry(staged, name, target=parent)
                return
            if path in marks.deleted:
                self._discard_at(parent, name)  # left by a kill between marking and removing
            owned.carry(staged, name, target=parent)
            deleted = marks.deleted - {path}
            opaques = marks.opaque | {path} if is_dir and opaque else marks.opaque - {path}
            self._save_marks(Marks(deleted, opaques))
        finally:
            os.close(parent)

    def remove(
        self, path: str, mode_of: Callable[[str], int], *, hide: bool, keep: Path | None = None
    ) -> None:
        """Take away this layer's entry at `path`, with everything below it.

        Args:
            hide: something stands there in lower layers; leave a whiteout.
            keep: where the removed entry goes (for a step's rollback); None deletes it.
        """
        self._on_write()
        marks = self.marks()
        parent, name = self.parent(path, mode_of), os.fsencode(path.rpartition("/")[2])
        try:
            if marks is not None:
                rest = Marks(_not_below(marks.deleted, path), _not_below(marks.opaque, path))
                self._save_marks(Marks(rest.deleted | {path}, rest.opaque) if hide else rest)
            elif hide:
                staged = self.stage_name()
                make_whiteout(staged)
                if _stands(parent, name):
                    self._exchange(staged, parent, name, keep)
                else:
                    owned.carry(staged, name, target=parent)
                return
            if _stands(parent, name):
                taken = keep if keep is not None else self.stage_name()
                owned.carry(name, taken, source=parent)
                if keep is None:
                    discard(taken)
        finally:
            os.close(parent)

    def _exchange(self, staged: Path, parent: int, name: bytes, keep: Path | None = None) -> None:
        work = os.open(self.work, handles.DIRECTORY)
        try:
            owned.swap(work, os.fsencode(staged.name), parent, name)
        finally:
            os.close(work)
        if keep is None:
            discard(staged)
        else:
            owned.carry(staged, keep)

    def _discard_at(self, parent: int, name: bytes) -> None:
        if _stands(parent, name):
            taken = self.stage_name()
            owned.carry(name, taken, source=parent)
            discard(taken)

    def chmod_dir(self, path: str, mode: int, mode_of: Callable[[str], int]) -> None:
        """Set the permission bits of a directory, copying it up where this layer lacks it."""
        self._on_write()
        fd = self.parent(path + "/.", mode_of)
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def _save_marks(self, marks: Marks) -> None:
        if self.marks_file is None:
            raise RuntimeError("a layer in kernel form has no marks file")
        if marks != self._marks:
            marks.save(self.marks_file)
            self._marks, self._marks_sign = marks, _sign(self.marks_file)

    def set_marks(self, marks: Marks) -> None:
        """Replace the JSON marks (a step is rolled back)."""
        self._save_marks(marks)


def discard(path: Path) -> None:
    """Delete a host file or tree that is ours, whatever its permissions; links are not followed."""
    try:
        parent = os.open(path.parent, handles.DIRECTORY)
    except FileNotFoundError:
        return
    try:
        owned.remove_tree(parent, path.name)
    finally:
        os.close(parent)


def _sign(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def _stands(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise
    return True


def _not_below(paths: frozenset[str], path: str) -> frozenset[str]:
    return frozenset(p for p in paths if p != path and not p.startswith(path + "/"))
