"""The content of layers as values: entries, trees of overrides, and how they stack.

Here: `Entry`, `Node`, overlaying one tree of overrides on another, finding a path in one.
Not here: files, directories handles, writing.

A `Node` says what one or several layers know about a path. `cut` means that nothing from
below shows at or beneath it: a whiteout, a file, a link, or an opaque directory. Trees are
never changed once made, so forks share them and readers need no lock.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

EntryKind = Literal["file", "dir", "symlink", "special"]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What stands at a path of a branch.

    Left out of garbage collection, as `Node` is (no value leads back to the one that holds it): a command may
    touch a hundred thousand files, and looking through them again and again would stop all else.

    Attributes:
        kind: "special" is a FIFO, socket or device.
        mode: permission bits (`0o644`), without the file type.
        size: bytes; of a link the length of its target.
        mtime_ns, ctime_ns: of the host file that holds it.
        target: of a symlink, as stored; else None.
        source: the real host file, as text: `Path` objects are many and large; open it only through
            `Stack.open`, by handles.
        layer: number of the layer that holds it; None = the workspace.
    """

    kind: EntryKind
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    target: str | None = None
    source: str | None = None
    layer: int | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """What layers say about one path; `entry` None is a whiteout."""

    entry: Entry | None
    cut: bool
    children: Mapping[str, "Node"] = msgspec.field(default_factory=dict[str, "Node"])


ROOT_ENTRY = Entry("dir", 0o755, 0, 0, 0)
EMPTY = Node(ROOT_ENTRY, cut=False)
"""A tree that overrides nothing."""
WHITEOUT = Node(None, cut=True)


def entry_of(seen: os.stat_result, source: str | None, layer: int | None, target: str | None = None) -> Entry:
    """Return the entry that a stat describes."""
    kind = kind_of(seen.st_mode)
    return Entry(
        kind,
        stat.S_IMODE(seen.st_mode),
        seen.st_size,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        target,
        source,
        layer,
    )


def kind_of(mode: int) -> EntryKind:
    """Return the kind that a stat's mode says."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "symlink" if stat.S_ISLNK(mode) else "special"


def is_whiteout(seen: os.stat_result) -> bool:
    """Tell whether a stat is overlayfs' mark of a deletion: a character device 0:0."""
    return stat.S_ISCHR(seen.st_mode) and seen.st_rdev == 0


def parts_of(path: str) -> list[str]:
    """Return the components of a virtual path: `/a/b` → `["a", "b"]`, `/` → `[]`."""
    return path[1:].split("/") if path != "/" else []


def overlay(lower: Node, upper: Node) -> Node:
    """Return one tree that says what `upper` on top of `lower` says.

    Cost grows with `upper`; unchanged parts of `lower` are shared, not copied.
    """
    if upper.cut:
        return upper
    if not upper.children:
        return lower if upper.entry is ROOT_ENTRY else Node(upper.entry, lower.cut, lower.children)
    top = dict(lower.children)
    # A list, not recursion: processes can make trees deeper than Python's stack.
    todo = [(top, lower.children, upper.children)]
    while todo:
        merged, below, above = todo.pop()
        for name, over in above.items():
            under = below.get(name)
            if under is None or over.cut:
                merged[name] = over
            elif under.entry is None or under.entry.kind != "dir":
                merged[name] = Node(over.entry, True, over.children)
            elif not over.children:
                merged[name] = Node(over.entry, under.cut, under.children)
            else:
                inner = dict(under.children)
                merged[name] = Node(over.entry, under.cut, inner)
                todo.append((inner, under.children, over.children))
    return Node(upper.entry, lower.cut, top)


def find(tree: Node, path: str) -> Node | None:
    """Return what `tree` says about `path`: None = nothing, `WHITEOUT` = hidden by it.

    >>> find(EMPTY, "/a") is None
    True
    """
    node = tree
    cut = node.cut
    for name in parts_of(path):
        inner = node.children.get(name)
        if inner is None:
            return WHITEOUT if cut else None
        node = inner
        # Below a cut everything is cut; a plain directory under an opaque one hides as well.
        cut = cut or node.cut
    return node if node.cut == cut else Node(node.entry, cut, node.children)


def find_in(above: Node | None, name: str) -> Node | None:
    """Return what `find` says of a name in a directory, given what it said of the directory."""
    inner = above.children.get(name) if above is not None else None
    if inner is None or above is None:
        return WHITEOUT if above is not None and above.cut else None
    return inner if inner.cut or not above.cut else Node(inner.entry, True, inner.children)


def walk(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yield every (path, node) below the root of a tree, parents before children."""
    todo = [("", tree)]
    while todo:
        above, node = todo.pop()
        for name, inner in node.children.items():
            path = f"{above}/{name}"
            yield path, inner
            if inner.children:
                todo.append((path, inner))
