"""Names that one directory of a case-insensitive disk cannot both hold (`case-clash`).

Here: whether a directory tells case apart, which landed names meet another.
Not here: flags by name (`marks/flags.py`).
"""

import os
import unicodedata
from collections.abc import Collection

from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.real_directory import Beneath


def case_clashes(tree: Beneath, paths: Collection[str]) -> set[str]:
    """Return the paths that would take another name's place in the workspace."""
    if not paths or not ignores_case(tree):
        return set()
    clashing: set[str] = set()
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(folded(path), path)
        if other != path:
            clashing |= {path, other}
        above, _, name = path.rpartition("/")
        try:
            present = {os.fsdecode(found) for found in tree.names(os.fsencode(above[1:]))}
        except OSError as error:
            if presence.is_absence(error):
                continue  # the directory is made by this landing
            raise
        if name not in present and folded(name) in {folded(found) for found in present}:
            clashing.add(path)
    return clashing


def ignores_case(tree: Beneath) -> bool:
    """Whether the workspace's file system takes `a` and `A` for one name; found without writing."""
    for name in tree.names(b""):
        other = os.fsencode(os.fsdecode(name).swapcase())
        if other == name:
            continue
        mine, theirs = tree.lstat(name), tree.lstat(other)
        if mine is not None:
            return theirs is not None and (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino)
    root = tree.root
    other_root = root.with_name(root.name.swapcase())
    return root.name != other_root.name and presence.exists(other_root) and other_root.samefile(root)


def folded(name: str) -> str:
    """Return the form in which such file systems compare names."""
    return unicodedata.normalize("NFC", name).casefold()
