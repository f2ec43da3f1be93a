"""What processes changed in the open layer: their bases, and the changes by name (WS-6, SB-11).

Here: one pass over the open layer, directory by directory beside what lies below it. Not here: bases of file
tools, which are saved before the change (`tree/stack.py`); changes in a copy (`mirror.py`).

Every change of a branch's processes comes by here, thousands at a time, and a command's result waits for it:
so there is one pass, it opens each directory once, and builds nothing for entries that say nothing new.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.tree import handles, owned, presence
from bowerbird.workspace.tree.descent import Descent
from bowerbird.workspace.tree.fork_point import Base
from bowerbird.workspace.tree.layers import is_opaque, make_plain
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry, Node, entry_of, find, find_in, is_whiteout
from bowerbird.workspace.tree.stack import Stack, open_regular

_MANY = 16  # so many entries of one directory, and it is cheaper to list the one below than to ask for each

_NOTHING = Base(None)
_TOLD_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


class Captured(msgspec.Struct, frozen=True):
    """What a command changed: virtual paths, sorted; `special` are files no branch keeps."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    special: tuple[str, ...]


Told = dict[str, tuple[int, int, bool]]
"""Paths of the open layer that were looked at: ctime (of a directory whether it hides what is below) and
mode, as they were, and whether they said what is below."""


