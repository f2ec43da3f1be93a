"""Changes for people and programs (WS-35), and as one patch (WS-36).

Here: entries with hunks and marks, the bound on hunk text, what changed in a renamed file. Not here: finding
changes (`tree/changes.py`), which files were renamed (`renames.py`), patch syntax (`patch.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from bowerbird.workspace.compare.renames import Rename, renames_of
from bowerbird.workspace.compare.results import Diff, FileDiff, PathMarks
from bowerbird.workspace.marks.flags import ALONE, FlagRules
from bowerbird.workspace.marks.surroundings import Surroundings, around_changes
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.registry.taint import tainted_paths
from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.hunks import Hunk, hunks_of, too_long
from bowerbird.workspace.tree.paths import path_b64, shown
from bowerbird.workspace.tree.threeway import MERGE_LIMIT, Side

HUNK_TEXT_LIMIT = 1024 * 1024
ONE_FILE_LIMIT = 8 * 1024 * 1024
LONG_LINE = 5_000
_IN_PATCHES = ("file", "symlink")


def diff_of(
    changes: Sequence[Change],
    rules: FlagRules,
    around: Surroundings = ALONE,
    tainted: Mapping[str, tuple[str, ...]] | None = None,
) -> Diff:
    """Return `changes` with their hunks, in their order; reads the files.

    Hunk texts add up to at most 1 MiB, of one file alone to 8; later entries then have no hunks and are
    `truncated`.
    """
    deleted = [c for c in changes if c.new is None]
    renames = renames_of(changes)
    written: list[FileDiff] = []
    marks: dict[str, PathMarks] = {}
    left = HUNK_TEXT_LIMIT if len(changes) > 1 else ONE_FILE_LIMIT
    for change in changes:
        found = _marks(change, rules, around, tainted or {})
        if change.new is None:
            if found.flags:
                marks[shown(change.path)] = found
            continue
        lines = lines_of(change)
        size = sum(len(h.body) for h in lines.hunks or ())
        left -= size
        entry = _file_diff(change, change.new, lines, found, left >= 0)
        entry = replace(entry, too_large=lines.hunks is None or size > ONE_FILE_LIMIT)
        rename = renames.get(change.path)
        if rename is not None:
            entry, size = _renamed(entry, change, rename)
            left -= size
        written.append(entry)
    return Diff(tuple(written), tuple(shown(c.path) for c in deleted), marks)


def _renamed(entry: FileDiff, change: Change, rename: Rename) -> tuple[FileDiff, int]:
    """Return the entry with where the file was and what changed in it, and the bytes of that."""
    edits: tuple[Hunk, ...] | None = ()
    if rename.similarity < 100:
        edits = lines_of(Change(change.path, rename.source.base, change.new)).hunks
        if not edits:  # they cannot be shown: then it is a new file, all of it
            return entry, 0
    entry = replace(entry, renamed_from=shown(rename.source.path), similarity=rename.similarity, edits=edits)
    return entry, sum(len(hunk.body) for hunk in edits)


def branch_diff(state: BranchState, changes: Sequence[Change], rules: FlagRules) -> Diff:
    """Return the diff of a branch's changes, with what stands around them and their taint."""
    return diff_of(changes, rules, around_changes(state.stack, changes), tainted_paths(state))


def count_rows(state: BranchState, changes: Sequence[Change], rules: FlagRules) -> int:
    """Return how many rows a review of the changes has: a file that only moved is one, not two.

    Where the old path is marked by itself it has a row of its own.
    """
    moved = {rename.source.path: rename.source for rename in renames_of(changes).values()}
    if not moved:
        return len(changes)
    around, tainted = around_changes(state.stack, changes), tainted_paths(state)
    apart = sum(1 for source in moved.values() if _marks(source, rules, around, tainted).flags)
    return len(changes) - len(moved) + apart


def _marks(
    change: Change, rules: FlagRules, around: Surroundings, tainted: Mapping[str, tuple[str, ...]]
) -> PathMarks:
    """What a person should know before landing a path."""
    taint = tainted.get(change.path)
    marks = rules.marks(change.path, change.base, change.new, around, tainted=taint is not None)
    return PathMarks(
        flags=marks.flags,
        grade=marks.grade,
        reasons=marks.reasons,
        tainted=taint is not None,
        taint=taint or (),
    )


