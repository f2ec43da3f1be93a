"""Reading the refs of a branch's git directory, as bytes that anybody may have written.

Here: which refs, stashes and linked worktrees differ between what the branch began from and what it has.
Not here: commits (`quarantine.py`), what people see of it (`story.py`). No git runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Set

import msgspec

from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.threeway import Side

MOST_REFS = 2_000
_MOST_BYTES = 64 * 1024**2
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|\.(?:/|$)|/$")
_STASH_LOG = "logs/refs/stash"

Look = Callable[[str], Side | None]
"""What the branch has at a path of a git directory that it did not change."""


class RefMove(msgspec.Struct, frozen=True):
    """A ref that the branch changed.

    Attributes:
        name: `refs/heads/main`, `HEAD` when detached, `stash/0` for a stash (0 = the oldest).
        old, new: object ids; None = there was, or is, none.
    """

    name: str
    old: str | None
    new: str | None


class RefsFound(msgspec.Struct, frozen=True):
    """What of a git directory's refs differs.

    Attributes:
        head: of HEAD, before and after: `refs/heads/x`, or an object id.
        start: where HEAD was when the branch began. begins: that, and where changed refs were.
        worktrees: names of linked worktrees, `+name` or `-name`.
        troubles: what could not be understood, for people.
    """

    moves: list[RefMove] = msgspec.field(default_factory=list[RefMove])
    head: tuple[str | None, str | None] = (None, None)
    start: str | None = None
    begins: set[str] = msgspec.field(default_factory=set[str])
    worktrees: list[str] = msgspec.field(default_factory=list[str])
    troubles: list[str] = msgspec.field(default_factory=list[str])


class BranchRefs:
    """The refs of one git directory of a branch.

    Args:
        changed: the branch's changes in it, by path below it. look: what is there besides.
    """

    def __init__(self, changed: Mapping[str, Change], look: Look) -> None:
        self._changed = changed
        self._look = look
        self._troubles: list[str] = []
        self._packed: dict[bool, dict[str, str]] = {}

    def find(self) -> RefsFound:
        """Compare."""
        names = {name for name in self._changed if name.startswith("refs/") and not name.endswith(".lock")}
        packed: set[str] = set()
        if "packed-refs" in self._changed:
            old, new = self._packed_refs(False), self._packed_refs(True)
            packed = {name for name, _ in old.items() ^ new.items()} - names
        candidates = [*sorted(names), *sorted(packed)]
        moves = list(self._moves(candidates[:MOST_REFS]))
        head = (self._text("HEAD", False), self._text("HEAD", True))
        if head[1] is not None and _ID.fullmatch(head[1]) and head[0] != head[1]:
            moves += [RefMove("HEAD", None, head[1])]
        moves += self._stashes()
        if len(candidates) > MOST_REFS:
            left = f"{len(candidates) - MOST_REFS:,} of {len(candidates):,}"
            self._troubles.append(f"{left} changed refs are left out")
        started = self.resolved("HEAD", new=False)
        begins = {name for name in (started, *(move.old for move in moves)) if name}
        target = (head[0] or "").removeprefix("ref: ") or None, (head[1] or "").removeprefix("ref: ") or None
        return RefsFound(moves, target, started, begins, sorted(self._worktrees()), self._troubles)

    def packed_names(self, loose: Set[str]) -> list[str]:
        """Return the valid names in the new `packed-refs` that can be files beside `loose`."""
        names = {name for name in self._packed_refs(True) if not _BAD_REF.search(name)} - loose
        above = {each for name in names | loose for each in _above(name)}
        return sorted(name for name in names - above if loose.isdisjoint(_above(name)))

    def resolved(self, name: str, *, new: bool) -> str | None:
        """Return the object id of a ref, None for one that is not there."""
        for _ in range(5):
            text = self._text(name, new)
            if text is None:
                return self._packed_refs(new).get(name)
            if not text.startswith("ref: "):
                return text if _ID.fullmatch(text) else None
            name = text.removeprefix("ref: ").strip()
        return None

    def _moves(self, names: list[str]) -> Iterator[RefMove]:
        for name in names:
            if name.startswith(("refs/bowerbird/", "refs/stash")):
                continue
            if _BAD_REF.search(name):
                self._troubles.append(f"{name!r} is not a valid name for a ref")
                continue
            old, new = self.resolved(name, new=False), self.resolved(name, new=True)
            if new is None and self._text(name, True) is not None:
                self._troubles.append(f"{name} points nowhere")
            elif old != new:
                yield RefMove(name, old, new)

    def _stashes(self) -> list[RefMove]:
        if _STASH_LOG not in self._changed:
            return []
        had = set(self._stash_ids(False))
        return [
            RefMove(f"stash/{at}", None, found)
            for at, found in enumerate(self._stash_ids(True))
            if found not in had
        ]

    def _stash_ids(self, new: bool) -> list[str]:
        lines = (self._text(_STASH_LOG, new) or "").splitlines()
        ids = [line.split(" ", 2)[1] for line in lines if line.count(" ") > 1]
        return [found for found in ids if _ID.fullmatch(found)]

    def _worktrees(self) -> Iterator[str]:
        for name, change in self._changed.items():
            parts = name.split("/")
            if parts[0] == "worktrees" and len(parts) == 3 and parts[2] == "gitdir":
                yield ("+" if change.base is None else "-" if change.new is None else "~") + parts[1]

    def _packed_refs(self, new: bool) -> dict[str, str]:
        if new not in self._packed:
            found: dict[str, str] = {}
            for line in (self._text("packed-refs", new) or "").splitlines():
                value, _, name = line.partition(" ")
                if _ID.fullmatch(value) and name:
                    found[name] = value
            self._packed[new] = found
        return self._packed[new]

    def _text(self, name: str, new: bool) -> str | None:
        change = self._changed.get(name)
        side = (change.new if new else change.base) if change is not None else self._look(name)
        if side is None or side.kind != "file" or side.content is None:
            return None
        if side.content.size > _MOST_BYTES:
            self._troubles.append(f"{name} is too large")
            return None
        return side.content.read().decode("utf-8", "replace").strip()


def _above(name: str) -> list[str]:
    return [name[:at] for at, letter in enumerate(name) if letter == "/"]
