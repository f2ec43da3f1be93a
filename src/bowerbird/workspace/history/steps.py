"""Previous entries of the paths that a tool call touches: its mark (WS-41).

Here: `steps/<call>/`: saving the open layer's entry of a path before a change, putting all
of a call's entries back, dropping them once its outcome is committed.
Not here: marks of the whole branch, what a call did (journal).

A saved file is a hard link: the open layer replaces files by rename and never writes into
them, so the linked bytes stay. A directory that a call deletes is moved here whole.
"""

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.workspace.tree import handles, presence
from bowerbird.workspace.tree.layers import Marks, is_opaque, scan
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import EMPTY, Entry, Node, entry_of, is_whiteout, overlay, parts_of
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.stack import Stack, open_regular

UNDER_WAY = "under-way-"
"""Begins the names of changes of many paths that are taken back when a kill cuts them."""

Had = Literal["nothing", "whiteout", "entry", "dir", "tree"]


class Saved(msgspec.Struct, frozen=True):
    """What the open layer held at a path.

    Attributes:
        layer: number of the open layer then.
        had: "entry" is a file or link, kept as `kept`; "tree" a directory moved to `kept`.
        mode, opaque: of a directory.
        deleted, opaques: JSON marks at and below the path, where the layer uses them.
        hidden: a directory above it, in that layer, hides what lies below the layer.
    """

    path: str
    layer: int
    had: Had
    kept: int = 0
    mode: int = 0
    opaque: bool = False
    deleted: Sequence[str] = ()
    opaques: Sequence[str] = ()
    hidden: bool = False