def _file_diff(change: Change, new: Side, lines: "Lines", marks: PathMarks, fits: bool) -> FileDiff:
    """Return one entry; its hunks are left out when they no longer fit (`fits`)."""
    base = change.base
    content = new.content
    return FileDiff(
        path=shown(change.path),
        path_b64=path_b64(change.path),
        kind="create" if base is None else "modify",
        type=new.kind,
        size=content.size if content is not None else len((new.target or "").encode("utf-8", "replace")),
        mode=new.mode,
        old_mode=base.mode if base is not None else None,
        binary=lines.binary,
        added=sum(h.added for h in lines.hunks or ()),
        removed=sum(h.removed for h in lines.hunks or ()),
        base="uncertain" if change.uncertain else "exact",
        hunks=lines.hunks if fits else None,
        long_lines=any(_has_long_line(h.body) for h in lines.hunks or ()),
        target=_readable(new.target),
        old_target=_readable(base.target) if base is not None else None,
        flags=marks.flags,
        grade=marks.grade,
        reasons=marks.reasons,
        tainted=marks.tainted,
        taint=marks.taint,
    )


def _readable(target: str | None) -> str | None:
    """Where a link points, without bytes that are no text."""
    return None if target is None else target.encode("utf-8", "replace").decode()


def _has_long_line(body: bytes) -> bool:
    return len(body) > LONG_LINE and any(len(line) > LONG_LINE for line in body.split(b"\n"))


class Lines(msgspec.Struct, frozen=True):
    """A change seen by lines.

    Attributes:
        binary: a side is a file without lines.
        hunks: none for what has no lines, None for what is too large to compare.
    """

    binary: bool
    hunks: tuple[Hunk, ...] | None


def lines_of(change: Change) -> Lines:
    """Look at a change by lines; reads each side once."""
    new, base = change.new, change.base
    contents = [side.content for side in (base, new) if side is not None and side.content is not None]
    if any(content.size > MERGE_LIMIT for content in contents):
        return Lines(any(content.is_binary() for content in contents), None)
    if new is None or new.content is None:
        return Lines(any(content.is_binary() for content in contents), ())
    after = new.content.read()
    before = base.content.read() if base is not None and base.content is not None else None
    if has_nul(after) or has_nul(before or b""):
        return Lines(True, ())
    if too_long(before or b"", after):
        return Lines(False, None)
    return Lines(False, hunks_of(change.path, before, after))


def change_hunks(change: Change) -> tuple[Hunk, ...] | None:
    """Return the line hunks of a change, as `lines_of`."""
    return lines_of(change).hunks


def has_nul(data: bytes) -> bool:
    """Whether the first 8 KiB hold a NUL."""
    return data.find(b"\0", 0, 8192) >= 0


class PathPatch(msgspec.Struct, frozen=True):
    """The patch of one changed path, made when it is asked for.

    Whoever shows patches path by path takes these and never looks for headers in the text of a patch:
    names and content are a stranger's.
    """

    change: Change
    context: int = 3

    @property
    def path(self) -> str:
        """The path as doors show it."""
        return shown(self.change.path)

    def sections(self) -> list[str]:
        """Return the patch in parts with a header each, two when the type changed; raises LimitExceeded."""
        from bowerbird.workspace.compare.patch import patch_sections

        return patch_sections(self.change.path, self.change.base, self.change.new, self.context)


def path_patches(changes: Sequence[Change], context: int) -> list[PathPatch]:
    """Return the patches of `changes`; deletions come first, so that a directory may take a file's place."""
    has_text = [c for c in changes if any(s is not None and s.kind in _IN_PATCHES for s in (c.base, c.new))]
    ordered = [c for c in has_text if c.new is None] + [c for c in has_text if c.new is not None]
    return [PathPatch(change, context) for change in ordered]


def unified_patch(changes: Sequence[Change], context: int) -> str:
    """Return one patch for `changes`, in the order of `path_patches`."""
    return "".join(text for patch in path_patches(changes, context) for text in patch.sections())
