"""Taking some of a branch's changes back to what the branch started from (SV-28).

Here: that one change, path by path. Not here: discarding a whole branch (`registry/registry.py`), rolling a
time line back (`history/history.py`), undoing a landing (`landing/undo.py`).
"""

import os
from collections.abc import Sequence

from bowerbird.core.errors import NotFound
from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.changes import changes_of, parents_of, select
from bowerbird.workspace.tree.paths import shown, shown_path
from bowerbird.workspace.tree.stack import Stack


def revert(state: BranchState, paths: Sequence[str]) -> list[str]:
    """Put back what stood at the chosen paths, files or whole directories. Blocks.

    Args:
        state: the caller does not hold its lock. paths: virtual paths.

    Returns:
        The paths that were changed and are no longer, as shown.

    Raises:
        NotFound: nothing is changed at one of the paths; nothing was done.
    """
    with state.writing() as stack:
        changes = changes_of(stack, lambda path: not stack.ground.shows(path))
        chosen, unknown = select(changes, paths)
        if unknown:
            raise NotFound(f"nothing is changed at {shown_path(unknown[0])}", unknown[0])
        steps: list[Step] = []
        made = [change.path for change in chosen if change.base is None]
        for path in sorted(made, key=os.fsencode, reverse=True):  # what lies inside first
            stack.remove(path)
            steps.append(Step("delete", path))
        _drop_empty(stack, made)
        for change in chosen:
            if change.base is not None:
                _put_back(stack, change.path)
                entry = stack.lookup(change.path)
                steps.append(Step("write", change.path, "modify", entry.size if entry is not None else 0))
        state.went_back()
        state.record(steps, via="restore")
        return [shown(change.path) for change in chosen]


def _put_back(stack: Stack, path: str) -> None:
    entry = stack.base(path).entry
    if entry is None:
        return
    if entry.kind == "dir":
        stack.put_dir(path, entry.mode)
    elif entry.kind == "symlink":
        stack.put_symlink(path, entry.target or "")
    elif entry.source is not None:
        stack.put_file(path, entry.source, entry.mode, mtime_ns=entry.mtime_ns)


def _drop_empty(stack: Stack, removed: Sequence[str]) -> None:
    """Remove directories that the branch made only for what was taken back."""
    for path in sorted(parents_of(removed), key=os.fsencode, reverse=True):
        entry = stack.lookup(path)
        if entry is None or entry.kind != "dir" or stack.children(path):
            continue
        if stack.base(path).entry is None:
            stack.remove(path)
