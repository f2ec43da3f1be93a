"""The refs of a repository, kept on a branch as they were when it first changed its git directory.

Here: keeping HEAD, refs and index together with what the branch has of its own, and following the user again
while the branch has nothing but an index. Not here: how history lands (`git/`).

Unchanged files of a branch read through to the workspace. For a git directory that is wrong: with an index of
its own and the user's new HEAD a commit of the agent would take back what the user committed since (GI-4).
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bowerbird.workspace.history.history import History, set_base_to_view
from bowerbird.workspace.marks.git_elsewhere import Elsewhere
from bowerbird.workspace.marks.names import folded_parts
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import Change, side_of, stored_side
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.real_directory import Beneath
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side

_MOST_LOOSE = 2_000  # refs in files of their own; more are packed, or left to read through
_MOST_BYTES = 64 * 1024**2
_MOST_BEFORE = 1024**2  # of one file that is read before every command
_TOP = "/.git"


class _Kept(msgspec.Struct, frozen=True):
    data: bytes
    mode: int
    mtime_ns: int


class FrozenRefs:
    """Keeps refs of the user's repositories on one branch; the writer's lock is held for `keep`.

    Attributes:
        followed: what a repository outside of the workspace looked like when the branch last followed it.
        shown_index: which index of the workspace's repository was last searched for hidden files.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._done: set[str] = set()
        self._no_root: set[str] = set()
        self._before: dict[str, _Kept] = {}
        self.followed: object = None
        self.shown_index: object = None

    def look_before(self) -> None:
        """Remember the refs as they are before a command runs: the user may commit beside it."""
        self._before = {}
        if _TOP not in self._done and self._is_git(_TOP):
            names = (path for path in self._refs(_TOP) if path != f"{_TOP}/index")
            self._before = dict(self._read(names, _MOST_BEFORE))

    def keep(self, paths: Iterable[str]) -> bool:
        """Keep the refs of every repository that some changed paths lie in; True when any was kept now."""
        roots = {root for path in paths for root in self._roots(path)} - self._done
        kept = False
        for root in sorted(roots):
            now = dict(self._read(self._refs(root), _MOST_BYTES))
            now |= {path: was for path, was in self._before.items() if path.startswith(f"{root}/")}
            unpacked, own = _unpacked(root, now), self._own_heads(root)
            for path, was in {**unpacked, **now}.items():
                if self._stack.touched(path) is None:
                    self._stack.put_file(path, was.data, was.mode, mtime_ns=was.mtime_ns)
                    set_base_to_view(self._stack, path)
                    kept = True
                    if own is not None and path in unpacked and path not in now:
                        self._put_own(path, was, own.get(path))
            self._done.add(root)
        return kept

    def _own_heads(self, root: str) -> dict[str, bytes] | None:
        """Return the packed branches that a command left, None where it left the packed refs alone."""
        path = f"{root}/packed-refs"
        if self._stack.touched(path) is None:
            return None
        side = side_of(self._stack.view, path, self._stack.lookup(path))
        content = side.content if side is not None else None
        return _packed_heads(root, content.read() if content and content.size <= _MOST_BYTES else b"")

    def _put_own(self, path: str, was: _Kept, own: bytes | None) -> None:
        """Let a packed branch be what the command made of it, in a file that no user's commit hides."""
        if own is None:
            self._stack.remove(path)
        elif own != was.data:
            self._stack.put_file(path, own, was.mode)

    def forget(self) -> None:
        """Look again: what was kept may have been taken back."""
        self._done.clear()
        self.followed = None
        self.shown_index = None
        self._no_root.clear()

    def _roots(self, path: str) -> Iterator[str]:
        folded = folded_parts(path)
        if ".git" not in folded:
            return
        parts, first = path.split("/")[1:], folded.index(".git") + 1
        for length in range(first, len(parts)):
            root = "/" + "/".join(parts[:length])
            if root in self._done:
                continue
            if root not in self._no_root and self._is_git(root):
                yield root
            else:
                self._no_root.add(root)

    def _is_git(self, root: str) -> bool:
        below = self._stack.beneath(f"{root}/HEAD")
        return below is not None and below.kind == "file"

    def _refs(self, root: str) -> Iterator[str]:
        """Yield the files that say where a repository is, those of its branches first."""
        yield from (f"{root}/HEAD", f"{root}/packed-refs", f"{root}/index")
        todo, left = [f"{root}/refs"], _MOST_LOOSE
        while todo and left > 0:
            above = todo.pop()
            for name, entry in sorted(self._children(above).items(), reverse=True):
                if entry.kind == "dir":
                    todo.append(f"{above}/{name}")
                    todo.sort(key=lambda path: path.startswith(f"{root}/refs/heads"))
                elif entry.kind == "file" and not name.endswith(".lock"):
                    left -= 1
                    yield f"{above}/{name}"

    def _children(self, path: str) -> dict[str, Entry]:
        below = self._stack.beneath(path)
        return self._stack.beneath_view.children(path) if below is not None and below.kind == "dir" else {}

    def _read(self, paths: Iterable[str], most: int) -> Iterator[tuple[str, _Kept]]:
        view = self._stack.beneath_view
        for path in paths:
            entry = self._stack.beneath(path)
            if entry is None or entry.kind != "file" or entry.size > most:
                continue
            try:
                fd = view.open(path, entry)
            except OSError as error:
                if presence.is_absence(error) or isinstance(error, PermissionError):
                    continue  # gone since, or not ours to read
                raise
            with os.fdopen(fd, "rb") as file:
                yield path, _Kept(file.read(most), entry.mode, entry.mtime_ns)


