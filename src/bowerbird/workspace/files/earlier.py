"""Looks at a branch for people: as it is, as it was at a snapshot, and files before the branch changed them.

Here: those looks. Not here: what a look can do (`find/browsing.py`), diffs, going back
(`history/history.py`).
"""

import os
from collections.abc import Callable, Iterable

from bowerbird.core.errors import NotFound
from bowerbird.workspace.find.browsing import Browse, OpenFile
from bowerbird.workspace.history.history import History
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.changes import Change, base_side
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.nodes import Entry, walk
from bowerbird.workspace.tree.paths import shown, shown_path


def look(state: BranchState, at: str | None, net: Callable[[], Iterable[Change]]) -> Browse:
    """Return a look at the present state, or at that of a snapshot; raises NotFound for an unknown one.

    Args:
        net: the changes of the present state that people are shown.
    """
    stack = state.reading()

    def changed() -> dict[str, Entry | None]:
        own = stack.changed()
        return {change.path: own.get(change.path) for change in net()}

    if at is None:
        return Browse(lambda: state.reading().view, changed, stack)
    # It only reads: nothing is freed.
    history = History(state.stack, state.manifest, state.storage, set[int])

    def then() -> dict[str, Entry | None]:
        view = history.view_at(at)
        return {path: view.lookup(path) for path, _ in walk(history.own_at(at))}

    return Browse(lambda: history.view_at(at), then, stack)


def open_base(state: BranchState, path: str) -> OpenFile:
    """Open a regular file as it was before the branch changed it; the caller closes it.

    Args:
        path: virtual.

    Raises:
        NotFound: there was no such file.
    """
    stack = state.reading()
    base = base_side(stack, path) if stack.ground.shows(path) else None
    if base is None or base.content is None:
        raise NotFound(f"{shown_path(path)} did not exist before", path)
    return OpenFile(shown(path), _descriptor(base.content), base.content.size, 0)


def _descriptor(content: Content) -> int:
    with content.stream() as stream:
        return os.dup(stream.fileno())
