"""Earlier versions of a file or directory, as landings keep them (AS-43).

Here: what was at a path after each landing that changed it. Not here: the landings themselves
(`landings.py`), which of them stay (`kept.py`), bringing a version back (`sessions/kept_files.py`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import NotFound
from bowerbird.workspace.landing.record import KEPT_VERSIONS, changed_below
from bowerbird.workspace.tree.changes import covers

if TYPE_CHECKING:
    from bowerbird.workspace.landing.landings import Landing
    from bowerbird.workspace.tree.threeway import Side

MOST_BYTES = 64 * 1024  # shown of a file


class LandedVersion(msgspec.Struct, frozen=True):
    """What one landing made of a path.

    Attributes:
        landing: its id. paths: what it changed there, virtual. content: of the path itself, where it is a
            file; None for a directory, and where the landing removed it.
    """

    landing: str
    at: str
    actor: str
    door: str
    paths: tuple[str, ...]
    content: bytes | None = None


def versions_of(landings: Sequence["Landing"], top: str, most: int = KEPT_VERSIONS) -> list[LandedVersion]:
    """Return the versions of a path, newest first; a landing that cannot be read any more is left out.

    Args:
        landings: of the workspace, oldest first. top: virtual path of a file or directory.
    """
    found: list[LandedVersion] = []
    for landing in reversed(landings):
        if len(found) == most:
            break
        paths = changed_below(landing.state, landing.entries, top)
        if paths:
            content = _content(_sides(landing, top).get(top, (None, None))[1])
            found.append(LandedVersion(landing.id, landing.at, landing.actor, landing.door, paths, content))
    return found


def state_after(
    landings: Sequence["Landing"], landing_id: str, top: str
) -> tuple[set[str], dict[str, "Side"]]:
    """Return what must change below a path for it to be as it was after a landing.

    Returns:
        Paths that were not there, and what was at the others.

    Raises:
        NotFound: that landing did not change the path, or is not kept any more. WorkspaceError: unreadable.
    """
    numbers = {one.id: number for number, one in enumerate(landings) if _touches(one, top)}
    if landing_id not in numbers:
        raise NotFound(f"no landing {landing_id[:64]} of {top.lstrip('/')} is kept; list its versions")
    begin = numbers[landing_id]
    was = {path: after for path, (_, after) in _sides(landings[begin], top).items()}
    for later in landings[begin + 1 :]:
        if _touches(later, top):
            for path, (before, _) in _sides(later, top).items():
                was.setdefault(path, before)
    files = {path: side for path, side in was.items() if side is not None and side.kind == "file"}
    return {path for path, side in was.items() if side is None}, files


def _touches(landing: "Landing", top: str) -> bool:
    return bool(changed_below(landing.state, landing.entries, top))


def _sides(landing: "Landing", top: str) -> dict[str, tuple["Side | None", "Side | None"]]:
    folder = landing.folder
    paths = {"/" + os.fsdecode(step.path): step for step in folder.steps() if not step.implied}
    return {
        path: (folder.side(step.before), folder.side(step.after))
        for path, step in paths.items()
        if covers(top, path)
    }


def _content(side: "Side | None") -> bytes | None:
    if side is None or side.content is None or side.content.frozen is None:
        return None
    with Path(side.content.frozen).open("rb") as file:
        return file.read(MOST_BYTES)
