"""What the user put into a directory that the branch replaced: it stays, and the branch does not show it.

Here: finding it when something of that directory lands, and the sentence. Not here: what a branch shows
(`tree/stack.py`): a directory that stands in the place of another one hides all that is below it.
"""

import os
from collections.abc import Iterable, Iterator

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace.tree.changes import Tops
from bowerbird.workspace.tree.nodes import Node
from bowerbird.workspace.tree.paths import listed
from bowerbird.workspace.tree.real_directory import Beneath
from bowerbird.workspace.tree.stack import Stack


def unseen_note(stack: Stack, tree: Beneath, landed: Iterable[str]) -> str:
    """Return what to say of such files beside paths that landed; "" for none, or when looking fails."""
    try:
        found = list(_unseen(stack, tree, Tops(landed)))
    except (OSError, WorkspaceError):  # all has landed: an error here must not be told as "nothing landed"
        return ""
    if not found:
        return ""
    why = "added since to a directory that the branch replaced; it stays, but not on this branch"
    return f"{listed(found)}: {why}"


def _unseen(stack: Stack, tree: Beneath, landed: Tops) -> Iterator[str]:
    todo: list[tuple[str, Node, bool]] = [("", stack.own(), False)]
    while todo:
        path, node, cut = todo.pop()
        if cut and landed.inside(path):
            for name in _names(tree, path):
                inner = f"{path}/{name}"
                # What stood there at the fork point has a base: it was deleted by the branch.
                if name not in node.children and inner not in stack.orig and stack.ground.shows(inner):
                    yield inner
        todo += [
            (f"{path}/{name}", inner, cut or inner.cut)
            for name, inner in node.children.items()
            if inner.entry is not None and inner.entry.kind == "dir"
        ]


def _names(tree: Beneath, path: str) -> list[str]:
    try:
        return sorted(os.fsdecode(name) for name in tree.names(os.fsencode(path[1:])))
    except (FileNotFoundError, NotADirectoryError):
        return []
