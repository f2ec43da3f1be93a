"""Three versions of a text as regions: what nobody changed, what one side changed, what both did.

Here: the regions, the merge where none is a conflict, the text that a person's decisions make of them. Pure.
Not here: what else is decided of a path (`threeway.py`), landing.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from bowerbird.core.errors import Stale
from bowerbird.workspace.tree.hunks import LineChange, line_changes, split_lines, too_long

Kind = Literal["same", "ours", "theirs", "both", "conflict"]
Take = Literal["ours", "theirs", "both"] | bytes
"""What becomes of a conflict: one side's lines, ours and then theirs, or a text of one's own."""


class Region(msgspec.Struct, frozen=True):
    """Some successive lines, with their endings, as each version has them.

    Attributes:
        kind: `same` nobody changed them; `ours`, `theirs` one side did; `both` both did alike; `conflict`.
    """

    kind: Kind
    base: Sequence[bytes]
    ours: Sequence[bytes]
    theirs: Sequence[bytes]

    def taken(self, take: Take = "ours") -> bytes:
        """Return what stands there in the end; `take` decides a conflict."""
        if self.kind != "conflict":
            return b"".join(self.theirs if self.kind == "theirs" else self.ours)
        if isinstance(take, bytes):
            return take
        sides = {"ours": [self.ours], "theirs": [self.theirs], "both": [self.ours, self.theirs]}[take]
        return on_lines_of_their_own([b"".join(side) for side in sides])


def on_lines_of_their_own(pieces: Sequence[bytes]) -> bytes:
    """Join texts; one that does not end its last line ends it where another follows.

    Example:
        >>> on_lines_of_their_own([b"a", b"", b"b"])
        b'a\\nb'
    """
    there = [piece for piece in pieces if piece]
    ended = [piece if piece.endswith(b"\n") else piece + b"\n" for piece in there[:-1]]
    return b"".join(ended + there[-1:])


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the three-way merge of lines, None when edits touch or overlap.

    Edits with at least one unchanged line between them join; equal edits count once.

    Example:
        >>> merge_lines(b"a\\nb\\nc\\n", b"A\\nb\\nc\\n", b"a\\nb\\nC\\n")
        b'A\\nb\\nC\\n'
    """
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    found = regions_of(base, ours, theirs)
    if found is None or any(region.kind == "conflict" for region in found):
        return None
    return b"".join(region.taken() for region in found)


def decided(regions: Sequence[Region], takes: Sequence[Take]) -> bytes:
    """Return the text that a person made of the conflicts, in their order; the rest is merged.

    Raises:
        Stale: there are more or fewer conflicts than decisions.
    """
    conflicts = sum(region.kind == "conflict" for region in regions)
    if conflicts != len(takes):
        raise Stale(f"conflicting places: {conflicts}, decisions: {len(takes)}; look at it again")
    rest = iter(takes)
    return on_lines_of_their_own(
        [region.taken(next(rest)) if region.kind == "conflict" else region.taken() for region in regions]
    )


def regions_of(base: bytes | None, ours: bytes, theirs: bytes) -> list[Region] | None:
    """Return the regions of three texts in order, None where comparing them could take seconds.

    Args:
        base: None = both sides made the text: where they differ is a conflict.
    """
    if base is None:
        return None if too_long(ours, theirs) else _two_sided(ours, theirs)
    if too_long(base, ours) or too_long(base, theirs):
        return None
    lines = (split_lines(base), split_lines(ours), split_lines(theirs))
    found: list[Region] = []
    at = 0
    for mine, other in _clusters(line_changes(base, ours), line_changes(base, theirs)):
        touched = mine + other
        start, end = min(c.start for c in touched), max(c.end for c in touched)
        left = _region(lines[0], lines[1], mine, start, end)
        right = _region(lines[0], lines[2], other, start, end)
        if start > at:
            found.append(_same(lines[0][at:start]))
        kind: Kind = (
            "ours" if not other else "theirs" if not mine else "both" if left == right else "conflict"
        )
        found.append(Region(kind, lines[0][start:end], left, right))
        at = end
    return [*found, _same(lines[0][at:])] if at < len(lines[0]) else found


def _two_sided(ours: bytes, theirs: bytes) -> list[Region]:
    mine, other = split_lines(ours), split_lines(theirs)
    found: list[Region] = []
    at = 0
    for change in line_changes(ours, theirs):
        if change.start > at:
            found.append(_same(mine[at : change.start]))
        come = other[change.new_start : change.new_end]
        found.append(Region("conflict", [], mine[change.start : change.end], come))
        at = change.end
    return [*found, _same(mine[at:])] if at < len(mine) else found


def _same(lines: Sequence[bytes]) -> Region:
    return Region("same", lines, lines, lines)


def _clusters(
    mine: list[LineChange], other: list[LineChange]
) -> list[tuple[list[LineChange], list[LineChange]]]:
    """Group changes of both sides that touch each other (no unchanged line between)."""
    tagged = sorted([(c, 0) for c in mine] + [(c, 1) for c in other], key=lambda t: (t[0].start, t[0].end))
    groups: list[tuple[list[LineChange], list[LineChange]]] = []
    reach = -1
    for change, side in tagged:
        if not groups or change.start > reach:
            groups.append(([], []))
        groups[-1][side].append(change)
        reach = max(reach, change.end)
    return groups


def _region(
    base: list[bytes], side: list[bytes], changes: list[LineChange], start: int, end: int
) -> list[bytes]:
    """What `side` has where the base has lines `start` … `end`."""
    out: list[bytes] = []
    at = start
    for change in changes:
        out += base[at : change.start]
        out += side[change.new_start : change.new_end]
        at = change.end
    return out + base[at:end]
