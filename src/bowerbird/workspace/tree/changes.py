"""What a branch changed, net against the fork point (WS-34).

Here: `Change`, from a stack to the sorted list of changes, choosing some by path.
Not here: how changes are shown (`compare/diff.py`), merged or landed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry, Node, walk
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side


class Opens(Protocol):
    """What can open the file behind an entry."""

    def open(self, path: str, entry: Entry) -> int:
        """Return a descriptor for reading."""
        ...


Whole = Literal["all", "new", ""]
"""What stays of all that a directory holds: everything, everything new but a `.git`, or each for itself."""


class Stays(Protocol):
    """Tells what of the changes stays on the branch by itself."""

    def __call__(self, path: str, is_new: bool) -> bool:
        """Whether a path does, given whether nothing stood there before."""
        ...

    def whole(self, directory: str) -> Whole:
        """What of a directory does, whatever its names are; "" is the root."""
        ...


class Change(msgspec.Struct, frozen=True):
    """One path whose version differs from its base.

    Attributes:
        base: what stood there at the fork point, or was last landed or merged; None = nothing.
        new: what the branch has; None = deleted.
        uncertain: the base may be wrong.
    """

    path: str
    base: Side | None
    new: Side | None
    uncertain: bool = False


def side_of(view: Opens, path: str, entry: Entry | None) -> Side | None:
    """Return an entry as one side of a merge; bytes are read when needed, by handles."""
    if entry is None:
        return None
    if entry.kind == "file":
        return Side("file", entry.mode, Content(lambda: view.open(path, entry), entry.size))
    return Side(entry.kind, 0, None, entry.target)


def frozen_side(entry: Entry | None) -> Side | None:
    """Return an entry of a frozen layer; its file may be linked, for it is never written again.

    An entry of the workspace is read where it stands and never linked.
    """
    if entry is None:
        return None
    if entry.kind == "file" and entry.source is not None:
        frozen = entry.source if entry.layer is not None else None
        return Side("file", entry.mode, Content(entry.source, entry.size, frozen))
    return Side(entry.kind, 0, None, entry.target)


def base_side(stack: Stack, path: str) -> Side | None:
    """Return the branch's present base of `path`."""
    saved = stack.orig.get(path) if stack.touched(path) is not None else None
    return stored_side(saved.entry) if saved is not None else side_of(stack, path, stack.beneath(path))


def stored_side(entry: Entry | None) -> Side | None:
    """Return an entry kept in `orig/`, whose files are never written again."""
    if entry is not None and entry.kind == "file" and entry.source is not None:
        return Side("file", entry.mode, Content(entry.source, entry.size, entry.source))
    return frozen_side(entry)


class Divided(msgspec.Struct, frozen=True):
    """The changes of a branch, and what of them stays there by itself.

    Attributes:
        staying: bytes by path, no directories. What is new or of another size was not read.
        whole: see `Stays`.
    """

    changes: list[Change]
    staying: Mapping[str, int]
    whole: Callable[[str], Whole]


def changes_of(stack: Stack, hidden: Callable[[str], bool]) -> list[Change]:
    """Return all changes of the branch, sorted by path bytes.

    A directory is a change of its own when it is new and empty, or was removed: otherwise
    the files in it say it. `hidden` paths (hide, private) are left out.
    """
    changed = {path: entry for path, entry in stack.changed().items() if not hidden(path)}
    return _compared(stack, changed)


def divided(stack: Stack, stays: Stays) -> Divided:
    """Return the changes that the branch shows, and apart from them what stays on it."""
    staying: dict[str, int] = {}
    changed: dict[str, Entry | None] = {}
    alike: dict[str, Entry | None] = {}  # it may have landed
    saved_of = stack.orig.get
    for above, found in stack.changed_in().items():
        hides, whole, start = stack.ground.not_shown_in(above), stays.whole(above), len(above) + 1
        for path, entry in found.items():
            if hides(path[start:]):
                continue
            saved = saved_of(path)
            was = saved.entry if saved is not None else stack.beneath(path)
            # The first two say what `stays` would, without a call for each path of a large directory.
            is_staying = whole == "all" or (whole == "new" and was is None and not path.endswith("/.git"))
            if not is_staying and not stays(path, was is None):
                changed[path] = entry
            elif entry is None or was is None:
                present = entry or was
                if present is not None and present.kind != "dir":
                    staying[path] = entry.size if entry is not None else 0
            elif (was.kind, was.size, was.mode) == (entry.kind, entry.size, entry.mode):
                alike[path] = entry
            elif "dir" not in (was.kind, entry.kind):
                staying[path] = entry.size
    staying |= {c.path: entry.size for c in _compared(stack, alike) if (entry := alike[c.path]) is not None}
    return Divided(_compared(stack, changed), staying, stays.whole)


