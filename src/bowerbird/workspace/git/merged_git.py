"""What becomes of a child's git directory when its branch is merged into another branch (GI-1, GI-4).

Where only one side changed it, or only what git derives differs, the child's is taken. Where both moved
refs, the child's commits arrive beside the parent's, under `refs/subagents/<child>/…`, also where the child
has packed its refs (`git gc`): objects are files named by their content, which never conflict. Nothing of a
git directory is ever a conflict.

Here: those decisions. Not here: landing (`apart.py`, `landed_history.py`), running git.
"""

from collections.abc import Callable, Sequence

import msgspec

from bowerbird.workspace.compare.merge import Planned
from bowerbird.workspace.git.apart import in_git
from bowerbird.workspace.git.refs import BranchRefs
from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Decision, Side

_DERIVED = frozenset(
    ("index", "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "MERGE_MSG", "AUTO_MERGE", "logs")
)
"""What git makes from the rest, or tells about it; the first part of the path."""
_BESIDE = ("refs/heads/", "refs/tags/", "refs/stash")
_MOST_PACKED = 10_000  # each becomes a file
_NOT_TAKEN = Decision("none")


def with_history(
    planned: Sequence[Planned], child: str, ours_of: Callable[[str], Side | None]
) -> list[Planned]:
    """Return a merge's plan in which no git directory is in conflict.

    Args:
        child: the id of the branch that is merged.
        ours_of: what stands at a path in the branch that it goes into.
    """
    by_root: dict[str, list[Planned]] = {}
    for item in planned:
        if in_git(item.path):
            by_root.setdefault(_root_of(item.path), []).append(item)
    changed: dict[str, list[Planned]] = {}
    for root, items in by_root.items():
        clashing = [p for p in items if _clashes(p)]
        if clashing:
            apart = any(_inner(root, p).partition("/")[0] not in _DERIVED for p in clashing)
            for item in items:
                changed[item.path] = (
                    _beside(root, item, child, ours_of)
                    if apart
                    else [_theirs(item) if _clashes(item) else item]
                )
            if apart:
                changed[items[0].path] += _packed(root, items, child, ours_of)
    return [after for before in planned for after in changed.get(before.path, [before])]


def _clashes(item: Planned) -> bool:
    return item.decision.action == "conflict" or item.decision.merged


def _theirs(item: Planned) -> Planned:
    return msgspec.structs.replace(item, decision=Decision("take", item.change.new))


def _beside(root: str, item: Planned, child: str, ours_of: Callable[[str], Side | None]) -> list[Planned]:
    """Return what is taken of one path of a git directory whose refs both sides moved."""
    inner, theirs = _inner(root, item), item.change.new
    if inner.startswith("objects/") and not inner.startswith("objects/info/"):
        keeps = item.decision.action == "take" and theirs is not None
        return [item if keeps else msgspec.structs.replace(item, decision=_NOT_TAKEN)]
    kept = [msgspec.structs.replace(item, decision=_NOT_TAKEN)]
    if inner.startswith(_BESIDE) and theirs is not None and theirs.kind == "file":
        kept.append(_kept_as(_place(root, child, inner), theirs, ours_of))
    return kept


def _packed(
    root: str, items: Sequence[Planned], child: str, ours_of: Callable[[str], Side | None]
) -> list[Planned]:
    """Return the refs that the child moved and packed, as files beside the parent's."""
    changes = {_inner(root, item): item.change for item in items}
    refs = BranchRefs(changes, lambda _: None)
    kept: list[Planned] = []
    loose = {inner for inner, change in changes.items() if change.new and change.new.kind != "dir"}
    for name in refs.packed_names(loose)[:_MOST_PACKED]:
        if not name.startswith(_BESIDE):
            continue
        new, path = refs.resolved(name, new=True), _place(root, child, name)
        if new is None or new == refs.resolved(name, new=False) or not _fits(path, root, ours_of):
            continue
        side = Side("file", 0o644, Content(f"{new}\n".encode()))
        kept.append(_kept_as(path, side, ours_of))
    return kept


def _place(root: str, child: str, ref: str) -> str:
    return f"{root}/refs/subagents/{child}/{ref.removeprefix('refs/')}"


def _kept_as(path: str, theirs: Side, ours_of: Callable[[str], Side | None]) -> Planned:
    return Planned(Change(path, None, theirs), None, ours_of(path), Decision("take", theirs))


def _fits(path: str, root: str, ours_of: Callable[[str], Side | None]) -> bool:
    """Whether a file can stand there: nothing above it is one, and it is no directory."""
    above, there = path.rpartition("/")[0], ours_of(path)
    while len(above) > len(root):
        side = ours_of(above)
        if side is not None and side.kind != "dir":
            return False
        above = above.rpartition("/")[0]
    return there is None or there.kind == "file"


def _root_of(path: str) -> str:
    """Return the git directory that a path lies in: the path up to its first `.git`."""
    parts = path.split("/")
    return next("/".join(parts[: at + 1]) for at in range(1, len(parts)) if in_git("/".join(parts[: at + 1])))


def _inner(root: str, item: Planned) -> str:
    return item.path[len(root) + 1 :]
