"""The user's repositories that a branch changed: which they are, and what their directories say.

Here: from changed paths to repositories, facts that are read as files. Not here: running git there.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bowerbird.workspace.git.refs import BranchRefs
from bowerbird.workspace.marks.surroundings import Surroundings
from bowerbird.workspace.tree.changes import Change, side_of
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side

_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git directory of the workspace, and what the branch changed in it.

    Attributes:
        root: its virtual path, `/.git`. git_dir: the same on disk.
        work_tree: the top of its files, None where it has none of its own in the workspace.
        is_new: the workspace has none there: it is a set of files that needs acceptance.
        changed: the branch's changes in it, by path below it.
    """

    root: str
    git_dir: Path
    work_tree: Path | None
    is_new: bool
    stack: Stack
    changed: dict[str, Change] = field(default_factory=dict[str, Change])

    @property
    def is_removed(self) -> bool:
        """Whether the branch has no such repository any more."""
        head = self.changed.get("HEAD")
        return head is not None and head.new is None

    def refs(self) -> BranchRefs:
        """Return what reads its refs."""
        return BranchRefs(self.changed, self.look)

    def look(self, name: str) -> Side | None:
        """What the branch shows at a path below it."""
        path = f"{self.root}/{name}"
        return side_of(self.stack.view, path, self.stack.lookup(path))

    def tops(self) -> list[str]:
        """Virtual paths that lead to its files."""
        return [self.root.rpartition("/")[0]]


def repositories(stack: Stack, changes: Sequence[Change], around: Surroundings) -> list[Repository]:
    """Return the repositories that some changes of git directories belong to."""
    by_root: dict[str, list[Change]] = defaultdict(list)
    new: dict[str, bool] = {}
    for change in changes:
        place = around.git_place(change.path)
        if place is None:
            continue
        head, found, _ = place.root.rpartition("/worktrees/")
        root = head if found else place.root
        by_root[root].append(change)
        new[root] = new.get(root, True) and place.is_new if not found else new.get(root, False)
    top = stack.ground.root or Path("/")
    made: list[Repository] = []
    for root, inside in sorted(by_root.items()):
        changed = {c.path.removeprefix(root).lstrip("/"): c for c in inside}
        git_dir = top / root.lstrip("/")
        standing = stack.ground.look(root)
        is_new = new[root] or standing is None or standing.kind != "dir"
        has_files = root.rpartition("/")[2] == ".git"
        made.append(Repository(root, git_dir, git_dir.parent if has_files else None, is_new, stack, changed))
    return made


def under_way(git_dir: Path) -> str | None:
    """Return what the user is in the middle of in a repository (`rebase`), None for nothing."""
    found = next((name for name in _UNDER_WAY if os.path.lexists(git_dir / name)), None)
    return found and found.partition("_HEAD")[0].lower().replace("_", "-").partition("-m")[0]


def checked_out(git_dir: Path) -> Iterator[str]:
    """Yield the refs that linked worktrees of a repository have checked out."""
    for head in git_dir.glob("worktrees/*/HEAD"):
        with suppress(OSError):
            text = head.read_text("utf-8", "replace").strip()
            if text.startswith("ref: "):
                yield text.removeprefix("ref: ")