def _unpacked(root: str, kept: Mapping[str, _Kept]) -> dict[str, _Kept]:
    """Return packed branches as files of their own: the user's next commit makes one, which would show."""
    packed = kept.get(f"{root}/packed-refs")
    heads = _packed_heads(root, packed.data if packed is not None else b"")
    return {
        path: _Kept(value, 0o644, packed.mtime_ns if packed is not None else 0)
        for path, value in heads.items()
    }


def _packed_heads(root: str, packed: bytes) -> dict[str, bytes]:
    """Return what files of packed branches would hold, by their paths."""
    rows = (line.partition(b" ") for line in packed.splitlines() if not line.startswith((b"#", b"^")))
    heads = [(os.fsdecode(name), value) for value, _, name in rows if name.startswith(b"refs/heads/")]
    return {
        f"{root}/{name}": value + b"\n"
        for name, value in heads[:_MOST_LOOSE]
        if all(part not in ("", ".", "..") for part in name.split("/"))
    }


def follow_refs(
    stack: Stack,
    history: History,
    changes: Sequence[Change],
    tree: Beneath,
    elsewhere: Elsewhere | None = None,
) -> list[str]:
    """Take the user's refs and index over again where the branch has no commit and nothing staged of its own.

    Args:
        changes: all of the branch. elsewhere: the workspace's repository, where it lies outside: left alone.

    Returns:
        The paths whose view changed.
    """
    own = [path for path in stack.orig.paths() if ".git" in folded_parts(path) and stack.touched(path)]
    wanted: dict[str, Side | None] = {}
    for root in [
        path.removesuffix("/HEAD") for path in own if path.endswith("/HEAD") and "/logs/" not in path
    ]:
        index = f"{root}/index"
        if elsewhere is not None and f"{root}/".startswith(f"{_TOP}/"):
            continue
        if any(c.path.startswith(f"{root}/") and c.path != index for c in changes):
            continue
        mine = [path for path in own if path.startswith(f"{root}/") and path != index]
        packed = tree.side(os.fsencode(f"{root}/packed-refs"[1:]))
        heads = _packed_heads(root, packed.content.read() if packed is not None and packed.content else b"")
        theirs = {path: tree.side(os.fsencode(path[1:])) for path in mine}
        theirs |= {
            path: Side("file", 0o644, Content(heads[path]))
            for path, side in theirs.items()
            if side is None and path in heads
        }
        moved = {path: side for path, side in theirs.items() if not same_side(side, _base(stack, path))}
        if moved:
            wanted |= moved | {index: tree.side(os.fsencode(index[1:]))}
    if wanted:
        history.shelf.put_layer(wanted)
        for path in wanted:
            set_base_to_view(stack, path)
    return list(wanted)


def _base(stack: Stack, path: str) -> Side | None:
    saved = stack.orig.get(path)
    return stored_side(saved.entry) if saved is not None else None
