"""The merged view: an open layer (or none) over frozen layers over the workspace.

Here: what stands at a path, what a directory holds, all paths below one.
Not here: writing, bases, links and `..` in given paths (`paths.py`).

A view is one consistent state: it holds the frozen trees and a handle on the open layer,
so a seal or rollback meanwhile changes nothing for a reader that has it.
"""

import os
import stat
from functools import cached_property

from bowerbird.core.errors import NotDirectory, NotFound, SpecialFile
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.nodes import EMPTY, Entry, Node, find, overlay
from bowerbird.workspace.tree.open_layer import OpenLayer


class MergedView:
    """Layers over ground.

    Args:
        ground: the workspace.
        frozen: what the frozen layers together override.
        open_layer: the layer on top that may change meanwhile, None for a frozen state.
    """

    def __init__(self, ground: Ground, frozen: Node, open_layer: OpenLayer | None = None) -> None:
        self.ground = ground
        self.frozen = frozen
        self.open_layer = open_layer

    def find(self, path: str) -> Node | None:
        """Return what the layers say about `path` (without children), None = the ground shows."""
        node = self.open_layer.find(path) if self.open_layer is not None else None
        if node is None:
            return find(self.frozen, path)
        if node.cut:
            return node
        # A plain directory of the open layer: whether the ground shows in it is for those below to say.
        below = find(self.frozen, path)
        if below is None or (not below.cut and below.entry is not None):
            return node
        return Node(node.entry, cut=True)

    def lookup(self, path: str) -> Entry | None:
        """Return what stands at `path`; no link is followed, neither on the way."""
        node = self.open_layer.find(path) if self.open_layer is not None else None
        node = node or find(self.frozen, path)
        if node is not None and path != "/":
            return node.entry if self.ground.shows(path) else None
        return self.ground.look(path)

    def overrides(self, path: str, *, deep: bool = False) -> Node:
        """Return what the layers say about a directory and its direct children, or all below it."""
        frozen = find(self.frozen, path)
        over = self.open_layer.one_level(path, deep=deep) if self.open_layer is not None else None
        if over is None:
            return frozen or EMPTY
        if frozen is None or over.cut:
            return over
        if frozen.entry is None or frozen.entry.kind != "dir":
            return Node(over.entry, True, over.children)
        return overlay(frozen, over)

    @cached_property
    def tree(self) -> Node:
        """Everything the layers override, as it is now; cost grows with the open layer.

        Kept, so take it from a view that was made for one call.
        """
        return overlay(self.frozen, self.open_layer.scan()) if self.open_layer is not None else self.frozen

    def children(self, path: str) -> dict[str, Entry]:
        """Return the merged entries of a directory by name.

        Raises:
            NotFound, NotDirectory: `path` is missing, or something else.
        """
        entry = self.lookup(path)
        if entry is None:
            raise NotFound(f"{path[1:]} does not exist", path)
        if entry.kind != "dir":
            raise NotDirectory(f"{path[1:]} is not a directory", path)
        return self._children(path, self.overrides(path))

    def _children(self, path: str, node: Node) -> dict[str, Entry]:
        found = {} if node.cut else self.ground.children(path)
        above = "" if path == "/" else path
        for name, inner in node.children.items():
            if inner.entry is None:
                found.pop(name, None)
            elif self.ground.shows(f"{above}/{name}"):
                found[name] = inner.entry
        return found

    def subtree(self, path: str, *, readable: bool = False) -> dict[str, Entry]:
        """Return every entry below the directory `path`, parents first; links are not entered.

        Cost grows with the entries, however deep they lie.

        Args:
            readable: leave out directories that this user may not look into; else they raise PermissionError.
        """
        found: dict[str, Entry] = {}
        entry = self.lookup(path)
        todo: list[tuple[str, Node]] = []
        if entry is not None and entry.kind == "dir":
            todo.append((path, self.overrides(path, deep=True)))
        while todo:
            here, node = todo.pop()
            above = "" if here == "/" else here
            try:
                children = self._children(here, node)
            except PermissionError:
                if not readable or here == path:
                    raise
                del found[here]
                continue
            for name, inner in children.items():
                found[f"{above}/{name}"] = inner
                if inner.kind == "dir":
                    below = node.children.get(name, EMPTY)
                    # Below a cut everything is cut: the ground shows nowhere in it.
                    hidden = node.cut and not below.cut
                    todo.append(
                        (f"{above}/{name}", Node(below.entry, True, below.children) if hidden else below)
                    )
        return found

    def open(self, path: str, entry: Entry, flags: int = handles.FILE) -> int:
        """Open the host file that holds `entry`, which `lookup(path)` returned; raises OSError."""
        if entry.layer is None or entry.source is None:
            return self.ground.open(path, flags)
        if self.open_layer is not None and entry.layer == self.open_layer.number:
            try:
                return handles.open_beneath(self.open_layer.fd, os.fsencode(path[1:]), flags)
            except FileNotFoundError:
                pass  # a parent's frozen layer may have the same number
        # Frozen layers have no writer, so no link can be swapped into them.
        return handles.open_host(entry.source, flags)


def open_regular(view: MergedView, path: str, entry: Entry | None) -> int:
    """Open a regular file of a view without waiting for anything; see `Layering.open`."""
    if entry is None:
        raise NotFound(f"{path[1:]} does not exist", path)
    if entry.kind != "file":
        raise SpecialFile(f"{path[1:]} is not a regular file", path)
    try:
        fd = view.open(path, entry)
    except OSError as error:
        if error.errno in handles.ABSENT:
            raise NotFound(f"{path[1:]} does not exist", path) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SpecialFile(f"{path[1:]} is not a regular file", path)
    return fd
