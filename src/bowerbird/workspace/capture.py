"""Bases of what a process changed in the open layer (WS-6).

Here: finding changes without a base, saving the base that the workspace still has.
Not here: bases of file tools, which are saved before the change (`stack.py`).
"""

import os

from bowerbird.workspace.nodes import Entry, find, walk
from bowerbird.workspace.stack import Stack, open_regular


def capture(stack: Stack, started_ns: int) -> list[str]:
    """Save a base for each path of the open layer that has none.

    Args:
        stack: the branch's; its writer lock is held.
        started_ns: the clock (`time.time_ns`) when the command started. Where the workspace's
            entry changed later the base is `uncertain`, a conflict in landing and merge.

    Returns:
        The paths that had no base, sorted by name bytes.
    """
    new: dict[str, Entry | None] = {}
    beneath = stack.beneath_view
    frozen = stack.frozen_own
    for path, node in walk(stack.open_layer.scan()):
        if path in stack.orig and find(frozen, path) is not None:
            continue
        below = beneath.lookup(path)
        leads = node.entry is not None and node.entry.kind == "dir" and not node.cut
        if leads and below is not None and below.kind == "dir" and node.entry is not None:
            if node.entry.mode != below.mode:
                new[path] = below
            continue
        if node.entry is None and below is None:
            continue  # made and deleted by the same command
        new[path] = below
        if node.cut and below is not None and below.kind == "dir":
            new |= beneath.subtree(path)
    taken = [path for path in sorted(new, key=os.fsencode) if path not in stack.orig]
    for path in taken:
        entry = new[path]
        late = entry is not None and entry.layer is None and entry.ctime_ns > started_ns
        if entry is None or entry.kind != "file":
            stack.orig.save(path, entry, None, uncertain=late)
        elif entry.layer is not None:
            stack.orig.save(path, entry, entry.source, uncertain=late)
        else:
            fd = open_regular(beneath, path, entry)
            try:
                stack.orig.save(path, entry, fd, uncertain=late)
            finally:
                os.close(fd)
    return taken
