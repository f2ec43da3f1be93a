"""The user's repositories that a branch changed: which they are, and what their directories say.

Here: from changed paths to repositories, what an agent is told of one, facts that are read as files. Not
here: what lands there.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.workspace.git.refs import BranchRefs
from bowerbird.workspace.git.running import Git, GitFailed
from bowerbird.workspace.marks.git_elsewhere import (
    ROOT,
    Elsewhere,
    core_worktree,
    git_elsewhere,
    pointer,
    submodules_elsewhere,
)
from bowerbird.workspace.marks.surroundings import Surroundings
from bowerbird.workspace.tree.changes import Change, side_of
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side

_LOOK_S = 5.0
_MOST_SHOWN, _MOST_CHARS = 20, 200
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer")


def is_in_git(directory: Path) -> bool:
    """Whether git would find a repository from here; no git is asked."""
    return any(os.path.lexists(place / ".git") for place in (directory, *directory.parents))


class Repository(msgspec.Struct, frozen=True):
    """A git directory of the workspace, and what the branch changed in it.

    Attributes:
        root: its virtual path, `/.git`. git_dir: the same on disk.
        work_tree: the top of its files, None where it has none of its own in the workspace.
        is_new: the workspace has none there: it is a set of files that needs acceptance.
        changed: the branch's changes in it, by path below it.
        elsewhere: where it is, when it lies outside of the workspace.
    """

    root: str
    git_dir: Path
    work_tree: Path | None
    is_new: bool
    stack: Stack
    changed: dict[str, Change] = msgspec.field(default_factory=dict[str, Change])
    elsewhere: Elsewhere | None = None

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

    def virtual(self, path: str) -> str | None:
        """Return the virtual path of a file that it tracks; None for one outside of the workspace."""
        if self.elsewhere is not None:
            return self.elsewhere.virtual(path)
        top = self.stack.ground.root
        if self.work_tree is None or top is None or self.work_tree == self.git_dir.parent:
            return f"{self.root.rpartition('/')[0]}/{path}"
        return f"/{(self.work_tree / path).relative_to(top).as_posix()}"


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
        elsewhere = around.by_root.get(root)
        if elsewhere is not None:
            places = (elsewhere.git_dir, elsewhere.work_tree)
            made.append(Repository(root, *places, False, stack, changed, elsewhere))
            continue
        git_dir = top / root.lstrip("/")
        standing = stack.ground.look(root) if root else None
        is_new = new[root] or (root != "" and (standing is None or standing.kind != "dir"))
        made.append(Repository(root, git_dir, _work_tree_of(top, git_dir), is_new, stack, changed))
    return made


def _work_tree_of(top: Path, git_dir: Path) -> Path | None:
    """Return the top of a repository's files; of a submodule only where both name each other."""
    if git_dir.name == ".git":
        return git_dir.parent
    named = core_worktree(git_dir)
    if named is None or pointer(named / ".git", "gitdir: ") != git_dir.resolve():
        return None
    real = top.resolve()
    return top / named.relative_to(real) if named.is_relative_to(real) else None


def under_way(git_dir: Path) -> str | None:
    """Return what the user is in the middle of in a repository (`rebase`), None for nothing."""
    found = next((name for name in _UNDER_WAY if os.path.lexists(git_dir / name)), None)
    return found and found.partition("_HEAD")[0].lower().replace("_", "-").partition("-m")[0]


def located(top: Path, root: str, kept: Path) -> tuple[Path, Path | None]:
    """Return the git directory on disk that branches have at a virtual path, and the top of its files.

    Args:
        top: the workspace. kept: the data directory.
    """
    elsewhere = git_elsewhere(top, kept) if f"{root}/".startswith(f"{ROOT}/") else None
    if elsewhere is not None:
        for each in (elsewhere, *(submodules_elsewhere(elsewhere, top, kept) if root != ROOT else ())):
            if each.root == root:
                return each.git_dir, each.work_tree
    git_dir = top / root.lstrip("/")
    return git_dir, _work_tree_of(top, git_dir)


def at_start(top: Path, kept: Path) -> str:
    """Return what an agent should know of the repository whose files `top` has; "" where it is none.

    Branch, changed files that git follows, and the last commits: at most a screen, and within seconds.

    Args:
        kept: the data directory.
    """
    git_dir, files = located(top, ROOT, kept)
    if files is None or not git_dir.is_dir():
        return ""
    git = Git(git_dir, files, _LOOK_S)
    try:
        state = git.run("status", "--branch", "--porcelain", "--untracked-files=no").decode(
            "utf-8", "replace"
        )
    except GitFailed:
        return ""
    commits = ""
    with suppress(GitFailed):  # there is none yet
        commits = git.run("log", "-3", "--format=%h %s").decode("utf-8", "replace")
    head, *changed = state.splitlines() or [""]
    more = [f"… {len(changed) - _MOST_SHOWN} more"] if len(changed) > _MOST_SHOWN else []
    lines = [head.removeprefix("## "), *(changed[:_MOST_SHOWN] or ["nothing is changed"]), *more]
    said = ["Git at the start of this conversation:", *lines, "Last commits:", *commits.splitlines()]
    return "\n".join(line[:_MOST_CHARS] for line in said)


def checked_out(git_dir: Path) -> Iterator[str]:
    """Yield the refs that other working trees of a repository have checked out."""
    common = common_of(git_dir)
    heads = [head for head in common.glob("worktrees/*/HEAD") if head.parent != git_dir]
    if common != git_dir and not is_bare(common):
        heads.append(common / "HEAD")
    for head in heads:
        with suppress(OSError):
            text = head.read_text("utf-8", "replace").strip()
            if text.startswith("ref: "):
                yield text.removeprefix("ref: ")


def common_of(git_dir: Path) -> Path:
    """Return the directory that has objects and refs: another one for a linked worktree."""
    try:
        return Path(os.path.realpath(git_dir / (git_dir / "commondir").read_text().strip()))
    except OSError:
        return git_dir


def is_bare(git_dir: Path) -> bool:
    """Whether a repository says that it has no files of its own; a working tree of a bare one has."""
    if common_of(git_dir) != git_dir:
        return False
    with suppress(GitFailed):  # there is no such value
        return Git(git_dir).run("config", "--bool", "core.bare").strip() == b"true"
    return False