def _compared(stack: Stack, changed: Mapping[str, Entry | None]) -> list[Change]:
    found: list[Change] = []
    for path in sorted(changed, key=os.fsencode):
        entry = changed[path]
        saved, sign = stack.orig.get(path), None
        is_open = entry is not None and stack.was_open(entry)
        if saved is not None and saved.entry is not None and entry is not None and not is_open:
            sign = (saved.entry.source, entry.source, entry.ctime_ns)
            if stack.same_as_base.get(path) == sign:
                continue
        if saved is not None:
            base, uncertain = stored_side(saved.entry), saved.uncertain
        else:
            unsaved = stack.unsaved_base(path)
            base, uncertain = side_of(stack, path, unsaved.entry), unsaved.uncertain
        new = side_of(stack, path, entry) if is_open else frozen_side(entry)
        if not same_side(base, new):
            found.append(Change(path, base, new, uncertain))
        elif sign is not None:
            stack.same_as_base[path] = sign
    return without_full_directories(found, stack)


def changes_since(
    stack: Stack, then: MergedView, then_own: Node, hidden: Callable[[str], bool]
) -> list[Change]:
    """Return what changed between an earlier state and now, sorted by path bytes.

    Args:
        then: the earlier view. then_own: what the branch's own layers overrode in it.
    """
    found: list[Change] = []
    paths = {*stack.changed(), *(path for path, _ in walk(then_own))} - stack.private_paths()
    for path in sorted(paths, key=os.fsencode):
        if hidden(path):
            continue
        was, entry = then.lookup(path), stack.lookup(path)
        old = frozen_side(was) if was is not None and was.layer is not None else side_of(then, path, was)
        is_frozen = entry is not None and entry.layer is not None and not stack.was_open(entry)
        new = frozen_side(entry) if is_frozen else side_of(stack, path, entry)
        if not same_side(old, new):
            found.append(Change(path, old, new))
    return without_full_directories(found, stack)


def without_full_directories(changes: Sequence[Change], stack: Stack) -> list[Change]:
    """Drop created directories that are not empty: what is in them says it. Input is sorted."""
    implied = parents_of(c.path for c in changes if c.new is not None)
    return [
        c for c in changes if not (_is_new_directory(c) and (c.path in implied or stack.children(c.path)))
    ]


def _is_new_directory(change: Change) -> bool:
    return change.base is None and change.new is not None and change.new.kind == "dir"


def select(changes: Sequence[Change], paths: Iterable[str] | None) -> tuple[list[Change], list[str]]:
    """Return the changes at or below `paths` (all for None), and the paths that have none."""
    if paths is None:
        return list(changes), []
    wanted = dict.fromkeys(paths, False)  # by path, whether a change is there
    chosen: list[Change] = []
    for change in changes:
        hits = [path for path in covering(change.path) if path in wanted]
        if hits:
            chosen.append(change)
            wanted.update(dict.fromkeys(hits, True))
    return chosen, [path for path, hit in wanted.items() if not hit]


def covering(path: str) -> Iterator[str]:
    """Yield a path, every directory above it, and the root.

    >>> list(covering("/a/b"))
    ['/a/b', '/a', '/']
    """
    while path not in ("", "/"):
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def covers(path: str, other: str) -> bool:
    """Whether `other` is `path` or lies below it.

    >>> covers("/a", "/a/b"), covers("/a", "/ab"), covers("/", "/x")
    (True, False, True)
    """
    return path in ("/", other) or other.startswith(path + "/")


def parents_of(paths: Iterable[str]) -> set[str]:
    """Return every directory above one of the paths, without the root.

    >>> sorted(parents_of(["/a/b/c"]))
    ['/a', '/a/b']
    """
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


class Tops:
    """Given files and directories, asked which of them take another path in; a directory takes all below it.

    Costs the other path's depth, however many were given: a page sends one for each tick.

    Example:
        >>> tops = Tops(["/a", "/a/b/c"])
        >>> tops.over("/a/b/c"), tops.over("/ab"), tops.inside("/a/b")
        (['/a', '/a/b/c'], [], True)
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._above: set[str] | None = None

    def over(self, path: str) -> list[str]:
        """Return those that are `path` or a directory above it, outermost first."""
        if not self._paths:
            return []
        found = ["/"] if "/" in self._paths else []
        end = path.find("/", 1)
        while end > 0:
            if path[:end] in self._paths:
                found.append(path[:end])
            end = path.find("/", end + 1)
        if path in self._paths and path != "/":
            found.append(path)
        return found

    def cover(self, path: str) -> bool:
        """Whether one of them is `path` or a directory above it."""
        return bool(self.over(path))

    def inside(self, directory: str) -> bool:
        """Whether one of them is `directory` or lies in it."""
        if directory == "/":
            return bool(self._paths)
        if self._above is None:
            self._above = parents_of(self._paths)
        return directory in self._paths or directory in self._above
