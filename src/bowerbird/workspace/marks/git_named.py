"""Paths of the workspace that its own git configuration names: hook directories, includes, filters.

Here: reading `.git/config` for words that are paths inside the workspace. Not here: changing it, git
directories themselves (`surroundings.py`).

Whoever set `core.hooksPath = tools/hooks` or `include.path = ../team.gitconfig` lets git run or read what
lies there, so a landing there is as good as one in `.git/hooks`. Reading is generous: a word too many only
means that one more path is to be accepted by name.
"""

import posixpath
import re
from collections.abc import Callable

import msgspec

from bowerbird.workspace.marks.names import folded_parts

MOST_BYTES = 256 * 1024
_LINE = re.compile(r"^\s*(?:\[[^\]\n]*\]\s*)?([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)$")
_WORD = re.compile(r"""[^\s"';|&<>()=!$`]+""")
# Keys whose value is a path even without a slash in it.
_PATHS = frozenset({"hookspath", "path", "attributesfile", "fsmonitor", "templatedir", "template", "program"})


class GitNamed(msgspec.Struct, frozen=True):
    """Folded virtual paths that git was told of; each stands for everything below it."""

    paths: frozenset[str]

    def covers(self, path: str) -> bool:
        """Whether git was told of a path or of a directory above it."""
        if not self.paths:
            return False
        here = ""
        for part in folded_parts(path):
            here += "/" + part
            if here in self.paths:
                return True
        return False


def git_named(read: Callable[[str], bytes | None], root: str) -> GitNamed:
    """Return what the configuration of the workspace's repository names.

    Args:
        read: returns the bytes of a file at a virtual path of the workspace, None when there is none.
        root: the workspace's own absolute path: configurations often name that.
    """
    found: set[str] = set()
    for name in ("/.git/config", "/.git/config.worktree"):
        data = read(name)
        if data is not None:
            found |= _named_in(data.decode("utf-8", "replace"), root)
    return GitNamed(frozenset("/".join(["", *folded_parts(path)]) for path in found))


def _named_in(text: str, root: str) -> set[str]:
    found: set[str] = set()
    for line in text.replace("\\\n", " ").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match[1].lower(), match[2]
        for word in _WORD.findall(value):
            if "/" not in word and key not in _PATHS:
                continue
            found |= _inside(word, root)
    return found


def _inside(word: str, root: str) -> set[str]:
    """The virtual paths that a word may mean: from the top, from `.git`, or absolute."""
    if word.startswith("/"):
        below = posixpath.relpath(posixpath.normpath(word), root)
        return set() if below.startswith("..") or below == "." else {"/" + below}
    ways = (posixpath.normpath(posixpath.join(start, word)) for start in ("", ".git"))
    inside = {way for way in ways if not way.startswith("..") and way != "."}
    return {"/" + way for way in inside if not way.startswith(".git/") and way != ".git"}
