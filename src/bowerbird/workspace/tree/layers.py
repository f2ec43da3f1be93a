"""Frozen layers: directories of changes that never change again, read once.

Here: scanning a layer directory in overlayfs form (or with its `.json` of deletions),
piles of frozen layers, and the probe that tells which form this filesystem can hold.
Not here: writing (`open_layer.py`), the merged view (`stack.py`).

The form is the kernel's own, as for `userxattr` mounts with `redirect_dir=off,metacopy=off`:
a whiteout is a character device 0:0, an opaque directory has `user.overlay.opaque` = `y`,
a rename is a deletion and an addition. So the sandbox mounts these directories directly.
"""

import errno
import json
import os
import stat
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace.tree import handles, owned, presence
from bowerbird.workspace.tree.nodes import EMPTY, WHITEOUT, Entry, Node, entry_of, is_whiteout, overlay
from bowerbird.workspace.tree.temporary import probe_place

OPAQUE = "user.overlay.opaque"


_SAYS_NOTHING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ENOSPC})
"""Errors of a trial that say nothing about what a file system can hold."""


class Storage(msgspec.Struct, frozen=True):
    """What the data directory's filesystem can hold (probed once, WS-3).

    Attributes:
        kernel_form: whiteouts and opaque marks work; otherwise deletions go to
            `layers/<n>.json` and the `overlay` tier is unavailable.
        reason: why not, for the tier's status; empty when they work.
    """

    kernel_form: bool
    reason: str = ""


def probe_storage(directory: Path) -> Storage:
    """Try on `directory`'s filesystem what layers need; leaves nothing behind."""
    with probe_place(directory) as here:
        step = "a device 0:0 as whiteout"
        try:
            make_whiteout(here / "whiteout")
            if not is_whiteout((here / "whiteout").lstat()):
                return Storage(False, f"{directory}: {step} reads back as something else")
            step = f"the attribute {OPAQUE}"
            (here / "dir").mkdir()
            make_opaque(here / "dir")
            step = "swapping two names"
            fd = os.open(here, handles.DIRECTORY)
            try:
                handles.exchange(fd, b"dir", fd, b"whiteout")
            finally:
                os.close(fd)
        except (OSError, AttributeError) as error:  # AttributeError: no os.setxattr on this system
            if isinstance(error, OSError) and error.errno in _SAYS_NOTHING:
                raise  # nothing is known about what the file system can hold
            return Storage(False, f"{directory}: {step} is not possible: {error}")
    return Storage(True)


def make_whiteout(path: Path | str | bytes) -> None:
    """Create overlayfs' mark of a deletion at a host path."""
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def make_opaque(path: Path | str | int) -> None:
    """Mark a host directory so that nothing from lower layers shows in it."""
    os.setxattr(path, OPAQUE, b"y")


def make_plain(handle: int) -> None:
    """Take the opaque mark of an open directory away, if it has one that its mode lets be taken."""
    try:
        os.removexattr(handle, OPAQUE)
    except PermissionError:
        return  # closed to its owner: it goes on hiding what is below, as the kernel made it
    except OSError as error:
        if error.errno not in (errno.ENODATA, *handles.UNSUPPORTED):
            raise


def is_opaque(handle: int) -> bool:
    """Tell whether an open directory carries the opaque mark."""
    try:
        return os.getxattr(handle, OPAQUE) == b"y"
    except AttributeError:
        return False  # no extended attributes on this system
    except OSError as error:
        if error.errno in (errno.ENODATA, *handles.UNSUPPORTED):
            return False
        raise  # taken for "no", it would show what the directory hides


class Marks(msgspec.Struct, frozen=True):
    """Deletions and opaque directories of a layer whose filesystem cannot hold them.

    `deleted` wins over an entry in the layer directory, so that one rewriting of this
    small file switches a path from present to absent and back in one step.
    """

    deleted: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()

    @classmethod
    def load(cls, path: Path) -> "Marks":
        """Read `layers/<n>.json`; a missing file means no marks."""
        try:
            data = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        return cls(frozenset(data["deleted"]), frozenset(data["opaque"]))

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        text = json.dumps({"deleted": sorted(self.deleted), "opaque": sorted(self.opaque)})
        replace_file(path, text.encode())


