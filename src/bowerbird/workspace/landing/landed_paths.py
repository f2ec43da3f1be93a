"""Paths that landed and are the workspace's again (WS-5, WS-55).

Here: which paths of a branch equal what it landed, and following the user's later edits of
them. Not here: landing itself.

A landed path still lies in the branch's layers, so it no longer reads through. When the
workspace's file changes and the branch's has not, the branch takes the workspace's version
as its own and as its base: for the agent the file is the user's, as if it read through.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from bowerbird.workspace.history.history import History, set_base_to_view
from bowerbird.workspace.tree.changes import side_of, stored_side
from bowerbird.workspace.tree.real_directory import Beneath, stat_sign
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side

Sign = list[int] | None


class LandedPaths:
    """`landings/landed.json` of one branch: the stat of each landed path when it was taken over.

    Args:
        directory: the branch's.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "landings" / "landed.json"

    def read(self) -> dict[str, Sign]:
        """Return the stat of every landed path, None where nothing stood."""
        try:
            return json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}

    def update(
        self, tree: Beneath, landed: Iterable[str], joined: Iterable[str] = (), gone: Iterable[str] = ()
    ) -> None:
        """Remember landed paths.

        Args:
            landed: the branch has what the workspace has now.
            joined: the workspace has the user's edits too; the branch is to take them over.
            gone: pending again.
        """
        rows = self.read()
        for path in gone:
            rows.pop(path, None)
        for path in landed:
            rows[path] = sign_at(tree, path)
        for path in joined:
            rows[path] = []  # equals no stat
        self.write(rows)

    def write(self, rows: Mapping[str, Sign]) -> None:
        """Replace the file; lost on a crash it costs only one more look at each path."""
        temporary = self._path.with_name("landed.json.tmp")
        temporary.write_text(json.dumps(rows))
        temporary.rename(self._path)


def sign_at(tree: Beneath, path: str) -> Sign:
    """Return what changes when the workspace's entry changes, None when there is none."""
    found = tree.lstat(os.fsencode(path[1:]))
    return None if found is None else list(stat_sign(found))


def follow(stack: Stack, history: History, landed: LandedPaths, tree: Beneath) -> list[str]:
    """Take over what the user changed at landed paths, unless the branch changed them too.

    The branch's writer lock is held.

    Returns:
        The paths whose view changed.
    """
    rows = landed.read()
    wanted: dict[str, Side | None] = {}
    looked: dict[str, Sign] = {}
    for path, sign in rows.items():
        present = sign_at(tree, path)
        if present == sign or not stack.ground.shows(path):
            continue
        entry = stack.lookup(path)
        base = stack.orig.get(path)
        if base is None or not same_side(stored_side(base.entry), side_of(stack, path, entry)):
            continue  # changed again: it is the branch's own until it lands
        side = tree.side(os.fsencode(path[1:]))
        if any(
            kind in ("dir", "special") for kind in (side.kind if side else "", entry.kind if entry else "")
        ):
            continue  # a directory is followed by the paths in it
        looked[path] = present
        if not same_side(side, side_of(stack, path, entry)):
            wanted[path] = side
    if wanted:
        history.shelf.put_layer(wanted)
        for path in wanted:
            set_base_to_view(stack, path)
    if looked:
        landed.write({**rows, **looked})
    return list(wanted)
