"""What a person wants of a review: what is to land, as which commit; what was thrown away.

Here: these values, for doors, and which changes they name. Not here: what is done with them (`review.py`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from bowerbird.workspace.tree.regions import Take

Commits = Literal["fetch", "fast_forward", "never"]
NOTHING_TO_LAND = "there is nothing to land: the session changes no such path"
NOTHING_CODE = "nothing_to_land"  # what every door that has codes answers with those words
NO_CHECK = "no check is configured: set landing.check to a shell command, such as pytest -q"


class ToLand(msgspec.Struct, frozen=True, kw_only=True):
    """What of a branch is to land; everything, when nothing is said. See `Branch.land`."""

    paths: Sequence[str] | None = None
    hunks: Sequence[str] | None = None
    accept: Sequence[str] = ()
    force: bool = False
    partial: bool = False
    plan: str | None = None
    seen: Mapping[str, str] | None = None
    commits: Commits | None = None
    include: Sequence[str] = ()
    own_git: bool = False  # the user sits at this machine
    commit: "CommitWish | None" = None
    resolved: Mapping[str, "Sequence[Take]"] | None = None


def named_changes(changed: Sequence[str], named: Sequence[str] | None) -> list[str]:
    """Return the changed files that are named, or lie in what is; then each name without any, as it is. Pure.

    Looks each directory up: thousands of files may be named one by one.

    Example:
        >>> named_changes(["/a", "/src/b", "/srcs"], ["src/", "gone", "src/b"])
        ['/src/b', 'gone']
    """
    if named is None:
        return list(changed)
    tops = {"/" + name.strip("/"): name for name in named}
    used: set[str] = set()
    found: list[str] = []
    for path in changed:
        here = [place for place in ("/", *_down_to(path)) if place in tops]
        if here:
            found.append(path)
            used.update(here)
    return [*found, *(name for top, name in tops.items() if top not in used)]


def _down_to(path: str) -> list[str]:
    ends = [at for at, char in enumerate(path) if char == "/" and at] + [len(path)]
    return [path[:end] for end in ends]


class CommitWish(msgspec.Struct, frozen=True):
    """What lands is to be one commit of the user's, too.

    Attributes:
        message: None = proposed by the small model, or from the session's title.
        branch: the commit is all that happens, on this git branch, which is not checked out; no file lands.
        own_git: the user's own git makes it, with hooks and signature; only where they sit at this machine.
    """

    message: str | None = None
    own_git: bool = False
    branch: str | None = None


class Discarded(msgspec.Struct, frozen=True):
    """What was thrown away; `branch` is in the trash, None when only some paths went."""

    paths: tuple[str, ...]
    branch: str | None = None

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {"status": "discarded", "paths": list(self.paths), "branch": self.branch}