class Capture:
    """One pass.

    Args:
        stack: the branch's; its writer lock is held.
        mounted_ns: since when processes may have read the workspace (`ProcessView.mounting`). Where its entry
            changed since the base is `uncertain`, a conflict in landing and merge: the kernel may have gone
            on showing what was there before.
        told: what earlier passes over the same open layer reported.

    Attributes:
        told: the same, after this pass.
        based: the paths that had no base, sorted by name bytes.
    """

    def __init__(self, stack: Stack, mounted_ns: int, told: Told) -> None:
        self._stack = stack
        self._mounted_ns = mounted_ns
        self._before = told
        self._private = stack.private_paths()
        self._hides = stack.ground.masked is not None or stack.ground.hides
        self._new: dict[str, Base] = {}
        self.told: Told = {}
        self.based: list[str] = []
        self.steps: list[Step] = []
        self._deleted: set[str] = set()
        self._special: list[str] = []

    def run(self) -> Captured:
        """Save missing bases; return what is new since the pass that `told` is from."""
        stack = self._stack
        below = _Below(stack, stack.below_open_view)
        own = below if stack.below_open_view.frozen is stack.beneath_view.frozen else None
        beneath = own or _Below(stack, stack.beneath_view)
        root = handles.open_beneath(stack.open_layer.fd, b"", handles.DIRECTORY)
        try:
            for path, fd, name, status in owned.every(root):
                if self._hides and not stack.ground.shows(path):
                    continue  # what `hide` names exists for no branch
                self._look(path, fd, name, _readable(fd, name, status), below, beneath)
        finally:
            os.close(root)
            below.close()
            beneath.close()
        for path, (_, mode, _) in self._before.items():
            # Only this layer held it, and it holds it no more: there is no whiteout to see.
            if path not in self.told and stat.S_IFMT(mode) in _TOLD_KINDS and stack.lookup(path) is None:
                self._deleted.add(path)
        stack.orig.save_many(self._new)
        self.based = _sorted(self._new)
        for path in self.based:
            was = find(stack.frozen_own, path)
            is_dir = was is not None and was.entry is not None and was.entry.kind == "dir"
            if is_dir or (path in self._before and stat.S_ISDIR(self._before[path][1])):
                stack.doubt_hidden(path)
        self._deleted -= self._private
        self.steps += [Step("delete", path) for path in _sorted(self._deleted)]
        written = [step.path for step in self.steps if step.action != "delete"]
        return Captured(tuple(_sorted(written)), tuple(_sorted(self._deleted)), tuple(_sorted(self._special)))

    def _look(
        self, path: str, fd: int, name: str, status: os.stat_result, below: "_Below", beneath: "_Below"
    ) -> None:
        white = is_whiteout(status)
        is_dir = stat.S_ISDIR(status.st_mode)
        before = self._before.get(path)
        sign = (0 if white else status.st_ctime_ns, status.st_mode)
        if not is_dir and before is not None and before[:2] == sign:
            self.told[path] = before
            return
        old = below.entry(path, name)
        cut = not is_dir or (old is not None and old.kind == "dir" and _is_opaque_at(fd, name))
        if is_dir:
            sign = (int(cut), status.st_mode)
            if old is None and not self._stood(path):
                _show_below(fd, name)
        known = before is not None and before[:2] == sign
        self.told[path] = (*sign, False)
        if is_dir and not cut and old is not None and old.kind == "dir":
            changed = old.mode != stat.S_IMODE(status.st_mode)
        else:
            changed = not (white and old is None)
        if changed:
            self._keep_base(path, name, beneath, cut=cut)
        if changed and not known and path not in self._private:
            self._tell(path, fd, name, status, old, below)

    def _stood(self, path: str) -> bool:
        """Whether something stood there where the branch began, which what is there now replaces."""
        base = self._stack.orig.get(path)
        return base is not None and base.entry is not None

    # ------------------------------------------------------------ bases

    def _keep_base(self, path: str, name: str, beneath: "_Below", *, cut: bool) -> None:
        orig = self._stack.orig
        entry = beneath.entry(path, name)
        if path not in orig:
            self._new[path] = self._base(path, name, entry, beneath)
        if cut and entry is not None and entry.kind == "dir":
            for inner, lower in beneath.view.subtree(path).items():
                if inner not in orig:
                    self._new[inner] = self._base(inner, None, lower, beneath)

    def _base(self, path: str, name: str | None, entry: Entry | None, beneath: "_Below") -> Base:
        if entry is None:
            return _NOTHING
        late = entry.layer is None and entry.ctime_ns >= self._mounted_ns
        blob: int | None = None
        if entry.kind == "file" and entry.layer is not None and entry.source is not None:
            blob = self._stack.orig.store(entry.source)
        elif entry.kind == "file":
            try:
                fd = beneath.open(path, name, entry)
            except PermissionError:
                late = True  # nobody but root reads it: what it held cannot be known
            else:
                try:
                    blob = self._stack.orig.store(fd)
                    entry = entry_of(
                        os.fstat(fd), None, None
                    )  # its user may have saved since it was looked at
                    late = entry.ctime_ns >= self._mounted_ns
                finally:
                    os.close(fd)
        kept = f"{self._stack.orig.directory}/{blob}" if blob is not None else None
        return Base(msgspec.structs.replace(entry, source=kept, layer=None), late)

    # ------------------------------------------------------------ telling

    def _tell(
        self, path: str, fd: int, name: str, status: os.stat_result, old: Entry | None, below: "_Below"
    ) -> None:
        mode = status.st_mode
        if is_whiteout(status):
            self._deleted.add(path)
        elif stat.S_ISDIR(mode):
            self.steps.append(Step("mkdir" if old is None or old.kind != "dir" else "chmod", path))
        elif not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            self._special.append(path)
        else:
            if old is not None and self._same(path, fd, name, status, old, below):
                before = self._before.get(path)
                self.told[path] = (*self.told[path][:2], True)
                if before is None or before[2]:
                    return  # what was changed and is now as below again was changed all the same
            self.steps.append(Step("write", path, "create" if old is None else "modify", status.st_size))
        if old is not None and old.kind == "dir":
            gone = below.view.subtree(path)
            if stat.S_ISDIR(mode):
                gone = [inner for inner in gone if self._stack.lookup(inner) is None]
            self._deleted.update(gone)

    def _same(
        self, path: str, fd: int, name: str, status: os.stat_result, old: Entry, below: "_Below"
    ) -> bool:
        try:
            if stat.S_ISLNK(status.st_mode):
                return old.kind == "symlink" and old.target == handles.read_link(fd, name)
            if (old.kind, old.size, old.mode) != ("file", status.st_size, stat.S_IMODE(status.st_mode)):
                return False
            mine = owned.open_file(fd, name)
            try:
                theirs = below.open(path, name, old)
                try:
                    return handles.equal_bytes(mine, theirs)
                finally:
                    os.close(theirs)
            finally:
                os.close(mine)
        except WorkspaceError:
            return False  # it changed between two looks: it is no longer the same
        except OSError as error:
            if presence.is_absence(error) or isinstance(error, PermissionError):
                return False
            raise


