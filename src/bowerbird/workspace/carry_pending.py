"""What a fork of a whole session takes over: the changes that were pending where it begins (SE-36).

Here: which changes these are, and how they become the child's own. Not here: forks of subagents, whose
changes count from the fork point on (`fork_and_merge.py`).

The child stands on the parent's frozen layers either way, so that its view is right without this. One more
layer, of links to the same files, and the parent's bases make its diff and its landing those of the parent.
Cost grows with the changes, not with the workspace nor with the number of layers.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.history.history import History, Snapshot
from bowerbird.workspace.landing.record import LandingFolder
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.registry.taint import CARRIED, add_taint
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import Change, frozen_side, side_of, stored_side
from bowerbird.workspace.tree.layers import Pile
from bowerbird.workspace.tree.nodes import EMPTY, Node, find, overlay, walk
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import same_side


def pending_at(state: BranchState, point: Snapshot, pile: Pile) -> list[Change]:
    """Return what a branch had pending in a frozen state, sorted by path bytes, full directories included.

    What landed since then, and changed since then too, is not pending any more: the workspace is ahead of it.

    Args:
        pile: all frozen layers of that state; their trees are read once and shared.
    """
    stack = state.stack
    own = EMPTY
    for layer in pile.layers[len(stack.lower.layers) :]:
        own = overlay(own, layer.node)
    landed = _landed_since(state.directory, point)
    found: list[Change] = []
    for path in sorted(_changed_paths(stack, own) - stack.private_paths(), key=os.fsencode):
        if not stack.ground.shows(path):
            continue
        node, saved = find(own, path), stack.orig.get(path)
        new = frozen_side(node.entry if node is not None else None)
        if path in landed and not same_side(new, side_of(stack, path, stack.lookup(path))):
            continue
        if saved is not None:
            base, uncertain = stored_side(saved.entry), saved.uncertain
        else:
            unsaved = stack.unsaved_base(path)
            base, uncertain = side_of(stack, path, unsaved.entry), unsaved.uncertain
        if not same_side(base, new):
            found.append(Change(path, base, new, uncertain))
    return found


def carry(
    child: BranchState, history: History, changes: Sequence[Change], tainted: Mapping[str, tuple[str, ...]]
) -> None:
    """Make `changes` the first ones of a branch that was forked a moment ago, as one named snapshot.

    Args:
        tainted: paths that untrusted text had shaped, and what that was; they stay so.
    """
    if not changes:
        return
    with child.writing() as stack:
        history.shelf.put_changes(changes)
        history.freeze_top()
        child.account.forget()
        steps = [_step(change) for change in changes if change.path in tainted]
        if steps:
            child.record(steps, turn=CARRIED, via="merge")
            add_taint(child, CARRIED, [source for step in steps for source in tainted[step.path]])
        stack.refresh()


def _changed_paths(stack: Stack, own: Node) -> set[str]:
    found = {path for path in stack.orig.paths() if find(own, path) is not None}
    for path, node in walk(own):
        if path not in found and not _leads_only(stack, path, node):
            found.add(path)
    return found


def _leads_only(stack: Stack, path: str, node: Node) -> bool:
    """Tell directories on the way to a change, and whiteouts of nothing, from changes without a base."""
    below = stack.beneath(path)
    if node.entry is None:
        return below is None
    if node.entry.kind != "dir" or node.cut:
        return False
    return below is not None and below.kind == "dir" and below.mode == node.entry.mode


def _landed_since(directory: Path, point: Snapshot) -> set[str]:
    """The paths of landings after a snapshot that were not taken back."""
    found: set[str] = set()
    for place in (directory / "landings").iterdir():
        folder = LandingFolder(place)
        if not presence.is_directory(place) or not folder.started:
            continue
        record = folder.record()
        if record.kind == "land" and record.state != "undone" and record.at >= point.created_at:
            found |= {"/" + os.fsdecode(step.path) for step in folder.steps()}
    return found


def _step(change: Change) -> Step:
    if change.new is None:
        return Step(
            "rmdir" if change.base is not None and change.base.kind == "dir" else "delete", change.path
        )
    if change.new.kind == "dir":
        return Step("mkdir", change.path)
    size = change.new.content.size if change.new.content is not None else 0
    return Step("write", change.path, "create" if change.base is None else "modify", size)
