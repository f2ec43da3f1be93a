"""Merging one path: what three sides make of it.

Here: pure decisions over (base, ours, theirs), WS-46. Not here: merging lines (`regions.py`), branches,
reading trees, writing results, flags.
"""

from typing import Literal

import msgspec

from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.nodes import EntryKind
from bowerbird.workspace.tree.regions import merge_lines

MERGE_LIMIT = 16 * 1024 * 1024

Reason = Literal[
    "both_modified", "both_created", "delete_modify", "modify_delete", "binary", "symlink", "type",
    "mode", "dir_gained", "uncertain_base", "special",
]  # fmt: skip


class Side(msgspec.Struct, frozen=True):
    """One version of a path; absence is None.

    Attributes:
        mode: permission bits with setuid, setgid, sticky (only those of files count).
        content: bytes of a file. target: of a symlink.
    """

    kind: EntryKind
    mode: int = 0
    content: Content | None = None
    target: str | None = None

    @property
    def executable(self) -> bool:
        """Whether the owner may execute it."""
        return bool(self.mode & 0o100)


class Decision(msgspec.Struct, frozen=True):
    """What to do with a path.

    Attributes:
        action: `none` nothing to do; `take` ours becomes `result`; `conflict`, see `reason`.
        result: the side to take (None = delete); for a conflict, theirs.
        merged: lines or mode of both sides were joined.
    """

    action: Literal["none", "take", "conflict"]
    result: Side | None = None
    reason: Reason | None = None
    merged: bool = False


NOTHING = Decision("none")


def same_side(a: Side | None, b: Side | None) -> bool:
    """Whether two versions are equal: kind, target, bytes, and for files the mode."""
    if a is None or b is None:
        return a is b
    if a.kind != b.kind or a.target != b.target:
        return False
    if a.kind != "file":
        return a.kind != "special"
    return a.mode == b.mode and _same_content(a, b)


def decide(base: Side | None, ours: Side | None, theirs: Side | None, uncertain: bool = False) -> Decision:
    """Return what a merge of `theirs` into `ours` does with one path.

    Args:
        base: the version both sides started from, None = it did not exist.
        uncertain: `base` may be wrong, so nothing is taken without `force`.
    """
    if same_side(theirs, ours):
        return NOTHING
    if _special(theirs) or _special(ours):
        return Decision("conflict", theirs, "special" if _special(theirs) else "type")
    if uncertain:
        return Decision("conflict", theirs, "uncertain_base")
    if same_side(theirs, base):
        return NOTHING
    if same_side(ours, base):
        return Decision("take", theirs)
    if theirs is None or ours is None:
        return Decision("conflict", theirs, "delete_modify" if ours is None else "modify_delete")
    if ours.kind != theirs.kind:
        return Decision("conflict", theirs, "type")
    if ours.kind == "symlink":
        return Decision("conflict", theirs, "symlink")
    return _both_files(base, ours, theirs)


def _both_files(base: Side | None, ours: Side, theirs: Side) -> Decision:
    old = base if base is not None and base.kind == "file" else None
    mode = _merged_mode(old, ours, theirs)
    if mode is None:
        return Decision("conflict", theirs, "mode")
    content, reason = _merged_content(base, old, ours, theirs)
    if content is None:
        return Decision("conflict", theirs, reason)
    result = Side("file", mode, content)
    if same_side(result, ours):
        return NOTHING
    return Decision("take", result, merged=not same_side(result, theirs))


def _merged_content(
    base: Side | None, old: Side | None, ours: Side, theirs: Side
) -> tuple[Content | None, Reason]:
    """The joined bytes, or None and why not."""
    mine, other = _content(ours), _content(theirs)
    if _same_content(ours, theirs) or (old is not None and _same_content(theirs, old)):
        return mine, "both_modified"
    if old is not None and _same_content(ours, old):
        return other, "both_modified"
    if old is None:
        return None, "type" if base is not None else "both_created"
    first = _content(old)
    sides = (first, mine, other)
    if any(side.is_binary() for side in sides):
        return None, "binary"
    if any(side.size > MERGE_LIMIT for side in sides):
        return None, "both_modified"
    merged = merge_lines(first.read(), mine.read(), other.read())
    return (None if merged is None else Content(merged)), "both_modified"


def _merged_mode(old: Side | None, ours: Side, theirs: Side) -> int | None:
    """The joined permission bits; None when the execute bit changed in opposite ways."""
    if ours.mode == theirs.mode or (old is not None and theirs.mode == old.mode):
        return ours.mode
    if old is not None and ours.mode == old.mode:
        return theirs.mode
    if ours.executable != theirs.executable:
        return None
    return ours.mode  # both changed, only in read and write bits: keep what is there


def _special(side: Side | None) -> bool:
    return side is not None and side.kind == "special"


def _content(side: Side) -> Content:
    return side.content if side.content is not None else Content(b"")


def _same_content(a: Side, b: Side) -> bool:
    return _content(a).same(_content(b))
