"""What is said where git misses objects: whose repository lacks which, and what to do about it.

Here: telling a damaged repository of the user's from commits of the agent that are not whole. Not here:
recognising that an object is missing (`GitFailed.lacking`), what else of a landing fails.
"""

import shlex
from pathlib import Path

import msgspec

from bowerbird.workspace.git.repository import Repository
from bowerbird.workspace.git.running import Git, GitFailed

_LIMIT_S = 10.0


def with_help(error: Exception, place: Path) -> str:
    """Return what git said in a directory of the user's, and what to do where an object is missing there."""
    if not isinstance(error, GitFailed) or error.lacking is None:
        return str(error)
    git = f"git -C {shlex.quote(str(place))}"
    return (
        f"your repository at {place} is damaged: `{git} fsck` names all that is missing, "
        f"`{git} fetch --refetch` brings back what a remote has ({error})"
    )


def reason_of(error: Exception, repository: Repository) -> str:
    """Return why git did not do something, for people; git's own words where no object is missing."""
    name = error.lacking if isinstance(error, GitFailed) else None
    yours = None if name is None else _users_lack(repository, name)
    if not (yours or name):
        return str(error)
    if not yours:
        return (
            f"object {str(name)[:12]} is missing or damaged, and with it commits of the agent: "
            "they stay on the branch, files land anyway"
        )
    place = repository.work_tree or repository.git_dir
    git = f"git -C {shlex.quote(str(place))}"
    return (
        f"your own repository at {place} is damaged: object {yours[:12]} is missing or cannot be read. "
        f"`{git} fsck` names all that is, `{git} fetch --refetch` brings back what a remote has. "
        "Until then commits of the agent stay on the branch, files land anyway"
    )


def _users_lack(repository: Repository, name: str) -> str | None:
    """Return an object that the user's repository lacks where the branch began; None for none.

    Args:
        name: the object that is missing or damaged, "" where that is not known.
    """
    start = repository.refs().resolved("HEAD", new=False)
    if start is None:
        return None
    theirs = msgspec.structs.replace(Git(repository.git_dir), time_limit_s=_LIMIT_S)
    try:
        files = theirs.run("rev-list", "--objects", "--no-walk", start)
        if name and any(line.startswith(name.encode()) for line in files.splitlines()):
            return name  # it is there, but not whole
        theirs.run("rev-list", "--quiet", start)
    except GitFailed as error:
        return error.lacking or None
    return None