def _readable(fd: int, name: str, status: os.stat_result) -> os.stat_result:
    """Make a file readable for who keeps it, or no diff, landing or fork could read it; return its stat."""
    if not stat.S_ISREG(status.st_mode) or status.st_mode & stat.S_IRUSR:
        return status
    owned.make_accessible(fd, name, stat.S_IRUSR)
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return status


class _Below:
    """What lies below the open layer, looked at directory by directory as the pass goes."""

    def __init__(self, stack: Stack, view: MergedView) -> None:
        self.view = view
        self._ground = stack.ground
        self._root = self._ground.open_root() if self._ground.root is not None else None
        self._descent = Descent(self._root) if self._root is not None else None
        self._at = ""
        self._nodes: list[Node | None] = [view.frozen]  # from the top to where it is
        self._fd: int | None = None
        self._entered = False
        self._asked = 0
        self._names: frozenset[str] | None = None

    def close(self) -> None:
        """Close handles; closing twice does nothing."""
        if self._descent is not None:
            self._descent.close()
        root, self._root = self._root, None
        if root is not None:
            os.close(root)

    def _enter(self, above: str) -> None:
        self._entered, self._fd, self._names, self._asked = True, None, None, 0
        node = self._find(above)
        if self._descent is None or (node is not None and node.cut) or not self._ground.shows(above or "/"):
            return
        with contextlib.suppress(PermissionError):
            self._fd = self._descent.open(above)

    def _find(self, above: str) -> Node | None:
        """Return what the layers say of a directory, from what they said of those above it."""
        at = self._at
        while at and not f"{above}/".startswith(f"{at}/"):
            at = at.rpartition("/")[0]
            self._nodes.pop()
        for name in above[len(at) + 1 :].split("/") if above != at else ():
            self._nodes.append(find_in(self._nodes[-1], name))
        self._at = above
        return self._nodes[-1]

    def entry(self, path: str, name: str) -> Entry | None:
        """Return what stands at `path`."""
        above = path[: -len(name) - 1]
        if above != self._at or not self._entered:
            self._enter(above)
        here = self._nodes[-1]
        node = here.children.get(name) if here is not None else None
        if node is not None:
            return node.entry
        if self._fd is None or not self._stands(name) or not self._ground.shows(path):
            return None
        try:
            seen = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            seen, target = handles.with_target(self._fd, name, seen)
        except FileNotFoundError:
            return None
        return entry_of(seen, None, None, target)

    def _stands(self, name: str) -> bool:
        self._asked += 1
        if self._names is None and self._asked > _MANY and self._fd is not None:
            self._names = frozenset(os.listdir(self._fd))
        return self._names is None or name in self._names

    def open(self, path: str, name: str | None, entry: Entry) -> int:
        """Open the regular file that `entry` told of; raises OSError or WorkspaceError."""
        if entry.layer is None and name is not None and self._fd is not None:
            return os.open(name, handles.FILE, dir_fd=self._fd)
        return open_regular(self.view, path, entry)


def _is_opaque_at(fd: int, name: str) -> bool:
    try:
        inner = owned.open_directory(fd, name)
    except OSError as error:
        if presence.is_absence(error):
            return False  # gone between two looks
        raise
    try:
        return is_opaque(inner)
    finally:
        os.close(inner)


def _show_below(fd: int, name: str) -> None:
    """Let a new directory show what the user puts into that name: the kernel closes each that it makes.

    It does so to look up less. A mount that stands sees what is below from its next start on.
    """
    try:
        inner = owned.open_directory(fd, name)
    except OSError as error:
        if error.errno in handles.SWAPPED:
            return  # gone between two looks
        raise
    try:
        make_plain(inner)
    finally:
        os.close(inner)


def _sorted(paths: Collection[str] | Iterable[str]) -> list[str]:
    return sorted(paths, key=os.fsencode)
