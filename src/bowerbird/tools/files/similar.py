"""Paths that look like one that does not exist (TO-11).

Here: a guess for an error message. Not here: reading, listing.
"""

import difflib
import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_SIMILAR = 3
_CLOSE = 0.6


async def similar_paths(branch: "Branch", path: str) -> list[str]:
    """Return up to 3 files of the branch that look like `path`, without leading slash."""
    try:
        record = await branch.list_files()
    except WorkspaceError:
        return []  # the error about the path itself is what counts
    files: Sequence[str] = record["files"]
    return await to_thread(nearest, path, files)


def nearest(path: str, files: Sequence[str]) -> list[str]:
    """Return up to 3 of `files` whose name, then directory, is like that of `path`.

    Example:
        >>> nearest("src/servr.py", ["/src/server.py", "/docs/a.md"])
        ['src/server.py']
    """
    wanted = posixpath.normpath("/" + path.lstrip("/"))
    name = posixpath.basename(wanted).lower()
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(posixpath.basename(file).lower(), []).append(file)
    close = difflib.get_close_matches(name, list(by_name), n=MAX_SIMILAR, cutoff=_CLOSE)
    found = [file for one in close for file in by_name[one]]
    found.sort(key=lambda file: -_likeness(wanted, file))
    return [file.lstrip("/") for file in found[:MAX_SIMILAR]]


def _likeness(wanted: str, file: str) -> float:
    return difflib.SequenceMatcher(None, wanted.lower(), file.lower()).ratio()
