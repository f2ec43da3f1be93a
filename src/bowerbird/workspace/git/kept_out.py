"""A file that stays out of the commits of a git workspace (AS-43).

Here: how it stands, the line for `.git/info/exclude`, the mark of a tracked one. Not here: landing that line
(`sessions/kept_files.py`), which file.
"""

import os
from pathlib import Path
from typing import Literal

import msgspec

from bowerbird.workspace.git.running import GitFailed
from bowerbird.workspace.git.users_git import UsersGit

EXCLUDE = "/.git/info/exclude"
LIMIT_S = 30.0
_MOST_BYTES = 1 << 20

Standing = Literal["no git", "kept out", "tracked", "free"]


class KeptOut(msgspec.Struct, frozen=True):
    """How a file of a workspace stands with git.

    Attributes:
        standing: `no git` = the workspace is no whole repository of its own; `tracked` = commits have it;
            `free` = a commit of everything would take it.
        exclude: what `.git/info/exclude` is to hold, for `free`.
    """

    standing: Standing
    exclude: bytes = b""


def standing_of(root: Path, name: str) -> KeptOut:
    """Return how the file `name` at the root of a workspace stands. Blocks.

    Raises:
        GitFailed: git cannot say. OSError: its directory cannot be read.
    """
    if not (root / ".git").is_dir():
        return KeptOut("no git")
    git = UsersGit(root, own=False, limit_s=LIMIT_S)
    listed = os.fsdecode(git.run("ls-files", "-v", "--", name))
    if listed:
        return KeptOut("kept out" if listed[0] in "Ss" else "tracked")
    try:
        git.run("check-ignore", "-q", "--", name)
    except GitFailed:
        return KeptOut("free", _with_line(root, name))
    return KeptOut("kept out")


def keep_tracked_out(root: Path, name: str) -> None:
    """Mark a tracked file, so that no commit takes what it becomes; raises GitFailed. Blocks."""
    UsersGit(root, own=False, limit_s=LIMIT_S).run("update-index", "--skip-worktree", "--", name)


def _with_line(root: Path, name: str) -> bytes:
    try:
        with (root / EXCLUDE.lstrip("/")).open("rb") as file:
            known = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        known = b""
    if len(known) > _MOST_BYTES:
        raise GitFailed(f"{EXCLUDE.lstrip('/')} is larger than {_MOST_BYTES >> 20} MiB")
    line = os.fsencode(f"/{name}\n")
    return known + (b"" if not known or known.endswith(b"\n") else b"\n") + line
