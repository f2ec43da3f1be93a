"""Telling files from git directories (GI-1): files land as files, history lands as history.

Here: which changed paths lie in a git directory, and which of those a person may accept by name. Not here:
flags (`marks/`), what happened in a git directory (`story.py`).
"""

import os
from collections.abc import Sequence

import msgspec

from bowerbird.workspace.marks.names import folded_parts
from bowerbird.workspace.marks.surroundings import (
    GitPlace,
    Surroundings,
    around_changes,
    other_repositories,
)
from bowerbird.workspace.tree.changes import Change, Tops
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.stack import Stack

# What git writes while an operation is under way, and stores of its extensions: of use to that clone only.
_STATE = frozenset({
    "rebase-merge", "rebase-apply", "sequencer", "merge_head", "merge_msg", "merge_mode", "merge_rr",
    "squash_msg", "cherry_pick_head", "revert_head", "rebase_head", "bisect_log", "bisect_start",
    "bisect_terms", "bisect_names", "bisect_expected_rev", "bisect_ancestors_ok", "rr-cache", "reftable",
    "fsmonitor--daemon",
})  # fmt: skip
_LINKED = (".git", "worktrees")
_LFS_STORES = frozenset({"objects", "tmp", "cache", "incomplete", "logs"})


def in_git(path: str) -> bool:
    """Whether a virtual path is a `.git`, or lies in one, however it is spelt.

    >>> in_git("/.git/index"), in_git("/sub/.GIT"), in_git("/.github/x"), in_git("/.gitignore")
    (True, True, False, False)
    """
    return ".git" in folded_parts(path)


def files_of(changes: Sequence[Change], ground: Ground) -> list[Change]:
    """Return the changes that lie in no git directory, whatever its name."""
    files = [change for change in changes if not in_git(change.path)]
    return other_repositories(files, ground).without(files)


class Apart(msgspec.Struct, frozen=True):
    """A branch's changes, each in one of three lists that keep their order.

    Attributes:
        files: outside of git directories.
        settings: what git runs or obeys, pointers, and git directories that are new: nothing of it lands
            unless a person accepts it by name, and none of it keeps a file from landing.
        data: commits, refs, index, logs, states of operations: never lands as a file.
        told: settings of a repository outside of the workspace: they never land, and are told.
    """

    files: list[Change]
    settings: list[Change]
    data: list[Change]
    told: list[Change]


def apart(changes: Sequence[Change], around: Surroundings) -> Apart:
    """Divide the changes of a branch."""
    found = Apart([], [], [], [])
    gone = removed_repositories(changes)
    for change in changes:
        if not in_git(change.path) and not around.others.hold(change.path):
            found.files.append(change)
        elif gone.cover(change.path) or not _is_setting(around.git_place(change.path)):
            found.data.append(change)
        elif not around.is_elsewhere(change.path):
            found.settings.append(change)
        else:
            found.data.append(change)
            found.told.append(change)
    return found


def comparable(stack: Stack, changes: Sequence[Change], named: Sequence[str] | None) -> list[Change]:
    """Return the changes that a diff shows: files, and what lies in a new git directory where it is named."""
    if named and not any(in_git(path) for path in named):
        return [change for change in changes if not in_git(change.path)]
    files = files_of(changes, stack.ground)
    if len(files) == len(changes) or not named:
        return files
    settings = apart(changes, around_changes(stack, changes)).settings
    return sorted([*files, *settings], key=lambda change: os.fsencode(change.path))


def removed_repositories(changes: Sequence[Change]) -> Tops:
    """Return the git directories that the branch removed: yours stay whole, there is nothing to accept.

    Those of linked working trees too: `git gc` removes one whose files it has not seen for long, and the
    sandbox shows none of them.
    """
    removed = [c.path.rpartition("/")[0] for c in changes if c.new is None and c.path[-5:].lower() == "/head"]
    removed += [c.path for c in changes if c.new is None and folded_parts(c.path)[-2:] == _LINKED]
    return Tops(path for path in removed if _is_git_directory(folded_parts(path or "/")))


def _is_git_directory(parts: Sequence[str]) -> bool:
    return parts[-1] == ".git" or parts[-2:] == _LINKED or parts[-3:-1] == _LINKED


def _is_setting(place: GitPlace | None) -> bool:
    if place is None or place.is_new:
        return True
    if place.is_data or place.is_scrap:
        return False
    first = place.inner[0]
    is_store = first == "lfs" and len(place.inner) > 1 and place.inner[1] in _LFS_STORES
    return not (first in _STATE or is_store)
