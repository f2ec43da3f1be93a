"""What the surroundings of a changed path say about it: git directories, links, programs git was told of.

Here: finding the git directory that a path lies in or would make, following a link's target. Not here: names
that say it by themselves (`table.py`), what a landing does with it (`landing/plan.py`).

Every question is asked of two states at once, the branch's view and the workspace as it is, and the worse
answer counts: some of the changes may land, or all, or they landed one by one in earlier turns.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from bowerbird.workspace.marks.git_elsewhere import ROOT, Elsewhere, git_elsewhere, submodules_elsewhere
from bowerbird.workspace.marks.git_named import MOST_BYTES, GitNamed, git_named
from bowerbird.workspace.marks.names import folded_parts
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import Change, Tops
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.nodes import EntryKind
from bowerbird.workspace.tree.stack import Stack

_MOST_LINKS = 40  # as the kernel's
_MARKERS = frozenset({"head", "objects", "refs", "commondir"})
_DATA_TREES = frozenset({"objects", "refs", "logs"})
_DATA_FILES = frozenset({"head", "index", "packed-refs"})
# What lies directly in a git directory and has a directory's name of its own.
_INSIDE = (
    _MARKERS | _DATA_TREES | {"hooks", "info", "worktrees", "modules", "lfs", "rebase-merge", "rebase-apply"}
)
_MODULES = "/modules/"
# In `objects/info`: where objects are looked for besides.
_POINTERS = frozenset({"alternates", "http-alternates"})
# What git writes for itself and reads no more: it stays on the branch unless somebody names it.
_SCRAPS = frozenset({
    "commit_editmsg", "orig_head", "fetch_head", "auto_merge", "gc.log", "gc.pid", "description", "branches",
})  # fmt: skip


class Stands(Protocol):
    """What stands at a path, as far as it is asked for here."""

    @property
    def kind(self) -> EntryKind: ...
    @property
    def target(self) -> str | None: ...


Look = Callable[[str], Stands | None]


class GitPlace(msgspec.Struct, frozen=True):
    """A path's place in a git directory.

    Attributes:
        root: virtual path of the git directory.
        inner: the path's components in it, folded; empty for the directory itself.
        is_new: the workspace has no git directory there.
    """

    root: str
    inner: tuple[str, ...]
    is_new: bool

    @property
    def is_data(self) -> bool:
        """Whether it is commits, refs or the index: nothing that git runs or obeys."""
        if not self.inner:
            return True
        first, last = self.inner[0], self.inner[-1]
        if first in _DATA_TREES:
            return not (self.inner[:2] == ("objects", "info") and last in _POINTERS)
        return len(self.inner) == 1 and (first in _DATA_FILES or first.startswith("sharedindex."))

    @property
    def is_scrap(self) -> bool:
        """Whether git made it for itself only: a note of the last commit, a sample, a lock."""
        if not self.inner:
            return False
        if self.inner[0] == "hooks" and len(self.inner) == 2:
            return self.inner[1].endswith(".sample")
        last = self.inner[-1]
        return (len(self.inner) == 1 and self.inner[0] in _SCRAPS) or last.endswith(".lock")


class Surroundings:
    """The states that some changes stand in; made for one plan or diff.

    Args:
        view: looks into the branch. ground: looks into the workspace; neither follows links.
        changed: virtual paths that the branch has and may land.
        elsewhere: the workspace's repository, where it lies outside of it: branches have it at `/.git`.
        submodules: of that repository, in the workspace; branches have them in `/.git/modules`.
        others: git directories of other names than `.git`.

    Example:
        around = Surroundings(stack.lookup, stack.ground.look, [change.path for change in changes])
        around.git_place("/lib/config"), around.leads_out("/a", "b/../../x")
    """

    def __init__(
        self,
        view: Look,
        ground: Look,
        changed: Iterable[str],
        named: GitNamed | None = None,
        elsewhere: Elsewhere | None = None,
        others: "OtherRepositories | None" = None,
        submodules: Iterable[Elsewhere] = (),
    ) -> None:
        self.elsewhere = elsewhere
        self.by_root = {each.root: each for each in (elsewhere, *submodules) if each is not None}
        self.others = others if others is not None else OtherRepositories()
        self._view, self._ground = view, ground
        self._markers = {marker for path in changed for marker in _markers_of(path)}
        self._roots: dict[str, str | None] = {}
        self._grown: dict[str, bool] = {}
        self.named = named if named is not None else GitNamed(frozenset())

    # ------------------------------------------------------------ git directories

    def git_place(self, path: str) -> GitPlace | None:
        """Return where in a git directory `path` lies (the directory itself too), None outside of all."""
        parts = folded_parts(path)
        if parts[-1] == ".git" or path in self.others.made:
            return GitPlace(path, (), not self._was_git(path))
        root = self._root_of(path.rpartition("/")[0])
        if root is None:
            return None
        root = self._outermost_new(root)
        inner, is_new = tuple(parts[root.count("/") :]), not self._was_git(root)
        by_name = root != "" and parts[root.count("/") - 1] == ".git"
        # A bare repository may hold working trees; and what makes one of the whole workspace is few names.
        beside = inner[0] not in _INSIDE and (len(inner) > 1 or root == "")
        if beside and not by_name and (root == "" or not is_new):
            return None
        return GitPlace(root, inner, is_new)

    def _root_of(self, directory: str) -> str | None:
        """The nearest git directory that is `directory` or above it; "" is the workspace itself."""
        todo: list[str] = []  # no recursion: a process may nest directories deeper than Python's stack
        while directory not in self._roots:
            todo.append(directory)
            if directory == "":
                break
            directory = directory.rpartition("/")[0]
        root = self._roots.get(directory)
        for below in reversed(todo):
            if self._is_git(below) or folded_parts(below)[-1] == ".git":
                root = below
            self._roots[below] = root
        return root

    def _outermost_new(self, root: str) -> str:
        """Return the new git directory that holds another as a submodule's: they are one thing."""
        at = root.find(_MODULES)
        while at > 0:
            if self._root_of(root[:at]) == root[:at] and not self._was_git(root[:at]):
                return root[:at]
            at = root.find(_MODULES, at + 1)
        return root

    def _is_git(self, directory: str) -> bool:
        """Whether git would take a directory for a repository, once all or some of the changes landed."""

        def has(name: str) -> bool:
            path = f"{directory}/{name}"
            known = "/".join(["", *folded_parts(path)]) in self._markers
            return known or self._view(path) is not None or self._ground(path) is not None

        return _looks_like_git(has)

    def is_elsewhere(self, path: str) -> bool:
        """Whether a path lies in the branch's directory of a repository outside of the workspace."""
        return self.elsewhere is not None and folded_parts(path)[0] == ".git"

    def _was_git(self, directory: str) -> bool:
        if directory in self.by_root:
            return True
        if directory not in self._grown:
            self._grown[directory] = _looks_like_git(lambda n: self._ground(f"{directory}/{n}") is not None)
        return self._grown[directory]

    # ------------------------------------------------------------ links

    def leads_out(self, path: str, target: str) -> bool:
        """Whether a link at `path` leaves the workspace, or may once a later landing changes the way.

        `..` behind a name counts: that name may be, or become, a link to anywhere.
        """
        parts = [part for part in target.split("/") if part not in ("", ".")]
        first = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
        if target.startswith("/") or ".." in parts[first:]:
            return True
        return any(self._followed(look, path, target) is None for look in (self._view, self._ground))

    def leads_to(self, path: str, target: str) -> set[str]:
        """Return where a link that stays inside leads to, in both states."""
        found = {self._followed(look, path, target) for look in (self._view, self._ground)}
        return {where for where in found if where}

    def _followed(self, look: Look, path: str, target: str) -> str | None:
        """Return the virtual path that a link leads to, "" for the root, None for one that leaves."""
        here = path.split("/")[1:-1]
        todo = target.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not here:
                    return None
                here.pop()
                continue
            here.append(part)
            there = look("/" + "/".join(here))
            if there is not None and there.kind == "symlink" and there.target is not None:
                links += 1
                if links > _MOST_LINKS or there.target.startswith("/"):
                    return None
                here.pop()
                todo += there.target.split("/")[::-1]
        return "/" + "/".join(here) if here else ""