def scan(
    fd: int, source: Path, number: int, marks: Marks | None = None, *, at: str = "/", deep: bool = True
) -> Node:
    """Read a layer directory into a tree; cost grows with its entries.

    Args:
        fd: handle of the layer's directory, or of the one at `at` in it.
        source: host path of the layer's directory, for `Entry.source`.
        number: for `Entry.layer`.
        marks: of a layer in JSON form, else None.
        at: virtual path where `fd` stands.
        deep: False reads that one directory only.
    """
    top: dict[str, Node] = {}
    prefix = "" if at == "/" else at
    opened = handles.open_beneath(fd, b"", handles.DIRECTORY)
    # Only one directory is open at a time: a process may have made more of them than there are handles.
    descent = owned.descent(opened)
    try:
        cut = is_opaque(opened) if marks is None else at in marks.opaque
        entry = entry_of(os.fstat(opened), f"{source}{at}", number) if prefix else EMPTY.entry
        found = _scan_one(opened, prefix, top, (str(source), number, marks))
        todo = [(path, inner, top) for path, inner in found]
        while todo:
            path, inner, children = todo.pop()
            here = descent.open(path[len(prefix) :])
            if here is None:
                continue  # a running process removed it between two looks
            closed = is_opaque(here) if marks is None else path in marks.opaque
            below: dict[str, Node] = {}
            children[path.rpartition("/")[2]] = Node(inner, closed, below)
            if deep:
                found = _scan_one(here, path, below, (str(source), number, marks))
                todo += [(deeper, entry_, below) for deeper, entry_ in found]
    finally:
        descent.close()
        os.close(opened)
    if marks is not None:
        _add_deletions(top, marks, prefix)
    return Node(entry, cut, top)


def _scan_one(
    fd: int, above: str, children: dict[str, Node], layer: tuple[str, int, Marks | None]
) -> list[tuple[str, Entry]]:
    """Fill in what one directory holds; return its directories, for the caller to open."""
    source, number, marks = layer
    inner: list[tuple[str, Entry]] = []
    with os.scandir(fd) as found:
        for item in found:
            path = f"{above}/{item.name}"
            try:
                seen = item.stat(follow_symlinks=False)
                if marks is not None and path in marks.deleted:
                    continue
                if stat.S_ISREG(seen.st_mode):  # nearly all are
                    children[item.name] = Node(entry_of(seen, f"{source}{path}", number), cut=True)
                    continue
                if marks is None and is_whiteout(seen):
                    children[item.name] = WHITEOUT
                    continue
                seen, target = handles.with_target(fd, item.name, seen)
            except OSError as error:
                if error.errno in handles.ABSENT:
                    continue  # a running process removed it between two looks
                raise
            entry = entry_of(seen, f"{source}{path}", number, target)
            if entry.kind == "dir":
                inner.append((path, entry))
            else:
                children[item.name] = Node(entry, cut=True)
    return inner


def _add_deletions(top: dict[str, Node], marks: Marks, at: str) -> None:
    for path in sorted(marks.deleted, key=len):
        if not path.startswith(at + "/"):
            continue
        *above, name = path[len(at) + 1 :].split("/")
        children: Mapping[str, Node] = top
        for part in above:
            node = children.get(part)
            if node is None:
                break  # its directory was itself removed from the layer
            children = node.children
        else:
            if isinstance(children, dict):
                children[name] = WHITEOUT


class LayerMissing(WorkspaceError, FileNotFoundError):
    """A layer that a branch stands on is gone; both an answer for a person and a reason to read anew."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"layer {path.name} of branch {path.parent.parent.name} is missing from the data directory: "
            "restore it from a backup, or discard the branch"
        )
        self.errno = errno.ENOENT


class FrozenLayer:
    """One frozen layer; its tree is read at first need and kept.

    Args:
        path: `…/branches/<id>/layers/<n>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = int(path.name)
        self._seen: tuple[int, int] | None = None  # the directory that was read

    def is_as_read(self) -> bool:
        """Tell whether its directory is still the one that was read, if any was."""
        if self._seen is None:
            return True
        try:
            return _identity(self.path.stat()) == self._seen
        except FileNotFoundError:
            return False

    @cached_property
    def node(self) -> Node:
        """What the layer overrides."""
        marks_file = self.path.with_name(f"{self.number}.json")
        marks = Marks.load(marks_file) if presence.exists(marks_file) else None
        try:
            fd = os.open(self.path, handles.DIRECTORY)
        except FileNotFoundError as error:
            raise LayerMissing(self.path) from error
        try:
            self._seen = _identity(os.fstat(fd))
            node = scan(fd, self.path, self.number, marks)
        finally:
            os.close(fd)
        if not self.is_as_read():  # it was joined with others and taken away while it was read
            raise LayerMissing(self.path)
        return node

    def __repr__(self) -> str:
        return f"FrozenLayer({str(self.path)!r})"


def _identity(seen: os.stat_result) -> tuple[int, int]:
    return seen.st_ino, seen.st_mtime_ns


class Pile:
    """Frozen layers, oldest first, with the one tree they make together.

    Piles are values: `plus` returns a new one that shares everything read so far.
    """

    def __init__(self, layers: Collection[FrozenLayer] = (), *, below: "Pile | None" = None) -> None:
        self._below = below
        self._added = tuple(layers)
        self.layers: tuple[FrozenLayer, ...] = (*(below.layers if below else ()), *self._added)

    def plus(self, *layers: FrozenLayer) -> "Pile":
        """Return this pile with `layers` on top."""
        return Pile(layers, below=self) if layers else self

    @cached_property
    def node(self) -> Node:
        """What all layers together override."""
        node = self._below.node if self._below is not None else EMPTY
        for layer in self._added:
            node = overlay(node, layer.node)
        return node
