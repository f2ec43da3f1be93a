"""Files of the workspace that have more names than one (hard links): a landing splits them.

Here: how many names a file has, what is said of it before a landing and after it. Not here: changing files
(`acts.py`).

A landing replaces files and never writes into one, so that a kill leaves the old bytes or the new ones. The
other names therefore keep the old bytes, and the person is told before it happens.
"""

import os
import stat
from collections.abc import Sequence

import msgspec

from bowerbird.workspace.marks.flags import FlagRules, Marks
from bowerbird.workspace.marks.table import FLAGS
from bowerbird.workspace.tree.paths import listed
from bowerbird.workspace.tree.real_directory import Beneath

HARD_LINK = "hard-link"


def links_at(tree: Beneath, path: str) -> int:
    """Return how many names a file of the workspace has; 1 where none stands."""
    found = tree.lstat(os.fsencode(path[1:]))
    return found.st_nlink if found is not None and stat.S_ISREG(found.st_mode) else 1


def with_links(marks: Marks, path: str, links: int, rules: FlagRules) -> Marks:
    """Return a path's marks, with one more where a landing would split its file from other names."""
    if links < 2 or rules.is_unflagged(path):
        return marks
    flags, reasons = (*marks.flags, HARD_LINK), (*marks.reasons, FLAGS[HARD_LINK].reason)
    return msgspec.structs.replace(marks, flags=flags, reasons=reasons)


def split_note(paths: Sequence[str], *, undone: bool = False) -> str:
    """Return what to say of files that were split from their other names; "" for none.

    >>> split_note(["/a.txt"])
    'a.txt had other names (hard links): they keep the old bytes'
    """
    if not paths:
        return ""
    named = listed(paths)
    if not undone:
        return f"{named} had other names (hard links): they keep the old bytes"
    return f"{named}: the old bytes are back, but not the hard links to other names, which the landing split"
