"""A file that the user and the branch both changed, as the places that conflict and the rest.

Here: the places as callers see them, and the file that a person's decisions make. Not here: regions of texts
(`tree/regions.py`), whether there is a conflict (`merge.py`), landing it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import Stale
from bowerbird.workspace.compare.merge import Planned
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.regions import Kind, Region, Take, decided, regions_of
from bowerbird.workspace.tree.threeway import MERGE_LIMIT, Side

SHOWN_AROUND = 3
SHOWN_BYTES = 1024 * 1024
_BY_LINES = ("both_modified", "both_created", "uncertain_base")


class Place(msgspec.Struct, frozen=True):
    """Successive lines of a conflicting file; of long ones that nobody changed, only the ends.

    Attributes:
        kind: `same`, `ours` or `theirs` (one side changed them), `both` (alike), `conflict`.
        lines: how many the longest version has. cut: how many are left out of the middle of the texts.
        base, ours, theirs: texts; undecodable bytes show as U+FFFD. Only of a conflict all three differ.
    """

    kind: Kind
    lines: int
    cut: int
    base: str
    ours: str
    theirs: str

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {name: getattr(self, name) for name in ("kind", "lines", "cut", "base", "ours", "theirs")}


class Conflict(msgspec.Struct, frozen=True):
    """A path that cannot land without a decision.

    Attributes:
        path: as shown. reason: as in refusals. plan: of landing this path alone; decisions go with it.
        places: None where there are no lines to decide on: binary or huge files, links, deletions.
    """

    path: str
    reason: str
    plan: str
    places: tuple[Place, ...] | None

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        places = None if self.places is None else [place.record() for place in self.places]
        return {"path": self.path, "reason": self.reason, "plan": self.plan, "places": places}


def places_of(item: Planned) -> tuple[Place, ...] | None:
    """Return the places of a file that both sides changed; None where it cannot be decided by lines."""
    found = _regions(item)
    if not found:
        return None
    places = tuple(_place(region) for region in found)
    shown = sum(len(place.base) + len(place.ours) + len(place.theirs) for place in places)
    return places if shown <= SHOWN_BYTES else None


def resolved_side(item: Planned, takes: Sequence[Take]) -> Side:
    """Return the file that decisions make of a conflict.

    Raises:
        Stale: there is no such conflict, or not as many places.
    """
    regions = _regions(item)
    if not regions or item.ours is None:
        raise Stale(f"{item.path[1:]}: there are no conflicting lines to decide on; look at it again")
    return Side("file", item.ours.mode, Content(decided(regions, takes)))


def _regions(item: Planned) -> list[Region] | None:
    """Return the regions of three text files; without a certain base, all that differs conflicts."""
    decision = item.decision
    ours, theirs = item.ours, item.change.new
    if decision.action != "conflict" or decision.reason not in _BY_LINES or ours is None or theirs is None:
        return None
    base = item.base if decision.reason == "both_modified" else None
    sides = [side for side in (base, ours, theirs) if side is not None]
    contents = [side.content or Content(b"") for side in sides]
    if any(side.kind != "file" for side in sides):
        return None
    if any(content.size > MERGE_LIMIT or content.is_binary() for content in contents):
        return None
    texts = [content.read() for content in contents]
    return regions_of(texts[0] if base is not None else None, texts[-2], texts[-1])


def _place(region: Region) -> Place:
    lines = max(len(region.base), len(region.ours), len(region.theirs))
    if region.kind != "same" or lines <= 2 * SHOWN_AROUND + 1:
        return Place(region.kind, lines, 0, *(_text(x) for x in (region.base, region.ours, region.theirs)))
    ends = _text([*region.base[:SHOWN_AROUND], *region.base[-SHOWN_AROUND:]])
    return Place(region.kind, lines, lines - 2 * SHOWN_AROUND, ends, ends, ends)


def _text(lines: Sequence[bytes]) -> str:
    return b"".join(lines).decode("utf-8", "replace")