def around_changes(stack: Stack, changes: Sequence[Change]) -> Surroundings:
    """Return what the changes of a branch stand among."""
    ground = stack.ground
    changed = [change.path for change in changes if change.new is not None]
    named = git_named(lambda path: _content(ground, path), str(ground.root or "/"))
    in_root = any(folded_parts(change.path)[0] == ".git" for change in changes)
    kept = stack.directory.parents[1]
    elsewhere = git_elsewhere(ground.root, kept) if in_root else None
    submodules: tuple[Elsewhere, ...] = ()
    in_modules = any(change.path.startswith(f"{ROOT}/modules/") for change in changes)
    if elsewhere is not None and ground.root is not None and in_modules:
        submodules = submodules_elsewhere(elsewhere, ground.root, kept)
    others = other_repositories(changes, ground)
    return Surroundings(stack.lookup, ground.look, changed, named, elsewhere, others, submodules)


class OtherRepositories(msgspec.Struct, frozen=True):
    """Git directories of other names than `.git`: bare ones, and those that were renamed.

    Attributes:
        made: the branch made them. standing: the workspace has them, "" = it is one itself.
    """

    made: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()

    def without(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that lie in none of them."""
        if not self.made and not self.standing:
            return list(changes)
        made = Tops(self.made)
        return [c for c in changes if not made.cover(c.path) and not self._stands_around(c.path)]

    def hold(self, path: str) -> bool:
        """Whether a path lies in one of them."""
        return Tops(self.made).cover(path) or self._stands_around(path)

    def _stands_around(self, path: str) -> bool:
        # A bare repository may hold working trees, the workspace as one has its files beside git's.
        around = [root for root in Tops(self.standing).over(path) if root != path]
        around += [""] if "" in self.standing else []
        return any(_is_gits(path[len(root) + 1 :].lower(), whole=root != "") for root in around)


def _is_gits(inner: str, *, whole: bool) -> bool:
    first, below, _ = inner.partition("/")
    return first in _INSIDE or first in _DATA_FILES or (whole and not below)


def other_repositories(changes: Sequence[Change], ground: Ground) -> OtherRepositories:
    """Return the git directories of other names that some changes lie in."""
    made = made_repositories(change.path for change in changes if change.base is None)
    standing: dict[str, bool] = {}
    for change in changes:
        names = change.path.lower().split("/")
        if _INSIDE.isdisjoint(names) and names[-1] not in _DATA_FILES:
            continue
        parts = change.path.split("/")
        for at, name in enumerate(names[1:], 1):
            root = "/".join(parts[:at])
            if root not in standing and (name in _INSIDE or name in _DATA_FILES):
                standing[root] = ".git" not in names[:at] and _stands(ground, root)
    return OtherRepositories(made, frozenset(root for root, stands in standing.items() if stands))


def _stands(ground: Ground, root: str) -> bool:
    return _looks_like_git(lambda name: ground.look(f"{root}/{name}") is not None)


def made_repositories(paths: Iterable[str]) -> frozenset[str]:
    """Return the directories that new paths make what git takes for a repository, whatever their names.

    A bare repository, or a `.git` that was renamed. Not the workspace's root, nor what lies in a `.git`.

    >>> sorted(made_repositories(["/old/HEAD", "/old/objects/a", "/old/refs", "/x/HEAD", "/x/objects"]))
    ['/old']
    """
    new = list(paths)
    heads = [path[:-5] for path in new if path[-5:].lower() == "/head"]
    tops = Tops(directory for directory in heads if directory and ".git" not in folded_parts(directory))
    holds: dict[str, set[str]] = {}
    for path in new if heads else ():
        for top in tops.over(path):
            holds.setdefault(top, set()).add(path[len(top) + 1 :].partition("/")[0].lower())
    return frozenset(
        top for top in holds if _looks_like_git(lambda name, top=top: name.lower() in holds[top])
    )


def _content(ground: Ground, path: str) -> bytes | None:
    try:
        fd = ground.open(path)
    except OSError as error:
        if presence.is_absence(error) or isinstance(error, PermissionError):
            return None  # there is none, or none that may be read: then git names nothing
        raise
    try:
        return os.pread(fd, MOST_BYTES, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def _looks_like_git(has: Callable[[str], bool]) -> bool:
    """Git's own test (`is_git_directory`); a configuration is not needed for it."""
    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _markers_of(path: str) -> Sequence[str]:
    parts = folded_parts(path)
    if _MARKERS.isdisjoint(parts):
        return ()
    return ["/".join(["", *parts[: at + 1]]) for at, part in enumerate(parts) if part in _MARKERS]