class StepStore:
    """The saved entries of all calls of one branch; the writer's lock is held for every method.

    Args:
        directory: `…/branches/<id>/steps`.
    """

    def __init__(self, directory: Path, stack: Stack) -> None:
        self._directory = directory
        self._stack = stack

    def directory_of(self, call: str) -> Path:
        """Return `steps/<call>`; characters that no file name may have are quoted."""
        name = quote(call, safe="")[:200]
        return self._directory / (name.replace(".", "%2E") if not name.strip(".") else name)

    def save(self, call: str, path: str, *, tree: bool = False) -> Path | None:
        """Save the open layer's entry of `path` before `call` changes it for the first time.

        Args:
            tree: the call takes away whatever stands there, a directory with its content.

        Returns:
            For `tree`: where the caller must move this layer's directory to
            (`Stack.remove(keep=…)`), None when there is none to keep.
        """
        folder = self.directory_of(call)
        rows = self._rows(call)
        number = self._stack.open_layer.number
        for row in rows:
            covers = row.had in ("nothing", "whiteout", "entry", "tree")
            inside = path.startswith(row.path + "/") and covers
            same = row.path == path and (covers or not tree)
            if row.layer == number and (same or inside):
                return None
        folder.mkdir(mode=0o700, exist_ok=True)
        saved = self._look(path, number, folder, len(rows) + 1, tree=tree)
        saved = msgspec.structs.replace(saved, hidden=self._hidden(path))
        with (folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(msgspec.structs.asdict(saved)) + "\n")
        return folder / str(saved.kept) if saved.had == "tree" else None

    def settle(self, call: str) -> None:
        """Drop what was saved for a call whose outcome is committed."""
        discard(self.directory_of(call))

    def under_way(self) -> list[str]:
        """Return the changes of many paths that are being made, or that a kill has cut."""
        return [name for name in os.listdir(self._directory) if name.startswith(UNDER_WAY)]

    def count(self, call: str) -> int:
        """Return how many entries are saved for a call."""
        return len(self._rows(call))

    def rollback(self, call: str, *, keep: int = 0) -> list[str]:
        """Put back what stood at every path that `call` changed; may be repeated after a kill.

        Args:
            keep: how many of its first entries stay saved, and what it changed there as it is.

        Returns:
            The paths, in the order the call touched them.
        """
        saved = self._rows(call)
        rows = saved[keep:]
        for row in reversed(rows):
            layer = self._stack.open_layer
            if row.layer == layer.number and not layer.live:
                self._put_back(row, self.directory_of(call))
            else:
                self._put_back_above(row, self.directory_of(call))
        if keep:
            kept = "".join(json.dumps(msgspec.structs.asdict(row)) + "\n" for row in saved[:keep])
            replace_file(self.directory_of(call) / "log.jsonl", kept.encode())
        else:
            self.settle(call)
        if rows:
            self._stack.prune_bases()
        return [row.path for row in rows]

    def _rows(self, call: str) -> list[Saved]:
        try:
            lines = (self.directory_of(call) / "log.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        rows: list[Saved] = []
        for line in lines:
            try:
                rows.append(Saved(**json.loads(line)))
            except ValueError:
                break  # cut by a kill: the change it announced was not made
        return rows

    # ------------------------------------------------------------ saving

    def _look(self, path: str, number: int, folder: Path, kept: int, *, tree: bool) -> Saved:
        layer = self._stack.open_layer
        marks = layer.marks()
        deleted = opaques = ()
        if marks is not None:
            deleted = [p for p in marks.deleted if p == path or p.startswith(path + "/")]
            opaques = [p for p in marks.opaque if p == path or p.startswith(path + "/")]
            if path in marks.deleted:
                return Saved(path, number, "whiteout", deleted=deleted, opaques=opaques)
        seen = handles.look(layer.fd, os.fsencode(path[1:]))
        if seen is None:
            return Saved(path, number, "nothing")
        if marks is None and is_whiteout(seen[0]):
            return Saved(path, number, "whiteout")
        mode = stat.S_IMODE(seen[0].st_mode)
        if stat.S_ISDIR(seen[0].st_mode):
            had: Had = "tree" if tree else "dir"
            return Saved(path, number, had, kept, mode, self._opaque(path), deleted, opaques)
        parent = handles.open_beneath(layer.fd, os.fsencode(path[1:].rpartition("/")[0]), handles.DIRECTORY)
        try:
            (folder / str(kept)).unlink(missing_ok=True)  # linked, but its line was cut by a kill
            name = os.fsencode(path.rpartition("/")[2])
            os.link(name, folder / str(kept), src_dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        return Saved(path, number, "entry", kept, mode, deleted=deleted, opaques=opaques)

    def _hidden(self, path: str) -> bool:
        above = self._stack.open_layer.find(path.rpartition("/")[0] or "/")
        return above is not None and above.cut

    def _opaque(self, path: str) -> bool:
        layer = self._stack.open_layer
        fd = handles.open_beneath(layer.fd, os.fsencode(path[1:]), handles.DIRECTORY)
        try:
            return is_opaque(fd)
        finally:
            os.close(fd)

    # ------------------------------------------------------------ putting back

    def _put_back(self, row: Saved, folder: Path) -> None:
        """Make the open layer hold at `row.path` what it held, whatever it holds now."""
        layer, path = self._stack.open_layer, row.path
        kept = folder / str(row.kept)
        if row.had == "dir":
            if layer.find(path) is not None:
                layer.chmod_dir(path, row.mode, self._mode_of)
            return
        if row.had in ("entry", "tree") and not presence.exists(kept, follow=False):
            return  # never taken, or put back before a kill
        above = path.rpartition("/")[0]
        parent = layer.find(above or "/")
        if parent is not None and (parent.entry is None or parent.entry.kind != "dir"):
            return  # the directory above is put back by its own row
        if row.had != "entry" or self._is_dir(path):
            layer.remove(path, self._mode_of, hide=row.had == "whiteout")
        if row.had in ("entry", "tree"):
            layer.put(path, kept, self._mode_of, opaque=row.opaque)
        marks = layer.marks()
        if marks is not None:
            layer.set_marks(Marks(marks.deleted | set(row.deleted), marks.opaque | set(row.opaques)))

    def _is_dir(self, path: str) -> bool:
        node = self._stack.open_layer.find(path)
        return node is not None and node.entry is not None and node.entry.kind == "dir"

    def _mode_of(self, path: str) -> int:
        entry = self._stack.lookup(path)
        return entry.mode if entry is not None and entry.kind == "dir" else 0o755

    def _put_back_above(self, row: Saved, folder: Path) -> None:
        """The layer was sealed since: change the path, in the open layer, to what it was."""
        stack = self._stack
        kept = folder / str(row.kept)
        if row.had in ("entry", "tree") and not presence.exists(kept, follow=False):
            return
        before = stack.pile(row.layer - 1).node
        if row.had != "dir" and (row.had != "nothing" or row.hidden):
            before = overlay(before, _at(row.path, _kept_node(row, kept)))
        view = MergedView(stack.ground, before)
        if row.had == "dir":
            stack.chmod(row.path, row.mode)
            return
        restore(stack, view, row.path)


def restore(stack: Stack, view: MergedView, path: str) -> None:
    """Make a path of the branch, with everything below it, equal to another view's.

    Args:
        stack: of the branch that is changed; its writer lock is held.
        view: what it shall equal, say an older state of the same branch.
    """
    entry = view.lookup(path)
    present = stack.lookup(path)
    if present is not None and (entry is None or entry.kind != "dir" or present.kind != "dir"):
        stack.remove(path)
    elif present is not None:
        wanted = {path, *view.subtree(path)}
        for inner in stack.subtree(path):
            if inner not in wanted and inner.rpartition("/")[0] in wanted:  # below it, all goes with it
                stack.remove(inner)
    if entry is None:
        return
    put_entry(stack, view, path, entry)
    for inner, below in view.subtree(path).items():
        put_entry(stack, view, inner, below)


def put_entry(stack: Stack, view: MergedView, path: str, entry: Entry) -> None:
    """Copy one entry of a view into the open layer; special files are left out."""
    if entry.kind == "dir":
        stack.put_dir(path, entry.mode)
    elif entry.kind == "symlink":
        stack.put_symlink(path, entry.target or "")
    elif entry.kind == "file":
        fd = open_regular(view, path, entry)
        try:
            stack.put_file(path, fd, entry.mode, mtime_ns=entry.mtime_ns)
        finally:
            os.close(fd)


def _kept_node(row: Saved, kept: Path) -> Node:
    if row.had in ("nothing", "whiteout"):
        return Node(None, cut=True)
    seen = kept.lstat()
    if not stat.S_ISDIR(seen.st_mode):
        target = str(kept.readlink()) if stat.S_ISLNK(seen.st_mode) else None
        return Node(entry_of(seen, str(kept), row.layer, target), cut=True)
    marks = None
    if row.deleted or row.opaques:
        below = len(row.path)
        marks = Marks(
            frozenset(path[below:] for path in row.deleted),
            frozenset(path[below:] or "/" for path in row.opaques),
        )
    fd = os.open(kept, handles.DIRECTORY)
    try:
        node = scan(fd, kept, row.layer, marks)
    finally:
        os.close(fd)
    is_cut = row.opaque or row.hidden or node.cut
    return Node(entry_of(seen, str(kept), row.layer), is_cut, node.children)


def _at(path: str, node: Node) -> Node:
    """Return a tree that overrides nothing but `path`."""
    for name in reversed(parts_of(path)):
        node = Node(EMPTY.entry, cut=False, children={name: node})
    return node
